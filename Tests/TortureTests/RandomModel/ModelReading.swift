@testable import SharedStore
import XCTest

/// Fills the model from a file, and compares both.
extension ModelWorld {
    /// Everything in a version, but for the tables that belong to the object layer itself.
    init(_ group: Group) throws {
        for table in try group.tables() where table.name != "metadata" && table.name != "pk" && table.kind != .asymmetric {
            order.append(table.key)
            var model = ModelTable(
                key: table.key, name: table.name, kind: table.kind, columns: Array(table.publicColumns),
                primaryKey: table.primaryKeyColumn?.key)
            try table.forEachObject { row in model.insert(row.key, try Self.values(row, model.columns)) }
            tables[table.key] = model
        }
    }

    static func values(_ row: ObjectRow, _ columns: [Column]) throws -> [ColumnKey: ModelValue] {
        var values: [ColumnKey: ModelValue] = [:]
        for column in columns { values[column.key] = try value(row, column) }
        return values
    }

    private static func value(_ row: ObjectRow, _ column: Column) throws -> ModelValue {
        switch column.collection {
        case .list: return try list(row.list(column))
        case .set:
            var elements: [Mixed] = []
            try row.set(column).forEach { elements.append($0) }
            return .set(elements)
        case .dictionary: return try dictionary(row.dictionary(column))
        case nil: break
        }
        let value = try row.value(column)
        switch value {
        case .list: return try list(row.list(column))
        case .dictionary: return try dictionary(row.dictionary(column))
        default: return .scalar(value)
        }
    }

    private static func list(_ reader: ListReader) throws -> ModelValue {
        var elements: [ModelValue] = []
        for i in 0..<reader.count {
            switch try reader.value(i) {
            case .list: elements.append(try list(reader.list(i)))
            case .dictionary: elements.append(try dictionary(reader.dictionary(i)))
            case let value: elements.append(.scalar(value))
            }
        }
        return .list(elements)
    }

    private static func dictionary(_ reader: DictionaryReader) throws -> ModelValue {
        var entries: [ByteKey: ModelValue] = [:]
        for i in 0..<reader.count {
            guard case .string(let text) = try reader.key(i) else { throw ModelError("a dictionary key that is no string") }
            switch try reader.value(i) {
            case .list: entries[ByteKey(text)] = try list(reader.list(i))
            case .dictionary: entries[ByteKey(text)] = try dictionary(reader.dictionary(i))
            case let value: entries[ByteKey(text)] = .scalar(value)
            }
        }
        return .dictionary(entries)
    }

    /// What a version has that the model does not have, or has differently; nil where they are equal.
    ///
    /// - Parameter known: the leaves of the version before, which were equal then; they are not looked at again where nothing in
    ///   them was touched since, as a leaf with the same ref has the same content. The leaves of this version afterwards. Nil
    ///   looks at all.
    func firstDifference(_ group: Group, known: inout KnownLeaves?) throws -> String? {
        var found = KnownLeaves()
        for key in order {
            guard let model = tables[key] else { continue }
            guard let table = try group.table(key) else { return "table \(model.name) is gone" }
            if table.objectCount != model.objects.count {
                return "\(model.name) has \(table.objectCount) objects, the model \(model.objects.count)"
            }
            if known != nil {
                for object in touched[key] ?? [] {
                    if let difference = try difference(model, table, try table.find(object), object) { return difference }
                }
            }
            var message: String?
            try table.forEachLeaf { leaf in
                let place = KnownLeaves.Place(table: key, ref: leaf.node.ref, first: leaf.count > 0 ? leaf.key(0) : .null)
                found.places.insert(place)
                if message != nil || known?.places.contains(place) ?? false { return }
                for i in 0..<leaf.count where message == nil { message = try difference(model, table, leaf.row(i), leaf.key(i)) }
            }
            if let message { return message }
        }
        known = found
        return nil
    }

    /// The same, of a version that stands for itself.
    func firstDifference(_ group: Group) throws -> String? {
        var known: KnownLeaves?
        return try firstDifference(group, known: &known)
    }

    private func difference(_ model: ModelTable, _ table: Table, _ row: ObjectRow?, _ key: ObjectKey) throws -> String? {
        guard let row else { return model.objects[key] == nil ? nil : "\(model.name) \(key) is gone" }
        guard let expected = model.objects[key] else { return "\(model.name) \(key) should not be there" }
        for known in model.columns {
            // A column is that of its version.
            guard let column = table.column(known.key) else { return "a column of \(model.name) is gone" }
            let value = try Self.value(row, column)
            guard let wanted = expected[column.key] else { return "the model lacks a column of \(model.name)" }
            if !ModelValue.isSame(value, wanted) {
                return "\(model.name) \(key), column \(column.specIndex) (\(column.type)): \(value), in the model \(wanted)"
                    .prefix(2000).description
            }
        }
        return nil
    }

    /// What the history of one commit must have told, or nil where it did: objects that came and went, and at least the columns
    /// whose values differ. Embedded objects come with their owners and are not told of.
    func firstUntold(since old: ModelWorld, _ changes: ChangeSet) -> String? {
        for key in order {
            guard let now = tables[key], now.kind == .topLevel, let before = old.tables[key] else { continue }
            let told = changes.tables[key] ?? TableChange()
            let objects = (touched[key] ?? []).sorted()
            let came = Set(objects.filter { now.objects[$0] != nil && before.objects[$0] == nil })
            let went = Set(objects.filter { now.objects[$0] == nil && before.objects[$0] != nil })
            if told.insertions != came { return "\(now.name): \(came.sorted()) came, told were \(told.insertions.sorted())" }
            if told.deletions != went { return "\(now.name): \(went.sorted()) went, told were \(told.deletions.sorted())" }
            for object in objects {
                guard let new = now.objects[object], let old = before.objects[object] else { continue }
                for column in now.columns {
                    guard let a = old[column.key], let b = new[column.key], !ModelValue.isSame(a, b) else { continue }
                    if !(told.modifications[object]?.contains(column.key) ?? false) {
                        return "\(now.name) \(object): the change of column \(column.specIndex) was not told"
                    }
                }
            }
        }
        return nil
    }
}

/// Where the objects of a version lie.
struct KnownLeaves {
    struct Place: Hashable {
        let table: TableKey
        let ref: Int
        let first: ObjectKey
    }
    var places: Set<Place> = []
}

struct ModelError: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}
