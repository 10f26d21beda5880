/// The values of an operand for one object, in order.
///
/// Where a path leads over several objects to a collection in each, `groupEnds` tells where each object's values end: a
/// quantifier then speaks of one object's values, and one object that fulfils it is enough (query-language 6).
struct ValueList {
    var items: [MixedView] = []
    var groupEnds: [Int] = []
    var isGrouped = false

    @inline(__always)
    mutating func reset() {
        items.removeAll(keepingCapacity: true)
        groupEnds.removeAll(keepingCapacity: true)
        isGrouped = false
    }

    @inline(__always)
    mutating func endGroup() { groupEnds.append(items.count) }
}

/// A key path with its columns found in one version, ready to be evaluated.
final class BoundPath {
    struct Hop {
        enum Kind { case link, list, set, dictionary, backlinks }
        var kind: Kind
        /// In `table`; of backlinks the backlink column there.
        var column: Column
        /// Where the hop starts.
        var table: Table
        var element: QueryPath.Element
    }

    let run: QueryRun
    let frame: QueryFrame
    let path: QueryPath
    let hops: [Hop]
    /// The class of the objects at the end of the hops.
    let table: Table
    /// Of the property at the end.
    let column: Column?
    /// One value of the object itself, always.
    let isOwnScalar: Bool
    @exclusivity(unchecked) private var reader: ColumnReader?
    @exclusivity(unchecked) private var readerGeneration = -1
    @exclusivity(unchecked) var keys: [ObjectKey] = []
    @exclusivity(unchecked) var nextKeys: [ObjectKey] = []
    private let elementsMax: Int
    @exclusivity(unchecked) private var elementsLeft = 0
    @exclusivity(unchecked) private var lastKey = ObjectKey.null
    /// It makes no difference how often an object is reached: a quantifier judges the values, nothing counts them.
    private let mergesObjects: Bool

    init(_ path: QueryPath, _ run: QueryRun, mergesObjects: Bool = false) throws {
        self.path = path
        self.mergesObjects = mergesObjects && (path.operation == .none || path.operation == .type)
        self.run = run
        frame = run.frames[path.scope]
        var table = frame.table
        elementsMax = table.memory.collectionElementsMax
        guard table.key == path.table else { throw QueryError(.property, "the query is about another class") }
        var hops: [Hop] = []
        for hop in path.hops {
            let property = hop.property
            let origin = try run.column(property)
            if property.isLinkingObjects {
                guard let column = table.backlinkColumn(from: origin) else {
                    throw QueryError(.property, "the links to follow back are not in this version of the file")
                }
                hops.append(Hop(kind: .backlinks, column: column, table: table, element: .all))
            } else {
                let kind: Hop.Kind
                switch property.collection {
                case nil: kind = .link
                case .list: kind = .list
                case .set: kind = .set
                case .dictionary: kind = .dictionary
                }
                hops.append(Hop(kind: kind, column: origin, table: table, element: hop.element))
            }
            table = try run.table(property.isLinkingObjects ? property.table : property.target)
        }
        self.hops = hops
        self.table = table
        switch path.end {
        case .value(let property, let nested):
            column = try run.column(property)
            isOwnScalar = hops.isEmpty && nested.isEmpty && path.operation == .none
        case .collection(let property, _, _):
            column = try run.column(property)
            isOwnScalar = false
        case .objects, .allLinks:
            if case .aggregate(_, let property?) = path.operation { column = try run.column(property) } else { column = nil }
            isOwnScalar = hops.count == 1 && hops[0].kind == .link && path.operation == .none && path.end == .objects
        }
    }

    // MARK: Evaluation

