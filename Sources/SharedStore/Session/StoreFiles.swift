import Glibc
import SystemCalls

/// All files of a database taken together, for when nobody has it open (coordination.md 8.2).
public enum StoreFiles {
    /// Runs `body` while nobody has the file open and nobody can open it.
    ///
    /// Others who open meanwhile wait, and start a fresh session afterwards: the lock file is emptied at the end, so that nobody
    /// takes its stale content for a live session. It stays behind, as it always does.
    /// - Returns: nil where somebody, perhaps this process, has the file open; `body` did not run then.
    /// - Throws: `OpenError.fileNotFound` where the directory is missing, `SessionError.sideFile` where something else stands at
    ///   the lock file's name, what `body` throws, `SystemError`.
    public static func withExclusiveAccess<Result>(_ path: String, _ body: () throws -> Result) throws -> Result? {
        let lockPath = SessionPaths(path).lock
        let descriptor = try LockFile.openDescriptor(SessionPaths(path))
        defer { SystemCalls.close(descriptor) }
        guard try SystemCalls.tryLock(descriptor, exclusive: true, path: lockPath) else { return nil }
        try LockFile.requireLockFile(descriptor, lockPath)
        defer { try? SystemCalls.truncate(descriptor, to: 0, path: lockPath) }
        return try body()
    }

    /// Looks, without making anything, whether the lock file's name is free or that of a lock file.
    ///
    /// - Throws: `SessionError.sideFile` where something else stands there.
    package static func requireUsableLockFile(_ path: String) throws {
        let lockPath = SessionPaths(path).lock
        let descriptor: SystemCalls.Descriptor
        // Whatever keeps us from opening it is told by whoever needs it.
        do { descriptor = try SideFile.open(lockPath, O_RDONLY) } catch is SystemError { return }
        defer { SystemCalls.close(descriptor) }
        try LockFile.requireLockFile(descriptor, lockPath)
    }

    /// Deletes the data file and what belongs to it, except the lock file, backups and what a killed compaction left.
    ///
    /// - Returns: whether there was a data file.
    /// - Throws: `SessionError.inUse` where somebody has it open, and nothing was deleted.
    @discardableResult
    public static func delete(_ path: String) throws -> Bool {
        let paths = SessionPaths(path)
        let directory = SystemCalls.parentDirectory(of: paths.lock)
        do { _ = try SystemCalls.status(path: directory) } catch let error as SystemError where error.code == ENOENT {
            return false
        }
        let existed = try withExclusiveAccess(path) {
            let existed = try remove(paths.file)
            // A link to the file would otherwise stand for nothing.
            if path != paths.file { try remove(path) }
            for side in [paths.note, paths.legacyLog] { try remove(side) }
            try removeTree(paths.management, depth: 0)
            return existed
        }
        guard let existed else { throw SessionError.inUse(path: path) }
        return existed
    }

    /// Where the copy lies that is made before the file at `path` is upgraded from `format`.
    public static func backupPath(_ path: String, ofFormat format: Int) -> String { SessionPaths(path).backup(ofFormat: format) }

    @discardableResult
    private static func remove(_ path: String) throws -> Bool {
        do {
            try SystemCalls.unlink(path)
            return true
        } catch let error as SystemError where error.code == ENOENT { return false }
    }

    /// Directories deeper than this are not ours.
    private static let depthMax = 8

    private static func removeTree(_ path: String, depth: Int) throws {
        guard let status = try? SystemCalls.linkStatus(path: path) else { return }
        if !status.isDirectory || depth == depthMax {
            try remove(path)
            return
        }
        for name in try SystemCalls.names(inDirectory: path) { try removeTree(path + "/" + name, depth: depth + 1) }
        try SystemCalls.removeDirectory(path)
    }
}
