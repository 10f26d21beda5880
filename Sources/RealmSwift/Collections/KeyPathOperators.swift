import Foundation
internal import SharedStore

/// Values and sums over the elements of a collection, by key path as Foundation's key-value coding has them.
enum KeyPathOperators {
    static func values<C: RealmCollectionBase>(of collection: C, forKey key: String) -> [Any?] {
        values(of: collection.map { $0._toStored().dynamicValue }, forKeyPath: key)
    }

    /// - Parameter key: what is set of each object, for the message.
    static func set<C: RealmCollectionBase>(_ key: String, of collection: C, _ set: (ObjectBase) -> Void) {
        for element in collection {
            guard let object = element._toStored().dynamicValue as? ObjectBase else {
                misuse("Cannot set '\(key)' of elements that are no objects")
            }
            set(object)
        }
    }

    static func value<C: RealmCollectionBase>(of collection: C, forKeyPath keyPath: String) -> Any? {
        value(of: collection.map { $0._toStored().dynamicValue }, forKeyPath: keyPath)
    }

    private static func values(of elements: [Any?], forKeyPath keyPath: String) -> [Any?] {
        if keyPath == "self" { return elements }
        return elements.map { element in
            guard let object = element as? ObjectBase else { misuse("Cannot read '\(keyPath)' of elements that are no objects") }
            return object.value(forKeyPath: keyPath)
        }
    }

    /// A path that begins with an operator gives one value, any other one value an element.
    static func value(of elements: [Any?], forKeyPath keyPath: String) -> Any? {
        guard keyPath.hasPrefix("@") else { return values(of: elements, forKeyPath: keyPath) }
        let parts = keyPath.split(separator: ".", maxSplits: 1).map(String.init)
        let name = parts[0]
        if name == "@count" { return elements.count }
        guard parts.count == 2 else { misuse("Missing key path for KVC collection operator '\(name)' in key path '\(keyPath)'") }
        if parts[1].contains("@") { misuse("Nested key paths are not supported yet for KVC collection operators: '\(keyPath)'") }
        let values = values(of: elements, forKeyPath: parts[1])
        switch name {
        case "@min": return extreme(values) { $0 < $1 }
        case "@max": return extreme(values) { $0 > $1 }
        case "@sum": return sum(values)
        case "@avg":
            let numbers = values.compactMap { number($0) }
            return numbers.isEmpty ? nil : (numbers.reduce(0, +) / Double(numbers.count)) as Any
        case "@unionOfObjects": return values.compactMap { $0 }
        case "@distinctUnionOfObjects": return distinct(values.compactMap { $0 })
        case "@unionOfArrays": return flatten(values)
        case "@distinctUnionOfArrays": return distinct(flatten(values))
        default: misuse("Unsupported KVC collection operator found in key path '\(keyPath)'")
        }
    }

    private static func flatten(_ values: [Any?]) -> [Any] {
        values.flatMap { value -> [Any] in
            if let collection = value as? any KeyValueCollection { return collection.dynamicElements.compactMap { $0 } }
            if let array = value as? [Any?] { return array.compactMap { $0 } }
            return []
        }
    }

    private static func distinct(_ values: [Any]) -> [Any] {
        var seen: Set<AnyHashable> = []
        return values.filter { value in
            if let text = value as? String { return seen.insert(AnyHashable(ExactString(text))).inserted }
            return (value as? any Hashable).map { seen.insert(AnyHashable($0)).inserted } ?? true
        }
    }

    /// The value as it was, not as a `Double`, so that an integer stays one.
    private static func extreme(_ values: [Any?], _ isBetter: (Double, Double) -> Bool) -> Any? {
        var best: (value: Any, rank: Double)?
        for case let value? in values {
            guard let rank = number(value) ?? (value as? Date)?.timeIntervalSinceReferenceDate else { continue }
            if best.map({ isBetter(rank, $0.rank) }) ?? true { best = (value, rank) }
        }
        return best?.value
    }

    private static func sum(_ values: [Any?]) -> Any {
        let present = values.compactMap { $0 }
        if present.allSatisfy({ $0 is Int }) { return present.reduce(0) { $0 &+ ($1 as? Int ?? 0) } }
        if present.contains(where: { $0 is Decimal128 }) {
            return present.reduce(Decimal128()) { sum, value in sum + (Decimal128.bits(of: value).map { Decimal128($0) } ?? 0) }
        }
        return present.reduce(0.0) { $0 + (number($1) ?? 0) }
    }

    private static func number(_ value: Any?) -> Double? {
        switch value {
        case let v as Int: Double(v)
        case let v as Double: v
        case let v as Float: Double(v)
        case let v as Decimal128: v.doubleValue
        case let v as Bool: v ? 1 : 0
        default: nil
        }
    }
}
