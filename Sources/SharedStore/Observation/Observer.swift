/// One accessor that is observed, with the callbacks that were registered on it: all are told the same.
///
/// Belongs to its engine, and with it to one thread, queue or actor.
public class Observer {
    /// One callback. It is called until it is cancelled.
    public final class Callback {
        let keyPaths: [ObservedKeyPath]?
        let body: (ObservedChange) -> Void
        fileprivate(set) var hasBeenCalled = false
        /// What happened since the last call.
        fileprivate(set) var pending = ObservedChange.Content.none
        /// What a result's sections were at the last call.
        fileprivate var sections = Sections()
        /// False after `cancel`; what was pending then is never told.
        public private(set) var isActive = true
        fileprivate weak var observer: Observer?

        fileprivate init(_ observer: Observer, _ keyPaths: [ObservedKeyPath]?, _ body: @escaping (ObservedChange) -> Void) {
            self.observer = observer
            self.keyPaths = keyPaths
            self.body = body
        }

        /// No call follows.
        public func cancel() {
            if !isActive { return }
            isActive = false
            pending = .none
            guard let observer else { return }
            observer.callbacks.removeAll { $0 === self }
            if observer.callbacks.isEmpty { observer.engine?.drop(observer) }
        }
    }

    private(set) var callbacks: [Callback] = []
    weak var engine: ObservationEngine?
    /// The engine brings it along from version to version.
    var isRegistered = false
    /// The engine has it on its list, perhaps only still.
    var isListed = false
    /// The classes whose changes must be collected for this observer.
    func tables(_ graph: LinkGraph) -> Set<TableKey> { [] }
    var dependsOnEverything: Bool { false }
    var identity: ChangesetWriter.CollectionIdentity? { nil }
    /// Nothing will ever be told again.
    var isDead: Bool { false }
    /// It goes on after all accessors of the session were invalidated.
    var canResume: Bool { false }

    init() {}

    /// At registration, at the version that the observer's owner is at.
    func register(_ group: Group) throws {}
    /// Before the first calls are made.
    func prepare(_ group: Group) throws {}
    /// What comes next will be a gap; see `PositionTracker`.
    func remember(_ group: Group) throws {}
    /// What the step did, for all callbacks.
    func advance(_ step: ObservationStep) throws -> ObservedChange.Content { .none }
    fileprivate func take(_ change: ObservedChange.Content, _ callback: Callback) {}
    /// What a call is to tell.
    fileprivate func content(_ callback: Callback) -> ObservedChange.Content { callback.pending }

    var filter: ElementFilter {
        ElementFilter(paths: callbacks.flatMap { $0.keyPaths ?? [] }, isOpen: callbacks.contains { $0.keyPaths == nil })
    }

    func add(_ keyPaths: [ObservedKeyPath]?, _ body: @escaping (ObservedChange) -> Void) -> Callback {
        let callback = Callback(self, keyPaths, body)
        callbacks.append(callback)
        return callback
    }

    /// The step is taken; who is in `skipped` does not hear of it.
    func advance(_ step: ObservationStep, skipping skipped: [Callback]) throws {
        let change = try advance(step)
        for callback in callbacks where !skipped.contains(where: { $0 === callback }) { take(change, callback) }
        didAdvance(skipped)
    }

    fileprivate func didAdvance(_ skipped: [Callback]) {}

    /// Calls back with what is pending, if anything is.
    func deliver(_ callback: Callback) {
        guard callback.isActive else { return }
        let isInitial = !callback.hasBeenCalled
        let change = ObservedChange(isInitial: isInitial, content: content(callback))
        callback.pending = .none
        callback.hasBeenCalled = true
        didDeliver(callback)
        if isInitial || !change.isEmpty { callback.body(change) }
    }

    fileprivate func didDeliver(_ callback: Callback) {}
}

// MARK: Objects

