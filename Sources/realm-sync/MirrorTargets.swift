import Glibc
import Replication
import SharedStore
import Synchronization
import SystemCalls

/// Several targets of one source: each has a thread of its own and its own place in the source's session, so that a slow one, or
/// one that fails, holds back neither the others nor the source.
final class MirrorTargets {
    /// What one of them does until `control` says stop.
    typealias Work = @Sendable (_ control: @escaping MirrorFollower.Control) throws -> Void

    private let targets: [Target]
    private let ended: SystemCalls.Descriptor
    private let console: Console

    /// - Parameter works: by the name of the target.
    init(_ works: [(name: String, work: Work)], console: Console) throws {
        ended = try SystemCalls.makeEventDescriptor()
        self.console = console
        targets = try works.map { try Target($0.name, $0.work) }
    }

    deinit { SystemCalls.close(ended) }

    /// Runs until all have ended; a request that comes by a signal goes to all of them.
    ///
    /// - Throws: what the first one has failed with, after all have ended.
    func run(_ signals: SignalListener) throws {
        let console = self.console, ended = self.ended, isAlone = targets.count == 1
        for target in targets {
            try target.start { error in
                if let error, !isAlone { console.message("\(target.name): \(Failure(error).message ?? "\(error)")") }
                SystemCalls.signal(ended)
            }
        }
        while !targets.allSatisfy(\.isOver) {
            guard let request = signals.request([ended], 60_000) else {
                SystemCalls.reset(ended)
                continue
            }
            targets.forEach { $0.ask(request) }
        }
        let failures = targets.compactMap(\.failure)
        guard let first = failures.first else { return }
        if targets.count == 1 { throw first }
        throw CommandFailure(Failure(first).code, "\(failures.count) of \(targets.count) targets have failed")
    }

    private final class Target: Sendable {
        let name: String
        private struct State {
            var requests: [MirrorFollower.Request] = []
            var isOver = false
            var failure: (any Error)?
        }
        private let state = Mutex(State())
        private let wake: SystemCalls.Descriptor
        private let work: Work

        init(_ name: String, _ work: @escaping Work) throws {
            self.name = name
            self.work = work
            wake = try SystemCalls.makeEventDescriptor()
        }

        deinit { SystemCalls.close(wake) }

        var isOver: Bool { state.withLock { $0.isOver } }
        var failure: (any Error)? { state.withLock { $0.failure } }

        func start(_ onEnd: @escaping @Sendable ((any Error)?) -> Void) throws {
            do {
                try BackgroundThread.start("realm-target") { [self] in
                    var failure: (any Error)?
                    do { try work { self.control($0, $1) } } catch { failure = error }
                    let thrown = failure
                    state.withLock { ($0.isOver, $0.failure) = (true, thrown) }
                    onEnd(thrown)
                }
            } catch {
                state.withLock { ($0.isOver, $0.failure) = (true, error) }
                onEnd(error)
            }
        }

        func ask(_ request: MirrorFollower.Request) {
            // A stop is the last thing that is asked.
            state.withLock { $0.requests = request == .stop ? [.stop] : $0.requests + [request] }
            SystemCalls.signal(wake)
        }

        private func control(_ descriptors: [Int32], _ milliseconds: Int32) -> MirrorFollower.Request? {
            var polled = ([wake] + descriptors).map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            guard poll(&polled, nfds_t(polled.count), milliseconds) > 0, polled[0].revents != 0 else { return nil }
            return state.withLock { state in
                // It stays asked.
                if state.requests.first == .stop { return .stop }
                let next = state.requests.isEmpty ? nil : state.requests.removeFirst()
                if state.requests.isEmpty { SystemCalls.reset(wake) }
                return next
            }
        }
    }
}

/// Lines of standard output that several threads write.
final class SharedOutput: @unchecked Sendable {
    // Sendable: guarded by the mutex.
    private let output: OutputStream
    private let lock = Mutex(())

    init(_ output: OutputStream) { self.output = output }

    /// Where nobody reads any more, the work goes on.
    func line(_ text: String) {
        lock.withLock { _ in
            _ = try? output.line(text)
            _ = try? output.flush()
        }
    }
}
