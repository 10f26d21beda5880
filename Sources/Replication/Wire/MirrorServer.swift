import Glibc
import SharedStore
import Synchronization
import SystemCalls

/// Serves the files below a folder to clients that prove who they are: takes replicas in, and gives sources out.
///
/// A thread for each client. Limits: clients that have not proved who they are may be so many at once, and so long; where one
/// more comes, the one that has waited longest goes, so that whoever fills the places keeps nobody out who is honest and quick.
/// Of the others there may be `connectionsMax`.
public final class MirrorServer: Sendable {
    /// What the server serves, to whom, and how much of it.
    public struct Options: Sendable {
        /// Host and port to listen at, "host:port", "[::]:port", ":port" for all addresses of the machine; port 0 for a free one.
        public var address = ":\(MirrorEndpoint.defaultPort)"
        /// The names that clients ask for are paths below this folder; one that leads through a symbolic link is refused.
        public var root: String
        /// Who this server is, and whom it takes for a client.
        public var tls: TLSSettings
        /// A file of `ServerRights`; nil for every client and every name.
        public var rightsFile: String?
        /// The key of all encrypted files below the root; nil for plain ones.
        public var key: EncryptionKey?
        /// A client's encrypted source may become a plain replica here.
        public var allowsPlain = false
        /// Connections at once, those of clients that have not yet proved who they are included.
        public var connectionsMax = 4096
        /// Clients at once that have not yet proved who they are.
        public var strangersMax = 64
        /// So long a client may take to prove who it is, and again to say what it wants.
        public var handshakeMilliseconds = 10_000
        /// So long clients may take to end when the server stops.
        public var graceMilliseconds = 10_000
        /// For the mirrors that clients ask for; keys in it are not used.
        public var mirror = Mirror.Options()
        /// So much each connection may carry, unless its rule says another rate; nil for any.
        public var bytesPerSecond: Int?
        /// Told of clients that come, go and are refused.
        public var onMessage: @Sendable (String) -> Void = { _ in }

        /// - Parameters:
        ///   - root: must be there when the server starts.
        ///   - tls: a certificate or a file of shared secrets, or both.
        public init(root: String, tls: TLSSettings) {
            self.root = root
            self.tls = tls
        }
    }

    private struct Connection {
        var descriptor: Int32
        var since: Int64
        /// Nil as long as it is a stranger.
        var client: String?
        /// Of a push.
        var path: String?
        /// What it does, once it is allowed to.
        var task: (right: ServerRights.Right, name: String)?
        var certificate: PeerCertificate?
        var secret: String?
        /// It was told to go, and will.
        var isEnding = false
        var isStranger: Bool { client == nil && !isEnding }
    }

    private struct State {
        var next = 0
        var connections: [Int: Connection] = [:]
        var rights: ServerRights
        /// For connections from now on.
        var context: TLSContext
    }

    private let options: Options
    private let root: String
    private let listeners: [Int32]
    private let stopEvent: Int32
    private let state: Mutex<State>
    /// Where it listens, with the ports that it has got.
    public let addresses: [String]

    /// Reads certificates and rights, and listens.
    ///
    /// - Throws: `WireError.badConfiguration`, `SystemError`.
    public init(_ options: Options) throws {
        self.options = options
        let context = try TLSContext(options.tls, isServer: true)
        guard let resolved = realpath(options.root, nil) else {
            throw WireError.badConfiguration("\(options.root): \(String(cString: strerror(errno)))")
        }
        root = String(cString: resolved)
        free(resolved)
        guard (try? SystemCalls.status(path: root))?.isDirectory == true else {
            throw WireError.badConfiguration("\(options.root): is no folder")
        }
        state = Mutex(State(rights: try options.rightsFile.map(ServerRights.read) ?? .all, context: context))
        let (host, port) = try MirrorEndpoint.hostAndPort(options.address, options.address)
        var open: [Int32] = []
        do {
            for address in try SystemCalls.addresses(host: host, port: port ?? MirrorEndpoint.defaultPort, forListening: true) {
                do { open.append(try SystemCalls.listen(at: address)) } catch let error as SystemError {
                    // A machine without IPv6 still has the other one.
                    guard [EAFNOSUPPORT, EADDRNOTAVAIL].contains(error.code) else { throw error }
                }
            }
            if open.isEmpty { throw WireError.badConfiguration("\(options.address): there is nothing to listen at") }
            stopEvent = try SystemCalls.makeEventDescriptor()
        } catch {
            open.forEach { SystemCalls.close($0) }
            if let error = error as? SystemCalls.NameError {
                throw WireError.badConfiguration("\(options.address): \(error.reason)")
            }
            throw error
        }
        listeners = open
        addresses = open.map { SystemCalls.localAddress($0) }
    }

