@testable import SharedStore

/// A value as the model holds it: collections, also those nested in Mixed values, are there in full.
indirect enum ModelValue {
    case scalar(Mixed)
    case list([ModelValue])
    /// Distinct elements in ascending order.
    case set([Mixed])
    case dictionary([ByteKey: ModelValue])

    /// Exactly the same: strings by their bytes, numbers by their bits (any NaN is like any other).
    static func isSame(_ a: ModelValue, _ b: ModelValue) -> Bool {
        switch (a, b) {
        case (.scalar(let x), .scalar(let y)): isSame(x, y)
        case (.list(let x), .list(let y)): x.count == y.count && zip(x, y).allSatisfy { isSame($0, $1) }
        case (.set(let x), .set(let y)): x.count == y.count && zip(x, y).allSatisfy { isSame($0, $1) }
        case (.dictionary(let x), .dictionary(let y)):
            x.count == y.count && x.allSatisfy { key, value in y[key].map { isSame(value, $0) } ?? false }
        default: false
        }
    }

    static func isSame(_ a: Mixed, _ b: Mixed) -> Bool {
        switch (a, b) {
        case (.float(let x), .float(let y)): x.isNaN ? y.isNaN : x.bitPattern == y.bitPattern
        case (.double(let x), .double(let y)): x.isNaN ? y.isNaN : x.bitPattern == y.bitPattern
        case (.string(let x), .string(let y)): x.utf8.elementsEqual(y.utf8)
        default: a == b
        }
    }
}

/// The key of a dictionary, told apart by its bytes and not as Swift's strings are.
struct ByteKey: Hashable {
    let text: String
    init(_ text: String) { self.text = text }
    static func == (a: ByteKey, b: ByteKey) -> Bool { a.text.utf8.elementsEqual(b.text.utf8) }
    func hash(into hasher: inout Hasher) { for byte in text.utf8 { hasher.combine(byte) } }
}

/// The objects of one table.
struct ModelTable {
    let key: TableKey
    let name: String
    let kind: TableKind
    /// Public columns.
    var columns: [Column]
    var primaryKey: ColumnKey?
    private(set) var objects: [ObjectKey: [ColumnKey: ModelValue]] = [:]
    /// The keys of all objects in the order of the changes, which is the same in every run.
    private(set) var keys: [ObjectKey] = []
    private var positions: [ObjectKey: Int] = [:]

    init(key: TableKey, name: String, kind: TableKind, columns: [Column], primaryKey: ColumnKey?) {
        (self.key, self.name, self.kind, self.columns, self.primaryKey) = (key, name, kind, columns, primaryKey)
    }

    mutating func insert(_ key: ObjectKey, _ values: [ColumnKey: ModelValue]) {
        positions[key] = keys.count
        keys.append(key)
        objects[key] = values
    }

    @discardableResult
    mutating func remove(_ key: ObjectKey) -> [ColumnKey: ModelValue]? {
        guard let position = positions.removeValue(forKey: key), let last = keys.popLast() else { return nil }
        if last != key {
            keys[position] = last
            positions[last] = position
        }
        return objects.removeValue(forKey: key)
    }

    mutating func setValue(_ value: ModelValue?, _ column: ColumnKey, of key: ObjectKey) { objects[key]?[column] = value }

    /// What a new object, or a new column, holds.
    static func defaultValue(_ column: Column) -> ModelValue {
        switch column.collection {
        case .list: return .list([])
        case .set: return .set([])
        case .dictionary: return .dictionary([:])
        case nil: break
        }
        if column.isNullable { return .scalar(.null) }
        return switch column.type {
        case .int: .scalar(.int(0))
        case .bool: .scalar(.bool(false))
        case .float: .scalar(.float(0))
        case .double: .scalar(.double(0))
        case .string: .scalar(.string(""))
        case .binary: .scalar(.binary([]))
        case .timestamp: .scalar(.timestamp(Timestamp(seconds: 0, nanoseconds: 0)))
        case .decimal: .scalar(.decimal(Decimal128Bits(0 as Int64)))
        case .objectId: .scalar(.objectId(ObjectIdValue(high: 0, low: 0)))
        case .uuid: .scalar(.uuid(UUIDValue(high: 0, low: 0)))
        case .mixed, .link, .backlink, .typedLink: .scalar(.null)
        }
    }
}

