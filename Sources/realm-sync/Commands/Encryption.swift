import SharedStore

/// Commands that change how a file is encrypted, while nobody has it open.
extension Command {
    private static let key = "(--key-file K | --key-env NAME)"

    private static let replacement =
        "The file is replaced by a copy of its newest version without free space, after the copy was synced and verified: "
        + "whatever happens on the way, the path stands for the old file or the new one. Nobody may have the file open. Version and history "
        + "stay. The old content's blocks are not overwritten on the disk, and backups beside the file are left as they are."

    static let encrypt = Command(
        name: "encrypt",
        summary: "Encrypt a file that nobody has open.",
        details: ["Makes FILE one that can only be read with the given key; 'keygen' makes one.", replacement],
        operands: [.file],
        options: [.keyFile],
        needs: [key],
        run: { invocation in
            guard let key = try Database.key(invocation) else { throw missingKey(invocation, "with which to encrypt") }
            do { return try changeKey(invocation, from: nil, to: key, "encrypted") } catch OpenError.notARealm(
                let path, let content)
                where content == .encrypted || content == .unknown
            {
                let isReadable = (try? ImmutableFile(path: path, key: key)) != nil
                throw CommandFailure(
                    .badData,
                    isReadable
                        ? "\(path): is encrypted already, with this key"
                        : "\(path): is encrypted already, with another key, or is no realm file; '\(Program.name) rekey' gives an encrypted file another key"
                )
            }
        })

    static let decrypt = Command(
        name: "decrypt",
        summary: "Remove the encryption of a file that nobody has open.",
        details: ["Makes FILE one that can be read without a key.", replacement],
        operands: [.file],
        options: [.keyFile],
        needs: [key],
        run: { invocation in
            guard let key = try Database.key(invocation) else { throw missingKey(invocation, "of the file") }
            return try changeKey(invocation, from: key, to: nil, "decrypted")
        })

    static let rekey = Command(
        name: "rekey",
        summary: "Give an encrypted file that nobody has open another key.",
        details: ["Makes FILE one that can only be read with the new key.", replacement],
        operands: [.file],
        options: [
            .keyFile,
            .value("new-key-file", nil, "K", "Read the new key from file K."),
            .value("new-key-env", nil, "NAME", "Take the new key from the environment variable NAME."),
        ],
        needs: [key, "(--new-key-file K | --new-key-env NAME)"],
        run: { invocation in
            guard let old = try Database.key(invocation) else { throw missingKey(invocation, "of the file") }
            guard let new = try Database.key(invocation, file: "new-key-file", environment: "new-key-env") else {
                throw invocation.arguments.usageError("the new key is missing; name it with --new-key-file or --new-key-env")
            }
            return try changeKey(invocation, from: old, to: new, "encrypted with the new key")
        })

    static let keygen = Command(
        name: "keygen",
        summary: "Make a key file with 64 random bytes.",
        details: [
            "The file must not exist; only its owner may read it. Keep a copy: without the key nobody can read what it encrypts."
        ],
        operands: [Operand(name: "FILE", help: "The key file to make.")],
        options: [.flag("hex", "x", "Write 128 hex digits instead of the 64 bytes, as environment variables need them.")],
        run: { invocation in
            let path = invocation.arguments.operand("FILE")
            try EncryptionKey.generate().write(toNewFile: path, hexadecimal: invocation.arguments.has("hex"))
            try invocation.output.line("\(Text.visible(path)): a new key")
            return .ok
        })
}

private func missingKey(_ invocation: Invocation, _ which: String) -> UsageError {
    invocation.arguments.usageError("the key \(which) is missing; name it with --key-file or --key-env")
}

private func changeKey(_ invocation: Invocation, from old: EncryptionKey?, to new: EncryptionKey?, _ done: String) throws
    -> ExitCode
{
    let path = invocation.arguments.operand("FILE")
    let check = { (copy: String) in
        let report =
            try new.map { try verifyEncrypted(copy, $0, VerifierOptions()) } ?? Verifier.verify(ImmutableFile(path: copy))
        if !report.isSound {
            let first = report.findings.first.map { ": \($0)" } ?? ""
            throw CommandFailure(.badData, "\(path): its copy does not verify, nothing was changed\(first); 'verify' the file")
        }
    }
    do { try StoreFiles.changeKey(path, from: old, to: new, check: check) } catch SessionError.inUse {
        throw CommandFailure(
            .tryAgain, "\(Text.visible(path)) is open elsewhere; close it there and try again ('status' shows by whom)")
    }
    try invocation.output.line("\(Text.visible(path)): \(done)")
    return .ok
}
