import Glibc
import Replication
import SharedStore
import Synchronization
import SystemCalls

/// Many mirrors and archives in one process: keeps those running that the configuration names, whatever happens to any of them,
/// and tells how they are.
///
/// Each stream has a thread, each folder that is looked through has one, and one answers questions. The main thread only waits:
/// for signals, for news of the others, and for the next sign of life to the service manager. It never touches a file of a
/// stream.
final class Service: @unchecked Sendable {
    // Sendable: what several threads use is in `shared`; the rest is the main thread's.
    private struct Shared {
        var streams: [ServiceStream] = []
        /// Stopped, and not at their end yet.
        var ending: [ServiceStream] = []
        var events: [(ServiceStream, ServiceStream.Event)] = []
        var folderErrors: [String] = []
        var configurationError: String?
    }
    private let shared = Mutex(Shared())
    private let wake: SystemCalls.Descriptor
    private let started = SystemCalls.monotonicNanoseconds()
    private let log: ServiceLog
    private let manager: ServiceManager
    private let hooks: HookRunner
    private let read: () throws -> ServiceConfiguration
    private var configuration: ServiceConfiguration
    private var scanners: [DirectoryScanner] = []
    private var server: StatusServer?
    private var lastStatus = ""
    private var nextLook: Int64 = 0

    /// How often the boards of the streams are looked at for what no stream tells by itself: soon enough for the shortest
    /// `lag-warning`.
    private var lookMilliseconds: Int32 = 5000
    private static let lookMillisecondsMin: Int64 = 500, lookMillisecondsMax: Int64 = 5000

    /// - Parameter read: reads the configuration, at the start and for each reload.
    /// - Throws: `ConfigurationError` and what reading may throw; `SystemError` where a socket cannot be made.
    init(log: ServiceLog, environment: [String: String], read: @escaping () throws -> ServiceConfiguration) throws {
        self.log = log
        self.read = read
        manager = ServiceManager { environment[$0] }
        hooks = HookRunner(log: log, environment: environment)
        configuration = try read()
        wake = try SystemCalls.makeEventDescriptor()
    }

    deinit { SystemCalls.close(wake) }

    // MARK: Running

    /// Runs until SIGTERM or SIGINT.
    func run() throws -> ExitCode {
        let signals = try SignalListener()
        SystemCalls.raiseDescriptorLimit()
        SystemCalls.boundHeaps()
        log.set(configuration.logLevel, configuration.logFormat)
        let server = try StatusServer { [unowned self] in report() }
        self.server = server
        try listen(configuration, before: nil)
        try server.start()
        apply(configuration)
        log.write(
            .info, "\(Program.name) \(Program.version) runs as process \(getpid()): \(report(asks: false).summary)",
            event: "started")
        manager.ready(report(asks: false).summary)
        var nextSign: Int64 = 0
        while true {
            let now = SystemCalls.monotonicNanoseconds()
            if let interval = manager.watchdogMilliseconds, now >= nextSign {
                manager.alive()
                nextSign = now + Int64(interval) * 1_000_000
            }
            var pause = hooks.isBusy ? 500 : lookMilliseconds
            if let interval = manager.watchdogMilliseconds { pause = min(pause, interval) }
            signals.wait(orReadable: [wake], milliseconds: pause)
            SystemCalls.reset(wake)
            var stops = false
            while let signal = signals.next() {
                switch signal {
                case .terminate, .interrupt: stops = true
                case .hangup: reload()
                case .user1:
                    for stream in report().streams {
                        log.write(.info, StatusText.line(stream), stream: stream.name, event: "status")
                    }
                }
            }
            if stops { break }
            tend()
        }
        end()
        return .ok
    }

    private func news() { SystemCalls.signal(wake) }

    /// All that is not caused by a signal.
    private func tend() {
        followFolders()
        // Scripts that wait for a pidfile or a line of the log see each change once.
        let events = shared.withLock { shared in
            shared.ending.removeAll { $0.board.withLock { $0.isEnded } }
            defer { shared.events = [] }
            return shared.events
        }
        for (stream, event) in events { tell(stream, event) }
        let now = SystemCalls.monotonicNanoseconds()
        if now >= nextLook || !events.isEmpty {
            nextLook = now + Int64(lookMilliseconds) * 1_000_000
            lookForLags(now)
            let status = report(asks: false).summary
            if status != lastStatus { manager.status(status) }
            lastStatus = status
        }
        hooks.work()
    }