    /// Puts the values for the frame's object into `list`.
    func evaluate(into list: inout ValueList) throws {
        list.reset()
        if isOwnScalar, let column = column ?? hops.first?.column {
            list.items.append(try run.storage.value(ownReader(column), frame.index, column))
            return
        }
        beginObject()
        switch path.operation {
        case .none, .type, .length:
            try values(into: &list)
            if path.operation == .none { return }
            if path.operation == .length {
                // Lengths are judged all together.
                list.isGrouped = false
                list.groupEnds.removeAll(keepingCapacity: true)
            }
            for i in list.items.indices {
                if path.operation == .type {
                    list.items[i] = .int(ValueTypes(list.items[i]).rawValue)
                } else if case .null = list.items[i] {
                    list.items[i] = .int(0)
                } else {
                    list.items[i] = BoundPath.size(list.items[i])
                }
            }
        case .count: try counts(into: &list)
        case .aggregate(let aggregate, let property): try self.aggregate(aggregate, property, into: &list)
        }
    }

    /// The value, where the path is one of the object itself.
    @inline(__always)
    func ownValue() throws -> MixedView {
        guard let column = column ?? hops.first?.column else { return .null }
        return try run.storage.value(ownReader(column), frame.index, column)
    }

    @inline(__always)
    private func ownReader(_ column: Column) throws -> ColumnReader {
        if readerGeneration == frame.generation, let reader { return reader }
        let made = try ColumnReader(frame.memory, frame.cluster, column)
        reader = made
        readerGeneration = frame.generation
        return made
    }

    static func size(_ value: MixedView) -> MixedView {
        switch value {
        case .string(let bytes), .binary(let bytes): .int(Int64(bytes.count))
        default: .null
        }
    }

    /// The value of `column` in another object.
    func value(_ column: Column, _ row: ObjectRow) throws -> MixedView {
        try run.storage.value(ColumnReader(row.memory, row.cluster, column), row.index, column)
    }

    // MARK: Hops

    enum Arrival {
        /// `keys` holds the objects; `isMany` tells that there may be any number.
        case objects(isMany: Bool)
        /// A link on the way was null.
        case nullLink
        /// An element on the way was missing.
        case missing
    }

    /// Follows the first `count` hops; the objects they lead to are in `keys`.
    func follow(_ count: Int) throws -> Arrival {
        keys.removeAll(keepingCapacity: true)
        keys.append(frame.key)
        var isMany = false
        for i in 0..<count {
            let hop = hops[i]
            nextKeys.removeAll(keepingCapacity: true)
            // One element of a collection is a single one only where the path ends in it.
            let widens = hop.kind != .link && (hop.element == .all || path.end != .objects || i < hops.count - 1)
            for key in keys {
                let row: ObjectRow
                if i == 0 {
                    row = frame.row
                } else {
                    guard let found = try hop.table.find(key) else { continue }
                    row = found
                }
                let isFound = try targets(hop, row)
                if isFound || isMany || widens { continue }
                if hop.kind != .link { return try missing(hop, row) }
                // Where a collection of objects would follow, there are none.
                if !hops[(i + 1)...].contains(where: { $0.kind != .link }) { return .nullLink }
                keys.removeAll(keepingCapacity: true)
                return .objects(isMany: true)
            }
            isMany = isMany || widens
            swap(&keys, &nextKeys)
            if mergesObjects, keys.count > BoundPath.mergeThreshold { merge() }
        }
        return .objects(isMany: isMany)
    }

    /// Above so many objects it pays to look for those that were reached twice; below it the result is the same with them.
    private static let mergeThreshold = 512

    /// Leaves each object once, where it was first: paths over paths of links would else multiply without end.
    private func merge() {
        var seen = Set<ObjectKey>(minimumCapacity: keys.count)
        keys.removeAll { !seen.insert($0).inserted }
    }

    /// At the end of a path a missing element of a map is null, like one that is there and null; of an empty map it is nothing.
    private func missing(_ hop: Hop, _ row: ObjectRow) throws -> Arrival {
        try hop.kind == .dictionary && row.dictionary(hop.column).count > 0 ? .nullLink : .missing
    }

