import SharedStore
import SystemCalls

/// Where the versions of a source go: a replica on this machine, or one at the other end of a wire.
///
/// Errors of a wire are `WireError`s, and the sink can be connected again; what only a person can decide is a `MirrorError`.
protocol MirrorSink: AnyObject {
    /// For messages.
    var name: String { get }
    /// Whether there is a replica, as far as that is known without connecting.
    var hasReplica: Bool { get }
    /// The line of the replica, after `connect`, `confirm`, `replace` and `ship`.
    var line: MirrorLine? { get }
    /// Where the replica stands; nil where an image is needed anyway.
    func connect() throws -> ReplicaPosition?
    /// Whether the replica, which stands at this version by its numbers, has its bytes.
    func confirm(_ held: HeldSnapshot) throws -> Bool
    /// Replaces whatever there is by an image.
    /// - Returns: false where it was given up.
    func replace(with held: HeldSnapshot, source: SystemCalls.Status, pause: (Int32, Obstacle?) throws -> Bool) throws -> Bool
    /// Carries a step over. False where it was given up.
    func ship(_ step: MirrorStep, seen: UInt64, pause: (Int32, Obstacle?) throws -> Bool) throws -> Bool
    /// Something to wait for while there is nothing to ship: readable when the other side says something, or has gone.
    var descriptor: Int32? { get }
    /// Called now and then while there is nothing to ship.
    ///
    /// - Returns: false where the replica was removed or replaced.
    func look(newest: UInt64) throws -> Bool
    /// Milliseconds until `look` wants to be called at the latest.
    var lookInterval: Int32 { get }
    func disconnect()
    /// Asked during long waits; set by whoever uses the sink.
    var isStopped: () -> Bool { get set }
}

/// A replica on this machine; bytes go from the source's memory into its file.
final class LocalSink: MirrorSink {
    private let source: String
    private let writer: ReplicaWriter
    private let options: Mirror.Options
    var name: String { writer.path }
    var hasReplica: Bool { writer.hasReplica }
    var line: MirrorLine? { writer.state?.line }
    let descriptor: Int32? = nil
    let lookInterval: Int32 = 30_000
    var isStopped: () -> Bool = { false }

    init(source: String, destination: String, options: Mirror.Options) throws {
        self.source = source
        self.options = options
        writer = try ReplicaWriter(
            destination, source: FileIdentity.absolutePath(source), options: options, purpose: "mirror of \(source)")
    }

    func connect() throws -> ReplicaPosition? { try writer.connect() }

    func confirm(_ held: HeldSnapshot) throws -> Bool {
        guard let applier = writer.applier, try applier.holdsTheSame(as: held) else { return false }
        _ = writer.confirmed(at: held.snapshot)
        return true
    }

    func replace(with held: HeldSnapshot, source status: SystemCalls.Status, pause: (Int32, Obstacle?) throws -> Bool) throws
        -> Bool
    {
        let standing = try writer.prepareForImage()
        try writer.requireUnused(standing)
        let (_, fresh) = try Mirror.image(
            held.view, status: status, source: source, writer.path, standing, .follow, options, replacing: writer.replacedSnapshot
        )
        _ = try writer.installed(fresh)
        return true
    }

    func ship(_ step: MirrorStep, seen: UInt64, pause: (Int32, Obstacle?) throws -> Bool) throws -> Bool {
        try writer.apply(step, seen: seen, pause: pause)
    }

    func look(newest: UInt64) throws -> Bool { !writer.wasReplaced }

    func disconnect() { writer.disconnect() }
}
