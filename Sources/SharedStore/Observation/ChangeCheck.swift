/// Answers for single objects whether they count as changed by a step: by themselves, through their links (file-format-3 6.7), or
/// along key paths (6.8). Used for one step and then dropped; what was found out about an object is remembered.
final class ChangeCheck {
    let tables: [TableKey: TableChange]
    let group: Group
    private let graph: LinkGraph
    /// The classes from which an object that was modified may be reached.
    private let relevant: Set<TableKey>
    private var unmodified: [TableKey: Set<ObjectKey>] = [:]
    private var path: [(table: TableKey, key: ObjectKey)] = []
    private var candidates: [TableKey: Set<ObjectKey>?] = [:]

    /// So many objects may be on the way, the first and the last included.
    static let objectsOnPathMax = 4

    init(_ changes: ChangeSet, _ group: Group, _ graph: LinkGraph) {
        tables = changes.tables
        self.group = group
        self.graph = graph
        relevant = graph.leading(to: Set(changes.tables.filter { !$0.value.modifications.isEmpty }.keys))
    }

    // MARK: Deep changes

    /// Whether an object of the class can count as modified at all.
    func mayBeModified(_ table: TableKey) -> Bool { relevant.contains(table) }

    /// Objects among which all of the class are that count as modified by themselves or through their links: found by going
    /// backwards from what was modified. Nil where these are so many that looking at each object is no worse.
    func modificationCandidates(_ table: TableKey) throws -> Set<ObjectKey>? {
        if let known = candidates[table] { return known }
        let found = try findCandidates(table)
        candidates[table] = .some(found)
        return found
    }

    private func findCandidates(_ table: TableKey) throws -> Set<ObjectKey>? {
        var found = Set((tables[table] ?? TableChange()).modifications.keys)
        // Where no link of the class leads on, nothing else can be.
        let leadsOn = (graph.edges[table] ?? [:]).values.contains { !$0.isDisjoint(with: relevant) }
        if !leadsOn { return found }
        guard let target = try group.table(table) else { return found }
        let wanted = graph.reachable(from: table)
        var budget = max(Self.candidatesMin, target.objectCount / 4)
        var frontier = tables.filter { wanted.contains($0.key) && !$0.value.modifications.isEmpty }.mapValues {
            Set($0.modifications.keys)
        }
        for _ in 1..<Self.objectsOnPathMax {
            var next: [TableKey: Set<ObjectKey>] = [:]
            for (key, objects) in frontier {
                guard let reading = try group.table(key) else { continue }
                let columns = reading.backlinkColumns.filter { wanted.contains($0.oppositeTable) }
                for object in objects {
                    guard !columns.isEmpty, let row = try reading.find(object) else { continue }
                    for column in columns {
                        let origins = try row.backlinks(column)
                        budget -= origins.count
                        if budget < 0 { return nil }
                        next[column.oppositeTable, default: []].formUnion(origins)
                    }
                }
            }
            found.formUnion(next[table] ?? [])
            frontier = next
        }
        return found
    }

    /// So many links are always followed.
    private static let candidatesMin = 1024

    /// The object was modified, or one that it leads to was.
    func isModified(_ table: TableKey, _ key: ObjectKey) throws -> Bool {
        if !relevant.contains(table) { return false }
        var isLimited = false
        return try isModified(table, key, &isLimited)
    }

    private func isModified(_ table: TableKey, _ key: ObjectKey, _ isLimited: inout Bool) throws -> Bool {
        if tables[table]?.modifications[key] != nil { return true }
        if !relevant.contains(table) || unmodified[table]?.contains(key) == true { return false }
        if path.count + 1 >= Self.objectsOnPathMax {
            isLimited = true
            return false
        }
        guard let reading = try group.table(table), let row = try reading.find(key) else { return false }
        path.append((table, key))
        defer { path.removeLast() }
        var isLimitedBelow = false
        for (columnKey, targets) in graph.edges[table] ?? [:] where !targets.isDisjoint(with: relevant) {
            guard let column = reading.column(columnKey) else { continue }
            let found = try row.anyLink(column) { target, object in
                if path.contains(where: { $0.table == target && $0.key == object }) {
                    // What lies behind it is looked at from there; here nothing is known about it.
                    isLimitedBelow = true
                    return false
                }
                return try isModified(target, object, &isLimitedBelow)
            }
            if found { return true }
        }
        if isLimitedBelow { isLimited = true } else { unmodified[table, default: []].insert(key) }
        return false
    }

    // MARK: Key paths

    /// The object on some step of a path has the step's property modified, or is new.
    func isModified(_ key: ObjectKey, along paths: [ObservedKeyPath]) throws -> Bool {
        for path in paths where try isModified(key, along: path.steps[...]) { return true }
        return false
    }

    func isModified(_ key: ObjectKey, along steps: ArraySlice<ObservedKeyPath.Step>) throws -> Bool {
        guard let step = steps.first else { return false }
        let rest = steps.dropFirst()
        let change = tables[step.table]
        if change?.insertions.contains(key) == true { return true }
        if let origin = step.origin {
            guard let reading = try group.table(step.table), let row = try reading.find(key),
                let column = reading.backlinkColumns.first(where: {
                    $0.oppositeTable == origin && $0.oppositeColumn == step.column
                })
            else { return false }
            for object in try row.backlinks(column) {
                if rest.isEmpty {
                    guard let change = tables[origin] else { return false }
                    if change.insertions.contains(object) || change.modifications[object]?.contains(step.column) == true {
                        return true
                    }
                } else if try isModified(object, along: rest) {
                    return true
                }
            }
            return false
        }
        if change?.modifications[key]?.contains(step.column) == true { return true }
        guard let next = rest.first, let reading = try group.table(step.table), let column = reading.column(step.column),
            let row = try reading.find(key)
        else { return false }
        return try row.anyLink(column) { target, object in
            target == next.table ? try isModified(object, along: rest) : false
        }
    }
}
