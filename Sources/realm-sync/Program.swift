import Glibc

/// From the command line to an exit code.
enum Program {
    static let name = "realm-sync"
    static let version = "0.1.0"

    static func run(_ words: [String]) -> ExitCode {
        // A reader that goes away (`| head`) is told by EPIPE, not by death.
        signal(SIGPIPE, SIG_IGN)
        StandardDescriptors.prepare()
        StandardDescriptors.endClearlyOnBusError()
        defer { Ending.run() }
        let output = OutputStream(descriptor: STDOUT_FILENO)
        let console = Console()
        do {
            let code = try run(words, output, console)
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
