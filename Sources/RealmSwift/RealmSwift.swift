/// On Apple systems drains autoreleased objects; here it only runs `body`, so that application code compiles unchanged.
@inlinable
public func autoreleasepool<Result>(invoking body: () throws -> Result) rethrows -> Result { try body() }

/// The number by which the wrapper of a persisted property is known within its class.
public typealias PropertyKey = UInt16

/// Objects and projections that lists of user interfaces tell apart by themselves.
///
/// A class without an `id` of its own gets one: the same number for every accessor of an object of a file, another for each
/// instance that is in no file.
public protocol ObjectKeyIdentifiable: Identifiable {}

extension ObjectKeyIdentifiable where Self: ObjectBase {
    public var id: UInt64 { _identifier }
}

extension ObjectKeyIdentifiable where Self: ProjectionObservable {
    public var id: UInt64 { rootObject._identifier }
}

extension ObjectBase {
    /// The table and the key of a managed object, the address of any other.
    public final var _identifier: UInt64 {
        guard let managedType else { return UInt64(UInt(bitPattern: ObjectIdentifier(self))) }
        return UInt64(managedType.tableKey.slot) << 48 ^ UInt64(bitPattern: objectKey)
    }
}
