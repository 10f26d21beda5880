@testable import SharedStore
import TestSupport

/// Does one random operation after the other to a file and to the model.
struct ModelChanges {
    var world: ModelWorld
    var random: SplitMix
    /// What was changed by an operation meant for it, and not in passing.
    private(set) var coverage: Set<String> = []
    /// What was done last, for messages.
    private(set) var lastOperation = ""
    private let objectLimits: [TableKey: Int]
    private var nextName = 0

    init(world: ModelWorld, seed: UInt64) {
        self.world = world
        random = SplitMix(seed: seed)
        objectLimits = world.tables.mapValues { $0.objects.count + 40 }
    }

    mutating func number(_ bound: Int) -> Int { Int(random.next() % UInt64(max(bound, 1))) }
    private mutating func chance(_ percent: Int) -> Bool { number(100) < percent }
    private mutating func any<T>(_ values: [T]) -> T? { values.isEmpty ? nil : values[number(values.count)] }
    private mutating func anyObject(_ table: TableKey) -> ObjectKey? {
        guard let count = world.tables[table]?.keys.count, count > 0 else { return nil }
        return world.tables[table]?.keys[number(count)]
    }

    static func name(_ table: ModelTable, _ column: Column) -> String { "\(table.name).\(column.key)" }

    /// The columns that operations can reach: those of tables in which there can be objects.
    var reachableColumns: Set<String> {
        var reachable = Set(world.order.filter { !world.isEmbedded($0) })
        var grows = true
        while grows {
            grows = false
            for table in world.order where reachable.contains(table) {
                for column in world.tables[table]?.columns ?? []
                where column.type == .link && !reachable.contains(column.oppositeTable) {
                    reachable.insert(column.oppositeTable)
                    grows = true
                }
            }
        }
        var names: Set<String> = []
        for key in world.order where reachable.contains(key) {
            guard let table = world.tables[key] else { continue }
            for column in table.columns where column.key != table.primaryKey { names.insert(Self.name(table, column)) }
        }
        return names
    }

    mutating func step(_ group: GroupEditor) throws {
        guard let key = any(world.order), let table = world.tables[key] else { return }
        lastOperation = table.name
        switch number(100) {
        case 0..<12 where !world.isEmbedded(key): try create(group, table)
        case 12..<20: try delete(group, table)
        case 20..<22: try changeIndex(group, table)
        case 22: try changeColumns(group, table)
        default: try changeProperty(group, table)
        }
    }

    // MARK: Objects

    private mutating func create(_ group: GroupEditor, _ table: ModelTable) throws {
        if table.objects.count >= objectLimits[table.key] ?? 40 { return try delete(group, table) }
        lastOperation = "create in \(table.name)"
        let editor = try group.editor(table.key)
        guard let primaryKey = table.columns.first(where: { $0.key == table.primaryKey }) else {
            let key = try editor.createObject()
            if table.objects[key] != nil { throw ModelError("\(table.name) \(key) was made twice") }
            return world.create(table.key, key)
        }
        var value = scalar(primaryKey)
        if chance(25), let present = anyObject(table.key), case .scalar(let taken) = table.objects[present]?[primaryKey.key] {
            value = taken
        }
        if value == .null && !primaryKey.isNullable { return }
        let known = table.keys.first {
            if case .scalar(let other) = table.objects[$0]?[primaryKey.key] { ModelValue.isSame(other, value) } else { false }
        }
        let made = try editor.createObject(primaryKey: value)
        if made.wasCreated != (known == nil) || known ?? made.key != made.key {
            throw ModelError("\(table.name) with \(value): \(made), in the model \(String(describing: known))")
        }
        if made.wasCreated { world.create(table.key, made.key, primaryKey: value) }
    }

    private mutating func delete(_ group: GroupEditor, _ table: ModelTable) throws {
        guard let key = anyObject(table.key) else { return }
        lastOperation = "delete \(table.name) \(key)"
        try group.editor(table.key).deleteObject(key)
        world.delete(table.key, key)
    }

