import Glibc
import SharedStore
import SystemCalls

/// Whether a path may be that of a replica: looked at before anything is made there, so that a refusal leaves nothing behind.
enum MirrorPlace {
    /// - Throws: `OpenError` where something else than a file stands there, `MirrorError.unsuitable` for names that must not be
    ///   used.
    static func check(_ destination: String) throws {
        func refuse(_ reason: String) -> MirrorError {
            .unsuitable(destination: destination.isEmpty ? "''" : destination, reason: reason)
        }
        if destination.isEmpty { throw refuse("this is no name of a file") }
        try requireNoSideName(destination)
        if let link = try? SystemCalls.linkStatus(path: destination) {
            guard let status = try? SystemCalls.status(path: destination) else {
                throw link.isSymbolicLink
                    ? refuse("is a symbolic link to a file that is not there; remove it, or name that file")
                    : refuse("cannot be looked at")
            }
            if status.isDirectory { throw OpenError.isDirectory(path: destination) }
            if !status.isRegularFile { throw OpenError.notARegularFile(path: destination) }
        }
        try StoreFiles.requireUsableLockFile(destination)
    }

    /// - Throws: `MirrorError.unsuitable` where the path is a name beside a database that is there.
    static func requireNoSideName(_ destination: String) throws {
        guard let owner = owner(ofSideName: FileIdentity.absolutePath(destination)) else { return }
        throw MirrorError.unsuitable(
            destination: destination, reason: "this name belongs to the database \(owner); name another file")
    }

    /// Refuses a replica that would take a name beside its source, and a source that has a name beside its replica.
    static func check(source: String, destination: String) throws {
        try check(destination)
        for (file, other) in [(source, destination), (destination, source)] {
            let paths = SessionPaths(FileIdentity.absolutePath(file)), place = FileIdentity.absolutePath(other)
            let isBeside =
                place == paths.management || place.hasPrefix(paths.management + "/")
                || paths.sideFiles.contains { $0 == place || exists($0) && FileIdentity.isSame($0, other) }
            if isBeside {
                throw MirrorError.unsuitable(
                    destination: destination, reason: "\(other) is a name that belongs to the database \(file); name another file"
                )
            }
        }
    }

    private static func exists(_ path: String) -> Bool { (try? SystemCalls.status(path: path)) != nil }

    private static let suffixes = [".lock", ".management", ".note", ".tmp_compaction_space", ".backup-log"]

    /// The file beside which, or in whose management directory, `path` lies by its name.
    private static func owner(ofSideName path: String) -> String? {
        var at = path
        while at != "/" && at != "." {
            for suffix in at == path ? suffixes : [".management"] where at.hasSuffix(suffix) {
                let stem = String(at.dropLast(suffix.count))
                if (try? SystemCalls.status(path: stem))?.isRegularFile == true { return stem }
            }
            at = SystemCalls.parentDirectory(of: at)
        }
        return nil
    }

    /// Whoever has the file open by another of its names is not seen by looking for those who have it open.
    static func requireOneName(_ destination: String) throws {
        let count = (try? SystemCalls.linkStatus(path: destination))?.linkCount ?? 1
        if count > 1 {
            throw MirrorError.unsuitable(
                destination: destination,
                reason: "the file has \(count) names (hard links), and may be open by another one; replace this name with --force"
            )
        }
    }
}
