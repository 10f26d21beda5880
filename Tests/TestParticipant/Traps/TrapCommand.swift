import Foundation

/// A misuse of the object API, which stops the process with a message. It gets a scratch directory of its own.
typealias TrapCase = @MainActor (_ directory: String) throws -> Void

/// All misuses by name; `RealmSwiftTests` starts one process for each that it tests (see `assertTraps`).
@MainActor let trapCases: [String: TrapCase] = [realmTrapCases, objectTrapCases, collectionTrapCases, observationTrapCases]
    .reduce(into: [:]) { $0.merge($1) { first, _ in first } }

/// `TestParticipant trap NAME`: does what the case says. Coming back is a failure of the case, told by exit code 0.
@MainActor func runTrapCommand(_ arguments: [String]) throws -> Int32 {
    guard let name = arguments.first, let body = trapCases[name] else {
        FileHandle.standardError.write(Data("no such trap case\n".utf8))
        return 64
    }
    let directory = NSTemporaryDirectory() + "/trap-\(UUID().uuidString)"
    try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
    // The test removes it: this process is not going to.
    print(directory)
    fflush(nil)
    try body(directory)
    return 0
}
