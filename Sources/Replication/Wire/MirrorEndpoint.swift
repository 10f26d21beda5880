import Glibc
import SharedStore
import SystemCalls

/// Where a source or a replica is.
public enum MirrorEndpoint: Equatable, Sendable, CustomStringConvertible {
    case file(String)
    /// A file that `realm-sync serve` serves: `realm://host:port/name`.
    case server(host: String, port: UInt16, name: String)
    /// A file of another machine, by a program that ssh starts there: `ssh://user@host:port/path`.
    case ssh(destination: String, port: UInt16?, path: String)

    /// Of servers whose address names none.
    public static let defaultPort: UInt16 = 7733

    /// On this machine.
    public var isLocal: Bool { if case .file = self { true } else { false } }
    /// Reached by ssh.
    public var isSSH: Bool { if case .ssh = self { true } else { false } }

    /// - Throws: `WireError.badConfiguration` for an address that cannot be.
    public init(_ text: String) throws {
        if text.hasPrefix("realm://") {
            let (authority, path) = try Self.split(text, "realm://")
            let (host, port) = try Self.hostAndPort(authority, text)
            if path.isEmpty { throw WireError.badConfiguration("\(text): the name of a file is missing: realm://host:port/name") }
            self = .server(host: host, port: port ?? Self.defaultPort, name: path)
        } else if text.hasPrefix("ssh://") {
            let (authority, path) = try Self.split(text, "ssh://")
            let at = authority.lastIndex(of: "@")
            let user = at.map { String(authority[...$0]) } ?? ""
            let (host, port) = try Self.hostAndPort(
                String(authority[(at.map { authority.index(after: $0) } ?? authority.startIndex)...]), text)
            if path.isEmpty { throw WireError.badConfiguration("\(text): the path of a file is missing: ssh://host/path") }
            // A destination that looks like an option would be one.
            if user.hasPrefix("-") || host.hasPrefix("-") {
                throw WireError.badConfiguration("\(text): a host cannot begin with a dash")
            }
            self = .ssh(destination: user + host, port: port, path: path.hasPrefix("~/") ? String(path.dropFirst(2)) : "/" + path)
        } else {
            self = .file(text)
        }
    }

    private static func split(_ text: String, _ scheme: String) throws -> (authority: String, path: String) {
        let rest = text.dropFirst(scheme.count)
        guard let slash = rest.firstIndex(of: "/") else { return (String(rest), "") }
        return (String(rest[..<slash]), String(rest[rest.index(after: slash)...]))
    }

    /// "host", "host:port", "[2001:db8::1]:port".
    static func hostAndPort(_ text: String, _ whole: String) throws -> (String, UInt16?) {
        var host = text[...], port: Substring?
        if text.hasPrefix("["), let end = text.firstIndex(of: "]") {
            host = text[text.index(after: text.startIndex)..<end]
            let rest = text[text.index(after: end)...]
            if !rest.isEmpty { port = rest.dropFirst() }
            if !rest.isEmpty && !rest.hasPrefix(":") {
                throw WireError.badConfiguration("\(whole): '\(rest)' behind the address")
            }
        } else if let colon = text.lastIndex(of: ":") {
            (host, port) = (text[..<colon], text[text.index(after: colon)...])
            if host.contains(":") { throw WireError.badConfiguration("\(whole): put an IPv6 address in brackets") }
        }
        var number: UInt16?
        if let port {
            number = UInt16(port)
            if number == nil { throw WireError.badConfiguration("\(whole): '\(port)' is no port") }
        }
        return (String(host), number)
    }

    public var description: String {
        switch self {
        case .file(let path): path
        case .server(let host, let port, let name): "realm://\(host.contains(":") ? "[\(host)]" : host):\(port)/\(name)"
        case .ssh(let destination, let port, let path):
            "ssh://\(destination)\(port.map { ":\($0)" } ?? "")/\(path.hasPrefix("/") ? String(path.dropFirst()) : "~/" + path)"
        }
    }
}

/// How the other side is reached.
public struct WireOptions: Sendable {
    /// Needed for a server; nil where ssh does the work.
    public var tls: TLSSettings?
    /// The program that connects to another machine, with its first arguments.
    public var sshProgram = ["ssh"]
    /// What this program is called on the other machine.
    public var remoteProgram = "realm-sync"
    /// For ssh: the file on the other machine that holds the key of what is read or written there; nil for none.
    public var remoteKeyFile: String?
    /// A replica may be plain though its source is encrypted.
    public internal(set) var allowsPlain = false
    /// So long a connection may take to be made, and its handshake again.
    public var connectMilliseconds: Int32 = 20_000
    /// So much a connection may carry; nil for any.
    public var bytesPerSecond: Int?
    /// Over ssh, with the program as it is found here and there.
    public init() {}

    /// Says whether a replica may be plain though its source is encrypted.
    ///
    /// - Parameters:
    ///   - isAllowed: for whichever machine the replica is at.
    ///   - plainDestination: the replica was asked for as a plain one. Of what is fetched that allows it: it is made here, for who has
    ///     asked. What another machine makes is the matter of its own keys.
    public mutating func allowPlain(_ isAllowed: Bool, from source: MirrorEndpoint, plainDestination: Bool) {
        allowsPlain = isAllowed || plainDestination && !source.isLocal
    }
}

/// Makes channels to the other side.
struct WireConnector {
    let endpoint: MirrorEndpoint
    let options: WireOptions
    private let context: TLSContext?

    init(_ endpoint: MirrorEndpoint, _ options: WireOptions) throws {
        self.endpoint = endpoint
        self.options = options
        guard case .server = endpoint else {
            context = nil
            return
        }
        guard let tls = options.tls else {
            throw WireError.badConfiguration(
                "\(endpoint): name a certificate with --cert, --key and --ca, or a shared secret with --psk-file")
        }
        context = try TLSContext(tls, isServer: false)
    }

