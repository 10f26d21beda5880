import CShims
import Foundation
import Notifier
import SystemCalls

/// A number in a file that processes share through a mapping: what the newest version is to the tests of the notifier.
final class SharedCounter: @unchecked Sendable {
    // Sendable: one word of mapped memory, read and written atomically.
    private let word: UnsafeMutablePointer<UInt64>

    init(path: String) throws {
        let descriptor = try SystemCalls.open(path, O_RDWR | O_CREAT)
        defer { SystemCalls.close(descriptor) }
        try SystemCalls.truncate(descriptor, to: 8, path: path)
        word = try SystemCalls.map(length: 8, protection: PROT_READ | PROT_WRITE, flags: MAP_SHARED, descriptor)
            .assumingMemoryBound(to: UInt64.self)
    }

    var value: UInt64 { CShims_load_u64(word) }
    func increment() { _ = CShims_fetch_add_u64(word, 1) }
}

/// The commands of `TestParticipant notifier`:
///
///     listen PATH COUNTER LAST   prints `ready WAYS`, then every event, and ends when version LAST was heard
///     ring PATH COUNTER COUNT    raises the counter and rings, COUNT times
///     descriptors PATH           subscribes and prints the descriptors that a program started by exec would inherit
///
/// Options before the command: `--fail CALL=ERRNO` or `--fail CALL:SUFFIX=ERRNO` makes a system call fail for ever (on paths with
/// that suffix), `--fallback DIR` names the fallback directory, `--no-create` forbids making a FIFO, `--net MS` sets the interval
/// of the slow look.
func runNotifierCommand(_ arguments: [String]) throws -> Int32 {
    var arguments = arguments[...]
    var options = Notifier.Options()
    var failures: [String: Int32] = [:]
    while let option = arguments.first, option.hasPrefix("--") {
        arguments.removeFirst()
        switch option {
        case "--no-create": options.createsFIFO = false
        case "--fallback": options.fallbackDirectory = arguments.popFirst()
        case "--net": options.netMilliseconds = arguments.popFirst().flatMap { Int($0) } ?? 500
        case "--fail":
            let parts = (arguments.popFirst() ?? "").split(separator: "=")
            if parts.count == 2 { failures[String(parts[0])] = Int32(parts[1]) }
        default: return 64
        }
    }
    #if DEBUG
    if !failures.isEmpty {
        let table = failures
        SystemCallInterception.hook = { call in
            for (key, code) in table {
                let parts = key.split(separator: ":")
                if String(parts[0]) == call.name && (parts.count == 1 || call.path.hasSuffix(String(parts[1]))) { return code }
            }
            return nil
        }
    }
    #endif
    let values = Array(arguments)
    switch values.first {
    case "listen" where values.count == 4:
        return try listen(values[1], SharedCounter(path: values[2]), last: UInt64(values[3]) ?? 0, options)
    case "ring" where values.count == 4:
        let counter = try SharedCounter(path: values[2])
        let ringer = Ringer(values[1], options: options)
        for _ in 0..<(Int(values[3]) ?? 0) {
            counter.increment()
            ringer.ring()
        }
        return 0
    case "descriptors" where values.count == 2:
        let before = Set(try SystemCalls.names(inDirectory: "/proc/self/fd"))
        let subscription = Notifier.shared.subscribe(path: values[1], options: options, newestVersion: { 0 })
        _ = try subscription.eventDescriptor()
        let ringer = Ringer(values[1], options: options)
        for name in try SystemCalls.names(inDirectory: "/proc/self/fd") {
            guard let descriptor = Int32(name), !before.contains(name) else { continue }
            let flags = fcntl(descriptor, F_GETFD)
            let target = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(name)")) ?? ""
            if flags >= 0 { say("\(flags & FD_CLOEXEC != 0 ? "closed" : "inherited") \(target)") }
        }
        ringer.ring()
        subscription.cancel()
        return 0
    default: return 64
    }
}

private func listen(_ path: String, _ counter: SharedCounter, last: UInt64, _ options: Notifier.Options) throws -> Int32 {
    let done = DispatchSemaphore(value: 0)
    let subscription = Notifier.shared.subscribe(path: path, options: options, newestVersion: { counter.value }) { event in
        switch event {
        case .committed(let version):
            // The last is printed, and now and then one before it.
            if version >= last || version % 64 == 1 { say("committed \(version)") }
            if version >= last { done.signal() }
        case .fileReplaced: say("replaced")
        case .fileDeleted: say("deleted")
        case .fileAppeared: say("appeared")
        }
    }
    let ways = subscription.ways
    say(
        "ready fifo=\(ways.fifo ?? "none") watches=\(ways.watchesFIFO),\(ways.watchesFile),\(ways.watchesFolder) net=\(ways.netMilliseconds)"
    )
    done.wait()
    subscription.cancel()
    return 0
}

private func say(_ line: String) {
    FileHandle.standardOutput.write(Data((line + "\n").utf8))
}