final class ObjectObserver: Observer {
    let table: TableKey
    let key: ObjectKey
    private var wasDeleted = false

    init(_ table: TableKey, _ key: ObjectKey) {
        self.table = table
        self.key = key
    }

    override var isDead: Bool { wasDeleted }
    override func tables(_ graph: LinkGraph) -> Set<TableKey> {
        filter.paths.reduce(into: [table]) { tables, path in
            for step in path.steps {
                tables.insert(step.table)
                if let origin = step.origin { tables.insert(origin) }
            }
        }
    }

    override func advance(_ step: ObservationStep) throws -> ObservedChange.Content {
        if wasDeleted { return .none }
        var change = ObservedChange.ObjectChange()
        let own = step.changes.tables[table]
        let isGone = try step.hasGap && step.group.table(table)?.find(key) == nil
        if isGone || own?.deletions.contains(key) == true {
            wasDeleted = true
            change.wasDeleted = true
            return .object(change)
        }
        let filter = filter
        let columns = own?.modifications[key] ?? []
        if filter.isOpen {
            for column in columns { change.properties.insert(ObservedKeyPath.Step(table: table, column: column)) }
        }
        for path in filter.paths {
            guard let first = path.steps.first, try step.check.isModified(key, along: path.steps[...]) else { continue }
            change.properties.insert(first)
            change.paths.insert(path)
        }
        if let old = step.old, !change.properties.isEmpty, let reading = try old.table(table), let row = try reading.find(key) {
            for property in change.properties where property.origin == nil {
                guard let column = reading.column(property.column), column.collection == nil, !column.isBacklink else { continue }
                change.oldValues[column.key] = try row.value(column)
            }
        }
        return change.isEmpty ? .none : .object(change)
    }

    override fileprivate func take(_ change: ObservedChange.Content, _ callback: Callback) {
        guard case .object(let next) = change else { return }
        if case .object(var pending) = callback.pending {
            pending.append(next)
            callback.pending = .object(pending)
        } else {
            callback.pending = change
        }
    }
}

// MARK: Positions

/// Results, collections and views of them.
class PositionObserver: Observer {
    let tracker: PositionTracker

    init(_ tracker: PositionTracker) { self.tracker = tracker }

    override var isDead: Bool { tracker.isDead }
    override var canResume: Bool { (tracker is ObjectsTracker || tracker is TableTracker) && tracker.identity == nil }
    override var identity: ChangesetWriter.CollectionIdentity? { tracker.identity }
    override var dependsOnEverything: Bool { tracker.dependsOnEverything }

    override func tables(_ graph: LinkGraph) -> Set<TableKey> {
        var tables = tracker.tables
        if let collection = tracker.identity { tables.insert(collection.table) }
        let filter = filter
        if tracker.table != .null {
            tables.insert(tracker.table)
            if filter.isOpen { tables.formUnion(graph.reachable(from: tracker.table)) }
        }
        for step in filter.paths.flatMap(\.steps) {
            tables.insert(step.table)
            if let origin = step.origin { tables.insert(origin) }
        }
        return tables
    }

    /// A collection begins where it is registered: what happens to it from there on is in the changesets. A result begins with
    /// its first call.
    override func register(_ group: Group) throws {
        if tracker is CollectionTracker && !tracker.hasStarted { try tracker.start(group) }
    }

    override func prepare(_ group: Group) throws {
        if !tracker.hasStarted { try tracker.start(group) }
    }

    override func remember(_ group: Group) throws {
        if tracker.hasStarted && !tracker.isDead { try tracker.remember(group) }
    }

    override func advance(_ step: ObservationStep) throws -> ObservedChange.Content {
        if !tracker.hasStarted { return .none }
        let change = try tracker.advance(step, filter)
        if change.isEmpty { return .none }
        if let collection = tracker as? CollectionTracker, collection.isDictionary {
            return .keys(ObservedChange.KeyChange(change, deleted: collection.deletedKeys, new: collection.keys))
        }
        return .positions(change)
    }

