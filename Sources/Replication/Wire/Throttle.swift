import Glibc
import SystemCalls

/// Holds a connection to so many bytes a second, over a quarter of a second.
///
/// Who receives is slowed down too: what is not read fills the buffers of the system, and those hold back the sender. Used by one
/// thread.
struct Throttle {
    let bytesPerSecond: Int
    /// At this time all that has passed would have passed at the rate that is allowed.
    private var paid: Int64 = 0

    init(bytesPerSecond: Int) { self.bytesPerSecond = max(1, bytesPerSecond) }

    /// So much is passed at once.
    var pieceByteCount: Int { max(1024, bytesPerSecond / 8) }

    private static let burstNanoseconds: Int64 = 250_000_000

    /// Waits until `byteCount` more bytes may have passed.
    ///
    /// - Throws: `WireError.stopped` where `isStopped` says so.
    mutating func pass(_ byteCount: Int, isStopped: () -> Bool) throws {
        let now = SystemCalls.monotonicNanoseconds()
        paid = max(paid, now - Self.burstNanoseconds) + Int64(min(Double(byteCount) / Double(bytesPerSecond) * 1e9, 1e15))
        while true {
            let left = paid - SystemCalls.monotonicNanoseconds()
            if left <= 0 { return }
            if isStopped() { throw WireError.stopped }
            usleep(UInt32(min(left / 1000 + 1, 100_000)))
        }
    }
}
