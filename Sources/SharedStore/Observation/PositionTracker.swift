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

// MARK: Results

/// Where the objects of a result come from.
public struct ObservedObjects {
    /// The class of the objects.
    public var table: TableKey
    /// What the result depends on, besides the collection.
    public var dependencies: QueryDependencies
    /// The collection that the objects are taken from, if any.
    public var collection: ChangesetWriter.CollectionIdentity?
    /// The objects in order, null keys for null links; nil where what they are taken from is gone.
    public var evaluate: (Group) throws -> [ObjectKey]?
    /// Where the objects are all of a class that fulfil a condition on their own properties, in the order of their keys: the
    /// query, so that only the objects that changed need be looked at.
    public var filter: Query?
    /// Told of the objects of the new version, where they were not asked for by `evaluate`.
    public var adopt: (([ObjectKey]) -> Void)?

    /// - Parameter evaluate: called again at each version in which something changed on which the result depends; what it throws
    ///   comes out of the engine's step.
    public init(
        table: TableKey, dependencies: QueryDependencies, collection: ChangesetWriter.CollectionIdentity? = nil,
        evaluate: @escaping (Group) throws -> [ObjectKey]?
    ) {
        self.table = table
        self.dependencies = dependencies
        self.collection = collection
        self.evaluate = evaluate
    }

    /// What a query finds.
    public init(_ query: Query) {
        self.init(table: query.table, dependencies: query.dependencies) { try query.run(in: $0) }
        filter = dependencies.isFilter ? query : nil
    }
}

/// The objects of a result: found anew where a class that matters has changed, and compared with those before (file-format-3
/// 6.6).
final class ObjectsTracker: PositionTracker {
    let source: ObservedObjects
    fileprivate var keys: [ObjectKey] = []
    /// Objects of the class, whether in the result or not.
    fileprivate var objectCount = 0

    init(_ source: ObservedObjects) { self.source = source }

    override var table: TableKey { source.table }
    override var contents: Contents { .objects(keys) }
    override var identity: ChangesetWriter.CollectionIdentity? { source.collection }
    override var tables: Set<TableKey> { source.dependencies.tables }
    override var dependsOnEverything: Bool { source.dependencies.isEverything }

    override func start(_ group: Group) throws {
        try super.start(group)
        guard let found = try source.evaluate(group) else {
            isDead = true
            return
        }
        keys = found
        objectCount = try group.table(source.table)?.objectCount ?? 0
    }

    private func isInvolved(_ step: ObservationStep) -> Bool {
        if step.hasGap { return true }
        if let collection = source.collection, step.touches(collection.table, collection.object) { return true }
        if source.dependencies.isEverything { return !step.changes.tables.isEmpty }
        return source.dependencies.tables.contains { step.changes.tables[$0]?.isEmpty == false }
    }

    override func advance(_ step: ObservationStep, _ elements: ElementFilter) throws -> CollectionChange {
        if isDead { return CollectionChange() }
        let check = step.check
        let isIdle = elements.isIdle(check, source.table)
        let candidates = isIdle ? [] : try elements.candidates(check, source.table)
        if !isInvolved(step) {
            var change = CollectionChange()
            if candidates?.isEmpty == true { return change }
            for (i, key) in keys.enumerated()
            where try candidates?.contains(key) != false && elements.isModified(check, source.table, key) {
                change.modifications.add(i)
            }
            return change
        }
        if let change = try advanceFilter(step, elements, candidates) { return change }
        guard let found = try source.evaluate(step.group) else {
            let oldCount = keys.count
            keys = []
            return end(oldCount: oldCount, tellsOfOwner: false)
        }
        let old = keys
        keys = found
        objectCount = try step.group.table(source.table)?.objectCount ?? 0
        let inserted = step.changes.tables[source.table]?.insertions ?? []
        if old.isStrictlyAscending && found.isStrictlyAscending {
            return try CollectionChange.ofAscending(old, found, inserted: inserted, candidates: candidates) {
                try elements.isModified(check, source.table, $0)
            }
        }
        let isModified: (ObjectKey) throws -> Bool = {
            try candidates?.contains($0) != false && elements.isModified(check, self.source.table, $0)
        }
        return try SequenceDifference.compute(
            old: old.map { Element(key: $0) }, new: found.map { Element(key: $0, isNew: inserted.contains($0)) },
            isModified: { try isModified($0.key) })
    }
}

extension ObjectsTracker {
    /// More changed objects than this part of all are not looked at one by one.
    private static var changedFraction: Int { 16 }

