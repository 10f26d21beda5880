import Foundation
internal import SharedStore
internal import SystemCalls

/// The steps of opening a Realm.
enum RealmOpening {
    /// An open file whose classes are those of a configuration. It stays open as long as this value.
    struct Prepared: Sendable {
        let origin: any SessionOrigin
        let schema: Schema
        /// The models behind the classes; those without one give dynamic objects.
        let classes: [ClassInfo]
    }

    /// The session of a place for a configuration.
    ///
    /// - Throws: `Realm.Error`.
    static func session(_ configuration: Realm.Configuration, at confinement: Confinement) throws -> Session {
        let (schema, classes) = try model(configuration)
        return try session(configuration, schema, classes, at: confinement)
    }

    static func session(
        _ configuration: Realm.Configuration, _ schema: Schema, _ classes: [ClassInfo], at confinement: Confinement
    ) throws -> Session {
        try withEntry(configuration) { entry, path in
            let prepared = try prepare(entry, configuration, schema, classes, path)
            return try session(configuration, prepared, path, at: confinement)
        }
    }

    /// Opens the file and brings its classes up to date, which may take a while.
    static func prepare(_ configuration: Realm.Configuration) throws -> Prepared {
        let (schema, classes) = try model(configuration)
        return try withEntry(configuration) { try prepare($0, configuration, schema, classes, $1) }
    }

    private static func withEntry<R>(_ configuration: Realm.Configuration, _ body: (OriginRegistry.Entry, String) throws -> R)
        throws -> R
    {
        ForkedChild.refuse()
        let path = configuration.fileURL?.path ?? configuration.inMemoryIdentifier ?? ""
        let key = OriginRegistry.key(configuration)
        if SchemaMigration.runningFor == key {
            misuse(
                "A migration block or initial data block must not open the Realm at path '\(path)' that it works on: use what it is given."
            )
        }
        let entry = OriginRegistry.shared.entry(key)
        entry.lock.lock()
        defer { entry.lock.unlock() }
        do { return try body(entry, path) } catch {
            let error = Realm.Error(opening: error, path: path)
            Logger.log(.debug, .sdk) { error.localizedDescription }
            throw error
        }
    }

    private static func prepare(
        _ entry: OriginRegistry.Entry, _ configuration: Realm.Configuration, _ schema: Schema, _ classes: [ClassInfo],
        _ path: String
    ) throws -> Prepared {
        var origin = try origin(entry, configuration)
        if try SchemaMigration.prepare(origin, schema, classes, configuration, path: path) == .needsNewFile {
            origin = try remake(entry, configuration, &origin)
            _ = try SchemaMigration.prepare(origin, schema, classes, configuration, path: path)
        }
        return Prepared(origin: origin, schema: schema, classes: classes)
    }

    private static func session(
        _ configuration: Realm.Configuration, _ prepared: Prepared, _ path: String, at confinement: Confinement
    ) throws -> Session {
        let origin = prepared.origin
        let session = try origin.cache.session(at: confinement) {
            try Session(
                origin: origin, configuration: configuration, schema: prepared.schema, classes: prepared.classes,
                confinement: confinement,
                reader: origin.beginRead())
        }
        if session.schema != prepared.schema {
            throw Realm.Error(
                .fail, "Realm at path '\(path)' already opened on current thread with different schema.", path: path)
        }
        return session
    }

    // MARK: Classes

    private static func model(_ configuration: Realm.Configuration) throws -> (Schema, [ClassInfo]) {
        if ClassInfo.isMakingSample {
            misuse(
                "A model's init() opens a Realm. Initializers are called to learn about the class and must not use Realms: make such properties lazy."
            )
        }
        do {
            let (schema, classes) = try ModelSchema.make(configuration.objectTypes ?? ModelSchema.defaultTypes())
            return (schema, classes)
        } catch let problems as SchemaProblems {
            throw Realm.Error(.fail, problems.description, path: configuration.fileURL?.path)
        }
    }

    // MARK: Files

    private static func origin(_ entry: OriginRegistry.Entry, _ configuration: Realm.Configuration) throws -> any SessionOrigin {
        if let origin = entry.origin {
            try check(configuration, against: entry.configuration)
            return origin
        }
        let origin = try open(configuration)
        entry.origin = origin
        entry.configuration = configuration
        return origin
    }

