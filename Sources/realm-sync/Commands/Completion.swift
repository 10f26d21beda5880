extension Command {
    static let completion = Command(
        name: "completion",
        summary: "Print the completion of this program's commands and options for a shell.",
        details: [
            "For bash: source <(realm-sync completion bash), or put it into /usr/share/bash-completion/completions/realm-sync. For zsh: a file _realm-sync "
                + "in a folder of $fpath. For fish: ~/.config/fish/completions/realm-sync.fish."
        ],
        operands: [Operand(name: "SHELL", help: "bash, zsh or fish.")],
        run: runCompletion)
}

private func runCompletion(_ invocation: Invocation) throws -> ExitCode {
    let name = invocation.arguments.operand("SHELL")
    guard let shell = Manual.Shell(rawValue: name) else {
        throw invocation.arguments.usageError(
            "'\(name)' is none of \(Manual.Shell.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    try invocation.output.write(Manual.completion(shell))
    return .ok
}
