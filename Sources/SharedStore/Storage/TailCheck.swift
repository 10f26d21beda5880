import Glibc
import SystemCalls

/// What lies behind the logical size of a file, asked before it is cut off (coordination.md 3.4, step 14).
///
/// A sound file has nothing there but what an unfinished commit or an evacuation has left. A damaged logical size, in a top array
/// that is otherwise well formed, makes live nodes look like that; cutting them off would make good data out of reach for any
/// repair.
enum TailCheck {
    enum Answer: Equatable {
        case unused
        /// Some part of the tree cannot be read, so nobody can tell; the file is left as long as it is.
        case unknown
    }

    /// - Throws: `FormatError` where a node in use lies, wholly or in part, behind the logical size; `SystemError`.
    static func look(_ file: DatabaseFile, _ snapshot: Snapshot, from start: Int, physicalSize: Int) throws -> Answer {
        if isZero(file.backend, start..<physicalSize) { return .unused }
        return try walk(file, snapshot, physicalSize)
    }

    private static let chunkByteCount = 1 << 18

    private static func isZero(_ backend: FileBackend, _ range: Range<Int>) -> Bool {
        withUnsafeTemporaryAllocation(byteCount: chunkByteCount, alignment: 16) { space in
            var at = range.lowerBound
            while at < range.upperBound {
                let wanted = min(chunkByteCount, range.upperBound - at)
                // A page that does not decrypt is not zero.
                guard let count = try? backend.read(into: UnsafeMutableRawBufferPointer(rebasing: space[..<wanted]), at: at),
                    count == wanted
                else { return false }
                // The first byte is zero and each other one is equal to the one before.
                guard let start = space.baseAddress, space[0] == 0, memcmp(start, start + 1, wanted - 1) == 0 else {
                    return false
                }
                at += wanted
            }
            return true
        }
    }

    /// Visits every node once, whatever the damage: one bit of memory for eight bytes of file.
    private static func walk(_ file: DatabaseFile, _ snapshot: Snapshot, _ physicalSize: Int) throws -> Answer {
        let view = try file.view(of: Snapshot(version: snapshot.version, topRef: snapshot.topRef, logicalSize: physicalSize))
        let memory = view.memory
        var seen = [UInt64](repeating: 0, count: physicalSize / 512 + 1)
        var pending = [snapshot.topRef]
        var answer = Answer.unused
        while let ref = pending.popLast() {
            // Every ref here is positive and within the file.
            let (word, bit) = (ref >> 9, UInt64(1) << UInt64(ref >> 3 & 63))
            if seen[word] & bit != 0 { continue }
            seen[word] |= bit
            guard ref < snapshot.logicalSize else {
                throw FormatError(ref: ref, "a node in use lies behind the logical size of \(snapshot.logicalSize)")
            }
            let node: Node
            do { node = try memory.node(ref) } catch is SystemError {
                throw FormatError(ref: ref, "the file cannot be read here")
            } catch {
                answer = .unknown
                continue
            }
            if ref + node.byteCount > snapshot.logicalSize {
                throw FormatError(
                    ref: ref,
                    "a node of \(node.byteCount) bytes in use reaches behind the logical size of \(snapshot.logicalSize)")
            }
            guard node.hasRefs else { continue }
            guard node.widthType == 0 else {
                answer = .unknown
                continue
            }
            for i in 0..<node.count {
                let value = node.unchecked(i)
                // Zero, or a number with a mark.
                if value == 0 || value & 1 == 1 { continue }
                if value < FileHeader.byteCount || value & 7 != 0 || value >= physicalSize {
                    answer = .unknown
                } else {
                    pending.append(Int(value))
                }
            }
        }
        return withExtendedLifetime(view) { answer }
    }
}
