import Foundation
internal import SharedStore

/// Least, greatest, sum and mean over values, as collections have them.
enum Aggregate {
    case min, max, sum, average
}

struct Aggregation {
    let kind: Aggregate
    let type: PropertyType
    private var best: Mixed = .null
    private var integer: Int64 = 0
    private var float: Double = 0
    private var decimal = Decimal128Bits.zero
    private var count = 0

    init(_ kind: Aggregate, _ type: PropertyType) {
        self.kind = kind
        self.type = type
    }

    /// Null and not-a-number are left out (query-language 7), and in the sum of AnyRealmValues what is no number; the least and
    /// the greatest of these are those of the order in which they are sorted.
    mutating func add(_ value: Mixed) {
        switch value {
        case .null: return
        case .float(let v) where v.isNaN: return
        case .double(let v) where v.isNaN: return
        case .decimal(let v) where v.isNaN: return
        default: break
        }
        switch kind {
        case .min, .max:
            if best == .null || (kind == .min ? Mixed.compare(value, best) < 0 : Mixed.compare(value, best) > 0) { best = value }
        case .sum, .average:
            switch value {
            case .int(let v):
                integer &+= v
                float += Double(v)
                if type == .any { decimal = decimal + Decimal128Bits(v) }
            case .float(let v):
                float += Double(v)
                if type == .any { decimal = decimal + Decimal128Bits(v) }
            case .double(let v):
                float += v
                if type == .any { decimal = decimal + Decimal128Bits(v) }
            case .decimal(let v): decimal = decimal + v
            default: return
            }
            count += 1
        }
    }

    /// Null where there was nothing; the sum is then 0.
    var result: Mixed {
        switch kind {
        case .min, .max: return best
        case .sum:
            switch type {
            case .int: return .int(integer)
            case .decimal128, .any: return .decimal(decimal)
            default: return .double(float)
            }
        case .average:
            if count == 0 { return .null }
            switch type {
            case .decimal128, .any: return .decimal(decimal / Decimal128Bits(Int64(count)))
            default: return .double(float / Double(count))
            }
        }
    }

    /// Stops the process where values of the type have no such aggregate.
    static func check(_ kind: Aggregate, _ type: PropertyType, _ path: String) {
        switch type {
        case .int, .float, .double, .decimal128, .any: return
        case .date where kind == .min || kind == .max: return
        default: misuse("Cannot compute \(kind) of '\(path)': not supported for \(type)")
        }
    }
}

extension _CollectionCore {
    /// - Parameter name: a property of the elements; nil for the elements themselves.
    func aggregate<T>(_ kind: Aggregate, _ name: String?, _ result: T.Type) -> T? {
        var aggregation: Aggregation
        switch form {
        case .unmanaged(let elements):
            let type = elementType(name)
            Aggregation.check(kind, type, name ?? "self")
            aggregation = Aggregation(kind, type)
            for element in elements {
                let value =
                    name.map { name in (element._toStored().dynamicValue as? ObjectBase)?.value(forKey: name) }
                    ?? element._toStored().dynamicValue
                if let stored = value.flatMap({ ValueInput.convertMixed($0) })?.plain { aggregation.add(stored) }
            }
        default:
            let core = results()
            let property = name.map { name -> ManagedProperty in
                guard let property = core.type?.property(name) else {
                    misuse("Invalid property name '\(name)' for class '\(core.type?.name ?? "\(Element.self)")'.")
                }
                return property
            }
            let type = property?.property.type ?? Element._elementShape.type
            if property?.isCollection == true { misuse("Cannot compute \(kind) of the collection '\(name ?? "")'") }
            Aggregation.check(kind, type, name ?? "self")
            aggregation = Aggregation(kind, type)
            if let result = core.tableAggregate(kind, property) { return Aggregate.convert(result, to: T.self) }
            core.forEachValue(property) { aggregation.add($0) }
        }
        return Aggregate.convert(aggregation.result, to: T.self)
    }

    private func elementType(_ name: String?) -> PropertyType {
        guard let name else { return Element._elementShape.type }
        guard let type = Element._elementShape.objectClass, let property = ClassInfo.of(type).property(name) else {
            misuse("Invalid property name '\(name)' for '\(Element.self)'.")
        }
        return property.shape.type
    }

    /// The elements as results: those of a file only.
    func results() -> ResultsCore {
        switch form {
        case .unmanaged: misuse("This method may only be called on collections that were retrieved from a Realm.")
        case .managed(let handle): ResultsCore(handle.session, .collection(handle))
        case .results(let core): core
        }
    }
}

extension Aggregate {
    /// The type that the caller wants: nil for null. A mean that is wanted as an integer loses its fraction.
    static func convert<T>(_ value: Mixed, to type: T.Type) -> T? {
        if value == .null { return nil }
        if type == Any.self || type == NSNumber.self {
            let number: NSNumber? =
                switch value {
                case .int(let v): NSNumber(value: v)
                case .double(let v): NSNumber(value: v)
                case .float(let v): NSNumber(value: v)
                default: nil
                }
            if let number = number as? T { return number }
        }
        guard let wanted = type as? any _Storable.Type else { return _Stored(value).dynamicValue as? T }
        return from(value, wanted) as? T
    }

    private static func from<S: _Storable>(_ value: Mixed, _ type: S.Type) -> S? {
        guard let discoverable = type as? any _RealmSchemaDiscoverable.Type else { return S._fromOptional(_Stored(value)) }
        let wanted = discoverable._shape.type
        let converted: Mixed =
            switch (wanted, value) {
            case (.int, .double(let v)): Int64(exactly: v.rounded(.towardZero)).map { .int($0) } ?? .null
            case (.float, .double(let v)): .float(Float(v))
            case (.double, .float(let v)): .double(Double(v))
            case (.double, .int(let v)): .double(Double(v))
            case (.float, .int(let v)): .float(Float(v))
            case (.double, .decimal(let v)): .double(v.doubleValue)
            case (.float, .decimal(let v)): .float(Float(v.doubleValue))
            case (.decimal128, .int(let v)): .decimal(Decimal128Bits(v))
            case (.decimal128, .double(let v)): .decimal(Decimal128Bits(v))
            case (.decimal128, .float(let v)): .decimal(Decimal128Bits(v))
            default: value
            }
        return S._fromOptional(_Stored(converted))
    }
}
