import Foundation
internal import SharedStore
import Synchronization

/// Twelve bytes that are unique enough to identify an object: seconds since 1970, five bytes of the process, a counter.
public final class ObjectId: Decodable, @unchecked Sendable {
    // Sendable: the value never changes.
    let value: ObjectIdValue

    init(_ value: ObjectIdValue) { self.value = value }

    /// Twelve zero bytes. For a new one see `generate()`.
    public required init() { value = ObjectIdValue(high: 0, low: 0) }

    /// From 24 hexadecimal digits.
    ///
    /// - Throws: an error whose text names the string, where it is anything else.
    public required init(string: String) throws {
        guard let value = ObjectIdValue(string) else { throw InvalidText(type: "objectId", text: string) }
        self.value = value
    }

    /// Machine and process give five bytes, the next three are those of a counter.
    public required init(timestamp: Date, machineId: Int, processId: Int) {
        let process = UInt64(truncatingIfNeeded: machineId) & 0xFF_FFFF << 16 | UInt64(truncatingIfNeeded: processId) & 0xFFFF
        value = ObjectId.compose(seconds: Timestamp(timestamp).seconds, process: process)
    }

    /// From a literal of 24 hexadecimal digits; anything else stops the process.
    public required init(_ str: StaticString) {
        guard let value = ObjectIdValue(str.description) else {
            misuse("\"\(str)\" is not an object id: 24 hexadecimal digits are expected")
        }
        self.value = value
    }

    /// - Throws: `DecodingError` unless there are 24 hexadecimal digits.
    public required init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        guard let value = ObjectIdValue(text) else {
            throw DecodingError.dataCorruptedError(
                in: container, debugDescription: "Cannot convert string \"\(text)\" to ObjectId")
        }
        self.value = value
    }

    /// A new one, different from all others.
    public static func generate() -> ObjectId {
        ObjectId(compose(seconds: Int64(Date().timeIntervalSince1970), process: processBytes))
    }

    private static let processBytes = UInt64.random(in: 0...0xFF_FFFF_FFFF)
    private static let counter = Atomic<UInt32>(.random(in: 0...UInt32.max))

    private static func compose(seconds: Int64, process: UInt64) -> ObjectIdValue {
        let count = counter.add(1, ordering: .relaxed).newValue & 0xFF_FFFF
        let high = UInt64(UInt32(truncatingIfNeeded: seconds)) << 32 | process >> 8 & 0xFFFF_FFFF
        return ObjectIdValue(high: high, low: UInt32(truncatingIfNeeded: process & 0xFF) << 24 | count)
    }

    /// When it was generated, in whole seconds.
    public var timestamp: Date { Date(timeIntervalSince1970: Double(value.high >> 32)) }
    /// 24 hexadecimal digits in lower case.
    public var stringValue: String { value.description }
}

extension ObjectId: CustomStringConvertible {
    public var description: String { stringValue }
}

extension ObjectId: Encodable {
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(stringValue)
    }
}

extension ObjectId: Hashable {
    public func hash(into hasher: inout Hasher) { hasher.combine(value) }
}

extension ObjectId: Comparable {
    public static func == (a: ObjectId, b: ObjectId) -> Bool { a.value == b.value }
    public static func < (a: ObjectId, b: ObjectId) -> Bool { a.value < b.value }
    public static func <= (a: ObjectId, b: ObjectId) -> Bool { a.value <= b.value }
    /// By the bytes, so that by and large what was made later is larger.
    public static func >= (a: ObjectId, b: ObjectId) -> Bool { a.value >= b.value }
    /// By the bytes, so that by and large what was made later is larger.
    public static func > (a: ObjectId, b: ObjectId) -> Bool { a.value > b.value }
}

/// Text that does not denote a value of the type.
struct InvalidText: Error, CustomStringConvertible {
    var type: String
    var text: String
    var description: String { "Cannot convert string \"\(text)\" to \(type)" }
}
