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

    private struct Entries {
        var byKey: [ExactString: Entry] = [:]
        /// How many there may be before those of files that are not open any more are dropped.
        var countMax = 16

        /// A program may open any number of files, one after the other; an entry keeps the closures of a configuration.
        mutating func dropClosed() {
            for key in Array(byKey.keys) {
                guard var entry = byKey.removeValue(forKey: key) else { continue }
                // Another reference is that of somebody who opens the file just now.
                if !isKnownUniquelyReferenced(&entry) || entry.origin != nil { byKey[key] = entry }
            }
            countMax = max(16, 2 * byKey.count)
        }
    }
    private let entries = Mutex(Entries())

    func entry(_ path: String) -> Entry {
        let key = ExactString(path)
        return entries.withLock { entries in
            if let entry = entries.byKey[key] { return entry }
            if entries.byKey.count >= entries.countMax { entries.dropClosed() }
            let entry = Entry()
            entries.byKey[key] = entry
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