    deinit {
        listeners.forEach { SystemCalls.close($0) }
        SystemCalls.close(stopEvent)
    }

    /// Clients at the moment, and how many of them have not proved who they are.
    public var clientCount: (all: Int, strangers: Int) {
        state.withLock { ($0.connections.count, $0.connections.values.count { $0.isStranger }) }
    }

    /// Serves until a request says stop; `reload` reads rights, certificates, secrets and revocations again.
    ///
    /// - Parameter onStatus: called for `Request.status`.
    public func run(onStatus: (String) -> Void = { _ in }, control: MirrorFollower.Control) throws {
        defer { end() }
        while true {
            switch control(listeners, 60_000) {
            case .stop: return
            case .reload: reload()
            case .status:
                let count = clientCount
                onStatus(
                    "serving \(root) at \(addresses.joined(separator: ", ")): \(count.all) clients, \(count.strangers) of them not known yet"
                )
            case nil: break
            }
            for listener in listeners {
                do { while let accepted = try SystemCalls.accept(listener) { take(accepted.descriptor, accepted.peer) } } catch {
                    // No descriptors left: some come back when clients go.
                    options.onMessage("a client cannot be taken: \(error)")
                    usleep(100_000)
                }
            }
        }
    }

    /// Reads all files anew, and ends the connections of those who would not be let in any more. With an error in one of them all
    /// stays as it was.
    private func reload() {
        do {
            let rights = try options.rightsFile.map(ServerRights.read) ?? .all
            let context = try TLSContext(options.tls, isServer: true)
            let ended = state.withLock { state in
                (state.rights, state.context) = (rights, context)
                let outcasts = state.connections.filter { !Self.isWelcome($0.value, rights, context) }
                for connection in outcasts.values { SystemCalls.shutDown(connection.descriptor) }
                return outcasts.values.compactMap(\.client)
            }
            options.onMessage("certificates and rights were read again")
            context.revocations?.warnings.forEach { options.onMessage($0) }
            if !ended.isEmpty {
                options.onMessage("cut off, not being let in any more: \(Set(ended).sorted().joined(separator: ", "))")
            }
        } catch { options.onMessage("certificates and rights stay as they were: \(error)") }
    }

    /// Whether who was let in once would be let in now.
    private static func isWelcome(_ connection: Connection, _ rights: ServerRights, _ context: TLSContext) -> Bool {
        guard let client = connection.client else { return true }
        if let certificate = connection.certificate, context.revocations?.revokes(certificate) == true { return false }
        if let secret = connection.secret, !context.secrets.contains(where: { $0.name == secret }) { return false }
        guard let task = connection.task else { return true }
        return rights.allows(task.right, client: client, name: task.name)
    }

    private func end() {
        SystemCalls.signal(stopEvent)
        let limit = SystemCalls.monotonicNanoseconds() + Int64(options.graceMilliseconds) * 1_000_000
        while clientCount.all > 0 {
            if SystemCalls.monotonicNanoseconds() > limit {
                state.withLock { for connection in $0.connections.values { SystemCalls.shutDown(connection.descriptor) } }
            }
            usleep(5000)
        }
    }

    // MARK: One client