    /// Adds the objects that `hop` leads to from `row`; false where it is a single one that is not there.
    private func targets(_ hop: Hop, _ row: ObjectRow) throws -> Bool {
        switch hop.kind {
        case .link:
            guard let key = try row.link(hop.column) else { return false }
            nextKeys.append(key)
        case .list:
            let list = try row.list(hop.column)
            if hop.element == .all {
                try list.forEachLink { nextKeys.append($0) }
            } else {
                guard let position = BoundPath.position(hop.element, list.count) else { return false }
                nextKeys.append(try list.link(position))
            }
        case .set: try row.set(hop.column).elements.forEachLink { nextKeys.append($0) }
        case .dictionary:
            let dictionary = try row.dictionary(hop.column)
            if case .key(let key) = hop.element {
                guard let index = try dictionary.find(key) else { return false }
                let (leaf, position) = try dictionary.leaf(index)
                guard case .link(_, let target) = try run.storage.mixed(leaf, position) else { return false }
                nextKeys.append(target)
            } else {
                try dictionary.forEachEntry { _, leaf, position in
                    if case .link(_, let target) = try run.storage.mixed(leaf, position) { nextKeys.append(target) }
                }
            }
        case .backlinks: try row.forEachBacklink(hop.column) { nextKeys.append($0) }
        }
        return true
    }

    static func position(_ element: QueryPath.Element, _ count: Int) -> Int? {
        switch element {
        // -1 can only come as an argument, and is the last one.
        case .position(let n): n >= 0 && n < count ? n : n == -1 && count > 0 ? count - 1 : nil
        case .first: count > 0 ? 0 : nil
        case .last: count > 0 ? count - 1 : nil
        case .all, .key, .keys: nil
        }
    }

    // MARK: Values at the end

    private func values(into list: inout ValueList) throws {
        let arrival = try follow(hops.count)
        guard case .objects(let isMany) = arrival else {
            if case .nullLink = arrival, hasValueBehindNull { list.items.append(.null) }
            return
        }
        switch path.end {
        case .objects:
            for key in keys { list.items.append(.link(table.key, key)) }
        case .value(_, let nested):
            guard let column else { return }
            for key in keys {
                guard let row = try row(key) else { continue }
                if nested.isEmpty {
                    list.items.append(try value(column, row))
                } else {
                    try expand(place(column, row), nested[...], into: &list)
                    if isMany, groupsObjects { list.endGroup() }
                }
            }
            if isMany, groupsObjects { list.isGrouped = true }
        case .collection(_, let element, let nested):
            guard let column else { return }
            for key in keys {
                guard let row = try row(key) else { continue }
                try elements(column, row, element, nested[...], into: &list)
                if isMany, groupsObjects { list.endGroup() }
            }
            if isMany, groupsObjects { list.isGrouped = true }
        case .allLinks: break
        }
    }

    func row(_ key: ObjectKey) throws -> ObjectRow? {
        if hops.isEmpty { return frame.row }
        elementsLeft = elementsMax
        return try table.find(key)
    }

    /// Each collection has one owner, so the elements of one object's collections, and those of all objects of a table when each
    /// is looked at once, are no more than the file can hold: in a damaged file, whose objects share collections, looking at them
    /// would not end. An object that does not come behind the one before begins anew.
    private func beginObject() {
        let isBehind = UInt64(bitPattern: frame.key.rawValue) > UInt64(bitPattern: lastKey.rawValue)
        if path.scope > 0 || !isBehind { elementsLeft = elementsMax }
        lastKey = frame.key
    }

    /// Counts elements that are about to be looked at.
    @inline(__always)
    func spend(_ count: Int) throws {
        elementsLeft -= count
        if elementsLeft < 0 { throw BoundPath.sharedError(frame) }
    }

    @inline(never)
    private static func sharedError(_ frame: QueryFrame) -> FormatError {
        FormatError(ref: frame.cluster.ref, "collections hold more elements than the file has room for")
    }