    // MARK: Schema

    private mutating func changeIndex(_ group: GroupEditor, _ table: ModelTable) throws {
        guard let column = any(table.columns), column.key != table.primaryKey else { return }
        let editor = try group.editor(table.key)
        lastOperation = "index of \(table.name).\(editor.table.name(of: column))"
        if try editor.table.indexRef(of: column) != 0 { return try editor.removeIndex(column.key) }
        if column.type == .string && column.collection == nil && chance(40) {
            return try editor.addIndex(column.key, fullText: true)
        }
        guard TableEditor.isIndexable(column) else { return }
        // Text over 200 bytes is refused in an indexed list.
        let isTooLong =
            column.collection == .list
            && table.objects.values.contains { values in
                guard case .list(let elements) = values[column.key] else { return false }
                return elements.contains { if case .scalar(.string(let text)) = $0 { text.utf8.count > 200 } else { false } }
            }
        if !isTooLong { try editor.addIndex(column.key) }
    }

    private mutating func changeColumns(_ group: GroupEditor, _ table: ModelTable) throws {
        let editor = try group.editor(table.key)
        let ours = table.columns.filter { editor.table.name(of: $0).hasPrefix("added ") }
        if ours.count > 2 || chance(40), let column = any(ours) {
            try editor.removeColumn(column.key)
            world.tables[table.key]?.columns = Array(editor.table.publicColumns)
            for key in table.keys { world.tables[table.key]?.setValue(nil, column.key, of: key) }
            return
        }
        let types: [ColumnType] = [
            .int, .bool, .string, .binary, .timestamp, .float, .double, .decimal, .objectId, .uuid, .mixed, .link,
        ]
        let attributes: [ColumnAttributes] = [[], [], .nullable, .nullable, .list, [.list, .nullable], .set, .dictionary]
        guard let type = any(types), var chosen = any(attributes) else { return }
        let target = type == .link ? any(world.order.filter { !world.isEmbedded($0) }) : nil
        if type == .link && target == nil { return }
        if type == .link { chosen.subtract(.nullable) }
        nextName += 1
        let added = try editor.addColumn("added \(nextName)", type, chosen, target: target)
        world.tables[table.key]?.columns = Array(editor.table.publicColumns)
        for key in table.keys { world.tables[table.key]?.setValue(ModelTable.defaultValue(added), added.key, of: key) }
    }

    // MARK: Properties

    private mutating func changeProperty(_ group: GroupEditor, _ table: ModelTable) throws {
        guard let column = any(table.columns) else { return }
        if table.objects.isEmpty && table.kind == .topLevel { try create(group, table) }
        guard let key = anyObject(table.key), let old = world.tables[table.key]?.objects[key]?[column.key] else { return }
        let editor = try group.editor(table.key)
        lastOperation =
            "change \(table.name).\(editor.table.name(of: column)) (\(column.type) \(column.attributes.rawValue)) of \(key)"
        if column.key == table.primaryKey {
            // The value that it has may be assigned.
            if case .scalar(let value) = old { try editor.set(column, of: key, to: value) }
            return
        }
        var change = PropertyChange(
            editor: editor, column: column, isEmbedded: column.type == .link && world.isEmbedded(column.oppositeTable))
        var new = old
        try changeValue(&new, old, editor, key, &change)
        coverage.insert(Self.name(table, column))
        world.set(new, column.key, of: key, in: table.key)
        for child in change.orphans { world.delete(column.oppositeTable, child) }
        for child in change.born { world.create(column.oppositeTable, child) }
    }

    /// What one operation on a property did to embedded objects.
    private struct PropertyChange {
        let editor: TableEditor
        let column: Column
        let isEmbedded: Bool
        var orphans: [ObjectKey] = []
        var born: [ObjectKey] = []
    }