    /// What all openings of a file in a process must have in common.
    private static func check(_ new: Realm.Configuration, against old: Realm.Configuration?) throws {
        guard let old else { return }
        let path = new.fileURL?.path ?? new.inMemoryIdentifier ?? ""
        func fail(_ what: String) -> Realm.Error {
            Realm.Error(.alreadyOpen, "Realm at path '\(path)' already opened with different \(what).", path: new.fileURL?.path)
        }
        if new.readOnly != old.readOnly { throw fail("read permissions") }
        if new.encryptionKey != old.encryptionKey { throw fail("encryption key") }
        if new.schemaVersion != old.schemaVersion && !new.readOnly { throw fail("schema version") }
    }

    private static func open(_ configuration: Realm.Configuration) throws -> any SessionOrigin {
        if configuration.inMemoryIdentifier != nil {
            if configuration.encryptionKey != nil { throw Realm.Error(.fail, "Encryption is not possible for in-memory Realms.") }
            return StoreOrigin(try Store.inMemory(options(configuration)))
        }
        guard let url = configuration.fileURL else { misuse("A Realm configuration needs a file URL or an in-memory identifier") }
        let path = url.path
        if path.isEmpty { misuse("Realm path must not be empty") }
        try FileManager.default.createDefaultDirectory(of: url)
        try copySeed(configuration, to: path)
        if configuration.readOnly {
            if !FileManager.default.fileExists(atPath: path) { throw OpenError.fileNotFound(path: path) }
            if SessionProbe.look(path) == .live {
                Logger.log(.warn, .sdk) {
                    "'\(path)' is opened with readOnly while somebody has it open for writing: what is written is not noticed, and may be read half. For a file that others write leave readOnly out, and do not write."
                }
            }
            return ImmutableOrigin(try SteadyReading.file(path, key: encryptionKey(configuration)))
        }
        let store = try Store.open(path, options(configuration))
        do { try compact(store, configuration) } catch {
            try? store.close(force: true)
            throw error
        }
        Logger.log(.debug, .sdk) { "opened '\(path)'" }
        return StoreOrigin(store)
    }

    /// At the first opening in the process, before anybody reads. Others who have the file open prevent it.
    private static func compact(_ store: Store, _ configuration: Realm.Configuration) throws {
        guard let condition = configuration.shouldCompactOnLaunch, let sizes = try store.sizes(),
            condition(sizes.total, sizes.used)
        else { return }
        let isDone = try store.compact()
        Logger.log(.info, .storage) {
            isDone
                ? "compacted '\(store.path)' from \(sizes.total) bytes"
                : "'\(store.path)' was not compacted: it is open elsewhere"
        }
    }

    private static func options(_ configuration: Realm.Configuration) throws -> StoreOptions {
        var options = StoreOptions()
        options.label = ProcessInfo.processInfo.processName
        options.encryptionKey = try encryptionKey(configuration)
        options.onWarning = { warning in Logger.log(.warn, .storage) { warning } }
        options.versionCountMax = configuration.maximumNumberOfActiveVersions.map { Int(clamping: $0) }
        return options
    }

    /// Nil for a plain file; also for every file while `REALM_DISABLE_ENCRYPTION=YES` is set, for debugging.
    static func encryptionKey(_ configuration: Realm.Configuration) throws -> EncryptionKey? {
        try encryptionKey(configuration.encryptionKey)
    }

    static func encryptionKey(_ key: Data?) throws -> EncryptionKey? {
        // One variable is asked for: a copy of all of them would hold keys that are handed over in others.
        guard let key, getenv("REALM_DISABLE_ENCRYPTION").map({ String(cString: $0) }) != "YES" else { return nil }
        return try key.withUnsafeBytes { try EncryptionKey($0) }
    }

    /// Where there is no file yet, a copy of the seed becomes it. A seed that cannot be opened does not: it would stay, and be
    /// what the program finds the next time, when the seed is a better one.
    private static func copySeed(_ configuration: Realm.Configuration, to path: String) throws {
        guard let seed = configuration.seedFilePath, (try? SystemCalls.linkStatus(path: path)) == nil else { return }
        _ = try SteadyReading.file(seed.path, key: encryptionKey(configuration))
        if try SeedFile.install(seed.path, to: path) { Logger.log(.info, .sdk) { "copied the seed '\(seed.path)' to '\(path)'" } }
    }