    private func tell(_ stream: ServiceStream, _ event: ServiceStream.Event) {
        switch event {
        case .failure:
            let isFirst = stream.board.withLock { board in
                defer { board.isFailureTold = true }
                return !board.isFailureTold
            }
            if isFirst { hooks.happened(stream, .failure) }
        case .recovery:
            log.write(.info, "works again", stream: stream.specification.name, event: "recovery")
            hooks.happened(stream, .recovery)
            hooks.happened(stream, .success)
        case .success: hooks.happened(stream, .success)
        }
    }

    /// A stream that is behind for longer than it may be has failed as far as its hooks are concerned.
    private func lookForLags(_ now: Int64) {
        // Whoever is at work and has said nothing for that long may hang in a call: if nobody else asks, we do, and no answer
        // counts as lag.
        let silence = Int64(lookMilliseconds) * 1_000_000
        for stream in shared.withLock({ $0.streams }) where stream.board.withLock({ $0.isSilent(for: silence, at: now) }) {
            stream.ask()
        }
        for stream in shared.withLock({ $0.streams }) {
            let warning = Double(stream.specification.lagWarning.nanoseconds) / 1e9
            let (lag, isTold, isFailed, waitsFor, age) = stream.board.withLock {
                ($0.lagSeconds(at: now), $0.isFailureTold, $0.phase == .failed, $0.waitsFor, Double(now - $0.started) / 1e9)
            }
            // What has just begun may be as old as the last stop of the service; it has as long to show that it is equal.
            if lag <= warning || age <= warning || isTold || isFailed { continue }
            log.write(
                .warning, "behind for \(Units.text(seconds: lag))" + (waitsFor.map { ": \($0)" } ?? ""),
                stream: stream.specification.name, event: "behind")
            tell(stream, .failure)
        }
    }

    private func end() {
        manager.stopping()
        log.write(.info, "stopping", event: "stopping")
        hooks.end()
        for scanner in scanners { scanner.stop() }
        let streams = shared.withLock { $0.streams + $0.ending }
        for stream in streams { stream.stop() }
        let limit = SystemCalls.monotonicNanoseconds() + configuration.stopTimeout.nanoseconds
        var request = pollfd(fd: wake, events: Int16(POLLIN), revents: 0)
        while streams.contains(where: { !$0.board.withLock { $0.isEnded } }), SystemCalls.monotonicNanoseconds() < limit {
            poll(&request, 1, 50)
            SystemCalls.reset(wake)
        }
        let late = streams.filter { !$0.board.withLock { $0.isEnded } }.map(\.specification.name)
        if !late.isEmpty {
            log.write(.warning, "ended without waiting longer for \(late.joined(separator: ", "))", event: "late")
        }
        server?.stop()
        if let socket = configuration.socket { try? SystemCalls.unlink(socket) }
        log.write(.info, "stopped", event: "stopped")
        // Threads that hang in a call must not keep the process: what they do is safe against sudden ends.
        if !late.isEmpty { _exit(0) }
    }

    // MARK: Configuration

    private func reload() {
        manager.reloading()
        do {
            let fresh = try read()
            try listen(fresh, before: configuration)
            log.set(fresh.logLevel, fresh.logFormat)
            apply(fresh)
            configuration = fresh
            shared.withLock { $0.configurationError = nil }
            log.write(.info, "the configuration was loaded again: \(report(asks: false).summary)", event: "reloaded")
        } catch {
            let text = Text.oneLine("\(error)")
            shared.withLock { $0.configurationError = text }
            for line in "\(error)".split(separator: "\n") { log.write(.error, String(line), event: "configuration") }
            log.write(.error, "the configuration was not loaded; all goes on as before", event: "configuration")
        }
        manager.ready(report(asks: false).summary)
    }