    private func take(_ descriptor: Int32, _ peer: String) {
        let number: Int? = state.withLock { state in
            if state.connections.count >= options.connectionsMax { return nil }
            let strangers = state.connections.filter { $0.value.isStranger }
            if strangers.count >= options.strangersMax, let oldest = strangers.min(by: { $0.value.since < $1.value.since }) {
                state.connections[oldest.key]?.isEnding = true
                SystemCalls.shutDown(oldest.value.descriptor)
            }
            state.next += 1
            state.connections[state.next] = Connection(descriptor: descriptor, since: SystemCalls.monotonicNanoseconds())
            return state.next
        }
        guard let number else {
            options.onMessage("\(peer): refused, there are \(options.connectionsMax) clients already")
            SystemCalls.close(descriptor)
            return
        }
        do { try BackgroundThread.start("realm-client") { self.serve(number, descriptor, peer) } } catch {
            options.onMessage("\(peer): refused: \(error)")
            forget(number)
            SystemCalls.close(descriptor)
        }
    }

    private func forget(_ number: Int) { state.withLock { _ = $0.connections.removeValue(forKey: number) } }

    private func serve(_ number: Int, _ descriptor: Int32, _ peer: String) {
        var name = peer
        do {
            let stream = try TLSStream(descriptor, state.withLock { $0.context }, host: nil, peer: peer)
            // Before the descriptor is closed and its number is somebody else's.
            stream.onClose = { self.forget(number) }
            defer { stream.close(lingering: false) }
            let client: String
            do { client = try stream.shakeHands(milliseconds: options.handshakeMilliseconds) { self.isStopping } } catch {
                // The alert says why; it must not be lost.
                stream.close(lingering: true)
                throw error
            }
            name = stream.peer
            let rights = state.withLock { state in
                state.connections[number]?.client = client
                state.connections[number]?.certificate = stream.certificate
                state.connections[number]?.secret = stream.offeredSecret
                return state.rights
            }
            if stream.isRevoked {
                FrameChannel(stream).refuse(.notAllowed, "your certificate was revoked")
                throw WireError.notTrusted(peer: name, reason: "its certificate was revoked")
            }
            var service = WireService()
            (service.rights, service.root, service.key, service.allowsPlain) = (rights, root, options.key, options.allowsPlain)
            service.mirror = options.mirror
            let started = name
            service.mirror.onMessage = { [options] in options.onMessage("\(started): \($0)") }
            service.helloMilliseconds = options.handshakeMilliseconds
            service.bytesPerSecond = options.bytesPerSecond
            try service.serve(FrameChannel(stream), client: client, control: { self.control($0, $1) }) { hello, path in
                let right: ServerRights.Right = hello.direction == .push ? .push : .pull
                options.onMessage("\(started): \(right) of \(path)")
                let isWelcome = state.withLock { state in
                    state.connections[number]?.task = (right, hello.name)
                    // The rules may have changed since it was let in.
                    return state.connections[number].map { Self.isWelcome($0, state.rights, state.context) } ?? false
                }
                if !isWelcome {
                    throw WireError.refused(peer: started, code: .notAllowed, reason: "\(client) is not let in any more")
                }
                if right == .push { replaceOlder(number, client, path) }
            }
            options.onMessage("\(name): gone")
        } catch {
            forget(number)
            options.onMessage("\(error)".hasPrefix(name) ? "\(error)" : "\(name): \(error)")
        }
    }

    /// A client that comes again has lost its connection, whether we have noticed or not.
    private func replaceOlder(_ number: Int, _ client: String, _ path: String) {
        let isOlder = { (entry: (key: Int, value: Connection)) in
            entry.key != number && entry.value.client == client && entry.value.path == path
        }
        let hadOlder = state.withLock { state in
            state.connections[number]?.path = path
            let older = state.connections.filter(isOlder)
            for connection in older.values { SystemCalls.shutDown(connection.descriptor) }
            return !older.isEmpty
        }
        if !hadOlder { return }
        for _ in 0..<500 where state.withLock({ $0.connections.contains(where: isOlder) }) { usleep(10_000) }
    }

    private var isStopping: Bool { Waiting.poll(stopEvent, POLLIN, milliseconds: 0) }

    private func control(_ descriptors: [Int32], _ milliseconds: Int32) -> MirrorFollower.Request? {
        var requests = ([stopEvent] + descriptors).map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        _ = poll(&requests, nfds_t(requests.count), milliseconds)
        return requests[0].revents != 0 ? .stop : nil
    }
}
