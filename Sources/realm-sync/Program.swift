import Glibc

/// From the command line to an exit code.
enum Program {
    static let name = "realm-sync"
    static let version = "0.1.0"

    /// - Parameter words: what stands behind the program's name; nil for a word that is not UTF-8.
    static func run(_ words: [String?]) -> ExitCode {
        // A reader that goes away (`| head`) is told by EPIPE, not by death.
        signal(SIGPIPE, SIG_IGN)
        StandardDescriptors.prepare()
        StandardDescriptors.endClearlyOnBusError()
        defer { Ending.run() }
        let output = OutputStream(descriptor: STDOUT_FILENO)
        let console = Console()
        do {
            let known = words.compactMap { $0 }
            if known.count != words.count {
                let number = (words.firstIndex { $0 == nil } ?? 0) + 1
                throw UsageError(
                    "word \(number) of the command line is not UTF-8, as names of files must be here; rename the file")
            }
            let code = try run(known, output, console)
            try output.flush()
            return code
        } catch {
            // What was written before the failure is worth having; that flushing may fail too adds nothing.
            if !(error is OutputStream.Closed) { try? output.flush() }
            Ending.waitIfEnding()
            return Failure(error).report(on: console)
        }
    }

    private static func run(_ words: [String], _ output: OutputStream, _ console: Console) throws -> ExitCode {
        switch words.first {
        case "--help", "-h":
            try output.write(Help.program())
            return .ok
        case "--version":
            try output.write("\(name) \(version)\n")
            return .ok
        case "help" where words.count == 2 && words[1] == "--man":
            try output.write(Manual.program())
            return .ok
        case "help" where words.count == 2 && words[1] == "--man-config":
            try output.write(Manual.configuration())
            return .ok
        case "help" where words.count == 2 && ["--help", "-h", "help"].contains(words[1]):
            try output.write(Help.program())
            return .ok
        case "help" where words.count == 2 && !CommandTable.members(words[1]).isEmpty:
            try output.write(Help.group(words[1]))
            return .ok
        case let group? where words.count == 2 && ["--help", "-h"].contains(words[1]) && !CommandTable.members(group).isEmpty:
            try output.write(Help.group(group))
            return .ok
        case "help" where words.count > 1:
            try output.write(Help.of(CommandTable.find(Array(words.dropFirst())).command))
            return .ok
        case "help":
            try output.write(Help.program())
            return .ok
        default: break
        }
        let (command, rest) = try CommandTable.find(words)
        let arguments = try Arguments(rest, of: command)
        if arguments.wantsHelp {
            try output.write(Help.of(command))
            return .ok
        }
        return try command.run(Invocation(arguments: arguments, output: output, console: console))
    }
}