/// All data of a database, held plainly in memory: what the file should contain. A copy is a snapshot.
struct ModelWorld {
    var tables: [TableKey: ModelTable] = [:]
    /// The tables in the order of the file.
    var order: [TableKey] = []
    /// Objects that were created, changed or deleted since `touched` was emptied.
    var touched: [TableKey: Set<ObjectKey>] = [:]

    func column(_ table: TableKey, _ key: ColumnKey) -> Column? { tables[table]?.columns.first { $0.key == key } }

    func isEmbedded(_ table: TableKey) -> Bool { tables[table]?.kind == .embedded }

    mutating func touch(_ table: TableKey, _ key: ObjectKey) { touched[table, default: []].insert(key) }

    mutating func create(_ table: TableKey, _ key: ObjectKey, primaryKey: Mixed? = nil) {
        guard let present = tables[table] else { return }
        var values: [ColumnKey: ModelValue] = [:]
        for column in present.columns { values[column.key] = ModelTable.defaultValue(column) }
        if let primaryKey, let column = present.primaryKey { values[column] = .scalar(primaryKey) }
        tables[table]?.insert(key, values)
        touch(table, key)
    }

    mutating func set(_ value: ModelValue, _ column: ColumnKey, of key: ObjectKey, in table: TableKey) {
        tables[table]?.setValue(value, column, of: key)
        touch(table, key)
    }

    /// Deletes an object: links to it become null or vanish, embedded objects that it owned go with it.
    mutating func delete(_ table: TableKey, _ key: ObjectKey) {
        guard let values = tables[table]?.remove(key) else { return }
        touch(table, key)
        let target = Mixed.link(table, key)
        for origin in order {
            guard
                let linking = tables[origin]?.columns.filter({
                    $0.type == .mixed || $0.type == .link && $0.oppositeTable == table
                }),
                !linking.isEmpty, let keys = tables[origin]?.keys
            else { continue }
            for object in keys {
                for column in linking {
                    guard let value = tables[origin]?.objects[object]?[column.key], let without = Self.without(target, value)
                    else { continue }
                    set(without, column.key, of: object, in: origin)
                }
            }
        }
        for column in tables[table]?.columns ?? [] where column.type == .link && isEmbedded(column.oppositeTable) {
            for child in Self.links(values[column.key]) { delete(column.oppositeTable, child) }
        }
    }

    /// The value without any link to `target`; nil where there is none in it.
    private static func without(_ target: Mixed, _ value: ModelValue) -> ModelValue? {
        switch value {
        case .scalar(let scalar): return scalar == target ? .scalar(.null) : nil
        case .set(let elements): return elements.contains(target) ? .set(elements.filter { $0 != target }) : nil
        case .list(let elements):
            var changed = false
            var left: [ModelValue] = []
            for element in elements {
                if case .scalar(target) = element {
                    changed = true
                } else if let without = without(target, element) {
                    changed = true
                    left.append(without)
                } else {
                    left.append(element)
                }
            }
            return changed ? .list(left) : nil
        case .dictionary(let entries):
            var left = entries
            var changed = false
            for (key, element) in entries {
                if let without = without(target, element) {
                    changed = true
                    left[key] = without
                }
            }
            return changed ? .dictionary(left) : nil
        }
    }

    /// The objects that a property links to, in no order.
    static func links(_ value: ModelValue?) -> [ObjectKey] {
        switch value {
        case .scalar(.link(_, let key)): [key]
        case .list(let elements): elements.flatMap { links($0) }
        case .dictionary(let entries): entries.values.flatMap { links($0) }.sorted()
        default: []
        }
    }
}