    /// What one object of many holds is a group, where it is a collection, and where no group is made within it.
    private var groupsObjects: Bool {
        switch path.end {
        case .objects, .allLinks: false
        case .value(_, let nested): !nested.isEmpty && !nested.dropLast().contains(.any)
        case .collection(_, let element, let nested): (nested.isEmpty || element != .all) && !nested.dropLast().contains(.any)
        }
    }

    /// Through a null link a property is null; a collection, and what is nested in a value, has no values.
    private var hasValueBehindNull: Bool {
        switch path.end {
        case .objects: true
        case .value(_, let nested): nested.isEmpty
        case .collection, .allLinks: false
        }
    }

    private func elements(
        _ column: Column, _ row: ObjectRow, _ element: QueryPath.Element, _ nested: ArraySlice<QueryPath.Nested>,
        into values: inout ValueList
    ) throws {
        switch column.collection {
        case .list, .set:
            let list = column.collection == .list ? try row.list(column) : try row.set(column).elements
            if element == .all {
                try spend(list.count)
                try run.storage.forEachElement(list) { value, place in
                    try emit(value, place, nested, into: &values)
                    endGroup(behind: nested, &values)
                    return true
                }
            } else if let position = BoundPath.position(element, list.count) {
                try run.storage.forEachElement(list, from: position) { value, place in
                    try emit(value, place, nested, into: &values)
                    return false
                }
            } else if list.count > 0, nested.isEmpty {
                values.items.append(.null)
            }
        case .dictionary:
            let dictionary = try row.dictionary(column)
            try spend(dictionary.count)
            switch element {
            case .keys: try dictionary.forEachEntry { key, _, _ in values.items.append(key) }
            case .key(let key):
                if let index = try dictionary.find(key) {
                    let (leaf, position) = try dictionary.leaf(index)
                    try emit(
                        run.storage.mixed(leaf, position), MixedLeafPlace(memory: row.memory, leaf: leaf, index: position),
                        nested, into: &values)
                } else if dictionary.count > 0, nested.isEmpty {
                    values.items.append(.null)
                }
            default:
                try dictionary.forEachEntry { _, leaf, position in
                    try emit(
                        run.storage.mixed(leaf, position), MixedLeafPlace(memory: row.memory, leaf: leaf, index: position),
                        nested, into: &values)
                    endGroup(behind: nested, &values)
                }
            }
        case nil: break
        }
    }

    // MARK: Nested collections

    func place(_ column: Column, _ row: ObjectRow) throws -> MixedLeafPlace {
        MixedLeafPlace(memory: row.memory, leaf: try row.leaf(MixedLeaf.self, column), index: row.index)
    }

    @inline(__always)
    private func emit(
        _ value: MixedView, _ place: MixedLeafPlace?, _ nested: ArraySlice<QueryPath.Nested>, into values: inout ValueList
    ) throws {
        if nested.isEmpty {
            values.items.append(value)
        } else if let place {
            try expand(place, nested, into: &values)
        }
    }

    /// Behind `[*]` followed by further steps each element is judged by itself: the last such `[*]` of a path makes the groups.
    @inline(__always)
    private func endGroup(behind rest: ArraySlice<QueryPath.Nested>, _ values: inout ValueList) {
        if rest.isEmpty || rest.dropLast().contains(.any) { return }
        values.isGrouped = true
        values.endGroup()
    }