    private func listen(_ fresh: ServiceConfiguration, before: ServiceConfiguration?) throws {
        if let before, before.socket == fresh.socket, before.socketMode == fresh.socketMode, before.listen == fresh.listen {
            return
        }
        if let old = before?.socket { try? SystemCalls.unlink(old) }
        // The port may be the same one, which is free only when the old listener is closed.
        server?.listen(at: [])
        var descriptors: [SystemCalls.Descriptor] = []
        do {
            if let socket = fresh.socket { descriptors.append(try LocalSocket.listen(path: socket, mode: fresh.socketMode)) }
            if let address = fresh.listen {
                let (descriptor, port) = try retrying { try LocalSocket.listen(host: address.host, port: address.port) }
                descriptors.append(descriptor)
                log.write(.info, "listening at \(address.host):\(port)", event: "listening")
            }
        } catch {
            descriptors.forEach { SystemCalls.close($0) }
            if let before { try? listen(before, before: nil) }
            throw error
        }
        server?.listen(at: descriptors)
    }

    private func retrying<Result>(_ body: () throws -> Result) throws -> Result {
        for _ in 0..<50 {
            do { return try body() } catch let error as SystemError where error.code == EADDRINUSE { usleep(20_000) }
        }
        return try body()
    }

    /// Starts and stops what differs, and leaves alone what does not.
    private func apply(_ fresh: ServiceConfiguration) {
        let warnings = (fresh.streams + fresh.directories.map(\.template)).map { $0.lagWarning.nanoseconds / 2_000_000 }
        lookMilliseconds = Int32(
            max(Self.lookMillisecondsMin, min(Self.lookMillisecondsMax, warnings.min() ?? Self.lookMillisecondsMax)))
        let outputs = (fresh.streams.map(\.target) + fresh.directories.map(\.template.target)).map(\.text).filter {
            $0.hasPrefix("/")
        }
        var kept: [DirectoryScanner] = []
        for specification in fresh.directories {
            if let old = scanners.first(where: { $0.specification == specification && $0.outputs == outputs }) {
                kept.append(old)
                continue
            }
            do {
                let scanner = try DirectoryScanner(specification, outputs: outputs) { [unowned self] in news() }
                try scanner.start()
                kept.append(scanner)
            } catch { log.write(.error, "\(specification.folder) cannot be looked through: \(error)", event: "scanner") }
        }
        for scanner in scanners where !kept.contains(where: { $0 === scanner }) { scanner.stop() }
        scanners = kept
        let current = shared.withLock { $0.streams }
        var wanted = fresh.streams.map { ($0, nil as String?) }
        // Files of folders stay until the scanner says otherwise.
        for stream in current where stream.folderBase != nil {
            if scanners.contains(where: { isFile(stream, of: $0.specification) }) {
                wanted.append((stream.specification, stream.folderBase))
            }
        }
        replace(current, by: wanted)
    }

    private func isFile(_ stream: ServiceStream, of directory: DirectorySpecification) -> Bool {
        let prefix = directory.name + "/"
        guard stream.specification.name.hasPrefix(prefix) else { return false }
        return directory.stream(for: String(stream.specification.name.dropFirst(prefix.count))) == stream.specification
    }

    private func replace(_ current: [ServiceStream], by wanted: [(StreamSpecification, String?)]) {
        var streams: [ServiceStream] = []
        let byName = Dictionary(current.map { ($0.specification.name, $0) }) { $1 }
        var ending: [ServiceStream] = []
        for (specification, base) in wanted {
            if let old = byName[specification.name], old.specification == specification {
                streams.append(old)
            } else {
                let old = byName[specification.name]
                if let old { ending.append(old) }
                if let fresh = make(specification, base, after: old) { streams.append(fresh) }
            }
        }
        let names = Set(streams.map(\.specification.name))
        ending += current.filter { !names.contains($0.specification.name) }
        for stream in ending {
            log.write(.info, "stopped: it is no longer configured like this", stream: stream.specification.name, event: "removed")
            stream.stop()
        }
        shared.withLock {
            $0.streams = streams
            $0.ending += ending
        }
    }

    /// - Parameter before: the stream that had the name: whoever was told of its failure is to hear of the recovery.
    private func make(_ specification: StreamSpecification, _ base: String?, after before: ServiceStream? = nil)
        -> ServiceStream?
    {
        do {
            let stream = try ServiceStream(
                specification, folderBase: base, log: log,
                onEvent: { [unowned self] stream, event in
                    shared.withLock { $0.events.append((stream, event)) }
                    news()
                }, onEnd: { [unowned self] in news() })
            let isFailureTold = before?.board.withLock { $0.isFailureTold } ?? false
            stream.board.withLock { $0.isFailureTold = isFailureTold }
            try stream.start()
            return stream
        } catch {
            log.write(.error, "cannot be started: \(error)", stream: specification.name, event: "failure")
            return nil
        }
    }

