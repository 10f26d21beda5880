import Foundation
internal import SharedStore
internal import SystemCalls

extension Realm {
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
            throw Error(.init(error), "Unable to delete the Realm at path '\(path)': \(error)", path: path)
        }
    }

    /// Writes what the Realm shows at the moment, uncommitted changes included, to a new file without free space.
    ///
    /// - Parameters:
    ///   - fileURL: nothing may be there. The file appears whole or not at all.
    ///   - encryptionKey: 64 bytes, with which the copy is encrypted, whether the original is or not; nil: it is not encrypted.
    /// - Throws: `Realm.Error.fileExists`, `.fileNotFound` where the folder is missing, and others.
    public func writeCopy(toFile fileURL: URL, encryptionKey: Data? = nil) throws {
        var configuration = Configuration()
        configuration.fileURL = fileURL
        configuration.encryptionKey = encryptionKey
        try writeCopy(configuration: configuration)
    }

    /// As `writeCopy(toFile:encryptionKey:)`, with the file URL and the key of a configuration.
    public func writeCopy(configuration: Configuration) throws {
        guard let path = configuration.fileURL?.path else { misuse("A copy of a Realm needs a file URL") }
        if !session.isFrozen { session.checkConfinement() }
        do {
            try StreamingCopy(version: nil, keepsHistory: false).write(
                session.groupToCopy(), toPath: path, mode: session.permissionBits, key: RealmOpening.encryptionKey(configuration))
        } catch {
            throw Error(.init(error), "Unable to write a copy of the Realm to '\(path)': \(error)", path: path)
        }
    }

    /// Runs the migration of a file that is not open in the process, where one is due.
    ///
    /// - Throws: what opening the file may throw.
    public static func performMigration(for configuration: Configuration = .defaultConfiguration) throws {
        if OriginRegistry.shared.isOpen(configuration) {
            misuse("Cannot migrate the Realm at path '\(configuration.fileURL?.path ?? "")': it is open already.")
        }
        _ = try RealmOpening.prepare(configuration)
    }
}

extension Session {
    /// What a copy may let others do at most: what the file does; of a database in memory, read.
    fileprivate var permissionBits: UInt32 {
        (try? SystemCalls.status(path: configuration.fileURL?.path ?? "").mode & 0o666) ?? 0o644
    }

    /// The tables as they are now, with all that a write transaction has changed.
    fileprivate func groupToCopy() throws -> Group {
        guard let editor = writer?.editor else { return try currentGroup() }
        return try Group(memory: editor.arena.memory, topRef: editor.finish(), format: Int(FileHeader.currentFormat))
    }
}

/// The version of the schema that a file was last opened with.
///
/// - Throws: `Realm.Error.fileNotFound` where there is no file, which is not made then; `.fail` where the file never was given a
///   schema; `.invalidDatabase` where it is no Realm file or the key does not fit.
public func schemaVersionAtURL(_ fileURL: URL, encryptionKey: Data? = nil) throws -> UInt64 {
    var configuration = Realm.Configuration(fileURL: fileURL)
    configuration.encryptionKey = encryptionKey
    let path = fileURL.path
    do {
        let version = try FileSchemaVersion.read(path, RealmOpening.encryptionKey(configuration))
        if version == -1 {
            throw Realm.Error(
                .fail, "Cannot get the schema version of the Realm at path '\(path)': it is not versioned.", path: path)
        }
        return UInt64(bitPattern: version)
    } catch {
        throw Realm.Error(opening: error, path: path)
    }
}

private enum FileSchemaVersion {
    /// Together with whoever has the file open, where that is possible: a file that is written under us may not be read alone.
    static func read(_ path: String, _ key: EncryptionKey?) throws -> Int64 {
        if !FileManager.default.fileExists(atPath: path) { throw OpenError.fileNotFound(path: path) }
        var options = StoreOptions()
        options.access = .readOnly
        options.createsFile = false
        options.encryptionKey = key
        do {
            let store = try Store.open(path, options)
            defer { try? store.close(force: true) }
            let transaction = try store.beginRead()
            return try withExtendedLifetime(transaction) { try transaction.group.schema().version }
        } catch OpenError.upgradeRequired {
            return try alone(path, key)
        } catch SessionError.sideFile {
            // A folder without the right to write, so nobody writes there.
            return try alone(path, key)
        }
    }

    private static func alone(_ path: String, _ key: EncryptionKey?) throws -> Int64 {
        let file = try ImmutableFile(path: path, key: key)
        return try withExtendedLifetime(file) { try file.group.schema().version }
    }
}