    private mutating func changeValue(
        _ value: inout ModelValue, _ old: ModelValue, _ editor: TableEditor, _ key: ObjectKey, _ change: inout PropertyChange
    ) throws {
        let column = change.column
        let identity = editor.identity(column, of: key)
        if column.collection != nil { return try changeCollection(&value, identity, depth: 0, &change) }
        if change.isEmbedded {
            change.orphans = ModelWorld.links(old)
            if chance(30) {
                try editor.set(column, of: key, to: .null)
                value = .scalar(.null)
            } else {
                let child = try editor.setEmbedded(column, of: key)
                change.born = [child]
                value = .scalar(.link(column.oppositeTable, child))
            }
            return
        }
        if column.type == .mixed, chance(60) {
            if case .scalar = old {} else { return try changeCollection(&value, identity, depth: 0, &change) }
        }
        if case .scalar(.int(let present)) = old, column.type == .int, chance(20) {
            let difference = Int64(bitPattern: random.next() >> UInt64(number(64)))
            try editor.add(column, of: key, difference)
            value = .scalar(.int(present &+ difference))
            return
        }
        let new = column.type == .mixed ? mixed(nesting: true) : scalar(column)
        try editor.set(column, of: key, to: new)
        value = stored(new, over: old)
    }

    /// What stands in a place after an assignment: a list put over a list stays that list.
    private func stored(_ new: Mixed, over old: ModelValue?) -> ModelValue {
        switch (new, old) {
        case (.list, .list(let elements)): .list(elements)
        case (.dictionary, .dictionary(let entries)): .dictionary(entries)
        case (.list, _): .list([])
        case (.dictionary, _): .dictionary([:])
        default: .scalar(new)
        }
    }

    private mutating func changeCollection(
        _ value: inout ModelValue, _ identity: TableEditor.Identity, depth: Int, _ change: inout PropertyChange
    ) throws {
        switch value {
        case .list(var elements):
            try changeList(&elements, identity, depth, &change)
            value = .list(elements)
        case .set(var elements):
            try changeSet(&elements, identity, change)
            value = .set(elements)
        case .dictionary(var entries):
            try changeDictionary(&entries, identity, depth, &change)
            value = .dictionary(entries)
        case .scalar: throw ModelError("no collection")
        }
    }

    private mutating func element(_ column: Column, isNested: Bool) -> Mixed {
        if isNested || column.type == .mixed { return mixed(nesting: true) }
        var value = scalar(column)
        if column.collection == .list, case .string(let text) = value, text.utf8.count > 200 { value = .string("short") }
        return value
    }

    private func isCollection(_ value: ModelValue) -> Bool { if case .scalar = value { false } else { true } }

    private mutating func changeList(
        _ elements: inout [ModelValue], _ identity: TableEditor.Identity, _ depth: Int, _ change: inout PropertyChange
    ) throws {
        let editor = change.editor, column = change.column, n = elements.count
        let nested = elements.indices.filter { isCollection(elements[$0]) }
        if depth < 6, chance(50), let position = any(nested) {
            return try changeCollection(
                &elements[position], editor.nestedIdentity(identity, at: position), depth: depth + 1, &change)
        }
        let isNested = depth > 0 || column.collection == nil
        switch number(10) {
        case 0 where n > 0, 1 where n > 30:
            let i = number(n)
            try editor.listErase(identity, i)
            let gone = elements.remove(at: i)
            if change.isEmbedded { change.orphans += ModelWorld.links(gone) }
        case 2 where n > 0, 3 where n > 0:
            let i = number(n)
            if change.isEmbedded {
                let child = try editor.listSetEmbedded(identity, i)
                change.orphans += ModelWorld.links(elements[i])
                change.born.append(child)
                elements[i] = .scalar(.link(column.oppositeTable, child))
            } else {
                let new = element(column, isNested: isNested)
                if new == .null && column.type == .link { return }
                try editor.listSet(identity, i, new)
                elements[i] = stored(new, over: elements[i])
            }
        case 4 where n > 1:
            let from = number(n), to = number(n)
            try editor.listMove(identity, from: from, to: to)
            elements.insert(elements.remove(at: from), at: to)
        case 5 where n > 1:
            let a = number(n), b = number(n)
            try editor.listSwap(identity, a, b)
            elements.swapAt(a, b)
        case 6 where chance(15):
            try editor.clear(identity)
            if change.isEmbedded { change.orphans += elements.flatMap { ModelWorld.links($0) } }
            elements = []
        default:
            let i = number(n + 1)
            if change.isEmbedded {
                let child = try editor.listInsertEmbedded(identity, i)
                change.born.append(child)
                elements.insert(.scalar(.link(column.oppositeTable, child)), at: i)
            } else {
                let new = element(column, isNested: isNested)
                if new == .null && column.type == .link { return }
                try editor.listInsert(identity, i, new)
                elements.insert(stored(new, over: nil), at: i)
            }
        }
    }

