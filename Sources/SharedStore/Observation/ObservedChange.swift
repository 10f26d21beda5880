/// What an observer is told.
///
/// Applied to what was there at the last call it gives what is there now: deletions and modifications count in the old state,
/// insertions in the new one.
public struct ObservedChange: Sendable {
    /// The first call of a callback. It tells of changes where the observer began at an older version than the one that is
    /// delivered.
    public internal(set) var isInitial = false
    /// By kind of what is observed: positions, keys, an object or sections.
    public internal(set) var content = Content.none

    /// What changed since the callback was called last.
    public enum Content: Sendable {
        case none
        /// Positions in a collection or a result.
        case positions(CollectionChange)
        /// Keys of a dictionary.
        case keys(KeyChange)
        case object(ObjectChange)
        case sections(SectionsChange)
    }

    /// What happened to the entries of a dictionary.
    public struct KeyChange: Equatable, Sendable {
        /// Keys that were there before and are not now.
        public internal(set) var deletions: [String] = []
        /// Keys that are there now and were not.
        public internal(set) var insertions: [String] = []
        /// Keys that were there before and have another value now.
        public internal(set) var modifications: [String] = []
        /// Emptied by one operation and not filled since.
        public internal(set) var wasCleared = false
        /// The object or the Mixed value that held the dictionary is gone.
        public internal(set) var ownerWasDeleted = false

        /// No entry changed, and the dictionary is where it was.
        public var isEmpty: Bool {
            deletions.isEmpty && insertions.isEmpty && modifications.isEmpty && !wasCleared && !ownerWasDeleted
        }
    }

    /// What happened to one object.
    public struct ObjectChange: Sendable {
        /// The object is gone; nothing follows after this.
        public internal(set) var wasDeleted = false
        /// Properties of the object that were assigned, or through which something changed that a key path names.
        public internal(set) var properties: Set<ObservedKeyPath.Step> = []
        /// The key paths along which something changed.
        public internal(set) var paths: Set<ObservedKeyPath> = []
        /// What the properties were before, as far as others changed them; none for collections and for changes of our own.
        public internal(set) var oldValues: [ColumnKey: Mixed] = [:]

        /// It is there, and no property that counts has changed.
        public var isEmpty: Bool { !wasDeleted && properties.isEmpty }
    }

    var isEmpty: Bool {
        switch content {
        case .none: true
        case .positions(let change): change.isEmpty
        case .keys(let change): change.isEmpty
        case .object(let change): change.isEmpty
        case .sections(let change): change.isEmpty
        }
    }
}

extension ObservedChange.KeyChange {
    /// The change by positions as one by keys.
    init(_ change: CollectionChange, deleted: [String], new: [String]) {
        deletions = deleted
        insertions = change.insertions.compactMap { $0 < new.count ? new[$0] : nil }
        modifications = change.modificationsNew.compactMap { $0 < new.count ? new[$0] : nil }
        wasCleared = change.wasCleared
        ownerWasDeleted = change.ownerWasDeleted
    }
}

extension ObservedChange.ObjectChange {
    /// Adds what happened later.
    mutating func append(_ next: ObservedChange.ObjectChange) {
        if next.wasDeleted {
            self = next
            return
        }
        for (column, value) in next.oldValues
        where oldValues[column] == nil && !properties.contains(where: { $0.column == column }) {
            oldValues[column] = value
        }
        properties.formUnion(next.properties)
        paths.formUnion(next.paths)
    }
}
