/// Follows one sequence of elements through the versions and tells what became of its positions.
///
/// Belongs to one observer, and is used where that is.
class PositionTracker {
    /// What a sequence is made of, for those who look at its elements.
    enum Contents {
        /// Elements of a collection, in its own order; null keys stand for null links.
        case objects([ObjectKey])
        /// Positions in a collection of values.
        case positions([Int])
        /// A collection itself.
        case all(Int)
    }

    /// The sequence is gone for good.
    final var isDead = false
    private(set) var hasStarted = false
    /// The class of the elements, null where they are values.
    var table: TableKey { .null }
    var contents: Contents { .all(0) }
    /// The collection whose changes must be collected.
    var identity: ChangesetWriter.CollectionIdentity? { nil }
    /// Classes, besides that of the elements, whose changes may matter.
    var tables: Set<TableKey> { [] }
    var dependsOnEverything: Bool { false }

    /// Takes the state of a version for the one that changes are relative to.
    func start(_ group: Group) throws { hasStarted = true }

    /// What comes next will be a gap: whatever only the version that is left, `group`, can tell is to be remembered.
    func remember(_ group: Group) throws {}

    /// Goes on to the version that the step leads to.
    func advance(_ step: ObservationStep, _ elements: ElementFilter) throws -> CollectionChange { CollectionChange() }

    final func end(oldCount: Int, tellsOfOwner: Bool) -> CollectionChange {
        isDead = true
        var change = CollectionChange()
        change.deletions = PositionSet(0..<oldCount)
        change.ownerWasDeleted = tellsOfOwner
        return change
    }
}

/// Which objects count as modified for the callbacks of one observer.
struct ElementFilter {
    var paths: [ObservedKeyPath]
    /// Some callback hears of everything.
    var isOpen: Bool

    func isModified(_ check: ChangeCheck, _ table: TableKey, _ key: ObjectKey) throws -> Bool {
        if isOpen, try check.isModified(table, key) { return true }
        return try !paths.isEmpty && check.isModified(key, along: paths)
    }

    /// Objects among which all of the class are that count as modified; nil where any may be.
    func candidates(_ check: ChangeCheck, _ table: TableKey) throws -> Set<ObjectKey>? {
        var found: Set<ObjectKey> = []
        if isOpen {
            guard let modified = try check.modificationCandidates(table) else { return nil }
            found = modified
        }
        for path in paths {
            guard let first = path.steps.first else { continue }
            let others = path.steps.dropFirst().flatMap { [$0.table, $0.origin] } + [first.origin]
            if others.contains(where: { $0.flatMap { check.tables[$0] }?.isEmpty == false }) { return nil }
            found.formUnion((check.tables[table] ?? TableChange()).modifications.keys)
        }
        return found
    }

    /// Nothing of the class can count as modified.
    func isIdle(_ check: ChangeCheck, _ table: TableKey) -> Bool {
        !(isOpen && check.mayBeModified(table)) && paths.isEmpty
    }
}

// MARK: Collections

/// A list, set or dictionary: what the changesets say of its positions.
final class CollectionTracker: PositionTracker {
    let collection: ChangesetWriter.CollectionIdentity
    private(set) var count = 0
    private var salt: Int64 = 0
    private(set) var keys: [String] = []
    /// Those that the last step deleted.
    private(set) var deletedKeys: [String] = []
    private(set) var isDictionary = false
    private(set) var elementTable = TableKey.null

    init(_ collection: ChangesetWriter.CollectionIdentity) { self.collection = collection }

    override var table: TableKey { elementTable }
    override var contents: Contents { .all(count) }
    override var identity: ChangesetWriter.CollectionIdentity? { collection }

    override func start(_ group: Group) throws {
        try super.start(group)
        guard let (found, salt) = try ObservedCollection.find(collection, in: group) else {
            isDead = true
            return
        }
        if case .dictionary = found { isDictionary = true }
        if collection.salts.isEmpty, let column = try group.table(collection.table)?.column(collection.column),
            column.type == .link
        {
            elementTable = column.oppositeTable
        }
        count = found.count
        self.salt = salt
        keys = try found.keys()
    }

    /// So many keys are taken out and put in one by one; beyond that all are read anew.
    private static let singleKeysMax = 64

    private func take(_ found: ObservedCollection, _ salt: Int64, _ change: CollectionChange) throws {
        count = found.count
        self.salt = salt
        if !isDictionary { return }
        deletedKeys = change.deletions.map { keys[$0] }
        if change.deletions.count + change.insertions.count > Self.singleKeysMax {
            keys = try found.keys()
            return
        }
        for i in Array(change.deletions).reversed() { keys.remove(at: i) }
        for i in change.insertions { keys.insert(try found.key(i), at: i) }
    }