    private mutating func changeSet(_ elements: inout [Mixed], _ identity: TableEditor.Identity, _ change: PropertyChange) throws
    {
        let editor = change.editor, column = change.column
        if chance(30), let element = any(elements) {
            guard try editor.setErase(identity, element) == elements.firstIndex(where: { Mixed.compare($0, element) == 0 }) else {
                throw ModelError("erased from another place")
            }
            elements.removeAll { Mixed.compare($0, element) == 0 }
            return
        }
        if chance(3) {
            try editor.clear(identity)
            elements = []
            return
        }
        let new = column.type == .mixed ? mixed(nesting: false) : scalar(column)
        if new == .null && column.type == .link { return }
        switch new {
        case .double(let v) where v.isNaN: return
        case .float(let v) where v.isNaN: return
        default: break
        }
        let (position, wasInserted) = try editor.setInsert(identity, new)
        let isThere = elements.contains { Mixed.compare($0, new) == 0 }
        if wasInserted == isThere { throw ModelError("\(new): inserted \(wasInserted), was there \(isThere)") }
        let place = elements.firstIndex { Mixed.compare($0, new) >= 0 } ?? elements.count
        if place != position { throw ModelError("\(new) went to \(position), not \(place)") }
        if wasInserted { elements.insert(new, at: place) }
    }

    private mutating func changeDictionary(
        _ entries: inout [ByteKey: ModelValue], _ identity: TableEditor.Identity, _ depth: Int, _ change: inout PropertyChange
    ) throws {
        let editor = change.editor, column = change.column
        let keys = entries.keys.sorted { ValueOrder.compare($0.text, $1.text) < 0 }
        let nested = keys.indices.filter { i in entries[keys[i]].map { isCollection($0) } ?? false }
        if depth < 6, chance(50), let position = any(nested), var value = entries[keys[position]] {
            try changeCollection(&value, editor.nestedIdentity(identity, at: position), depth: depth + 1, &change)
            entries[keys[position]] = value
            return
        }
        if chance(25), let key = any(keys) {
            guard try editor.dictionaryErase(identity, key.text) == keys.firstIndex(of: key) else {
                throw ModelError("erased from another place")
            }
            let gone = entries.removeValue(forKey: key)
            if change.isEmbedded { change.orphans += ModelWorld.links(gone) }
            return
        }
        if chance(4) {
            try editor.clear(identity)
            if change.isEmbedded { change.orphans += keys.flatMap { ModelWorld.links(entries[$0]) } }
            entries = [:]
            return
        }
        let key = chance(40) ? any(keys) ?? ByteKey("k") : ByteKey(dictionaryKey())
        if change.isEmbedded {
            let child = try editor.dictionarySetEmbedded(identity, key.text)
            change.orphans += ModelWorld.links(entries[key])
            change.born.append(child)
            entries[key] = .scalar(.link(column.oppositeTable, child))
            return
        }
        let new = depth > 0 || column.collection == nil ? mixed(nesting: true) : element(column, isNested: false)
        let (_, wasInserted) = try editor.dictionarySet(identity, key.text, new)
        if wasInserted != (entries[key] == nil) { throw ModelError("\(key): inserted \(wasInserted)") }
        entries[key] = stored(new, over: entries[key])
    }

