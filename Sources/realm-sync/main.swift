import Glibc

// Who asks for the status before we can answer gets none; by default the signal would end us.
signal(SIGUSR1, SIG_IGN)
// As they are: `CommandLine.arguments` would make other names of those that are not UTF-8.
let words = (1..<max(1, Int(CommandLine.argc))).map { index in
    CommandLine.unsafeArgv[index].flatMap { String(validatingCString: $0) }
}
// All output is written by now, and threads may still be saying farewell: what `exit` would tear down, they use.
_exit(Program.run(words).rawValue)
