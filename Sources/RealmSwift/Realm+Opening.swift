import Dispatch
import Foundation
internal import SharedStore

extension Realm {
    /// Opens the Realm of the default configuration.
    public init(queue: DispatchQueue? = nil) throws { try self.init(configuration: .defaultConfiguration, queue: queue) }

    /// Opens a Realm for the current thread, or for a serial queue, on which the caller must run.
    ///
    /// - Throws: `Realm.Error`.
    public init(configuration: Configuration, queue: DispatchQueue? = nil) throws {
        let confinement: Confinement
        if let queue {
            confinement = queue === DispatchQueue.main ? .main(thread: 0) : .queue(queue, Confinement.QueueMark(queue))
            if !confinement.isHere { misuse("Realm opened from incorrect dispatch queue.") }
        } else {
            confinement = .here
        }
        self.init(try RealmOpening.session(configuration, at: confinement))
    }

    /// Opens the file at `fileURL`, otherwise with the default configuration.
    public init(fileURL: URL) throws {
        var configuration = Configuration.defaultConfiguration
        configuration.fileURL = fileURL
        try self.init(configuration: configuration)
    }

    // MARK: Files

    /// True if there is a file for the configuration.
    public static func fileExists(for config: Configuration) -> Bool {
        guard let path = config.fileURL?.path else { return false }
        return FileManager.default.fileExists(atPath: path)
    }

    /// Deletes the file and what belongs to it, except the lock file.
    ///
    /// - Returns: whether there was a file.
    /// - Throws: `Realm.Error.alreadyOpen` where this or another process has it open.
    public static func deleteFiles(for config: Configuration) throws -> Bool {
        guard let path = config.fileURL?.path else { return false }
        do {
            return try StoreFiles.delete(path)
        } catch {
            throw Error(opening: error, path: path)
        }
    }
}