    /// Whether an object belongs to the result depends on itself alone: only those that changed are looked at. Nil where that
    /// does not apply.
    private func advanceFilter(_ step: ObservationStep, _ elements: ElementFilter, _ candidates: Set<ObjectKey>?) throws
        -> CollectionChange?
    {
        guard let filter = source.filter, !step.hasGap, !step.changes.schemaWasChanged, !step.changes.schemaWasExtended,
            let candidates, let own = step.changes.tables[source.table], let table = try step.group.table(source.table)
        else { return nil }
        // Objects that come and go without a word, as embedded ones do, are found by looking at all.
        if table.kind == .embedded || table.objectCount != objectCount + own.insertions.count - own.deletions.count { return nil }
        var changed = Set(own.modifications.keys)
        changed.formUnion(own.insertions)
        changed.formUnion(own.deletions)
        if changed.count > keys.count / Self.changedFraction + Self.changedFraction { return nil }
        let found = try filter.run(in: step.group, over: changed.sorted())
        var change = CollectionChange()
        let left = changed.filter { keys.position(ofAscending: $0) != nil && found.position(ofAscending: $0) == nil }.sorted()
        let come = found.filter { keys.position(ofAscending: $0) == nil }
        let next = keys.replacing(left, by: come)
        for key in left { if let position = keys.position(ofAscending: key) { change.deletions.add(position) } }
        for key in come { if let position = next.position(ofAscending: key) { change.insertions.add(position) } }
        for key in found where own.insertions.contains(key) {
            // Another object with the key of one that was there.
            guard let before = keys.position(ofAscending: key), let now = next.position(ofAscending: key) else { continue }
            change.deletions.add(before)
            change.insertions.add(now)
        }
        for key in candidates {
            guard let now = next.position(ofAscending: key), !change.insertions.contains(now) else { continue }
            if try elements.isModified(step.check, source.table, key) { change.modifications.add(now) }
        }
        keys = next
        objectCount = table.objectCount
        source.adopt?(next)
        return change
    }
}

extension [ObjectKey] {
    /// Ascending keys without some of them and with others, which ascend as well.
    fileprivate func replacing(_ left: [ObjectKey], by come: [ObjectKey]) -> [ObjectKey] {
        if left.isEmpty && come.isEmpty { return self }
        var result: [ObjectKey] = []
        result.reserveCapacity(count + come.count)
        var start = 0
        var nextLeft = 0, nextCome = 0
        func place(_ key: ObjectKey) -> Int {
            var low = start, high = count
            while low < high {
                let middle = (low + high) / 2
                if self[middle] < key { low = middle + 1 } else { high = middle }
            }
            return low
        }
        while nextLeft < left.count || nextCome < come.count {
            if nextCome == come.count || nextLeft < left.count && left[nextLeft] < come[nextCome] {
                let end = place(left[nextLeft])
                result += self[start..<end]
                start = end + 1
                nextLeft += 1
            } else {
                let end = place(come[nextCome])
                result += self[start..<end]
                result.append(come[nextCome])
                start = end
                nextCome += 1
            }
        }
        result += self[start...]
        return result
    }
}

/// An element of a result.
private struct Element: Hashable {
    var key: ObjectKey
    /// The object is another one than its namesake of the version before.
    var isNew = false
}

extension [ObjectKey] {
    fileprivate var isStrictlyAscending: Bool {
        for i in indices.dropFirst() where self[i - 1] >= self[i] { return false }
        return true
    }
}

extension CollectionChange {
    /// The difference of two ascending sequences: no element changes places.
    ///
    /// - Parameters:
    ///   - inserted: those of the keys that belong to other objects than before.
    ///   - candidates: the keys for which `isModified` is to be asked; nil for all.
    static func ofAscending(
        _ old: [ObjectKey], _ new: [ObjectKey], inserted: Set<ObjectKey>, candidates: Set<ObjectKey>?,
        _ isModified: (ObjectKey) throws -> Bool
    ) rethrows -> CollectionChange {
        var change = CollectionChange()
        var i = 0, j = 0
        while i < old.count || j < new.count {
            if j == new.count || (i < old.count && old[i] < new[j]) {
                change.deletions.add(i)
                i += 1
            } else if i == old.count || new[j] < old[i] {
                change.insertions.add(j)
                j += 1
            } else {
                i += 1
                j += 1
            }
        }
        for key in inserted {
            guard let before = old.position(ofAscending: key), let now = new.position(ofAscending: key) else { continue }
            change.deletions.add(before)
            change.insertions.add(now)
        }
        if let candidates, candidates.count < new.count {
            for key in candidates {
                guard let now = new.position(ofAscending: key), !change.insertions.contains(now) else { continue }
                if try isModified(key) { change.modifications.add(now) }
            }
        } else {
            for (now, key) in new.enumerated() where candidates?.contains(key) != false && !change.insertions.contains(now) {
                if try isModified(key) { change.modifications.add(now) }
            }
        }
        return change
    }
}

extension [ObjectKey] {
    /// Where a key stands in ascending ones.
    fileprivate func position(ofAscending key: ObjectKey) -> Int? {
        var low = 0, high = count
        while low < high {
            let middle = (low + high) / 2
            if self[middle] < key { low = middle + 1 } else { high = middle }
        }
        return low < count && self[low] == key ? low : nil
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
