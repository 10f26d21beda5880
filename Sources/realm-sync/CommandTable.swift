/// Every command of the program. A new one is a file in `Commands/` and a line here.
enum CommandTable {
    static let all: [Command] = [
        .export,
        .schema,
        .status,
        .verify,
        .query,
        .watch,
        .mirror,
        .run,
        .promote,
        .archive,
        .restore,
        .followArchive,
        .history,
        .compare,
        .salvage,
        .serve,
        .receive,
        .send,
        .certs,
        .importJSON,
        .copy,
        .compact,
        .seedBuild,
        .seedInstall,
        .seedFetch,
        .seedSign,
        .seedVerify,
        .seedKeygen,
        .upgrade,
        .encrypt,
        .decrypt,
        .rekey,
        .keygen,
        .completion,
    ]

    /// The commands of two words whose first is `group`.
    static func members(_ group: String) -> [Command] { all.filter { $0.name.hasPrefix(group + " ") } }

    /// Finds the command that `words` begin with: two words where the first names a group, else one.
    static func find(_ words: [String]) throws -> (command: Command, rest: ArraySlice<String>) {
        guard let first = words.first else { throw UsageError("a command is missing") }
        if words.count > 1, let command = all.first(where: { $0.name == "\(first) \(words[1])" }) {
            return (command, words.dropFirst(2))
        }
        if let command = all.first(where: { $0.name == first }) { return (command, words.dropFirst()) }
        let members = members(first).map { String($0.name.dropFirst(first.count + 1)) }
        if !members.isEmpty { throw UsageError("'\(first)' needs one of these behind it: \(members.joined(separator: ", "))") }
        let near = Spelling.nearest(first, among: all.map(\.name)).map { "; did you mean '\($0)'?" } ?? ""
        if first.hasPrefix("-") { throw UsageError("unknown option \(first); a command must come first") }
        throw UsageError("unknown command '\(first)'\(near)")
    }
}
