import CShims
import Glibc
import SystemCalls

/// Getting hold of the lock file (coordination.md 3.2): initialise it where nobody uses it, else check that we understand it.
extension LockFile {
    /// Retries after a mismatch of layout: another version of the software may be about to leave.
    static let countedRetriesMax = 10
    /// How long a lock file may stay without the mark of completed initialisation while somebody holds it.
    static let incompleteNanosecondsMax: Int64 = 1_000_000_000

    /// Opens the lock file and takes the shared `flock`, after initialising the file if the exclusive one was to be had.
    /// - Parameter properties: what goes into a lock file that we initialise.
    package static func open(_ paths: SessionPaths, _ properties: Properties, _ deadline: Deadline) throws -> LockFile {
        if CShims_lock_file_is_supported() == 0 {
            throw SessionError.unsupportedPlatform(
                reason:
                    "the C library of this build is not glibc, whose mutexes the lock file holds (static Linux builds use musl)")
        }
        var retries = 0
        var incompleteUntil: Int64?
        while true {
            if retries > 0 { pause(milliseconds: Int.random(in: 0..<10 * retries)) }
            let file: LockFile
            switch try attempt(paths, properties, deadline) {
            case .opened(let opened): file = opened
            case .incomplete:
                let now = SystemCalls.monotonicNanoseconds()
                let limit = incompleteUntil ?? now + incompleteNanosecondsMax
                incompleteUntil = limit
                if now >= limit {
                    throw SessionError.incompatibleLockFile(
                        path: paths.lock, what: "mark of initialisation", ours: "1", theirs: "0 for a second")
                }
                pause(milliseconds: 1)
                continue
            }
            guard let mismatch = file.mismatch() else { return file }
            file.close()
            if retries == countedRetriesMax || deadline.hasPassed { throw mismatch }
            retries += 1
        }
    }

    private enum Attempt {
        case opened(LockFile)
        /// Size 0 or not marked as initialised: start again, not counted.
        case incomplete
    }

    /// One round of the state machine, with a descriptor of its own.
    private static func attempt(_ paths: SessionPaths, _ properties: Properties, _ deadline: Deadline) throws -> Attempt {
        while true {
            let descriptor = try openDescriptor(paths)
            var keepsDescriptor = false
            defer { if !keepsDescriptor { SystemCalls.close(descriptor) } }
            // Exclusive first, then shared, neither waiting: an opener that slept in `LOCK_SH` would take over whatever an
            // exclusive holder leaves, even a stale file that it did not initialise (weakness 12.4).
            if try tryFileLock(descriptor, exclusive: true, paths.lock) {
                KillPoint.reach("lock-file.exclusive")
                try requireLockFile(descriptor, paths.lock)
                do { try initialise(descriptor, path: paths.lock, properties) } catch let error as SystemError {
                    throw sideFileError(error)
                }
                SystemCalls.unlock(descriptor)
            }
            if try !tryFileLock(descriptor, exclusive: false, paths.lock) {
                if deadline.hasPassed {
                    let inode = (try? SystemCalls.status(descriptor, path: paths.lock).inode) ?? 0
                    throw SessionError.deadlineExceeded(
                        path: paths.lock, what: "the end of an exclusive lock on the lock file",
                        holder: LockHolder.describe(flockOnInode: inode))
                }
                pause(milliseconds: Int.random(in: 1...10))
                continue
            }
            let status = try SystemCalls.status(descriptor, path: paths.lock)
            if status.size == 0 { return .incomplete }
            let base: UnsafeMutableRawPointer
            do {
                base = try SystemCalls.map(
                    length: mappedByteCount, protection: PROT_READ | PROT_WRITE, flags: MAP_SHARED, descriptor, path: paths.lock)
            } catch let error as SystemError { throw sideFileError(error) }
            // The first page is there since the size is not 0; the rest of a short file's page reads as zero.
            let file = LockFile(path: paths.lock, descriptor: descriptor, base: base, status: status)
            keepsDescriptor = true
            if file.isInitialised { return .opened(file) }
            file.close()
            return .incomplete
        }
    }

    private static func tryFileLock(_ descriptor: Int32, exclusive: Bool, _ path: String) throws -> Bool {
        do { return try SystemCalls.tryLock(descriptor, exclusive: exclusive, path: path) } catch let error as SystemError {
            throw SessionError.sideFile(
                path: path, reason: "the file system cannot lock files (\(error.reason)), so it cannot be shared")
        }
    }

    /// What about the file's layout is not as we know it; nil where all is well.
    private func mismatch() -> SessionError? {
        func error(_ what: String, _ ours: Int, _ theirs: Int) -> SessionError? {
            ours == theirs ? nil : .incompatibleLockFile(path: path, what: what, ours: String(ours), theirs: String(theirs))
        }
        let size = (try? SystemCalls.status(descriptor, path: path).size) ?? 0
        if size < LockFile.initialByteCount {
            return .incompatibleLockFile(
                path: path, what: "size", ours: "at least \(LockFile.initialByteCount)", theirs: String(size))
        }
        return error("layout version", Int(LockFile.layoutVersion), Int(storedLayoutVersion))
            ?? error("mutex size", Int(CSHIMS_LOCK_MUTEX_SIZE), Int(sizeOfMutex))
            ?? error("condition variable size", Int(CSHIMS_LOCK_CONDITION_SIZE), Int(sizeOfCondition))
    }
}

/// Sleeps; callers are loops that look at their deadline.
func pause(milliseconds: Int) {
    usleep(UInt32(max(0, milliseconds)) * 1000)
}
