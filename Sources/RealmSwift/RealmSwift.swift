/// On Apple systems drains autoreleased objects; here it only runs `body`, so that application code compiles unchanged.
@inlinable
public func autoreleasepool<Result>(invoking body: () throws -> Result) rethrows -> Result { try body() }

/// The number by which the wrapper of a persisted property is known within its class.
public typealias PropertyKey = UInt16
