import Glibc
import SharedStore
import SystemCalls

/// One conversation with a client that was let in: what `serve`, `receive` and `send` have in common.
struct WireService {
    /// Who may do what; nil where the file was named when the program was started.
    var rights: ServerRights?
    /// The folder that names are in; nil where `path` is the file.
    var root: String?
    var path: String?
    /// The key of files that are encrypted, and of replicas that are made.
    var key: EncryptionKey?
    /// Replicas may be plain though their sources are encrypted.
    var allowsPlain = false
    /// What may be asked for; nil for both.
    var direction: Frame.Direction?
    var mirror = Mirror.Options()
    /// So long a client may take for its first message.
    var helloMilliseconds = 10_000
    /// For a connection whose rule names no other.
    var bytesPerSecond: Int?

    /// Serves one client until it has gone or `control` says stop.
    ///
    /// - Parameters:
    ///   - client: who it is, as it has proved.
    ///   - onStart: told what the client wants, when it is allowed.
    /// - Throws: why it has ended, if not in good order. The client has been told.
    func serve(
        _ channel: FrameChannel, client: String, control: @escaping MirrorFollower.Control,
        onStart: (Frame.Hello, String) throws -> Void = { _, _ in }
    ) throws {
        do {
            channel.limit = Frame.helloByteCountMax
            let frame = try channel.next(milliseconds: helloMilliseconds)
            guard case .hello(let hello) = frame else { throw channel.unexpected(frame) }
            channel.limit = Frame.byteCountMax
            let path = try allowedPath(hello, client)
            try onStart(hello, path)
            let rate =
                rights?.bytesPerSecond(hello.direction == .push ? .push : .pull, client: client, name: hello.name)
                ?? bytesPerSecond
            channel.throttle = rate.map { Throttle(bytesPerSecond: $0) }
            switch hello.direction {
            case .push: try receive(channel, hello, path, client, control)
            case .pull: try send(channel, hello, path, client, control)
            }
        } catch {
            switch error {
            case WireError.closed: channel.close(politely: false)
            default: channel.refuse(WireCode(error), Self.reason(error))
            }
            throw error
        }
    }

    /// Without the name that this side has for itself.
    private static func reason(_ error: any Error) -> String {
        if case WireError.refused(_, _, let reason) = error { return reason }
        return "\(error)"
    }

    private func allowedPath(_ hello: Frame.Hello, _ client: String) throws -> String {
        func refusal(_ code: WireCode, _ reason: String) -> WireError { .refused(peer: client, code: code, reason: reason) }
        guard hello.version == Frame.version else {
            throw refusal(.version, "you speak version \(hello.version) of the protocol, we speak \(Frame.version)")
        }
        if let direction, direction != hello.direction {
            throw refusal(.notAllowed, direction == .push ? "files can only be brought here" : "files can only be fetched here")
        }
        if hello.direction == .push, hello.isEncrypted, key == nil, !allowsPlain {
            throw refusal(
                .wouldBePlain,
                "the source is encrypted and the replica here would not be; this side needs --key-file, or --allow-plain")
        }
        if let path { return path }
        guard let root, let rights else { throw refusal(.notAllowed, "nothing is served here") }
        guard rights.allows(hello.direction == .push ? .push : .pull, client: client, name: hello.name) else {
            throw refusal(.notAllowed, "\(client) may not \(hello.direction == .push ? "push" : "pull") '\(hello.name)'")
        }
        if hello.forces, !rights.allows(.force, client: client, name: hello.name) {
            throw refusal(.notAllowed, "\(client) may not replace '\(hello.name)' by force")
        }
        return try ServedName.path(hello.name, below: root, makesFolders: hello.direction == .push)
    }

    private func receive(
        _ channel: FrameChannel, _ hello: Frame.Hello, _ path: String, _ client: String,
        _ control: @escaping MirrorFollower.Control
    ) throws {
        var options = mirror
        options.force = hello.forces
        options.destinationKey = key
        let writer = try ReplicaWriter(
            path, source: client.isEmpty ? hello.source : "\(hello.source) by \(client)", options: options,
            purpose: "mirror of \(hello.source)\(client.isEmpty ? "" : " by \(client)")")
        try channel.send(.welcome(Frame.Welcome()))
        try ReplicaReceiver(channel, writer, control: control).run()
    }

    private func send(
        _ channel: FrameChannel, _ hello: Frame.Hello, _ path: String, _ client: String,
        _ control: @escaping MirrorFollower.Control
    ) throws {
        guard MirrorImage.exists(path) else {
            throw WireError.refused(
                peer: client, code: .notFound, reason: "there is no '\(hello.name.isEmpty ? path : hello.name)' here")
        }
        var options = mirror
        options.sourceKey = ServedName.isPlain(path) ? nil : key
        options.endsWhenEqual = hello.isOnce
        let final = options
        try channel.send(.welcome(Frame.Welcome(isEncrypted: final.sourceKey != nil)))
        let name = client.isEmpty ? hello.source : "\(hello.source) of \(client)"
        let follower = MirrorFollower(
            source: path, name: name, label: MirrorRun.label("mirror to", name), options: final, connectsOnce: true,
            sink: { RemoteSink(name: name, options: final, closesChannel: false) { channel } }, control: control)
        try follower.run()
        channel.close()
    }
}

/// Serving one file over the standard input and output of this process: what `ssh` starts at the other end.
public enum PipeService {
    /// What this process does with the file at its path: make it a replica, or send it as a source.
    public enum Direction: Sendable { case receive, send }

    /// - Parameter path: the replica to write, or the source to read.
    /// - Throws: why it has ended, if not in good order. The other side has been told.
    public static func run(
        _ direction: Direction, path: String, key: EncryptionKey?, allowsPlain: Bool, options: Mirror.Options,
        control: @escaping MirrorFollower.Control
    ) throws {
        signal(SIGPIPE, SIG_IGN)
        var service = WireService()
        service.path = path
        service.key = key
        service.allowsPlain = allowsPlain
        service.direction = direction == .receive ? .push : .pull
        service.mirror = options
        service.helloMilliseconds = 60_000
        let stream = try PipeStream(reading: STDIN_FILENO, writing: STDOUT_FILENO, peer: "the other side")
        try service.serve(FrameChannel(stream), client: "", control: control)
    }
}
