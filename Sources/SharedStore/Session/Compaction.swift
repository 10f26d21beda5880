import Glibc
import SystemCalls

/// Compaction in place: the file is replaced by a copy of its newest version without free space (coordination.md 8.1).
///
/// Only possible while nobody else takes part and nothing is open here. The write mutex is taken as well, first, so that threads
/// of this process keep out; the control mutex keeps openers waiting.
///
/// Crash argument: the copy is synced under another name before it is renamed over the file, so the name always stands for a
/// whole file. From just before the renaming until the version list describes the new file the lock file says that nobody takes
/// part: if we die in between, an opener that waits for the control mutex starts the session afresh from the file that it finds,
/// instead of joining one whose list describes the old file.
extension Participant {
    /// Replaces the file by its compacted form, if nobody else has it open and no transaction is open here.
    ///
    /// - Parameter body: runs while everybody is kept out, after the file was replaced: for whatever holds on to the old file.
    /// - Returns: false where it was not possible; nothing was changed then.
    /// - Throws: nothing was changed, except where the file was replaced and could not be opened again: then the participant is
    ///   closed.
    package func compact(_ deadline: Deadline, then body: () -> Void) throws -> Bool {
        try checkOpen()
        // A memory-only file has no header of its own to be replaced; it is gone with the session anyway.
        if options.durability == .memoryOnly { return false }
        guard try writeQueue.tryAcquire() != nil else { return false }
        defer { writeQueue.release() }
        return try lockFile.with(.control, deadline) {
            _ = try ParticipantRegister.sweep(paths, lockFile, asInitiator: false, headerTop: headerTop, deadline)
            if lockFile.participantCount > 1 { return false }
            let base = try acquireNewest(.live, deadline)
            guard readLocks.suspend(ifOpenCountIs: 1) else {
                release(base)
                return false
            }
            var isReleased = false
            defer {
                readLocks.resume()
                if !isReleased { release(base) }
            }
            let copy = StreamingCopy(
                version: base.snapshot.version, keepsHistory: true, keepsSyncFileIdent: true, syncs: options.durability == .full)
            let replacement = try copy.makeReplacement(file.view(of: base.snapshot), ofPath: paths.file) { path in
                Participant.makeBackend(try StoreFiles.createReplacement(path, of: paths.file), path, options, lockFile)
            }
            KillPoint.reach("compact.copied")
            try lockFile.with(.list, deadline) { readLocks.dropAll() }
            isReleased = true
            register?.setCounted(false)
            lockFile.participantCount = 0
            KillPoint.reach("compact.uncounted")
            do { try SystemCalls.rename(replacement.temporaryPath, to: paths.file) } catch {
                replacement.discard()
                countAgain()
                throw error
            }
            KillPoint.reach("compact.renamed")
            do {
                // Nothing may be committed to a file whose name a power cut would take back.
                if options.durability == .full { try SystemCalls.syncDirectory(of: paths.file) }
                try adopt(DatabaseFile(backend: openBackend(paths.file)), deadline)
            } catch {
                abandon()
                throw error
            }
            KillPoint.reach("compact.reset")
            countAgain()
            body()
            return true
        }
    }

    private func openBackend(_ path: String) throws -> FileBackend {
        Participant.makeBackend(try SystemCalls.open(path, O_RDWR), path, options, lockFile)
    }

    private func countAgain() {
        lockFile.participantCount = 1
        register?.setCounted(true)
    }

    /// Makes the new file the session's: what an initiator does, without cutting it to size.
    private func adopt(_ file: DatabaseFile, _ deadline: Deadline) throws {
        do {
            var inspection = try file.inspect()
            if inspection.isStreaming {
                try file.convertFromStreamingForm(inspection, durability: options.durability)
                inspection = try file.inspect()
            }
            try lockFile.with(.list, deadline) {
                try VersionList(lockFile).reset(to: inspection.snapshot)
                lockFile.numberOfVersions = 1
                lockFile.latestVersion = inspection.snapshot.version
            }
            replaceFile(file)
        } catch {
            file.close()
            throw error
        }
    }
}
