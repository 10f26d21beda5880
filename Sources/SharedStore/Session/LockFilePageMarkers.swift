import CShims
import Synchronization

/// The two words of the lock file by which readers of an encrypted file know that a page is being written (coordination.md 5.7).
final class LockFilePageMarkers: PageWriteMarkers {
    private let lockFile: LockFile

    init(_ lockFile: LockFile) { self.lockFile = lockFile }

    var areInUse: Bool { !lockFile.isClosed }

    // Views may be read on after the session was left; nobody announces anything to them then.
    var writingPage: UInt64 { lockFile.isClosed ? 0 : CShims_load_u64(lockFile.writingPageAddress) }
    var writeCounter: UInt64 { lockFile.isClosed ? 0 : CShims_load_u64(lockFile.writeCounterAddress) }

    func beginPageWrite(position: Int) {
        CShims_store_u64(lockFile.writingPageAddress, UInt64(position) + 1)
        _ = CShims_fetch_add_u64(lockFile.writeCounterAddress, 1)
    }

    func endPageWrite() {
        _ = CShims_fetch_add_u64(lockFile.writeCounterAddress, 1)
        CShims_store_u64(lockFile.writingPageAddress, 0)
    }
}

extension LockFile {
    /// The writer before us died: of an encrypted file, what it has written, and not synced, must be synced before it is written
    /// again (file-format-3 8.4). Called by the holder of the write mutex.
    package func settleDeadWriter(_ file: FileBackend, _ durability: Durability) throws {
        if !writerDied.load(ordering: .acquiring) { return }
        if durability == .full && file.contentAlignment > 8 { try file.syncWritten() }
        writerDied.store(false, ordering: .releasing)
    }
}
