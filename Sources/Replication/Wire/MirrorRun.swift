import Glibc
import SharedStore
import SystemCalls

/// A mirror between any two places, of which one at least is on this machine.
public enum MirrorRun {
    /// Mirrors until a request says stop, or, with `Mirror.Options.endsWhenEqual`, until the replica is equal to the source.
    ///
    /// - Throws: `MirrorError` and `WireError` where a person must decide, and what cannot be helped by waiting.
    public static func run(
        from source: MirrorEndpoint, to destination: MirrorEndpoint, options: Mirror.Options, wire: WireOptions = WireOptions(),
        onStatus: @escaping (MirrorFollower.Status) -> Void = { _ in }, control: @escaping MirrorFollower.Control
    ) throws {
        switch (source, destination) {
        case (.file(let from), .file(let to)):
            try MirrorFollower(source: from, destination: to, options: options, onStatus: onStatus, control: control).run()
        case (.file(let from), _):
            let connector = try WireConnector(destination, wire)
            let hello = Frame.Hello(
                direction: .push, forces: options.force, isEncrypted: options.sourceKey != nil, name: "",
                source: Self.plainText("\(MirrorLock.hostName):\(FileIdentity.absolutePath(from))"))
            let name = "\(destination)"
            try MirrorFollower(
                source: from, name: name, label: label("mirror to", name), options: options,
                sink: {
                    let stop = StopFlag()
                    return RemoteSink(name: name, options: options, stop: stop) {
                        try connector.greet(hello) { stop.isStopped() }.0
                    }
                }, onStatus: onStatus, control: control
            ).run()
        case (_, .file(let to)):
            try PullMirror(try WireConnector(source, wire), to, options, onStatus: onStatus, control: control).run()
        default: throw WireError.badConfiguration("one of the two files must be on this machine")
        }
    }

    static func label(_ what: String, _ name: String) -> String {
        "\(what) \(String(Array(name.utf8).withUnsafeBytes { Checksum.xxh3($0) }, radix: 16))"
    }

    /// Without what a message cannot carry.
    static func plainText(_ text: String) -> String {
        let scalars =
            text.unicodeScalars.map { $0.value < 0x20 || (0x7F...0x9F).contains($0.value) ? "?" : $0 } as [Unicode.Scalar]
        return String(decoding: String(String.UnicodeScalarView(scalars)).utf8.prefix(Frame.textByteCountMax - 4), as: UTF8.self)
    }
}

/// Asks a sink, which does not exist yet when its connector is made, whether to stop.
final class StopFlag {
    var isStopped: () -> Bool = { false }
}

/// A replica on this machine of a source at the other end of a wire: connects again whenever the connection breaks.
final class PullMirror {
    private let connector: WireConnector
    private let destination: String
    private let options: Mirror.Options
    private let onStatus: (MirrorFollower.Status) -> Void
    private let control: MirrorFollower.Control
    private var receiver: ReplicaReceiver?
    private var stopped = false
    private var attempts: Attempts
    private var wasConnected = false
    private var stepCount = 0, byteCount = 0, imageCount = 0
    private var version: UInt64 = 0
    private var waitsFor: String?
    private var provenAt: Int64?

    init(
        _ connector: WireConnector, _ destination: String, _ options: Mirror.Options,
        onStatus: @escaping (MirrorFollower.Status) -> Void,
        control: @escaping MirrorFollower.Control
    ) {
        self.connector = connector
        self.destination = destination
        self.options = options
        attempts = Attempts(limit: options.attemptsMax)
        self.onStatus = onStatus
        self.control = control
    }

    func run() throws {
        let writer = try ReplicaWriter(destination, source: "\(connector.endpoint)", options: options)
        var pause = Pause()
        while !stopped {
            let before = stepCount + imageCount, begin = SystemCalls.monotonicNanoseconds()
            do {
                if try receive(writer) { return }
                pause = Pause()
            } catch let error where isTransient(error) {
                // A way that has carried something, or has stood for some time, is tried again at once: only what fails in a row
                // waits ever longer.
                if stepCount + imageCount > before || SystemCalls.monotonicNanoseconds() - begin > Self.steadyNanoseconds {
                    pause = Pause()
                }
                let text = "\(error)"
                if waitsFor != text { options.onMessage(text) }
                waitsFor = text
                obey(control([], pause.next()))
            }
        }
    }

    private static let steadyNanoseconds: Int64 = 10_000_000_000

    /// One connection. True where the work is done.
    private func receive(_ writer: ReplicaWriter) throws -> Bool {
        let hello = Frame.Hello(
            direction: .pull, forces: false, isOnce: options.endsWhenEqual, name: "",
            source: MirrorRun.plainText("\(MirrorLock.hostName):\(FileIdentity.absolutePath(destination))"))
        let (channel, welcome) = try connector.greet(hello) { [unowned self] in
            obey(control([], 0))
            return stopped
        }
        if welcome.isEncrypted && options.destinationKey == nil && !connector.options.allowsPlain {
            channel.close()
            throw WireError.refused(
                peer: channel.peer, code: .wouldBePlain,
                reason:
                    "the source is encrypted and \(destination) would not be; name a key for it with --dest-key-file, or let it be plain with --dest-plain"
            )
        }
        wasConnected = true
        attempts.succeeded()
        waitsFor = nil
        let receiver = ReplicaReceiver(channel, writer, onStatus: { [unowned self] in onStatus(status()) }, control: control)
        self.receiver = receiver
        defer {
            stepCount += receiver.stepCount
            byteCount += receiver.byteCount
            imageCount += receiver.imageCount
            version = max(receiver.version, version)
            provenAt = receiver.provenAt ?? provenAt
            self.receiver = nil
        }
        do { try receiver.run() } catch {
            if options.endsWhenEqual && channel.saidFarewell { return true }
            throw error
        }
        if !receiver.isReloading { stopped = true }
        return false
    }

    private func isTransient(_ error: any Error) -> Bool {
        if stopped { return false }
        switch error {
        case let error as WireError: return (error.isTransient || wasConnected && error.isOfTrust) && attempts.mayTryAgain()
        case let error as SystemError: return error.isOutOfSpace
        case SessionError.deadlineExceeded, SessionError.incompatibleSession, MirrorError.inUse: return true
        case is SegmentError, is CompressionError: return true
        default: return false
        }
    }

    private func obey(_ request: MirrorFollower.Request?) {
        switch request {
        case .stop: stopped = true
        case .status: onStatus(status())
        case .reload, nil: break
        }
    }

    private func status() -> MirrorFollower.Status {
        let present = receiver?.version ?? version
        let source = receiver?.sourceVersion
        return MirrorFollower.Status(
            source: "\(connector.endpoint)", destination: destination, sourceVersion: source, version: present,
            stepCount: stepCount + (receiver?.stepCount ?? 0), byteCount: byteCount + (receiver?.byteCount ?? 0),
            imageCount: imageCount + (receiver?.imageCount ?? 0), waitsFor: receiver?.waitsFor ?? waitsFor,
            secondsBehind: source == present
                ? 0 : (receiver?.provenAt ?? provenAt).map { Double(SystemCalls.monotonicNanoseconds() - $0) / 1e9 })
    }
}