    override fileprivate func take(_ change: ObservedChange.Content, _ callback: Callback) {
        switch (callback.pending, change) {
        case (_, .none): break
        case (.positions(var pending), .positions(let next)):
            pending.append(next)
            callback.pending = .positions(pending)
        case (.keys(var pending), .keys(let next)):
            pending.append(next)
            callback.pending = .keys(pending)
        default: callback.pending = change
        }
    }
}

extension ObservedChange.KeyChange {
    /// Adds what happened later.
    mutating func append(_ next: ObservedChange.KeyChange) {
        var deleted = exact(deletions), inserted = exact(insertions), modified = exact(modifications)
        for key in exact(next.deletions) {
            modified.remove(key)
            if inserted.remove(key) == nil { deleted.insert(key) }
        }
        for key in exact(next.insertions) { inserted.insert(key) }
        for key in exact(next.modifications) where !inserted.contains(key) { modified.insert(key) }
        func exact(_ keys: [String]) -> Set<ExactString> { Set(keys.lazy.map { ExactString($0) }) }
        func ordered(_ keys: Set<ExactString>) -> [String] { keys.sorted().map(\.text) }
        deletions = ordered(deleted)
        insertions = ordered(inserted)
        modifications = ordered(modified)
        wasCleared = next.wasCleared || (wasCleared && next.insertions.isEmpty)
        ownerWasDeleted = ownerWasDeleted || next.ownerWasDeleted
    }
}

// MARK: Sections

/// A result that is cut into sections.
final class SectionsObserver: PositionObserver {
    private let sectionKeys: (Group) throws -> [AnyHashable]
    private var sections = Sections()
    private var hasSections = false

    /// - Parameter sectionKeys: the section key of each element of the result, in order.
    init(_ tracker: PositionTracker, sectionKeys: @escaping (Group) throws -> [AnyHashable]) {
        self.sectionKeys = sectionKeys
        super.init(tracker)
    }

    override func register(_ group: Group) throws {}

    override func prepare(_ group: Group) throws {
        try super.prepare(group)
        if hasSections { return }
        hasSections = true
        sections = Sections(tracker.isDead ? [] : try sectionKeys(group))
        for callback in callbacks { callback.sections = sections }
    }

    override func add(_ keyPaths: [ObservedKeyPath]?, _ body: @escaping (ObservedChange) -> Void) -> Callback {
        let callback = super.add(keyPaths, body)
        callback.sections = sections
        return callback
    }

    override func advance(_ step: ObservationStep) throws -> ObservedChange.Content {
        if !tracker.hasStarted { return .none }
        let change = try tracker.advance(step, filter)
        // Keys may come through links that no change of the result tells of.
        if change.isEmpty && (tracker.table == .null || step.changes.tables.isEmpty) { return .none }
        sections = Sections(tracker.isDead ? [] : try sectionKeys(step.group))
        return .positions(change)
    }

    override fileprivate func take(_ change: ObservedChange.Content, _ callback: Callback) {
        guard case .positions(let next) = change else { return }
        if case .positions(var pending) = callback.pending {
            pending.append(next)
            callback.pending = .positions(pending)
        } else {
            callback.pending = change
        }
    }

    override fileprivate func didAdvance(_ skipped: [Callback]) {
        for callback in callbacks where skipped.contains(where: { $0 === callback }) && !callback.hasPending {
            callback.sections = sections
        }
    }

    override fileprivate func content(_ callback: Callback) -> ObservedChange.Content {
        guard case .positions(let change) = callback.pending else { return .none }
        return .sections(SectionsChange(change, old: callback.sections, new: sections))
    }

    override fileprivate func didDeliver(_ callback: Callback) { callback.sections = sections }
}

extension Observer.Callback {
    fileprivate var hasPending: Bool {
        if case .none = pending { return false }
        return true
    }
}
