import SharedStore
import SystemCalls

/// A database as the commands that read see it: one version, and how it came to be open.
struct Database {
    let path: String
    let group: Group
    let version: UInt64
    /// What the version rests on; keeps it readable.
    private let owner: AnyObject

    /// Opens the newest version of the file that the operand FILE names, with the key of `--key-file`.
    static func open(_ invocation: Invocation) throws -> Database {
        let path = invocation.arguments.operand("FILE")
        let file = try ImmutableFile(path: path, key: try key(invocation))
        return Database(path: path, group: file.group, version: try file.group.version(), owner: file)
    }

    /// The key of `--key-file`, or nil.
    static func key(_ invocation: Invocation) throws -> EncryptionKey? {
        guard let path = invocation.arguments.string("key-file") else { return nil }
        do { return try EncryptionKey.read(file: path) } catch let error as SystemError { throw OpenError(error, path: path) }
    }

    private init(path: String, group: Group, version: UInt64, owner: AnyObject) {
        self.path = path
        self.group = group
        self.version = version
        self.owner = owner
    }

    /// The table of the class `name`; where there is none, a table of that name.
    ///
    /// - Throws: `CommandFailure` with the names that there are.
    func table(_ name: String) throws -> Table {
        if let table = try group.table(ofClass: name) ?? group.table(named: name) { return table }
        let names = try group.classTables().compactMap(\.className)
        let near = Spelling.nearest(name, among: names).map { "; did you mean '\($0)'?" }
        let list = names.count > 20 ? "; 'schema' lists its \(names.count) classes" : "; it has \(names.joined(separator: ", "))"
        throw CommandFailure(.noInput, "\(path): no class '\(name)'\(near ?? (names.isEmpty ? "; it has no classes" : list))")
    }
}
