import Glibc
import SharedStore
import Synchronization
import SystemCalls

/// A database as the commands that read see it: one version, held until the end.
///
/// The session of the file is joined, so that others may commit meanwhile. Read as it is, without a session and without side
/// files, is a file
/// - for which `--immutable` is given,
/// - that no session can have: in streaming form, of an older format, or with a history of synchronisation,
/// - that may not be written, or lies where no side file can be made; a message says so.
struct Database {
    let path: String
    let group: Group
    let version: UInt64

    /// Opens the newest version of the file that the operand FILE names, with its key.
    ///
    /// Signals that end the process first make it leave the session: a version that stays held would make the file grow until
    /// the session ends.
    static func open(_ invocation: Invocation) throws -> Database {
        try open(invocation, path: invocation.arguments.operand("FILE"), key: key(invocation))
    }

    /// As `open`, for commands that take several files.
    static func open(_ invocation: Invocation, path: String, key: EncryptionKey?) throws -> Database {
        Ending.obeySignals()
        return try SteadyReading.attempt(path) {
            let file = try ImmutableFile(path: path, key: key)
            guard let member = try join(file, key, invocation) else {
                return Database(path: file.path, group: file.group, version: try file.group.version())
            }
            let transaction = try member.store.beginRead()
            // Tables and rows do not keep the version: it is held until the process ends, whatever the command still refers to.
            Ending.keep(member)
            Ending.keep(transaction)
            return Database(path: file.path, group: transaction.group, version: transaction.version)
        }
    }

    /// Joins the session of `file`; nil where it is to be read without one, and a message has said so where that is not as
    /// wished.
    static func join(_ file: ImmutableFile, _ key: EncryptionKey?, _ invocation: Invocation) throws -> SessionMember? {
        if invocation.arguments.has("immutable") || !isShareable(file) { return nil }
        let reason: String
        do {
            return try SessionMember(file, key: key, label: "\(Program.name) \(invocation.name)", console: invocation.console)
        } catch let error as OpenError {
            guard case .permissionDenied(_, let call) = error else { throw error }
            reason = "permission denied by \(call)"
        } catch let error as SessionError {
            guard case .sideFile(let side, let why, _) = error, access(SystemCalls.parentDirectory(of: side), W_OK) != 0 else {
                throw error
            }
            reason = "\(side): \(why)"
        } catch let error as SystemError {
            // Reading needs no space, making side files does.
            guard error.isOutOfSpace else { throw error }
            reason = "\(error)"
        }
        // Once, however often it is tried.
        if said.withLock({ $0.insert(file.path).inserted }) {
            invocation.console.message(
                "note: \(file.path) is read without joining its session (\(reason)); "
                    + "the result may be wrong if others write to it now")
        }
        return nil
    }

    private static let said = Mutex<Set<String>>([])

    /// Joining converts, upgrades or refuses what is not shareable; a command that only reads must do none of this.
    private static func isShareable(_ file: ImmutableFile) -> Bool {
        guard !file.layout.isStreaming else { return false }
        guard file.layout.format == Int(FileHeader.currentFormat) || file.layout.topRef == 0 else { return false }
        // What cannot be read may have been overwritten meanwhile: joining tells.
        guard let type = try? file.group.historyType() else { return true }
        return [0, 2].contains(type)
    }

    /// The key of `--key-file` or `--key-env`, or of the options of other names given; nil where there is neither.
    static func key(_ invocation: Invocation, file: String = "key-file", environment: String = "key-env") throws -> EncryptionKey?
    {
        let arguments = invocation.arguments
        if let name = arguments.string(environment) {
            if arguments.has(file) { throw arguments.usageError("--\(file) and --\(environment) are both given") }
            return try KeyVariables.key(name)
        }
        guard let path = arguments.string(file) else { return nil }
        let allows = arguments.has(Option.readableKeyFile.name)
        do { return try EncryptionKey.read(file: path, allowReadableByOthers: allows) } catch let error as SystemError {
            throw OpenError(error, path: path)
        }
    }

    /// The table of the class `name`; where there is none, a table of that name.
    ///
    /// - Throws: `CommandFailure` with the names that there are.
    func table(_ name: String) throws -> Table {
        if let table = try group.table(ofClass: name) ?? group.table(named: name) { return table }
        let names = try group.classTables().compactMap(\.className)
        let near = Spelling.nearest(name, among: names).map { "; did you mean '\($0)'?" }
        let plain = try group.plainTables().map(\.name)
        if names.isEmpty, !plain.isEmpty {
            throw CommandFailure(
                .noInput, "\(path): no class or table '\(name)'; its tables are \(plain.joined(separator: ", "))")
        }
        let list = names.count > 20 ? "; 'schema' lists its \(names.count) classes" : "; it has \(names.joined(separator: ", "))"
        throw CommandFailure(.noInput, "\(path): no class '\(name)'\(near ?? (names.isEmpty ? "; it has no classes" : list))")
    }
}

/// Keys from environment variables. Each variable is read once and then wiped: core dumps, and those who may look at the process,
/// see the environment, and programs that are started from here inherit it.
enum KeyVariables {
    private static let known = Mutex<[String: EncryptionKey]>([:])

    static func key(_ name: String) throws -> EncryptionKey {
        try known.withLock { known in
            if let key = known[name] { return key }
            let key = try EncryptionKey.read(environment: name)
            EncryptionKey.wipe(environment: name)
            known[name] = key
            return key
        }
    }
}