    /// Starts mirrors of files that have appeared, and lets go of those that have vanished; their copies stay.
    private func followFolders() {
        var errors: [String] = []
        for scanner in scanners {
            let (paths, found) = scanner.found
            errors += found.map { "[directory \(scanner.specification.name)] \($0)" }
            guard let paths else { continue }
            let directory = scanner.specification
            let current = shared.withLock { $0.streams }
            var seen: Set<ExactString> = []
            for stream in current where isFile(stream, of: directory) {
                let path = ExactString(String(stream.specification.name.dropFirst(directory.name.count + 1)))
                seen.insert(path)
                let phase = stream.board.withLock { $0.phase }
                if !paths.contains(path), phase != .vanished, !stream.board.withLock({ $0.wantsStop }) {
                    log.write(
                        .warning, "\(stream.specification.source) is gone; its copy is kept", stream: stream.specification.name,
                        event: "vanished")
                    stream.stop()
                } else if paths.contains(path), stream.board.withLock({ $0.isEnded }),
                    let fresh = make(stream.specification, stream.folderBase, after: stream)
                {
                    log.write(
                        .info, "\(stream.specification.source) is there again", stream: stream.specification.name, event: "found")
                    shared.withLock { shared in
                        if let index = shared.streams.firstIndex(where: { $0 === stream }) { shared.streams[index] = fresh }
                    }
                }
                stream.board.withLock { if $0.isEnded { $0.phase = .vanished } }
            }
            for path in paths.subtracting(seen).sorted().map(\.text) {
                let specification = directory.stream(for: path)
                log.write(.info, "found \(specification.source)", stream: specification.name, event: "found")
                let text = directory.template.target.text
                let base = StreamSpecification.isRemote(text) ? "" : text
                if let fresh = make(specification, base) { shared.withLock { $0.streams.append(fresh) } }
            }
        }
        let before = shared.withLock { shared in
            defer { shared.folderErrors = errors }
            return shared.folderErrors
        }
        for error in errors where !before.contains(error) { log.write(.error, error, event: "scanner") }
    }

    // MARK: Telling

    /// The state of all streams. Those that do not answer within a moment are looked at from outside.
    ///
    /// - Parameter asks: whether the streams are asked; else it is what they told last.
    func report(asks: Bool = true) -> ServiceReport {
        let (streams, folderErrors, configurationError) = shared.withLock { ($0.streams, $0.folderErrors, $0.configurationError) }
        if asks {
            for stream in streams { stream.ask() }
            wait(milliseconds: 300) { streams.allSatisfy { $0.board.withLock { $0.answered >= $0.asked || $0.isEnded } } }
            let now = SystemCalls.monotonicNanoseconds()
            let doubtful = streams.filter {
                $0.board.withLock { $0.lagSeconds(at: now) > 0 && $0.phase != .vanished && !$0.isProbing }
            }
            // More threads than this at a time would be a burden of their own; the rest is told without.
            let probed = doubtful.prefix(64)
            for stream in probed { probe(stream) }
            if !probed.isEmpty { wait(milliseconds: 300) { probed.allSatisfy { !$0.board.withLock { $0.isProbing } } } }
        }
        return ServiceReport(
            streams: streams.map { StreamFacts($0) }, folderErrors: folderErrors, configurationError: configurationError,
            upSeconds: Double(SystemCalls.monotonicNanoseconds() - started) / 1e9)
    }

    private func wait(milliseconds: Int, _ isDone: () -> Bool) {
        for _ in 0..<max(1, milliseconds / 5) {
            if isDone() { return }
            usleep(5000)
        }
    }

    private func probe(_ stream: ServiceStream) {
        stream.board.withLock { $0.isProbing = true }
        do {
            try BackgroundThread.start("probe") {
                let probe = StreamFacts.probe(stream.specification)
                stream.board.withLock {
                    $0.probe = probe
                    $0.isProbing = false
                }
            }
        } catch { stream.board.withLock { $0.isProbing = false } }
    }
}
