import Foundation

/// A process that tests start, stop and kill: the first argument names the group of commands, the rest is its business.
let groups: [String: @MainActor ([String]) throws -> Int32] = [
    "archive": runArchiveCommand,
    "notifier": runNotifierCommand,
    "realm": runRealmCommand,
    "session": runSessionCommands,
    "mirror": runMirrorCommand,
    "serve": runServeCommand,
    "storage": runStorageCommand,
    "storm": runStormCommand,
    "trap": runTrapCommand,
]

let arguments = Array(CommandLine.arguments.dropFirst())
guard let name = arguments.first, let group = groups[name] else {
    FileHandle.standardError.write(Data("usage: TestParticipant \(groups.keys.sorted().joined(separator: "|")) ...\n".utf8))
    exit(64)
}
do {
    exit(try group(Array(arguments.dropFirst())))
} catch {
    FileHandle.standardError.write(Data("\(error)\n".utf8))
    exit(70)
}
