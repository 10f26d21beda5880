import Glibc
import SystemCalls

/// Runs the administrator's commands when something happens to a stream: each at most once within its interval, a few at a time,
/// and none for longer than a minute.
///
/// What comes too soon is kept and looked at when its time has come: it runs if it is still so. Used by the service's main
/// thread.
final class HookRunner {
    /// What a command is told, in its environment.
    struct Call {
        var stream: ServiceStream
        var event: ServiceStream.Event
    }

    private struct Key: Hashable {
        let stream: String, event: String
    }

    private struct Running {
        let key: Key
        let limit: Int64
    }

    private var lastRuns: [Key: Int64] = [:]
    private var postponed: [Key: Call] = [:]
    private var running: [pid_t: Running] = [:]
    private let log: ServiceLog
    private let environment: [String: String]

    static let runningCountMax = 8
    static let postponedCountMax = 20_000
    static let secondsMax: Int64 = 60

    init(log: ServiceLog, environment: [String: String]) {
        self.log = log
        self.environment = environment
    }

    /// Something is running or kept for later.
    var isBusy: Bool { !running.isEmpty || !postponed.isEmpty }

    private static func command(_ call: Call) -> String? {
        let hooks = call.stream.specification.hooks
        return switch call.event {
        case .failure: hooks.onFailure
        case .recovery: hooks.onRecovery
        case .success: hooks.onSuccess
        }
    }

    func happened(_ stream: ServiceStream, _ event: ServiceStream.Event) {
        let call = Call(stream: stream, event: event)
        guard Self.command(call) != nil else { return }
        let key = Key(stream: stream.specification.name, event: event.rawValue)
        if postponed.count < Self.postponedCountMax { postponed[key] = call }
        work()
    }

    /// Starts what may start now, and sees to what has ended. To be called now and then.
    func work() {
        reap()
        let now = SystemCalls.monotonicNanoseconds()
        for (key, call) in postponed {
            if running.count >= Self.runningCountMax { return }
            if running.values.contains(where: { $0.key == key }) { continue }
            if let last = lastRuns[key], now - last < call.stream.specification.hooks.interval.nanoseconds { continue }
            postponed[key] = nil
            guard isStillSo(call), let command = Self.command(call) else { continue }
            lastRuns[key] = now
            do { running[try start(command, call)] = Running(key: key, limit: now + Self.secondsMax * 1_000_000_000) } catch {
                log.write(
                    .warning, "the command for \(call.event.rawValue) cannot be started: \(error)", stream: key.stream,
                    event: "hook")
            }
        }
        // What no stream refers to any more is forgotten in time.
        if lastRuns.count > Self.postponedCountMax { lastRuns = lastRuns.filter { now - $0.value < 3_600_000_000_000 } }
    }

    private func isStillSo(_ call: Call) -> Bool {
        let isFailing = call.stream.board.withLock { $0.isFailureTold }
        return switch call.event {
        case .failure: isFailing
        case .recovery: !isFailing
        case .success: true
        }
    }

    private func reap() {
        let now = SystemCalls.monotonicNanoseconds()
        for (pid, run) in running {
            var status: Int32 = 0
            if waitpid(pid, &status, WNOHANG) == pid {
                running[pid] = nil
                if status != 0 {
                    let end = status & 0x7F == 0 ? "ended with \(status >> 8 & 0xFF)" : "was ended by signal \(status & 0x7F)"
                    log.write(.warning, "the command for \(run.key.event) \(end)", stream: run.key.stream, event: "hook")
                }
            } else if now > run.limit {
                log.write(
                    .warning, "the command for \(run.key.event) takes too long and is ended", stream: run.key.stream,
                    event: "hook")
                // Its whole group; it is reaped next time.
                kill(-pid, SIGKILL)
            }
        }
    }

    private func start(_ command: String, _ call: Call) throws -> pid_t {
        let facts = StreamFacts(call.stream)
        var variables = environment
        // Not its own socket to talk to.
        for name in ["NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"] { variables[name] = nil }
        variables["REALM_SYNC_EVENT"] = call.event.rawValue
        variables["REALM_SYNC_STREAM"] = facts.name
        variables["REALM_SYNC_SOURCE"] = facts.source
        variables["REALM_SYNC_TARGET"] = facts.target
        variables["REALM_SYNC_VERSION"] = facts.version.map { String($0) } ?? ""
        variables["REALM_SYNC_LAG_SECONDS"] = Units.fixed(facts.lagSeconds, 3)
        variables["REALM_SYNC_ERROR"] = call.event == .failure ? facts.lastError ?? facts.waitsFor ?? "behind" : ""

        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var none = sigset_t(), all = sigset_t()
        sigemptyset(&none)
        sigfillset(&all)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setsigdefault(&attributes, &all)
        posix_spawnattr_setpgroup(&attributes, 0)
        // POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK
        posix_spawnattr_setflags(&attributes, 0x02 | 0x04 | 0x08)
        func copies(_ texts: [String]) -> [UnsafeMutablePointer<CChar>?] { texts.map { strdup($0) } + [nil] }
        var arguments = copies(["/bin/sh", "-c", command])
        var words = copies(variables.map { "\($0.key)=\($0.value)" })
        defer { (arguments + words).forEach { free($0) } }
        var pid: pid_t = 0
        let code = posix_spawn(&pid, "/bin/sh", &actions, &attributes, &arguments, &words)
        if code != 0 { throw SystemError(call: "posix_spawn", code: code, path: "/bin/sh") }
        return pid
    }

    /// At the end of the service: those that run may go on by themselves, nothing is started any more.
    func end() { postponed.removeAll() }
}
