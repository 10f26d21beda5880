/// All objects of a class, in key order: what happened to them is computed from the changed objects alone, so a step costs what
/// has changed and not what is there. No keys are kept.
///
/// The position of an object in the old state follows from that of its key in the new one: without the smaller keys that were
/// inserted, and with those that were deleted.
final class TableTracker: PositionTracker {
    private let observed: TableKey
    private var count = 0
    /// The objects of a version behind which changes are not known.
    private var remembered: [ObjectKey]?

    init(_ table: TableKey) { observed = table }

    override var table: TableKey { observed }
    override var tables: Set<TableKey> { [observed] }

    override func start(_ group: Group) throws {
        try super.start(group)
        guard let table = try group.table(observed) else {
            isDead = true
            return
        }
        count = table.objectCount
    }

    override func remember(_ group: Group) throws {
        if remembered == nil { remembered = try TableTracker.keys(group.table(observed)) }
    }

    private static func keys(_ table: Table?) throws -> [ObjectKey] {
        var keys: [ObjectKey] = []
        try table?.forEachLeaf { leaf in
            for row in 0..<leaf.count { keys.append(leaf.key(row)) }
        }
        return keys
    }

    override func advance(_ step: ObservationStep, _ elements: ElementFilter) throws -> CollectionChange {
        if isDead { return CollectionChange() }
        let oldCount = count
        guard let table = try step.group.table(observed) else {
            count = 0
            return end(oldCount: oldCount, tellsOfOwner: false)
        }
        count = table.objectCount
        defer { remembered = nil }
        if step.hasGap {
            guard let remembered, remembered.count == oldCount else { return CollectionChange(replacing: oldCount, by: count) }
            return CollectionChange.ofAscending(remembered, try Self.keys(table), inserted: [], candidates: []) { _ in false }
        }
        let change = step.changes.tables[observed] ?? TableChange()
        // Changesets come from others: one that does not fit what is there tells nothing.
        return try positions(change, table, oldCount: oldCount, step.check, elements)
            ?? CollectionChange(replacing: oldCount, by: count)
    }

    /// Nil where the change cannot be the one that happened.
    private func positions(
        _ change: TableChange, _ table: Table, oldCount: Int, _ check: ChangeCheck, _ elements: ElementFilter
    ) throws -> CollectionChange? {
        if oldCount - change.deletions.count + change.insertions.count != count { return nil }
        var result = CollectionChange()
        let deleted = change.deletions.sorted(), inserted = change.insertions.sorted()
        // Live objects have no negative keys.
        for first in [deleted.first, inserted.first] where first.map({ $0.rawValue < 0 }) == true { return nil }
        let deletedPlaces = try table.positions(of: deleted), insertedPlaces = try table.positions(of: inserted)
        for place in insertedPlaces {
            if !place.isPresent || place.position >= count || place.position < 0 { return nil }
            if result.insertions.last.map({ $0 >= place.position }) == true { return nil }
            result.insertions.add(place.position)
        }
        var insertedBelow = 0
        for (deletedBelow, (key, place)) in zip(deleted, deletedPlaces).enumerated() {
            while insertedBelow < inserted.count, inserted[insertedBelow] < key { insertedBelow += 1 }
            let position = place.position &- insertedBelow &+ deletedBelow
            if place.isPresent != change.insertions.contains(key) || position < 0 || position >= oldCount { return nil }
            if result.deletions.last.map({ $0 >= position }) == true { return nil }
            result.deletions.add(position)
        }
        if elements.isIdle(check, observed) { return result }
        guard let candidates = try elements.candidates(check, observed) else {
            var position = 0
            try table.forEachLeaf { leaf in
                for row in 0..<leaf.count {
                    let key = leaf.key(row)
                    if try !change.insertions.contains(key) && elements.isModified(check, observed, key) {
                        result.modifications.add(position)
                    }
                    position += 1
                }
            }
            return result
        }
        let modified = try candidates.sorted().filter {
            try $0.rawValue >= 0 && !change.insertions.contains($0) && elements.isModified(check, observed, $0)
        }
        for place in try table.positions(of: modified) where place.isPresent && place.position >= 0 && place.position < count {
            result.modifications.add(place.position)
        }
        return result
    }
}
