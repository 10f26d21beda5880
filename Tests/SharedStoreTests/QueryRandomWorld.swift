import TestSupport
import XCTest

@testable import SharedStore

/// Values as the naive evaluator sees them.
enum NaiveValue: Equatable {
    case null
    case int(Int64), bool(Bool), float(Float), double(Double), string(String), data([UInt8]), link(Int64)
    /// Seconds and nanoseconds.
    case date(Int64, Int32)
}

/// Two classes with random content, in the file and beside it.
struct QueryRandomWorld {
    struct Thing {
        var values: [String: NaiveValue] = [:]
        var lists: [String: [NaiveValue]] = [:]
        var map: [String: NaiveValue] = [:]
    }

    let scratch: ScratchArena
    let group: GroupEditor
    let schema: GroupQuerySchema
    let table: TableKey
    /// By object key.
    var things: [Int64: Thing] = [:]
    var keys: [Int64] = []
    /// By target: the objects that link to it.
    var back: [Int64: [Int64]] = [:]

    static let scalars: [(name: String, type: ColumnType, isNullable: Bool)] = [
        ("int", .int, false), ("intOpt", .int, true), ("small", .int, false), ("indexed", .int, true), ("bool", .bool, false),
        ("boolOpt", .bool, true),
        ("double", .double, false), ("doubleOpt", .double, true), ("float", .float, true), ("string", .string, false),
        ("stringOpt", .string, true),
        ("word", .string, true), ("date", .timestamp, false), ("dateOpt", .timestamp, true), ("data", .binary, true),
        ("mixed", .mixed, true),
    ]
    static let lists: [(name: String, type: ColumnType, isNullable: Bool)] = [
        ("ints", .int, true), ("doubles", .double, false), ("strings", .string, true),
    ]
    static let texts = [
        "", "a", "A", "ab", "aB", "abc", "b", "Zoë", "zoË", "ß", "x*y", String(repeating: "long ", count: 5),
        String(repeating: "Longer ", count: 12),
    ]

    init(seed: UInt64, count: Int) throws {
        var random = SplitMix(seed: seed)
        scratch = try ScratchArena()
        group = try GroupEditor(arena: scratch.arena, topRef: 0)
        let editor = try group.createTable("class_Thing")
        table = editor.table.key
        for (name, type, isNullable) in Self.scalars { try editor.addColumn(name, type, isNullable ? .nullable : []) }
        for (name, type, isNullable) in Self.lists { try editor.addColumn(name, type, isNullable ? [.list, .nullable] : .list) }
        try editor.addColumn("map", .int, [.dictionary, .nullable])
        try editor.addColumn("link", .link, target: table)
        try editor.addColumn("links", .link, .list, target: table)
        for name in ["indexed", "word", "mixed"] { try editor.addIndex(editor.column(named: name).key) }
        // Some keys are free again, so that clusters of both forms occur.
        var live: [ObjectKey] = []
        for _ in 0..<count { live.append(try editor.createObject()) }
        for key in live where random.next() % 7 == 0 { try editor.deleteObject(key) }
        for key in live {
            guard try editor.table.find(key) != nil else { continue }
            var thing = Thing()
            for (name, type, isNullable) in Self.scalars {
                let value = isNullable && random.next() % 4 == 0 ? NaiveValue.null : Self.value(name, type, &random)
                thing.values[name] = value
                try editor.set(name, of: key, to: value.mixed(table))
            }
            for (name, type, isNullable) in Self.lists {
                let values = (0..<Int(random.next() % 4)).map { _ in
                    isNullable && random.next() % 5 == 0 ? NaiveValue.null : Self.value(name, type, &random)
                }
                thing.lists[name] = values
                let list = editor.identity(try editor.column(named: name), of: key)
                for (i, value) in values.enumerated() { try editor.listInsert(list, i, value.mixed(table)) }
            }
            for name in ["k", "l", "m"] where random.next() % 2 == 0 {
                let value = random.next() % 4 == 0 ? NaiveValue.null : .int(Int64(random.next() % 4))
                thing.map[name] = value
                try editor.dictionarySet(editor.identity(try editor.column(named: "map"), of: key), name, value.mixed(table))
            }
            things[key.rawValue] = thing
        }
        let keys = things.keys.sorted()
        for key in keys {
            let target = keys[Int(random.next() % UInt64(keys.count))]
            let link = random.next() % 3 == 0 ? NaiveValue.null : .link(target)
            things[key]?.values["link"] = link
            if case .link(let target) = link { back[target, default: []].append(key) }
            try editor.set("link", of: ObjectKey(key), to: link.mixed(table))
            let links = (0..<Int(random.next() % 4)).map { _ in NaiveValue.link(keys[Int(random.next() % UInt64(keys.count))]) }
            things[key]?.lists["links"] = links
            let list = editor.identity(try editor.column(named: "links"), of: ObjectKey(key))
            for (i, value) in links.enumerated() { try editor.listInsert(list, i, value.mixed(table)) }
        }
        var schema = try GroupQuerySchema(group.group)
        try schema.addLinkingObjects("back", of: "Thing", from: "Thing", property: "link")
        self.schema = schema
        self.keys = keys
    }

    static func value(_ name: String, _ type: ColumnType, _ random: inout SplitMix) -> NaiveValue {
        switch type {
        case .int:
            switch name {
            case "small": return .int(Int64(random.next() % 4))
            case "indexed", "ints": return .int(Int64(random.next() % 12) - 3)
            case "intOpt": return .int([0, 1, -1, 200, -70_000, 1 << 40, .max, .min][Int(random.next() % 8)])
            default: return .int(Int64(random.next() % 2000) - 1000)
            }
        case .bool: return .bool(random.next() % 2 == 0)
        case .float: return .float([0, -0.0, 1.5, 2, -3.25, .nan, .infinity][Int(random.next() % 7)])
        case .double: return .double([0, -0.0, 1.5, 2, -3.25, .nan, -.infinity, 0.1][Int(random.next() % 8)])
        case .string: return .string(texts[Int(random.next() % UInt64(texts.count))])
        case .timestamp:
            return [.date(0, 0), .date(0, 5), .date(-3, -7), .date(1 << 33, 1), .date(5, 999_999_999)][Int(random.next() % 5)]
        case .binary: return .data([[], [0], [97], [97, 0, 255], [255]][Int(random.next() % 5)])
        default:
            switch random.next() % 6 {
            case 0: return .int(Int64(random.next() % 4))
            case 1: return .double([0, 1, 1.5, .nan][Int(random.next() % 4)])
            case 2: return .string(texts[Int(random.next() % 6)])
            case 3: return .bool(random.next() % 2 == 0)
            case 4: return .float([1, 2.5][Int(random.next() % 2)])
            default: return .data([97])
            }
        }
    }
}

extension NaiveValue {
    func mixed(_ table: TableKey) -> Mixed {
        switch self {
        case .null: .null
        case .int(let v): .int(v)
        case .bool(let v): .bool(v)
        case .float(let v): .float(v)
        case .double(let v): .double(v)
        case .string(let v): .string(v)
        case .data(let v): .binary(v)
        case .date(let s, let n): .timestamp(Timestamp(seconds: s, nanoseconds: n))
        case .link(let key): .link(table, ObjectKey(key))
        }
    }
}
