import Foundation
internal import SharedStore

/// Values that arrive as `Any`: from dictionaries, arrays, JSON, other objects, and the dynamic API.
enum ValueInput {
    /// Nil for nil, `NSNull` and any depth of optionals around nil.
    static func unwrap(_ value: Any?) -> Any? {
        guard let value else { return nil }
        if type(of: value) == NSNull.self { return nil }
        if let optional = value as? any OptionalProtocol { return unwrap(optional._anyWrapped) }
        return value
    }

    /// The value where it is an object. Casting would first make a Foundation object of a dictionary or a text, to see whether
    /// that is one.
    static func object(_ value: Any) -> ObjectBase? {
        type(of: value) is ObjectBase.Type ? (value as? ObjectBase)?.shownObject : nil
    }

    static func message(_ value: Any?, _ shape: _PropertyShape, _ path: String) -> String {
        let text = unwrap(value).map { "'\($0)' of type '\(type(of: $0))'" } ?? "'nil'"
        let kind = shape.objectClass.map { $0.className() } ?? shape.type.description
        return "Invalid value \(text) for '\(kind)\(shape.isOptional ? "?" : "")' property '\(path)'."
    }

    // MARK: One value

    /// `input` as a value for one place of the given shape; nil where it does not fit.
    ///
    /// A dictionary, an array or an object of another class becomes a new unmanaged object where the place holds objects.
    static func convert(_ input: Any?, to shape: _PropertyShape) -> _Stored? {
        guard let value = unwrap(input) else {
            return shape.isOptional || shape.type == .object || shape.type == .any ? .null : nil
        }
        switch shape.type {
        case .any: return convertMixed(value)
        case .object: return convertObject(value, to: shape.objectClass).map { _Stored(.object($0)) }
        case .linkingObjects: return nil
        default: break
        }
        guard let plain = plain(value) else {
            // Integers that are too large for others.
            return shape.type == .decimal128 ? Decimal128.bits(of: value).map { _Stored(.decimal($0)) } : nil
        }
        return coerce(plain, value, shape.type).map { _Stored($0) }
    }

    /// A scalar as it is, without regard to where it goes.
    private static func plain(_ value: Any) -> Mixed? {
        if let storable = value as? any _Storable {
            // An enum, a mapped type, an AnyRealmValue and the scalars themselves.
            return storable._toStored().plain
        }
        switch value {
        case let number as CGFloat: return .double(Double(number))
        case let number as NSNumber: return mixed(number)
        case let integer as any BinaryInteger: return Int64(exactly: integer).map { .int($0) }
        case let text as NSString: return .string(text as String)
        case let text as Substring: return .string(String(text))
        case let data as NSData: return .binary([UInt8](Data(referencing: data)))
        case let date as NSDate: return .timestamp(Timestamp(date as Date))
        case let uuid as NSUUID: return .uuid(UUIDValue(uuid as UUID))
        case let decimal as Decimal: return Decimal128Bits(decimal.description).map { .decimal($0) }
        // An empty array of any type could be cast to one of bytes.
        case let bytes as [UInt8] where type(of: value) == [UInt8].self: return .binary(bytes)
        default: return nil
        }
    }

    private static func mixed(_ number: NSNumber) -> Mixed? {
        // Foundation keeps booleans as "c" or "B"; an Int8 is "c" too, and fits into an integer property as well.
        switch UInt8(bitPattern: number.objCType.pointee) {
        case UInt8(ascii: "B"): .bool(number.boolValue)
        // What is greater than every integer of a file would become a negative one.
        case UInt8(ascii: "Q"): Int64(exactly: number.uint64Value).map { .int($0) }
        case UInt8(ascii: "f"): .float(number.floatValue)
        case UInt8(ascii: "d"): number is NSDecimalNumber ? Decimal128.mixed(number) : .double(number.doubleValue)
        default: .int(number.int64Value)
        }
    }

    /// Numbers convert where they stay what they are; text converts to decimals only.
    private static func coerce(_ plain: Mixed, _ value: Any, _ type: PropertyType) -> Mixed? {
        switch (type, plain) {
        case (.int, .int), (.bool, .bool), (.float, .float), (.double, .double), (.string, .string), (.data, .binary),
            (.date, .timestamp),
            (.objectId, .objectId), (.UUID, .uuid), (.decimal128, .decimal):
            return plain
        case (.int, .bool(let v)): return .int(v ? 1 : 0)
        case (.int, .float(let v)): return Int64(exactly: v).map { .int($0) }
        case (.int, .double(let v)): return Int64(exactly: v).map { .int($0) }
        case (.bool, .int(let v)) where v == 0 || v == 1: return .bool(v == 1)
        case (.float, .int(let v)): return .float(Float(v))
        // Most fractions of a JSON text have no exact Float; the nearest one is meant.
        case (.float, .double(let v)) where !v.isFinite || abs(v) <= Double(Float.greatestFiniteMagnitude):
            return .float(Float(v))
        case (.double, .int(let v)): return .double(Double(v))
        case (.double, .float(let v)): return .double(Double(v))
        // Foundation's decimals are numbers like others; those of a Realm are a type of their own.
        case (.double, .decimal(let v)) where !(value is Decimal128): return .double(v.doubleValue)
        case (.float, .decimal(let v)) where !(value is Decimal128): return .float(Float(v.doubleValue))
        case (.int, .decimal(let v)) where !(value is Decimal128): return Int64(exactly: v.doubleValue).map { .int($0) }
        case (.decimal128, .bool): return nil
        case (.decimal128, _): return Decimal128.bits(of: value).map { .decimal($0) }
        default: return nil
        }
    }

