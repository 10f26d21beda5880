import Foundation
import Glibc

/// A `TestParticipant` process, told what to do line by line.
///
/// Each command is one line; each answer is one line that begins with "ok" or "error". See
/// `Tests/TestParticipant/SessionCommands.swift`. A process that is still there when this object goes is killed. Not thread-safe.
public final class TestProcess {
    public struct SpawnError: Error { public let code: Int32 }

    public let processIdentifier: Int32
    private var input: Int32
    private let output: Int32
    private var buffer: [UInt8] = []
    private var exitCode: Int32?

    /// How long an answer, or an end, may take before the test gives up on the process: a limit of `TestTime`.
    public static let answerSecondsMax = 20.0

    /// The executable, in the build products directory beside the tests.
    public static func path(_ name: String = "TestParticipant") -> String {
        URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent().appendingPathComponent(name)
            .path
    }

    public init(_ arguments: [String] = ["session"], environment: [String: String] = [:], executable: String = TestProcess.path())
        throws
    {
        // A process that died does not read any more; what the test then sees is the missing answer.
        signal(SIGPIPE, SIG_IGN)
        var toChild: [Int32] = [0, 0], fromChild: [Int32] = [0, 0]
        // Close-on-exec, so that no other child keeps this one's pipes open.
        guard pipe(&toChild) == 0, pipe(&fromChild) == 0 else { throw SpawnError(code: errno) }
        for descriptor in toChild + fromChild { _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, toChild[0], 0)
        posix_spawn_file_actions_adddup2(&actions, fromChild[1], 1)
        let variables = ProcessInfo.processInfo.environment.merging(environment) { $1 }.map { "\($0)=\($1)" }
        var argumentPointers = ([executable] + arguments).map { strdup($0) } + [nil]
        var variablePointers = variables.map { strdup($0) } + [nil]
        defer { (argumentPointers + variablePointers).forEach { free($0) } }
        var pid: pid_t = 0
        let code = posix_spawn(&pid, executable, &actions, nil, &argumentPointers, &variablePointers)
        close(toChild[0])
        close(fromChild[1])
        input = toChild[1]
        output = fromChild[0]
        processIdentifier = pid
        if code != 0 { throw SpawnError(code: code) }
    }

    deinit {
        kill()
        if input >= 0 { close(input) }
        close(output)
    }

    /// Sends a command without waiting for its answer.
    public func send(_ command: String) {
        let bytes = Array((command + "\n").utf8)
        _ = Glibc.write(input, bytes, bytes.count)
    }

    /// The next line of the process, nil when it has ended or takes too long.
    public func line(within seconds: Double = answerSecondsMax) -> String? {
        let limit = Date().addingTimeInterval(TestTime.limit(seconds))
        while true {
            if let end = buffer.firstIndex(of: UInt8(ascii: "\n")) {
                let line = String(decoding: buffer[..<end], as: UTF8.self)
                buffer.removeSubrange(...end)
                return line
            }
            var poller = pollfd(fd: output, events: Int16(POLLIN), revents: 0)
            let left = limit.timeIntervalSinceNow
            if left <= 0 || Glibc.poll(&poller, 1, Int32(max(1, left * 1000))) <= 0 { return nil }
            var chunk = [UInt8](repeating: 0, count: 4096)
            let count = Glibc.read(output, &chunk, chunk.count)
            if count <= 0 { return nil }
            buffer += chunk[..<count]
        }
    }

    /// Sends a command and returns the answer: "ok ...", "error ...", or "gone" where there is none.
    @discardableResult
    public func ask(_ command: String, within seconds: Double = answerSecondsMax) -> String {
        send(command)
        return line(within: seconds) ?? "gone"
    }

    /// SIGKILL, and waits for the end.
    public func kill() {
        if exitCode != nil { return }
        Glibc.kill(processIdentifier, SIGKILL)
        reap(0)
    }

    /// The letter of the process's state as the system shows it: R, S, T (stopped), ...
    public func state() -> String {
        let text = (try? String(contentsOfFile: "/proc/\(processIdentifier)/stat", encoding: .utf8)) ?? ""
        guard let end = text.lastIndex(of: ")") else { return "" }
        return text[end...].split(separator: " ").dropFirst().first.map(String.init) ?? ""
    }

    public func stop() { Glibc.kill(processIdentifier, SIGSTOP) }
    public func resume() { Glibc.kill(processIdentifier, SIGCONT) }

    /// Ends the commands and waits for the end; the exit code, or minus the signal that killed it.
    @discardableResult
    public func finish() -> Int32 {
        if input >= 0 { close(input) }
        input = -1
        return waitUntilGone()
    }

    /// Waits for the end; the exit code, or minus the signal that killed it, or 1000 where it does not end.
    @discardableResult
    public func waitUntilGone() -> Int32 {
        let limit = Date().addingTimeInterval(TestTime.limit(TestProcess.answerSecondsMax))
        while exitCode == nil {
            reap(WNOHANG)
            if exitCode == nil {
                if limit.timeIntervalSinceNow < 0 { return 1000 }
                usleep(1000)
            }
        }
        return exitCode ?? 1000
    }

    private func reap(_ options: Int32) {
        var status: Int32 = 0
        guard waitpid(processIdentifier, &status, options) == processIdentifier else { return }
        exitCode = status & 0x7F == 0 ? status >> 8 & 0xFF : -(status & 0x7F)
    }
}
