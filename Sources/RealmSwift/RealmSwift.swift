/// On Apple systems drains autoreleased objects; here it only runs `body`, so that application code compiles unchanged.
@inlinable
public func autoreleasepool<Result>(invoking body: () throws -> Result) rethrows -> Result { try body() }

/// A source of random bytes, as code for Apple systems names it. There is only `kSecRandomDefault`.
public struct SecRandomRef: Sendable {}

/// The system's source of random bytes, fit for keys.
public let kSecRandomDefault: SecRandomRef? = nil

/// What `SecRandomCopyBytes` returns.
public let errSecSuccess: Int32 = 0

/// Fills memory with random bytes from the system's source, so that code for Apple systems that makes an encryption key compiles
/// unchanged.
///
/// - Returns: `errSecSuccess`; for a negative count -50, and nothing is written.
@discardableResult
public func SecRandomCopyBytes(_ source: SecRandomRef?, _ count: Int, _ bytes: UnsafeMutableRawPointer) -> Int32 {
    guard count >= 0 else { return -50 }
    var generator = SystemRandomNumberGenerator()
    for offset in 0..<count { bytes.storeBytes(of: generator.next(), toByteOffset: offset, as: UInt8.self) }
    return errSecSuccess
}

/// The number by which the wrapper of a persisted property is known within its class.
public typealias PropertyKey = UInt16

/// Objects and projections that lists of user interfaces tell apart by themselves.
///
/// A class without an `id` of its own gets one: the same number for every accessor of an object of a file, another for each
/// instance that is in no file.
public protocol ObjectKeyIdentifiable: Identifiable {}

extension ObjectKeyIdentifiable where Self: ObjectBase {
    /// The same in every version and on every thread for an object of a file; only while the process runs for another one.
    public var id: UInt64 { _identifier }
}

extension ObjectKeyIdentifiable where Self: ProjectionObservable {
    /// That of the object which is projected.
    public var id: UInt64 { rootObject._identifier }
}

extension ObjectBase {
    /// The table and the key of a managed object, the address of any other.
    public final var _identifier: UInt64 {
        guard let managedType else { return UInt64(UInt(bitPattern: ObjectIdentifier(self))) }
        return UInt64(managedType.tableKey.slot) << 48 ^ UInt64(bitPattern: objectKey)
    }
}
