import TestSupport

@testable import SharedStore

/// The order of sorting, written anew: null, truth values, numbers with NaN first, strings, data, dates, links; nil (behind a
/// null link) last.
enum NaiveOrder {
    static func value(_ world: QueryRandomWorld, _ key: Int64, _ path: String) -> NaiveValue? {
        let parts = path.split(separator: ".").map(String.init)
        guard parts.count == 2 else { return world.things[key]?.values[path] }
        guard case .link(let target)? = world.things[key]?.values[parts[0]] else { return nil }
        return world.things[target]?.values[parts[1]]
    }

    private static func rank(_ value: NaiveValue) -> Int {
        switch value {
        case .null: 0
        case .bool: 1
        case .int, .float, .double: 2
        case .string: 3
        case .data: 4
        case .date: 5
        case .link: 6
        }
    }

    static func number(_ value: NaiveValue) -> Double? {
        switch value {
        case .int(let v): Double(v)
        case .float(let v): Double(v)
        case .double(let v): v
        default: nil
        }
    }

    static func compare(_ a: NaiveValue?, _ b: NaiveValue?) -> Int {
        guard let a else { return b == nil ? 0 : 1 }
        guard let b else { return -1 }
        func order<T: Comparable>(_ x: T, _ y: T) -> Int { x < y ? -1 : x == y ? 0 : 1 }
        if case .int(let x) = a, case .int(let y) = b { return order(x, y) }
        if let x = number(a), let y = number(b) {
            return x.isNaN || y.isNaN ? order(x.isNaN ? 0 : 1, y.isNaN ? 0 : 1) : order(x, y)
        }
        switch (a, b) {
        case (.bool(let x), .bool(let y)): return order(x ? 1 : 0, y ? 1 : 0)
        case (.string(let x), .string(let y)):
            return Array(x.utf8) == Array(y.utf8) ? 0 : x.utf8.lexicographicallyPrecedes(y.utf8) ? -1 : 1
        case (.data(let x), .data(let y)): return x == y ? 0 : x.lexicographicallyPrecedes(y) ? -1 : 1
        case (.date(let s, let n), .date(let t, let m)): return s != t ? order(s, t) : order(n, m)
        case (.link(let x), .link(let y)): return order(x, y)
        default: return order(rank(a), rank(b))
        }
    }
}

