import CZstd

/// zstd with an optional prefix: bytes that both sides have, to which the content is nearly equal (mirroring.md section 4).
/// One object serves one thread at a time.
public final class Compressor {
    private let compression: OpaquePointer
    private let decompression: OpaquePointer

    /// Takes what zstd needs once; it is used again for every call.
    public init() {
        guard let c = ZSTD_createCCtx(), let d = ZSTD_createDCtx() else { preconditionFailure("out of memory") }
        compression = c
        decompression = d
    }

    deinit {
        ZSTD_freeCCtx(compression)
        ZSTD_freeDCtx(decompression)
    }

    /// The compressed form of `plain`.
    public func compress(_ plain: UnsafeRawBufferPointer, prefix: UnsafeRawBufferPointer? = nil, level: Int32 = 3) throws
        -> [UInt8]
    {
        ZSTD_CCtx_reset(compression, ZSTD_reset_session_and_parameters)
        ZSTD_CCtx_setParameter(compression, ZSTD_c_compressionLevel, level)
        // The window must reach from the end of the content back to the beginning of the prefix.
        let span = plain.count + (prefix?.count ?? 0)
        var log: Int32 = 10
        while log < 27 && 1 << Int(log) < span { log += 1 }
        ZSTD_CCtx_setParameter(compression, ZSTD_c_windowLog, log)
        // Long matches with the prefix are the point of having one.
        if prefix != nil { ZSTD_CCtx_setParameter(compression, ZSTD_c_enableLongDistanceMatching, 1) }
        if let prefix, !prefix.isEmpty { try check(ZSTD_CCtx_refPrefix(compression, prefix.baseAddress, prefix.count)) }
        let bound = ZSTD_compressBound(plain.count)
        return try [UInt8](unsafeUninitializedCapacity: bound) { out, count in
            count = try check(ZSTD_compress2(compression, out.baseAddress, bound, plain.baseAddress, plain.count))
        }
    }

    /// The plain form, which must have exactly `byteCount` bytes. The caller has bounded `byteCount`.
    public func decompress(_ stored: UnsafeRawBufferPointer, byteCount: Int, prefix: UnsafeRawBufferPointer? = nil) throws
        -> [UInt8]
    {
        ZSTD_DCtx_reset(decompression, ZSTD_reset_session_and_parameters)
        ZSTD_DCtx_setParameter(decompression, ZSTD_d_windowLogMax, 27)
        if let prefix, !prefix.isEmpty { try check(ZSTD_DCtx_refPrefix(decompression, prefix.baseAddress, prefix.count)) }
        return try [UInt8](unsafeUninitializedCapacity: max(byteCount, 1)) { out, count in
            let n = try check(ZSTD_decompressDCtx(decompression, out.baseAddress, byteCount, stored.baseAddress, stored.count))
            guard n == byteCount else { throw CompressionError(reason: "\(n) bytes came out where \(byteCount) were announced") }
            count = n
        }
    }

    @discardableResult
    private func check(_ result: Int) throws -> Int {
        if ZSTD_isError(result) != 0 { throw CompressionError(reason: String(cString: ZSTD_getErrorName(result))) }
        return result
    }
}

/// What was to be decompressed is no compressed data, or another length came out.
public struct CompressionError: Error, Equatable, Sendable, CustomStringConvertible {
    /// What zstd says, or which length was announced and which came.
    public let reason: String
    public var description: String { "compressed data is damaged: \(reason)" }
}
