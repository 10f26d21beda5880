import Foundation
internal import SharedStore

/// A value on its way between Swift and its place in a file: what all scalar types have in common.
///
/// Values that come from a file carry the session that they were read in, so that links can become objects; values that go
/// to a file may be objects and collections that are in no file yet.
public struct _Stored {
    enum Content {
        /// Anything but `.list` and `.dictionary`.
        case plain(Mixed)
        case object(ObjectBase)
        case list(List<AnyRealmValue>)
        case dictionary(Map<String, AnyRealmValue>)
        /// What an embedded object is to be made from, in its place: a dictionary, an array or an object.
        case input(Any)
    }
    var content: Content
    /// Where a link was read; nil for values that come from Swift.
    var session: Session?

    init(_ mixed: Mixed) { content = .plain(mixed) }
    init(_ mixed: Mixed, in session: Session) {
        content = .plain(mixed)
        self.session = session
    }
    init(_ content: Content) { self.content = content }

    static var null: _Stored { _Stored(.null) }

    var isNull: Bool {
        if case .plain(.null) = content { return true }
        return false
    }

    /// The value where it is no object and no collection.
    var plain: Mixed? {
        if case .plain(let mixed) = content { return mixed }
        return nil
    }

    /// Stops the process: the place holds a value of another type than the property's Swift type.
    @inline(never)
    func mismatch(_ type: Any.Type) -> Never { misuse("Cannot read the value '\(self.dynamicValue ?? "nil")' as '\(type)'") }

    // MARK: The dynamic API

    /// The object that the value is or links to.
    func object(as type: ObjectBase.Type) -> ObjectBase? {
        switch content {
        case .object(let object): return object
        case .plain(.link(let table, let key)): return session?.object(table, key, as: type)
        default: return nil
        }
    }

    /// The value as the dynamic API hands it out.
    var dynamicValue: Any? {
        switch content {
        case .object(let object): return object
        case .list(let list): return list
        case .dictionary(let map): return map
        case .input(let value): return value
        case .plain(let mixed):
            switch mixed {
            case .null, .list, .dictionary: return nil
            case .int(let v): return Int(v)
            case .bool(let v): return v
            case .float(let v): return v
            case .double(let v): return v
            case .string(let v): return v
            case .binary(let v): return Data(v)
            case .timestamp(let v): return Date(v)
            case .decimal(let v): return Decimal128(v)
            case .objectId(let v): return ObjectId(v)
            case .uuid(let v): return UUID(v)
            case .link: return object(as: ObjectBase.self)
            }
        }
    }
}

// MARK: Foundation's values

extension Date {
    /// 1970 counted from 2001, the zero of `Date`.
    private static let epochSeconds = 978_307_200.0

    init(_ timestamp: Timestamp) {
        // The two offsets are subtracted as integers: the sum of large seconds and a fraction would lose digits.
        let seconds = timestamp.seconds.subtractingReportingOverflow(Int64(Date.epochSeconds))
        let whole = seconds.overflow ? Double(timestamp.seconds) - Date.epochSeconds : Double(seconds.partialValue)
        self.init(timeIntervalSinceReferenceDate: whole + Double(timestamp.nanoseconds) / 1e9)
    }
}

extension Timestamp {
    /// To the nearest nanosecond; what lies outside of 64 bits of seconds becomes the first or last point in time, not-a-number
    /// 1970.
    init(_ date: Date) {
        let interval = date.timeIntervalSinceReferenceDate
        let floor = interval.rounded(.down)
        guard !interval.isNaN else {
            self.init(seconds: 0, nanoseconds: 0)
            return
        }
        // 2^63 seconds, less what is added below.
        guard abs(floor) < 9.2e18 else {
            self.init(seconds: floor < 0 ? .min : .max, nanoseconds: 0)
            return
        }
        var seconds = Int64(floor) + 978_307_200
        var nanoseconds = Int32(((interval - floor) * 1e9).rounded())
        if nanoseconds == 1_000_000_000 {
            nanoseconds = 0
            seconds += 1
        }
        if seconds < 0 && nanoseconds > 0 {
            seconds += 1
            nanoseconds -= 1_000_000_000
        }
        self.init(seconds: seconds, nanoseconds: nanoseconds)
    }
}

extension UUID {
    init(_ value: UUIDValue) {
        var bytes = uuid_t(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
        withUnsafeMutableBytes(of: &bytes) {
            $0.storeBytes(of: value.high.bigEndian, as: UInt64.self)
            $0.storeBytes(of: value.low.bigEndian, toByteOffset: 8, as: UInt64.self)
        }
        self.init(uuid: bytes)
    }
}

extension UUIDValue {
    init(_ uuid: UUID) {
        self = withUnsafeBytes(of: uuid.uuid) {
            UUIDValue(
                high: UInt64(bigEndian: $0.loadUnaligned(as: UInt64.self)),
                low: UInt64(bigEndian: $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self)))
        }
    }
}