    /// A value for an `AnyRealmValue`: also dictionaries and arrays, to any depth, and objects.
    static func convertMixed(_ value: Any) -> _Stored? {
        if let value = value as? AnyRealmValue { return value.detached()._toStored() }
        if let object = value as? Object { return _Stored(.object(object)) }
        if let plain = plain(value) { return _Stored(plain) }
        if let list = value as? List<AnyRealmValue> { return _Stored(.list(list)).detached }
        if let map = value as? Map<String, AnyRealmValue> { return _Stored(.dictionary(map)).detached }
        if let dictionary = value as? [String: Any] {
            let map = Map<String, AnyRealmValue>()
            for (key, value) in dictionary {
                guard let stored = unwrap(value).map({ convertMixed($0) }) ?? .null else { return nil }
                map[key] = AnyRealmValue._from(stored)
            }
            return _Stored(.dictionary(map))
        }
        if let array = value as? [Any] {
            let list = List<AnyRealmValue>()
            for value in array {
                guard let stored = unwrap(value).map({ convertMixed($0) }) ?? .null else { return nil }
                list.append(AnyRealmValue._from(stored))
            }
            return _Stored(.list(list))
        }
        return nil
    }

    private static func convertObject(_ value: Any, to type: ObjectBase.Type?) -> ObjectBase? {
        guard let type else { return object(value) }
        if let object = object(value) {
            // A managed embedded object has its parent already: another place gets a copy of it.
            if Swift.type(of: object) == type, !(object.block != nil && type.isEmbedded()) { return object }
            if object is DynamicObject, object.schemaName == type.className(), !type.isEmbedded() {
                // As one of the class, where its Realm has that.
                return object.sameObject(as: type) ?? object
            }
            if object.schemaName != type.className() && !hasSameProperties(object, type) { return nil }
        } else if !(value is [String: Any]) && !(value is [Any]) {
            return nil
        }
        let object = ModelRuntime.make(type)
        populate(object, with: value)
        return object
    }

    private static func hasSameProperties(_ object: ObjectBase, _ type: ObjectBase.Type) -> Bool {
        ClassInfo.of(type).properties.allSatisfy { object.propertyAccess($0.name) != nil }
    }

    // MARK: Many values

    /// The elements of what was given for a list or a set, as they are; nil where it is no sequence.
    static func elements(of input: Any?) -> [Any?]? {
        guard let value = unwrap(input) else { return [] }
        if value is String || value is Data || value is [String: Any] { return nil }
        if let collection = value as? any KeyValueCollection { return collection.dynamicElements }
        if let array = value as? NSArray { return (0..<array.count).map { array.object(at: $0) } }
        guard let sequence = value as? any Sequence else { return nil }
        var elements: [Any?] = []
        func add(_ sequence: some Sequence) {
            for element in sequence { elements.append(element) }
        }
        add(sequence)
        return elements
    }

    /// The same, converted; nil also where an element does not fit.
    static func convertElements(_ input: Any?, to shape: _PropertyShape) -> [_Stored]? {
        guard let inputs = elements(of: input) else { return nil }
        var elements: [_Stored] = []
        for input in inputs {
            guard let stored = convert(input, to: shape) else { return nil }
            elements.append(stored)
        }
        return elements
    }

    /// The entries of what was given for a map.
    static func convertEntries(_ input: Any?, to shape: _PropertyShape) -> [(key: String, value: _Stored)]? {
        guard let value = unwrap(input) else { return [] }
        var entries: [(key: String, value: _Stored)] = []
        let pairs: [(key: String, value: Any?)]
        switch value {
        case let map as any AnyMap: pairs = map.dynamicEntries
        case let dictionary as [String: Any?]: pairs = dictionary.map { ($0.key, $0.value) }
        default: return nil
        }
        for (key, value) in pairs {
            guard let stored = convert(value, to: shape) else { return nil }
            entries.append((key, stored))
        }
        return entries
    }

    // MARK: Objects

    /// Sets the properties of an unmanaged object from a dictionary, an array or an object.
    static func populate(_ object: ObjectBase, with input: Any) {
        let info = ClassInfo.of(type(of: object))
        forEachValue(of: input, info.name, info.properties.lazy.filter { !$0.isComputed }.map(\.name)) { name, value in
            guard let property = object.propertyAccess(name) else { return }
            object.setDynamicValue(property, value)
        }
    }

    /// Calls `body` with the values that `input` has for the properties `names`.
    static func forEachValue(of input: Any, _ className: String, _ names: some Collection<String>, _ body: (String, Any?) -> Void)
    {
        guard let input = unwrap(input) else { misuse("Must provide a non-nil value to make an object of class '\(className)'.") }
        if let object = object(input) {
            for name in names {
                if let access = object.propertyAccess(name) { body(name, object.dynamicValue(access)) }
            }
            return
        }
        switch input {
        case let dictionary as [String: Any?]:
            for name in names {
                if let value = dictionary[name] { body(name, value) }
            }
        case let array as [Any?]:
            if array.count > names.count {
                misuse("Invalid array input: more values (\(array.count)) than properties (\(names.count)) of '\(className)'.")
            }
            for (name, value) in zip(names, array) { body(name, value) }
        case let dictionary as NSDictionary:
            for name in names {
                if let value = dictionary.object(forKey: NSString(string: name)) { body(name, value) }
            }
        case let array as NSArray: forEachValue(of: (0..<array.count).map { array.object(at: $0) }, className, names, body)
        default: misuse("Invalid value '\(input)' of type '\(type(of: input))' to initialize object of type '\(className)' with.")
        }
    }
}

extension Decimal128 {
    static func mixed(_ number: NSNumber) -> Mixed { bits(of: number).map { .decimal($0) } ?? .null }
}