/// A predicate with its text and its meaning.
indirect enum NaivePredicate {
    case and([NaivePredicate]), or([NaivePredicate]), not(NaivePredicate)
    /// A single value of the object, or of the object that it links to, against a constant.
    case value(path: String, type: ColumnType, String, NaiveValue, isMirrored: Bool)
    case isIn(path: String, [NaiveValue])
    case between(path: String, NaiveValue, NaiveValue)
    case strings(path: String, String, isFolded: Bool, String)
    case twoColumns(String, String, String)
    /// ANY, ALL, NONE of the elements of a list, or of a property of the linked objects.
    case elements(String, path: String, String, NaiveValue)
    case count(String, String, Int64)
    case aggregate(String, String, Int64)
    case subquery([(String, String, Int64)], String, Int64)
    case mapValue(String, String, NaiveValue)

    // MARK: Text

    static func literal(_ value: NaiveValue) -> String {
        switch value {
        case .null: "null"
        case .int(let v): "\(v)"
        case .bool(let v): "\(v)"
        case .float(let v): v.isNaN ? "nan" : v.isInfinite ? (v < 0 ? "-inf" : "inf") : "\(v)"
        case .double(let v): v.isNaN ? "nan" : v.isInfinite ? (v < 0 ? "-inf" : "inf") : "\(v)"
        case .string(let v): "'\(v)'"
        case .data(let v): "bin(B64\"\(base64(v))\")"
        case .date(let s, let n): "T\(s):\(n)"
        case .link: "null"
        }
    }

    private static func base64(_ bytes: [UInt8]) -> String {
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
        var text = ""
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let group = Array(bytes[start..<min(start + 3, bytes.count)])
            let bits = group.enumerated().reduce(0) { $0 | Int($1.element) << (16 - 8 * $1.offset) }
            for i in 0...group.count { text.append(alphabet[bits >> (18 - 6 * i) & 63]) }
        }
        return text
    }

    var text: String {
        switch self {
        case .and(let parts): return parts.map { "(\($0.text))" }.joined(separator: " AND ")
        case .or(let parts): return parts.map { "(\($0.text))" }.joined(separator: " || ")
        case .not(let inner): return "NOT (\(inner.text))"
        case .value(let path, _, let operation, let value, let isMirrored):
            let mirrored = ["<": ">", ">": "<", "<=": ">=", ">=": "<="][operation] ?? operation
            return isMirrored ? "\(Self.literal(value)) \(mirrored) \(path)" : "\(path) \(operation) \(Self.literal(value))"
        case .isIn(let path, let values): return "\(path) IN {\(values.map(Self.literal).joined(separator: ", "))}"
        case .between(let path, let low, let high): return "\(path) BETWEEN {\(Self.literal(low)), \(Self.literal(high))}"
        case .strings(let path, let operation, let isFolded, let part):
            return "\(path) \(operation)\(isFolded ? "[c]" : "") '\(part)'"
        case .twoColumns(let a, let operation, let b): return "\(a) \(operation) \(b)"
        case .elements(let quantifier, let path, let operation, let value):
            return "\(quantifier) \(path) \(operation) \(Self.literal(value))"
        case .count(let path, let operation, let n): return "\(path).@count \(operation) \(n)"
        case .aggregate(let path, let operation, let n): return "\(path) \(operation) \(n)"
        case .subquery(let conditions, let operation, let n):
            return
                "SUBQUERY(links, $x, \(conditions.map { "$x.\($0.0) \($0.1) \($0.2)" }.joined(separator: " AND ")))"
                + ".@count \(operation) \(n)"
        case .mapValue(let key, let operation, let value): return "map['\(key)'] \(operation) \(Self.literal(value))"
        }
    }

    // MARK: Meaning

    /// One value against another. `own`: a property of the class itself against a constant on its right; `ofString`: and a String
    /// property.
    static func compare(_ left: NaiveValue, _ operation: String, _ right: NaiveValue, own: Bool, ofString: Bool = false) -> Bool {
        if own, let x = NaiveOrder.number(left), let y = NaiveOrder.number(right), x.isNaN || y.isNaN {
            // IEEE between values of the same kind.
            var isSameKind = false
            switch (left, right) {
            case (.float, .float), (.double, .double): isSameKind = true
            default: break
            }
            if isSameKind { return operation == "!=" }
        }
        let isEqual: Bool
        switch (left, right) {
        case (.null, .null): isEqual = true
        case (.null, _), (_, .null): isEqual = false
        default: isEqual = isComparable(left, right) && NaiveOrder.compare(left, right) == 0
        }
        switch operation {
        case "==": return isEqual
        case "!=": return !isEqual
        default: break
        }
        let order: Int
        switch (left, right) {
        case (.null, .null): order = 0
        case (.null, .string) where own && ofString: order = -1
        case (.string, .null) where own && ofString: order = 1
        case (.null, _), (_, .null): return false
        default:
            if !isComparable(left, right) { return false }
            order = NaiveOrder.compare(left, right)
        }
        switch operation {
        case "<": return order < 0
        case "<=": return order <= 0
        case ">": return order > 0
        default: return order >= 0
        }
    }

    private static func isComparable(_ a: NaiveValue, _ b: NaiveValue) -> Bool {
        if NaiveOrder.number(a) != nil && NaiveOrder.number(b) != nil { return true }
        switch (a, b) {
        case (.bool, .bool), (.string, .string), (.data, .data), (.date, .date), (.link, .link): return true
        default: return false
        }
    }

    private static func compare(_ a: Int64, _ operation: String, _ b: Int64) -> Bool {
        compare(.int(a), operation, .int(b), own: true)
    }

    /// ASCII and Latin-1 letters in lower case.
    private static func folded(_ text: String) -> [UInt32] {
        text.unicodeScalars.map { scalar in
            switch scalar.value {
            case 65...90: scalar.value + 32
            case 0xC0...0xDE where scalar.value != 0xD7: scalar.value + 32
            default: scalar.value
            }
        }
    }

    private static func substring(_ text: String, _ operation: String, _ part: String, isFolded: Bool) -> Bool {
        let a = isFolded ? folded(text) : text.unicodeScalars.map(\.value),
            b = isFolded ? folded(part) : part.unicodeScalars.map(\.value)
        switch operation {
        case "==": return a == b
        case "!=": return a != b
        case "LIKE": return like(a[...], b[...])
        default: break
        }
        if b.isEmpty || a.count < b.count { return false }
        switch operation {
        case "BEGINSWITH": return Array(a.prefix(b.count)) == b
        case "ENDSWITH": return Array(a.suffix(b.count)) == b
        default: return (0...(a.count - b.count)).contains { Array(a[$0..<($0 + b.count)]) == b }
        }
    }

    private static func like(_ text: ArraySlice<UInt32>, _ pattern: ArraySlice<UInt32>) -> Bool {
        guard let first = pattern.first else { return text.isEmpty }
        if first == 42 { return like(text, pattern.dropFirst()) || !text.isEmpty && like(text.dropFirst(), pattern) }
        guard let next = text.first, first == 63 || first == next else { return false }
        return like(text.dropFirst(), pattern.dropFirst())
    }

    private static func single(_ world: QueryRandomWorld, _ key: Int64, _ path: String) -> NaiveValue {
        NaiveOrder.value(world, key, path) ?? .null
    }

    private static func elements(_ world: QueryRandomWorld, _ key: Int64, _ path: String) -> [NaiveValue] {
        let parts = path.split(separator: ".").map(String.init)
        if parts.count == 1 { return world.things[key]?.lists[path] ?? [] }
        let targets: [NaiveValue]
        if parts[0] == "back" {
            targets = (world.back[key] ?? []).map { .link($0) }
        } else {
            targets = world.things[key]?.lists[parts[0]] ?? []
        }
        return targets.map { target in
            guard case .link(let key) = target else { return .null }
            return single(world, key, parts[1])
        }
    }

    func holds(_ world: QueryRandomWorld, _ key: Int64) -> Bool {
        switch self {
        case .and(let parts): return parts.allSatisfy { $0.holds(world, key) }
        case .or(let parts): return parts.contains { $0.holds(world, key) }
        case .not(let inner): return !inner.holds(world, key)
        case .value(let path, let type, let operation, let value, let isMirrored):
            return Self.compare(
                Self.single(world, key, path), operation, value, own: !path.contains(".") && !isMirrored && type != .mixed,
                ofString: type == .string)
        case .isIn(let path, let values):
            return values.contains { Self.compare(Self.single(world, key, path), "==", $0, own: !path.contains(".")) }
        case .between(let path, let low, let high):
            let value = Self.single(world, key, path)
            return Self.compare(value, ">=", low, own: true, ofString: true)
                && Self.compare(value, "<=", high, own: true, ofString: true)
        case .strings(let path, let operation, let isFolded, let part):
            guard case .string(let text) = Self.single(world, key, path) else { return operation == "!=" }
            return Self.substring(text, operation, part, isFolded: isFolded)
        case .twoColumns(let a, let operation, let b):
            return Self.compare(Self.single(world, key, a), operation, Self.single(world, key, b), own: false)
        case .elements(let quantifier, let path, let operation, let value):
            let matching = Self.elements(world, key, path).map { Self.compare($0, operation, value, own: false) }
            return quantifier == "ANY"
                ? matching.contains(true) : quantifier == "ALL" ? !matching.contains(false) : !matching.contains(true)
        case .count(let path, let operation, let n):
            if path == "back" { return Self.compare(Int64(Self.elements(world, key, "back.small").count), operation, n) }
            return Self.compare(Int64(world.things[key]?.lists[path]?.count ?? 0), operation, n)
        case .aggregate(let path, let operation, let n):
            return Self.compare(Self.aggregate(world, key, path), operation, .int(n), own: false)
        case .subquery(let conditions, let operation, let n):
            let found = (world.things[key]?.lists["links"] ?? []).filter { target in
                guard case .link(let other) = target else { return false }
                return conditions.allSatisfy { Self.compare(Self.single(world, other, $0.0), $0.1, .int($0.2), own: true) }
            }
            return Self.compare(Int64(found.count), operation, n)
        case .mapValue(let name, let operation, let value):
            let map = world.things[key]?.map ?? [:]
            if map.isEmpty { return false }
            return Self.compare(map[name] ?? .null, operation, value, own: false)
        }
    }

    private static func aggregate(_ world: QueryRandomWorld, _ key: Int64, _ path: String) -> NaiveValue {
        let parts = path.split(separator: "@").map(String.init)
        let operation = parts[1].split(separator: ".").map(String.init)
        let list = String(parts[0].dropLast())
        let values = operation.count == 2 ? elements(world, key, "\(list).\(operation[1])") : elements(world, key, list)
        let ints = values.compactMap { if case .int(let v) = $0 { v } else { nil } }
        switch operation[0] {
        case "sum": return .int(ints.reduce(0, &+))
        case "min": return ints.min().map { .int($0) } ?? .null
        case "max": return ints.max().map { .int($0) } ?? .null
        default: return ints.isEmpty ? .null : .double(ints.map(Double.init).reduce(0, +) / Double(ints.count))
        }
    }

    // MARK: Making

    private static let orders = ["==", "!=", "<", "<=", ">", ">="]

    static func random(_ random: inout SplitMix, depth: Int, _ world: QueryRandomWorld) -> NaivePredicate {
        func pick<T>(_ values: [T]) -> T { values[Int(random.next() % UInt64(values.count))] }
        if depth > 0 {
            switch random.next() % 5 {
            case 0, 1: return .and((0..<(2 + random.next() % 2)).map { _ in Self.random(&random, depth: depth - 1, world) })
            case 2, 3: return .or((0..<(2 + random.next() % 2)).map { _ in Self.random(&random, depth: depth - 1, world) })
            default: return .not(Self.random(&random, depth: depth - 1, world))
            }
        }
        func constant(_ name: String, _ type: ColumnType) -> NaiveValue {
            random.next() % 10 == 0 ? .null : QueryRandomWorld.value(name, type, &random)
        }
        let scalar = pick(QueryRandomWorld.scalars)
        let path = random.next() % 5 == 0 ? "link." + scalar.name : scalar.name
        let operations = scalar.type == .bool ? ["==", "!="] : orders
        switch random.next() % 14 {
        case 0...4:
            var value = constant(scalar.name, scalar.type)
            // An integer beside a fraction, a fraction beside an integer.
            if [.double, .float].contains(scalar.type), random.next() % 4 == 0 { value = .int(Int64(random.next() % 5) - 2) }
            if scalar.type == .int, random.next() % 6 == 0 { value = .double([1.5, -0.5, 0.25][Int(random.next() % 3)]) }
            if scalar.type == .mixed, case .float = value { value = .null }
            return .value(path: path, type: scalar.type, pick(operations), value, isMirrored: random.next() % 6 == 0)
        case 5:
            let ints = QueryRandomWorld.scalars.filter { [.int, .string, .timestamp].contains($0.type) }
            let column = pick(ints)
            return .isIn(
                path: random.next() % 5 == 0 ? "link." + column.name : column.name,
                (0..<Int(random.next() % 4)).map { _ in constant(column.name, column.type) })
        case 6:
            let column = pick(QueryRandomWorld.scalars.filter { [.int, .string, .timestamp, .double].contains($0.type) })
            return .between(
                path: column.name, QueryRandomWorld.value(column.name, column.type, &random),
                QueryRandomWorld.value(column.name, column.type, &random))
        case 7, 8:
            let operation = pick(["BEGINSWITH", "ENDSWITH", "CONTAINS", "LIKE", "==", "!="])
            let part =
                operation == "LIKE"
                ? pick(["*", "a*", "?", "*b?", "*A*", "zo?", "x*y", "*long*"])
                : pick(["a", "B", "oë", "OË", "ab", "long", "Longer ", "ß", "zz"])
            return .strings(
                path: pick(["string", "stringOpt", "word", "link.stringOpt"]), operation, isFolded: random.next() % 2 == 0, part)
        case 9:
            let (a, b) = pick([
                ("int", "small"), ("intOpt", "int"), ("double", "int"), ("doubleOpt", "float"), ("string", "stringOpt"),
                ("link.int", "int"), ("date", "dateOpt"),
                ("mixed", "small"), ("double", "doubleOpt"),
            ])
            return .twoColumns(a, pick(orders), b)
        case 10:
            let (list, name, type) = pick([
                ("ints", "ints", ColumnType.int), ("doubles", "doubles", .double), ("strings", "strings", .string),
                ("links.int", "int", .int),
                ("links.stringOpt", "stringOpt", .string), ("back.small", "small", .int),
                ("links.doubleOpt", "doubleOpt", .double),
            ])
            return .elements(pick(["ANY", "ALL", "NONE"]), path: list, pick(orders), constant(name, type))
        case 11: return .count(pick(["ints", "doubles", "strings", "links", "back"]), pick(orders), Int64(random.next() % 4))
        case 12:
            return .aggregate(
                pick([
                    "ints.@sum", "ints.@min", "ints.@max", "ints.@avg", "links.@sum.small", "links.@max.intOpt",
                    "links.@min.indexed", "back.@avg.small",
                ]), pick(orders),
                Int64(random.next() % 6) - 2)
        default:
            if random.next() % 2 == 0 {
                return .mapValue(
                    pick(["k", "l", "m"]), pick(orders), random.next() % 4 == 0 ? .null : .int(Int64(random.next() % 4)))
            }
            let conditions = (0..<(1 + random.next() % 2)).map { _ in
                (pick(["small", "indexed", "intOpt"]), pick(orders), Int64(random.next() % 5) - 1)
            }
            return .subquery(conditions, pick(orders), Int64(random.next() % 3))
        }
    }
}