    override func advance(_ step: ObservationStep, _ elements: ElementFilter) throws -> CollectionChange {
        if isDead { return CollectionChange() }
        var change = step.changes.collections[collection] ?? CollectionChange()
        // What did not touch the owner did not touch the collection, and elements change only with their classes.
        let mayHaveChanged = step.hasGap || step.touches(collection.table, collection.object)
        if !mayHaveChanged && change.isEmpty && (elementTable == .null || elements.isIdle(step.check, elementTable)) {
            return CollectionChange()
        }
        guard !change.ownerWasDeleted, let (found, salt) = try ObservedCollection.find(collection, in: step.group),
            found.isDictionary == isDictionary
        else {
            let oldCount = count
            count = 0
            deletedKeys = keys
            keys = []
            return end(oldCount: oldCount, tellsOfOwner: true)
        }
        if step.hasGap || salt != self.salt || !change.leads(from: count, to: found.count) {
            // Another collection in the same place, or a changeset that does not fit.
            change = CollectionChange(replacing: count, by: found.count)
        }
        for salt in change.modifiedSalts {
            if let position = try found.position(ofNestedKey: salt) { change.modifications.add(position) }
        }
        change.modifiedSalts = []
        if elementTable != .null && !elements.isIdle(step.check, elementTable) {
            for i in 0..<found.count where !change.insertions.contains(i) && !change.modifications.contains(i) {
                if case .link(let table, let key) = try found.value(i), try elements.isModified(step.check, table, key) {
                    change.modifications.add(i)
                }
            }
        }
        try take(found, salt, change)
        return change
    }
}

extension ObservedCollection {
    var isDictionary: Bool {
        if case .dictionary = self { return true }
        return false
    }
}

extension CollectionChange {
    /// All new.
    init(replacing oldCount: Int, by newCount: Int) {
        self.init()
        deletions = PositionSet(0..<oldCount)
        insertions = PositionSet(0..<newCount)
    }

    /// Whether the change can be one from so many elements to so many: changesets come from others.
    func leads(from oldCount: Int, to newCount: Int) -> Bool {
        if let last = deletions.last, last >= oldCount { return false }
        if let last = insertions.last, last >= newCount { return false }
        if let last = modifications.last, last >= newCount { return false }
        return oldCount - deletions.count + insertions.count == newCount
    }
}

// MARK: Views of values

/// A view of a collection of values: sorted, filtered, or only the first of equal ones.
public struct ObservedValues {
    /// The collection that is looked at.
    public var collection: ChangesetWriter.CollectionIdentity
    /// The positions of the values in the collection, in the order of the view; nil where the collection is gone.
    public var evaluate: (Group) throws -> [Int]?

    /// - Parameter evaluate: called again at each version in which the collection changed.
    public init(collection: ChangesetWriter.CollectionIdentity, evaluate: @escaping (Group) throws -> [Int]?) {
        self.collection = collection
        self.evaluate = evaluate
    }
}

/// Values are told apart by their positions in the collection (file-format-3 6.6): one that is set in place is the same,
/// modified.
final class ValuesTracker: PositionTracker {
    let source: ObservedValues
    private let inner: CollectionTracker
    private var positions: [Int] = []

    init(_ source: ObservedValues) {
        self.source = source
        inner = CollectionTracker(source.collection)
    }

    override var contents: Contents { .positions(positions) }
    override var identity: ChangesetWriter.CollectionIdentity? { source.collection }

    override func start(_ group: Group) throws {
        try super.start(group)
        try inner.start(group)
        guard let found = try source.evaluate(group), !inner.isDead else {
            isDead = true
            return
        }
        positions = found
    }

    override func advance(_ step: ObservationStep, _ elements: ElementFilter) throws -> CollectionChange {
        if isDead { return CollectionChange() }
        let oldCount = inner.count
        let below = try inner.advance(step, ElementFilter(paths: [], isOpen: false))
        if below.isEmpty { return CollectionChange() }
        let old = positions
        guard !inner.isDead, let found = try source.evaluate(step.group) else {
            positions = []
            return end(oldCount: old.count, tellsOfOwner: true)
        }
        positions = found
        // Where the values of the old view are now; those that are gone get numbers that no position has.
        let newPositions = below.newPositions(oldCount: oldCount)
        let survivors = old.map { $0 < oldCount ? newPositions[$0] ?? -1 - $0 : -1 - $0 }
        let modified = below.modificationsNew
        var change = SequenceDifference.compute(old: survivors, new: found) { modified.contains($0) }
        if inner.isDictionary { change.wasCleared = below.wasCleared }
        return change
    }
}
