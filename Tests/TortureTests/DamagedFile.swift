import Foundation
import SharedStore

/// A file in memory that tests damage byte by byte.
final class DamagedFile {
    private(set) var bytes: UnsafeMutableRawBufferPointer

    init(_ path: String) throws {
        let data = try Data(contentsOf: URL(fileURLWithPath: path))
        bytes = .allocate(byteCount: data.count, alignment: 16)
        data.withUnsafeBytes { bytes.copyBytes(from: $0) }
    }

    deinit { bytes.deallocate() }

    func verify(_ options: VerifierOptions = VerifierOptions()) throws -> VerificationReport {
        try Verifier.verify(file: bytes, options: options)
    }
}
