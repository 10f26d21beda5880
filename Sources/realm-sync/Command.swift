/// One command of the program: what it takes, what help says of it, and what it does.
struct Command: Sendable {
    /// One word, or two for a command of a group ("seed build").
    let name: String
    /// What it does, in half a line, beginning with a verb.
    let summary: String
    /// Paragraphs for its help.
    var details: [String] = []
    var operands: [Operand] = []
    var options: [Option] = []
    /// What must be given besides the operands, as usage shows it: "(--once | --follow)".
    var needs: [String] = []
    /// Exit codes other than those all commands have.
    var exitCodes: [(ExitCode, String)] = []
    /// Runs it; what it throws becomes one line on standard error and an exit code (`Failure`).
    let run: @Sendable (Invocation) throws -> ExitCode

    /// With those that every command has, and those that belong to a key file wherever one can be named.
    var allOptions: [Option] {
        let names = options.map(\.name)
        return options + (names.contains(Option.keyFile.name) ? [.keyEnvironment] : [])
            + (names.contains { $0.hasSuffix(Option.keyFile.name) } ? [.readableKeyFile] : []) + [Command.help]
    }

    /// The words of its usage, in the one form that help and manual have: name, operands, what else must be given, options.
    var usage: [String] {
        let words = operands.map { operand in
            switch operand.count {
            case .one: operand.name
            case .optional: "[\(operand.name)]"
            case .any: "[\(operand.name)]..."
            }
        }
        return [name] + words + needs + ["[OPTIONS]"]
    }

    static let help = Option.flag("help", "h", "Show this help and exit.")
}

/// One call of a command.
struct Invocation {
    let arguments: Arguments
    /// Standard output, written in pieces; it is flushed at the end.
    let output: OutputStream
    let console: Console

    /// The name of the command.
    var name: String { arguments.commandName }
    var wantsJSON: Bool { arguments.has("json") }
}

/// Options that several commands have.
extension Option {
    static let keyFile = Option.value("key-file", "k", "K", "Read the encryption key from file K: 64 bytes, or 128 hex digits.")
    static let keyEnvironment = Option.value(
        "key-env", nil, "NAME",
        "Take the encryption key from the environment variable NAME: 128 hex digits.")
    static let readableKeyFile = Option.flag(
        "allow-readable-key-file", nil,
        "Take a key from a file that its group or others can read; such a file is refused without this.")
    static let immutable = Option.flag(
        "immutable", "i",
        "Read the file as it is, without joining its session and without side files; nobody may write to it meanwhile.")
    static let json = Option.flag("json", "j", "Write JSON for programs instead of text for people.")
    static let limit = Option.value("limit", "n", "N", "Show at most N objects.")
}

extension Operand {
    static let file = Operand(name: "FILE", help: "A realm file.")
}
