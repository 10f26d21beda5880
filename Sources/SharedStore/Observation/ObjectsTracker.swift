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
    /// Where the objects are all of a class that fulfil a condition on their own properties, in an order that these make: the
    /// query, so that only the objects that changed need be looked at.
    public var ownQuery: Query?
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
        ownQuery = dependencies.isOwn ? query : nil
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
        if let change = try advanceOwn(step, elements, candidates) { return change }
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

    /// Whether an object belongs to the result, and where, depends on objects of the class alone: only those that changed are
    /// looked at. Nil where that does not apply.
    private func advanceOwn(_ step: ObservationStep, _ elements: ElementFilter, _ candidates: Set<ObjectKey>?) throws
        -> CollectionChange?
    {
        guard let query = source.ownQuery, !step.hasGap, !step.changes.schemaWasChanged, !step.changes.schemaWasExtended,
            let candidates, let own = step.changes.tables[source.table], let table = try step.group.table(source.table)
        else { return nil }
        // Objects that come and go without a word, as embedded ones do, are found by looking at all.
        if table.kind == .embedded || table.objectCount != objectCount + own.insertions.count - own.deletions.count { return nil }
        if try query.orderings.isEmpty ? concernsNoColumn(own) : isUnaffected(query, own, step.group) {
            var change = CollectionChange()
            for position in positions(of: candidates, isAscending: query.orderings.isEmpty)
            where try elements.isModified(step.check, source.table, keys[position]) {
                change.modifications.add(position)
            }
            objectCount = table.objectCount
            source.adopt?(keys)
            return change
        }
        return query.orderings.isEmpty ? try advanceFilter(query, own, table, step, elements, candidates) : nil
    }

    /// Nothing came or went, and what changed is not asked for.
    private func concernsNoColumn(_ own: TableChange) -> Bool {
        own.insertions.isEmpty && own.deletions.isEmpty
            && own.modifications.values.allSatisfy { $0.isDisjoint(with: source.dependencies.columns) }
    }

    /// The changed objects were not in the result and do not belong there now, or nothing changed that is asked for.
    private func isUnaffected(_ query: Query, _ own: TableChange, _ group: Group) throws -> Bool {
        if concernsNoColumn(own) { return true }
        let changed = Set(own.modifications.keys).union(own.insertions).union(own.deletions)
        if changed.count > Self.changedFraction { return false }
        var predicate = query
        predicate.orderings = []
        if try !predicate.run(in: group, over: changed.sorted()).isEmpty { return false }
        return positions(of: changed, isAscending: false).isEmpty
    }

    /// Where keys stand in the result.
    private func positions(of wanted: Set<ObjectKey>, isAscending: Bool) -> [Int] {
        if isAscending { return wanted.compactMap { keys.position(ofAscending: $0) } }
        if wanted.isEmpty { return [] }
        // Of few it costs less to compare with each than to hash all.
        let few = wanted.count <= 4 ? Array(wanted) : []
        return keys.indices.filter { i in few.isEmpty ? wanted.contains(keys[i]) : few.contains(keys[i]) }
    }

    private func advanceFilter(
        _ filter: Query, _ own: TableChange, _ table: Table, _ step: ObservationStep, _ elements: ElementFilter,
        _ candidates: Set<ObjectKey>
    ) throws -> CollectionChange? {
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