    /// Goes on by `steps` into the value at `place`. A step that leads nowhere gives no value, except a key that is not in a
    /// dictionary that has others, which is null. The depth is that of the path.
    private func expand(_ place: MixedLeafPlace, _ steps: ArraySlice<QueryPath.Nested>, into values: inout ValueList) throws {
        let value = try run.storage.mixed(place.leaf, place.index)
        guard let step = steps.first else {
            values.items.append(value)
            return
        }
        let rest = steps.dropFirst()
        switch value {
        case .list:
            let list = try place.list()
            let start: Int
            switch step {
            case .any, .first: start = 0
            case .position(let n): start = n == -1 ? list.count - 1 : n
            case .last: start = list.count - 1
            case .key, .keys: return
            }
            guard start >= 0, start < list.count else { return }
            try spend(step == .any ? list.count : 1)
            try run.storage.forEachElement(list, from: start) { value, place in
                try emit(value, place, rest, into: &values)
                if step == .any { endGroup(behind: rest, &values) }
                return step == .any
            }
        case .dictionary:
            let dictionary = try place.dictionary()
            switch step {
            case .key(let key):
                if let index = try dictionary.find(key) {
                    let (leaf, position) = try dictionary.leaf(index)
                    try expand(MixedLeafPlace(memory: place.memory, leaf: leaf, index: position), rest, into: &values)
                } else if dictionary.count > 0, rest.isEmpty {
                    values.items.append(.null)
                }
            case .any:
                try spend(dictionary.count)
                try dictionary.forEachEntry { _, leaf, position in
                    try expand(MixedLeafPlace(memory: place.memory, leaf: leaf, index: position), rest, into: &values)
                    endGroup(behind: rest, &values)
                }
            case .keys:
                try spend(dictionary.count)
                if rest.isEmpty { try dictionary.forEachEntry { key, _, _ in values.items.append(key) } }
            case .position, .first, .last: return
            }
        default: return
        }
    }

    // MARK: Aggregates

    private func aggregate(_ aggregate: QuerySyntax.Path.Aggregate, _ property: QueryProperty?, into list: inout ValueList) throws
    {
        guard let column else { return }
        let arrival = try follow(hops.count)
        guard case .objects = arrival else {
            if case .nullLink = arrival {
                list.items.append(Aggregation(aggregate, column.type, isMap: column.collection == .dictionary).result)
            }
            return
        }
        if property != nil {
            var aggregation = Aggregation(aggregate, column.type, isMap: false)
            for key in keys {
                if let row = try row(key) { aggregation.add(try value(column, row)) }
            }
            list.items.append(aggregation.result)
            return
        }
        for key in keys {
            guard let row = try row(key) else { continue }
            var aggregation = Aggregation(aggregate, column.type, isMap: column.collection == .dictionary)
            scratch.reset()
            try elements(column, row, .all, [], into: &scratch)
            for value in scratch.items { aggregation.add(value) }
            list.items.append(aggregation.result)
        }
    }
    @exclusivity(unchecked) private var scratch = ValueList()

    // MARK: Ordering

    /// The single value that an ordering looks at; nil where the path passes a null link.
    func orderingValue() throws -> MixedView? {
        beginObject()
        let isOfObjects = path.end == .objects
        // What lies behind an object in a map is null to orderings, as the original has it.
        if hops.dropLast(isOfObjects ? 1 : 0).contains(where: { $0.kind == .dictionary }) { return .null }
        guard case .objects = try follow(isOfObjects ? hops.count - 1 : hops.count), let key = keys.first else { return nil }
        if isOfObjects {
            let hop = hops[hops.count - 1]
            guard let row = hops.count == 1 ? frame.row : try hop.table.find(key) else { return nil }
            nextKeys.removeAll(keepingCapacity: true)
            guard try targets(hop, row), let target = nextKeys.first else { return .null }
            return .link(table.key, target)
        }
        guard let column else { return nil }
        if hops.isEmpty, column.collection == nil { return try run.storage.value(ownReader(column), frame.index, column) }
        guard let row = try row(key) else { return nil }
        guard case .collection(_, let element, _) = path.end else { return try value(column, row) }
        scratch.reset()
        try elements(column, row, element, [], into: &scratch)
        return scratch.items.first ?? .null
    }

    // MARK: Objects

    /// Calls `body` with the key of each object at the end of a path of hops only.
    func forEachObject(_ body: (ObjectKey) throws -> Void) throws {
        guard case .objects = try follow(hops.count) else { return }
        for key in keys { try body(key) }
    }
    var targetTable: Table { table }
}