    /// Deletes the file, which nobody else may have open, and begins anew.
    private static func remake(
        _ entry: OriginRegistry.Entry, _ configuration: Realm.Configuration, _ origin: inout any SessionOrigin
    ) throws -> any SessionOrigin {
        let path = configuration.fileURL?.path ?? ""
        if !origin.cache.isEmpty {
            throw Realm.Error(
                .alreadyOpen, "Realm at path '\(path)' is open and cannot be deleted to avoid a migration.", path: path)
        }
        try (origin as? StoreOrigin)?.store.close(force: true)
        entry.origin = nil
        _ = try StoreFiles.delete(path)
        return try Self.origin(entry, configuration)
    }
}

extension FileManager {
    /// The folder of the default location is made on demand; any other must exist.
    fileprivate func createDefaultDirectory(of url: URL) throws {
        let directory = url.deletingLastPathComponent()
        guard directory.standardizedFileURL.path == Realm.Configuration.defaultDirectory.standardizedFileURL.path else { return }
        try createDirectory(at: directory, withIntermediateDirectories: true)
    }
}

extension Realm.Error {
    /// The error of the API for what the engine threw while a file was opened, copied or deleted.
    convenience init(opening error: any Swift.Error, path: String) {
        if let error = error as? Realm.Error {
            self.init(error.code, userInfo: error.userInfo)
            return
        }
        let code = Code(error)
        let kind = code == .invalidDatabase ? "invalid database, " : ""
        self.init(code, "Unable to open a Realm at path '\(path)': \(kind)\(Realm.Error.reason(error, path))", path: path)
    }

    /// What the engine says of an error, without the path with which it often begins.
    private static func reason(_ error: any Swift.Error, _ path: String) -> String {
        let text = "\(error)", prefix = path + ": "
        guard text.utf8.starts(with: prefix.utf8) else { return text }
        return String(decoding: text.utf8.dropFirst(prefix.utf8.count), as: UTF8.self)
    }

    /// The error of the API for what the engine threw while a session wrote.
    convenience init(writing error: any Swift.Error, _ session: Session) {
        if let error = error as? Realm.Error {
            self.init(error.code, userInfo: error.userInfo)
            return
        }
        self.init(Code(error), "The write transaction failed: \(error)", path: session.configuration.fileURL?.path)
    }
}

extension Realm.Error.Code {
    init(_ error: any Swift.Error) {
        self =
            switch error {
            case let error as OpenError: Realm.Error.Code(error)
            case let error as SessionError: Realm.Error.Code(error)
            case let error as SystemError: Realm.Error.Code(error)
            case let error as SchemaError: Realm.Error.Code(error)
            case is FormatError: .invalidDatabase
            case is AddressSpaceError: .addressSpaceExhausted
            case let error as CocoaError where error.code == .fileReadNoSuchFile || error.code == .fileNoSuchFile: .fileNotFound
            case let error as CocoaError where error.code == .fileWriteNoPermission || error.code == .fileReadNoPermission:
                .filePermissionDenied
            case is CocoaError: .fileAccess
            default: .fail
            }
    }

    init(_ error: SchemaError) {
        self =
            switch error {
            case .invalidSchema, .renameRefused: .fail
            default: .schemaMismatch
            }
    }

    init(_ error: OpenError) {
        self =
            switch error {
            case .fileNotFound: .fileNotFound
            case .permissionDenied: .filePermissionDenied
            case .isDirectory, .notARegularFile: .fileAccess
            case .tooSmall, .oddSize, .notARealm, .truncated, .damaged, .badKeyLength, .decryptionFailed, .notEncrypted:
                .invalidDatabase
            case .unsupportedFormat: .unsupportedFileFormatVersion
            case .upgradeRequired: .fileFormatUpgradeRequired
            case .incompatibleHistory, .incompatibleHistorySchema: .incompatibleHistories
            case .system(let error): Realm.Error.Code(error)
            }
    }

    init(_ error: SessionError) {
        self =
            switch error {
            case .incompatibleLockFile: .incompatibleLockFile
            case .incompatibleSession: .incompatibleSession
            case .inUse: .alreadyOpen
            case .sideFile(_, _, EACCES), .sideFile(_, _, EPERM), .sideFile(_, _, EROFS): .filePermissionDenied
            case .sideFile: .fileAccess
            default: .fail
            }
    }

    init(_ error: SystemError) {
        self =
            switch error.code {
            case 2, 20: .fileNotFound
            case 1, 13, 30: .filePermissionDenied
            case 17: .fileExists
            case 28, 122: .outOfDiskSpace
            case 12: .addressSpaceExhausted
            default: .fileOperationFailed
            }
    }
}
