import Foundation
internal import SharedStore
import Synchronization

/// The files that this process has open: one store a file, shared by all sessions.
final class OriginRegistry: Sendable {
    static let shared = OriginRegistry()

    /// What all openings of one file agree on.
    final class Entry: @unchecked Sendable {
        // Sendable: `origin` and `configuration` change under `lock` only.
        /// Held while the file is opened and its classes are brought up to date, so that others in the process wait for that.
        let lock = NSRecursiveLock()
        weak var origin: (any SessionOrigin)?
        /// Of the first opening.
        var configuration: Realm.Configuration?
    }

    private let entries = Mutex<[String: Entry]>([:])

    func entry(_ key: String) -> Entry {
        entries.withLock { entries in
            if let entry = entries[key] { return entry }
            let entry = Entry()
            entries[key] = entry
            return entry
        }
    }

    /// The path by which a file is known: links in the folder are followed, so that two names of one file are one key.
    static func key(_ configuration: Realm.Configuration) -> String {
        if let name = configuration.inMemoryIdentifier { return "memory:" + name }
        guard let url = configuration.fileURL else { misuse("A Realm configuration needs a file URL or an in-memory identifier") }
        let path = url.resolvingSymlinksInPath().path
        return url.deletingLastPathComponent().resolvingSymlinksInPath().path + "/" + (path as NSString).lastPathComponent
    }

    func isOpen(_ configuration: Realm.Configuration) -> Bool {
        let entry = entry(OriginRegistry.key(configuration))
        entry.lock.lock()
        defer { entry.lock.unlock() }
        return entry.origin != nil
    }
}