    /// Connects, greets, and returns what the other side answered.
    func greet(_ hello: Frame.Hello, isStopped: @escaping () -> Bool) throws -> (FrameChannel, Frame.Welcome) {
        var hello = hello
        let stream: any ByteStream
        switch endpoint {
        case .file: preconditionFailure("a file is opened, not connected to")
        case .server(let host, let port, let name):
            hello.name = name
            stream = try connect(host, port, isStopped)
        case .ssh(let destination, let port, let path):
            hello.name = ""
            stream = try spawn(destination, port, path, hello.direction)
        }
        let channel = FrameChannel(stream)
        channel.isStopped = isStopped
        channel.throttle = options.bytesPerSecond.map { Throttle(bytesPerSecond: $0) }
        do {
            try channel.send(.hello(hello))
            let frame = try channel.next(milliseconds: 60_000)
            guard case .welcome(let welcome) = frame else { throw channel.unexpected(frame) }
            guard welcome.version == Frame.version else {
                throw WireError.refused(
                    peer: channel.peer, code: .version,
                    reason: "it speaks version \(welcome.version) of the protocol, we speak \(Frame.version)")
            }
            return (channel, welcome)
        } catch {
            channel.close(politely: false)
            throw error
        }
    }

    private func connect(_ host: String, _ port: UInt16, _ isStopped: () -> Bool) throws -> any ByteStream {
        guard let context else { throw WireError.badConfiguration("\(endpoint): nothing is set up for TLS") }
        let peer = host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
        let descriptor: Int32
        do {
            descriptor = try SystemCalls.connect(
                to: SystemCalls.addresses(host: host, port: port), milliseconds: options.connectMilliseconds, isStopped: isStopped
            )
        } catch let error as SystemError { throw WireError.unreachable(peer: peer, reason: error.reason) } catch let error
            as SystemCalls.NameError
        {
            throw WireError.unreachable(peer: peer, reason: error.reason)
        }
        let stream = try TLSStream(descriptor, context, host: host, peer: peer)
        do { try stream.shakeHands(milliseconds: Int(options.connectMilliseconds), isStopped: isStopped) } catch {
            stream.close(lingering: false)
            throw error
        }
        return stream
    }

    private func spawn(_ destination: String, _ port: UInt16?, _ path: String, _ direction: Frame.Direction) throws
        -> any ByteStream
    {
        var words = options.sshProgram
        if let port { words += ["-p", String(port)] }
        words += [destination, options.remoteProgram, direction == .push ? "receive" : "send"]
        if options.allowsPlain && direction == .push { words.append("--allow-plain") }
        // The words go through a shell at the other end.
        func quoted(_ text: String) -> String {
            "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
        }
        if let file = options.remoteKeyFile { words += ["--key-file", quoted(file)] }
        words += ["--", quoted(path)]
        return try SpawnedProgram.start(words, peer: destination)
    }
}

/// A program that is spoken to through its standard input and output.
enum SpawnedProgram {
    static func start(_ words: [String], peer: String) throws -> PipeStream {
        signal(SIGPIPE, SIG_IGN)
        guard let program = words.first else { throw WireError.badConfiguration("\(peer): no program to connect with") }
        do {
            let toChild = try SystemCalls.makePipe(), fromChild = try SystemCalls.makePipe()
            defer {
                SystemCalls.close(toChild.reading)
                SystemCalls.close(fromChild.writing)
            }
            for descriptor in [toChild.reading, toChild.writing, fromChild.reading, fromChild.writing] {
                try SystemCalls.setCloseOnExec(descriptor)
            }
            var actions = posix_spawn_file_actions_t()
            posix_spawn_file_actions_init(&actions)
            defer { posix_spawn_file_actions_destroy(&actions) }
            posix_spawn_file_actions_adddup2(&actions, toChild.reading, 0)
            posix_spawn_file_actions_adddup2(&actions, fromChild.writing, 1)
            var attributes = posix_spawnattr_t()
            posix_spawnattr_init(&attributes)
            defer { posix_spawnattr_destroy(&attributes) }
            // The program gets the signals' usual meanings, and none of those that the terminal sends to us: we tell it by its
            // input.
            var pipes = sigset_t(), nothing = sigset_t()
            sigemptyset(&nothing)
            sigemptyset(&pipes)
            sigaddset(&pipes, SIGPIPE)
            posix_spawnattr_setsigdefault(&attributes, &pipes)
            posix_spawnattr_setsigmask(&attributes, &nothing)
            posix_spawnattr_setpgroup(&attributes, 0)
            posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP))
            var arguments = words.map { strdup($0) } + [nil]
            defer { arguments.forEach { free($0) } }
            var process: pid_t = 0
            let code = posix_spawnp(&process, program, &actions, &attributes, &arguments, environ)
            if code != 0 {
                SystemCalls.close(toChild.writing)
                SystemCalls.close(fromChild.reading)
                throw WireError.unreachable(peer: peer, reason: "\(program): \(String(cString: strerror(code)))")
            }
            let child = process
            return try PipeStream(reading: fromChild.reading, writing: toChild.writing, peer: peer) { reap(child) }
        } catch let error as SystemError { throw WireError.unreachable(peer: peer, reason: "\(error)") }
    }

    /// Its input has ended, so the program ends; it is helped along where it does not.
    private static func reap(_ process: pid_t) {
        var status: Int32 = 0
        for round in 0..<300 {
            if waitpid(process, &status, WNOHANG) != 0 { return }
            if round == 200 { kill(process, SIGTERM) }
            usleep(10_000)
        }
        kill(process, SIGKILL)
        waitpid(process, &status, 0)
    }
}
