import Replication
import SharedStore

extension Command {
    static let promote = Command(
        name: "promote",
        summary: "Make a mirror a file of its own, which may be written.",
        details: ["The mirror must have been stopped. What its source committed after the mirror's version is not in it."],
        operands: [Operand(name: "DEST", help: "A file made by 'mirror'.")],
        options: [.keyFile],
        exitCodes: [(.tryAgain, "a mirror is at work on it")],
        run: { invocation in
            let path = invocation.arguments.operand("DEST")
            let state = try Mirror.promote(path, key: Database.key(invocation))
            let origin = state.map { ", it was a mirror of \(Text.visible($0.source)) at version \($0.snapshot.version)" } ?? ""
            try invocation.output.line("\(Text.visible(path)): is a file of its own now\(origin)")
            return .ok
        })
}
