import CShims
import Glibc
import SystemCalls

/// The `.note` FIFO of one database, open in this process (coordination.md 6.2).
///
/// A byte in it means "look at the newest version"; it carries nothing else. Invariants:
/// - It is open for reading and writing: opening never blocks, there is no end of file and no SIGPIPE, with or without peers.
/// - Listeners never read it, so a byte is seen by all of them. Only a sender reads, directly before it writes: edge-triggered
///   readiness is promised for the step from empty to not empty only.
/// - Crash argument: a sender killed between draining and writing costs the listeners one hint; the slow look at the
///   newest version (`Options.netMilliseconds`) and the next byte make up for it.
///
/// The descriptor is closed when the last reference goes, so nobody can use it after it was closed.
final class FIFO: Sendable {
    let path: String
    let descriptor: SystemCalls.Descriptor
    let device: UInt64
    let inode: UInt64

    private init(path: String, descriptor: SystemCalls.Descriptor, status: SystemCalls.Status) {
        self.path = path
        self.descriptor = descriptor
        device = status.device
        inode = status.inode
    }

    deinit { SystemCalls.close(descriptor) }

    /// What came of the attempts to have a FIFO.
    struct Opening {
        /// The FIFO, or nil where no candidate could be used.
        var fifo: FIFO?
        /// Why each candidate before it could not be used, in order.
        var failures: [String] = []
    }

    /// Tries the candidates in order. Unlike the original, a candidate that exists but cannot be opened (the FIFO of
    /// another user, mode 0600) is not the end: the next one is tried.
    static func open(candidates: [String], create: Bool) -> Opening {
        var opening = Opening()
        for candidate in candidates {
            do {
                opening.fifo = try open(path: candidate, create: create)
                return opening
            } catch let error as SystemError where !create && error.code == ENOENT {
                continue
            } catch let error as SystemError {
                opening.failures.append("\(candidate): \(error.call): \(error.reason)")
            } catch {
                opening.failures.append("\(candidate): \(error)")
            }
        }
        return opening
    }

    private struct NotAFIFO: Error, CustomStringConvertible {
        var description: String { "something that is not a FIFO is in its place; remove it" }
    }

    /// Makes the FIFO unless there is one. A file system that cannot make one, or a folder that may not be written, may hold
    /// one already.
    private static func make(_ path: String) throws {
        let wasThere = (try? SystemCalls.linkStatus(path: path)) != nil
        do { try SystemCalls.makeFIFO(path, mode: 0o666) } catch let error as SystemError {
            guard let status = try? SystemCalls.status(path: path) else { throw error }
            if status.isFIFO { return }
            if wasThere || error.code == EEXIST { throw NotAFIFO() }
            // exFAT in user space fails and leaves an empty file all the same, which would stand in the way of everybody's
            // next attempt.
            if status.isRegularFile && status.size == 0 { try? SystemCalls.unlink(path) }
            throw error
        }
    }

    private static func open(path: String, create: Bool) throws -> FIFO {
        if create { try make(path) }
        // The kind is looked at before opening: opening a device or a tape by mistake may have effects.
        if try !SystemCalls.status(path: path).isFIFO { throw NotAFIFO() }
        let descriptor = try SystemCalls.open(path, O_RDWR | O_NONBLOCK)
        do {
            let status = try SystemCalls.status(descriptor, path: path)
            if !status.isFIFO { throw NotAFIFO() }
            return FIFO(path: path, descriptor: descriptor, status: status)
        } catch {
            SystemCalls.close(descriptor)
            throw error
        }
    }

    /// True where the name of the FIFO has gone or leads elsewhere: new participants then meet at another one.
    var isStale: Bool {
        guard let status = try? SystemCalls.status(path: path) else { return true }
        return status.device != device || status.inode != inode
    }

    /// True where the FIFO has no name any more; cheaper than `isStale`.
    var isUnlinked: Bool { ((try? SystemCalls.status(descriptor, path: path).linkCount) ?? 0) == 0 }

    /// Tells every listener of every process: drains, then writes one byte. False where the system refused.
    func ring() -> Bool {
        withUnsafeTemporaryAllocation(byteCount: 1024, alignment: 16) { buffer in
            // Another sender may fill the pipe between our two calls; a pipe that stays full has woken everybody.
            for _ in 0..<100 {
                while true {
                    let count = SystemCalls.readNonBlocking(descriptor, into: buffer, path: path)
                    if count == -Int(EAGAIN) || (0..<buffer.count).contains(count) { break }
                    if count < 0 { return false }
                }
                let written = SystemCalls.writeZeroByte(descriptor, path: path)
                if written == 1 { return true }
                if written != -Int(EAGAIN) { return false }
            }
            return true
        }
    }
}
