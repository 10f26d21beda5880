import Foundation
internal import SharedStore
import Synchronization

/// Called with the total and the used size of the file in bytes.
public typealias CompactionCondition = @Sendable (Int, Int) -> Bool

extension Realm {
    /// How and where a Realm is opened.
    public struct Configuration: Sendable {
        // Sendable: class metatypes are values, closures are marked.

        /// The configuration of `Realm()`. Reading it gives a copy; set it before the first opening.
        public static var defaultConfiguration: Configuration {
            get { shared.withLock { $0 } ?? Configuration() }
            set { shared.withLock { $0 = newValue } }
        }
        private static let shared = Mutex<Configuration?>(nil)

        /// All that a Realm is opened with; each parameter is described at the property of its name.
        public init(
            fileURL: URL? = Configuration.defaultDirectory.appendingPathComponent("default.realm"),
            inMemoryIdentifier: String? = nil,
            encryptionKey: Data? = nil, readOnly: Bool = false, schemaVersion: UInt64 = 0, migrationBlock: MigrationBlock? = nil,
            deleteRealmIfMigrationNeeded: Bool = false, shouldCompactOnLaunch: CompactionCondition? = nil,
            objectTypes: [ObjectBase.Type]? = nil, seedFilePath: URL? = nil
        ) {
            if let inMemoryIdentifier { self.inMemoryIdentifier = inMemoryIdentifier } else { self.fileURL = fileURL }
            self.encryptionKey = encryptionKey
            self.readOnly = readOnly
            self.schemaVersion = schemaVersion
            self.migrationBlock = migrationBlock
            self.deleteRealmIfMigrationNeeded = deleteRealmIfMigrationNeeded
            self.shouldCompactOnLaunch = shouldCompactOnLaunch
            self.objectTypes = objectTypes
            self.seedFilePath = seedFilePath
            check()
        }

        private var place: Place?
        private enum Place: Sendable {
            case file(URL)
            case memory(String)
        }

        /// The file. Setting it makes a configuration that was in memory one of a file.
        public var fileURL: URL? {
            get { if case .file(let url) = place { url } else { nil } }
            set {
                if let newValue, newValue.path.isEmpty { misuse("Realm path must not be empty") }
                place = newValue.map { .file($0) }
            }
        }

        /// The name of data that lives only while a Realm with this name is open in the process.
        public var inMemoryIdentifier: String? {
            get { if case .memory(let name) = place { name } else { nil } }
            set {
                if let newValue, newValue.isEmpty { misuse("In-memory identifier must not be empty") }
                place = newValue.map { .memory($0) }
            }
        }

        /// 64 random bytes: the file is encrypted with AES-256 and each page authenticated with HMAC-SHA-2. Whoever opens it must
        /// have them.
        public var encryptionKey: Data? { didSet { check() } }
        /// The file must exist and fit the classes; nothing can be written. Allows files in folders without the right to write.
        public var readOnly: Bool = false { didSet { check() } }
        /// Grows by the application's hand when its classes change in a way that existing objects notice.
        public var schemaVersion: UInt64 = 0 { didSet { check() } }
        /// Runs at the first opening of a file with a lower schema version.
        public var migrationBlock: MigrationBlock?
        /// A file whose classes differ is deleted and made anew, without a migration.
        public var deleteRealmIfMigrationNeeded: Bool = false { didSet { check() } }
        /// Asked at the first opening of the file in the process; true lets the file be compacted, unless another process has it
        /// open.
        public var shouldCompactOnLaunch: CompactionCondition? { didSet { check() } }
        /// The classes of this Realm; nil: all of the process. Classes that they link to must be among them.
        public var objectTypes: [ObjectBase.Type]? { didSet { check() } }
        /// Beginning a write transaction fails while more versions of the file than this are in use.
        public var maximumNumberOfActiveVersions: UInt?
        /// A file that is copied first where there is none yet.
        ///
        /// Of any number of processes that open the file at the same time exactly one copies; nobody sees half of it.
        public var seedFilePath: URL? {
            didSet {
                if seedFilePath != nil, case .memory = place { place = nil }
            }
        }

        /// Runs when a file is new and has just got its classes: in the same write transaction, so that nobody sees the file
        /// without what the block puts into it. It must not commit or cancel. Not for files that come from a seed.
        public var initialDataBlock: (@Sendable (Realm) -> Void)?

        private func check() {
            for type in objectTypes ?? [] where !(type is Object.Type || type is EmbeddedObject.Type) {
                misuse("Can't use '\(type)' as an object type: it is neither an Object nor an EmbeddedObject")
            }
            if let encryptionKey, encryptionKey.count != 64 {
                misuse("Encryption key must be exactly 64 bytes long, not \(encryptionKey.count)")
            }
            if schemaVersion == .max {
                misuse("Cannot set schema version to \(UInt64.max): it is reserved for files without one")
            }
            if readOnly && deleteRealmIfMigrationNeeded {
                misuse("Cannot set both `readOnly` and `deleteRealmIfMigrationNeeded`")
            }
            if readOnly && shouldCompactOnLaunch != nil { misuse("Cannot set both `readOnly` and `shouldCompactOnLaunch`") }
        }

        // MARK: Places

        /// `$XDG_DATA_HOME/<program>`, or `$HOME/.local/share/<program>` where that is not set, or the same in the home directory
        /// that the system knows of the user, where neither is. Made when a Realm in it is first opened.
        public static var defaultDirectory: URL {
            // Only absolute paths count, says the specification of base directories.
            func directory(_ variable: String) -> URL? {
                getenv(variable).map { String(cString: $0) }
                    .flatMap { $0.hasPrefix("/") ? URL(fileURLWithPath: $0, isDirectory: true) : nil }
            }
            let home = directory("HOME") ?? URL(fileURLWithPath: NSHomeDirectory(), isDirectory: true)
            let base = directory("XDG_DATA_HOME") ?? home.appendingPathComponent(".local/share", isDirectory: true)
            return base.appendingPathComponent(ProcessInfo.processInfo.processName, isDirectory: true)
        }
    }
}

extension Realm.Configuration: CustomStringConvertible {
    public var description: String {
        func line(_ name: String, _ value: Any?) -> String { "\t\(name) = \(value.map { "\($0)" } ?? "(null)");\n" }
        return "Realm.Configuration {\n"
            + line("fileURL", fileURL?.absoluteString) + line("inMemoryIdentifier", inMemoryIdentifier)
            + line("encryptionKey", encryptionKey.map { "<\($0.count) bytes>" }) + line("readOnly", readOnly)
            + line("schemaVersion", schemaVersion)
            + line("migrationBlock", migrationBlock.map { _ in "<block>" })
            + line("deleteRealmIfMigrationNeeded", deleteRealmIfMigrationNeeded)
            + line("shouldCompactOnLaunch", shouldCompactOnLaunch.map { _ in "<block>" }) + line("dynamic", false)
            + line("customSchema", objectTypes.map { $0.map { $0.className() }.joined(separator: ", ") }) + "}"
    }
}

extension Realm.Configuration: Equatable {
    public static func == (a: Realm.Configuration, b: Realm.Configuration) -> Bool {
        a.encryptionKey == b.encryptionKey && a.fileURL == b.fileURL && a.inMemoryIdentifier.isSame(as: b.inMemoryIdentifier)
            && a.readOnly == b.readOnly && a.schemaVersion == b.schemaVersion
    }
}