    // MARK: Values

    private mutating func dictionaryKey() -> String {
        [
            "a", "b", "ab", "abc", "Zo\u{EB}", "Zoe\u{308}", "", "key \(number(30))",
            String(repeating: "long ", count: 15 + number(8)),
        ][number(9)]
    }

    private mutating func text() -> String {
        switch number(9) {
        case 0: ""
        case 1: "w\(number(50))"
        case 2: "the quick brown fox \(number(9)) jumps"
        case 3: "Stra\u{DF}e na\u{EF}ve \u{65E5}\u{672C}"
        case 4: "e\u{301}"
        case 5: String(repeating: "x", count: number(70))
        case 6: String(repeating: "word \(number(5)) ", count: number(30))
        case 7 where chance(8): String(repeating: "0123456789", count: number(7000))
        default: "\(number(1 << 20))"
        }
    }

    private mutating func integer() -> Int64 {
        let bits = random.next() >> UInt64(number(64))
        return chance(50) ? Int64(bitPattern: bits) : -Int64(truncatingIfNeeded: bits >> 1)
    }

    /// A value for a scalar column, or for an element of a typed collection; null where it may be.
    private mutating func scalar(_ column: Column) -> Mixed {
        if column.isNullable && chance(15) { return .null }
        switch column.type {
        case .int: return .int(integer())
        case .bool: return .bool(chance(50))
        case .float: return .float([0, -0.0, 1.5, .infinity, -.leastNonzeroMagnitude, Float(number(1000)) / 7][number(6)])
        case .double: return .double([0, -0.0, 1.5, -.infinity, .greatestFiniteMagnitude, Double(number(1000)) / 7][number(6)])
        case .string: return .string(text())
        case .binary:
            return .binary((0..<[0, 1, 9, 63, 64, 65, 300, 3000][number(8)]).map { UInt8(truncatingIfNeeded: $0 &* 7) })
        case .timestamp: return .timestamp(Timestamp(seconds: integer() >> 8, nanoseconds: 0))
        case .decimal:
            return .decimal(
                [Decimal128Bits(Int64(number(1000)) - 500), Decimal128Bits(low: random.next(), high: 0x3042_0000_0000_0000)][
                    number(2)])
        case .objectId: return .objectId(ObjectIdValue(high: random.next() >> UInt64(number(64)), low: UInt32(number(5))))
        case .uuid: return .uuid(UUIDValue(high: UInt64(number(5)), low: random.next() >> UInt64(number(64))))
        case .link: return anyObject(column.oppositeTable).map { .link(column.oppositeTable, $0) } ?? .null
        case .mixed: return mixed(nesting: false)
        case .backlink, .typedLink: return .null
        }
    }

    private mutating func mixed(nesting: Bool) -> Mixed {
        switch number(nesting ? 17 : 14) {
        case 0: return .null
        case 1: return .int(integer())
        case 2: return .bool(chance(50))
        case 3: return .string(text())
        case 4: return .double(Double(number(40)) / 4)
        case 5: return .float(Float(number(40)) / 4)
        case 6: return .binary(Array(text().utf8))
        case 7: return .timestamp(Timestamp(seconds: integer() >> 8, nanoseconds: 0))
        case 8: return .decimal(Decimal128Bits(Int64(number(40))))
        case 9: return .objectId(ObjectIdValue(high: random.next(), low: 7))
        case 10: return .uuid(UUIDValue(high: 3, low: random.next()))
        case 11, 12, 13:
            guard let table = any(world.order.filter { world.tables[$0]?.kind == .topLevel }), let key = anyObject(table) else {
                return .int(1)
            }
            return .link(table, key)
        case 14, 15: return .list
        default: return .dictionary
        }
    }
}
