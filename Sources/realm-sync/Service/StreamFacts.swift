import Replication
import SharedStore
import SystemCalls

/// What status, metrics and health tell of one stream.
struct StreamFacts: Sendable {
    /// As monitoring wants it, worst last.
    enum Verdict: Int, Sendable, Comparable {
        case fine, behind, failed
        static func < (a: Verdict, b: Verdict) -> Bool { a.rawValue < b.rawValue }
        var text: String {
            switch self {
            case .fine: "fine"
            case .behind: "behind"
            case .failed: "failed"
            }
        }
    }

    var name: String
    var kind: String
    var source: String
    var target: String
    var state: String
    var verdict: Verdict
    var version: UInt64?
    var sourceVersion: UInt64?
    var lagVersions: UInt64?
    var lagBytes: Int?
    var lagSeconds: Double
    var progress: Mirror.Progress?
    var stepCount: Int, byteCount: Int, imageCount: Int
    var writeAmplification: Double?
    var waitsFor: String?
    var lastError: String?
    var lastErrorTime: Int64?
    var lastSuccessTime: Int64?
    var failureCount: Int
    /// Seconds until the next try.
    var nextTry: Double?
    var isAnswering: Bool

    init(_ stream: ServiceStream) {
        let now = SystemCalls.monotonicNanoseconds()
        let board = stream.board.withLock { $0 }
        let specification = stream.specification
        name = specification.name
        source = specification.source
        target = specification.target.text
        if case .archive = specification.target { kind = "archive" } else { kind = "mirror" }
        state = board.phase.rawValue
        version = board.version
        sourceVersion = [board.sourceVersion, board.probe?.sourceVersion].compactMap { $0 }.max()
        lagVersions = board.lagVersions
        lagSeconds = board.lagSeconds(at: now)
        lagBytes = lagSeconds == 0 ? 0 : board.probe?.behindByteCount ?? board.progress.map { $0.bytesTotal - $0.bytesDone }
        progress = board.phase == .copying ? board.progress : nil
        (stepCount, byteCount, imageCount) = board.totals
        writeAmplification = board.writeAmplification
        waitsFor = board.waitsFor
        lastError = board.lastError
        lastErrorTime = board.lastErrorTime
        lastSuccessTime = board.lastSuccessTime
        failureCount = board.failureCount
        nextTry = board.nextTry.map { Double(max(0, $0 - now)) / 1e9 }
        isAnswering = board.answered >= board.asked
        switch board.phase {
        case .failed: verdict = .failed
        case .vanished, .left: verdict = .fine
        case .starting where board.failuresInRow > 0: verdict = .failed
        default: verdict = lagSeconds > Double(specification.lagWarning.nanoseconds) / 1e9 ? .behind : .fine
        }
    }

    var json: JSONText {
        .object([
            ("name", .string(name)), ("kind", .string(kind)), ("source", .string(source)), ("target", .string(target)),
            ("state", .string(state)), ("verdict", .string(verdict.text)),
            ("version", JSONText(version)), ("sourceVersion", JSONText(sourceVersion)),
            ("lagVersions", JSONText(lagVersions)), ("lagBytes", JSONText(lagBytes)), ("lagSeconds", .number(lagSeconds)),
            (
                "progress",
                progress.map { .object([("bytesDone", .integer($0.bytesDone)), ("bytesTotal", .integer($0.bytesTotal))]) }
                    ?? .null
            ),
            ("steps", .integer(stepCount)), ("bytes", .integer(byteCount)), ("images", .integer(imageCount)),
            ("writeAmplification", writeAmplification.map { .number($0) } ?? .null),
            ("waitsFor", JSONText(waitsFor)), ("lastError", JSONText(lastError)), ("lastErrorTime", Self.time(lastErrorTime)),
            ("lastSuccessTime", Self.time(lastSuccessTime)), ("failures", .integer(failureCount)),
            ("nextTrySeconds", nextTry.map { .number($0) } ?? .null), ("answering", .bool(isAnswering)),
        ])
    }

    private static func time(_ nanoseconds: Int64?) -> JSONText {
        JSONText(nanoseconds.map { Units.text(nanosecondsSince1970: $0) })
    }

    /// A look from outside at a stream that does not answer or is behind: the source's version, and how many bytes differ.
    ///
    /// May block as long as a broken file system likes; called on a thread of its own.
    static func probe(_ specification: StreamSpecification) -> StreamBoard.Probe {
        var probe = StreamBoard.Probe()
        guard let source = specification.localSource else { return probe }
        probe.sourceVersion = newestVersion(inLockFileOf: source)
        // What goes wrong here is told by the stream itself.
        if let newer = try? Self.version(of: source, specification.key.read()) { probe.take(newer, specification) }
        return probe
    }

    fileprivate static func version(of path: String, _ key: EncryptionKey?) throws -> (file: ImmutableFile, snapshot: Snapshot) {
        let file = try ImmutableFile(path: path, key: key)
        return (file, Snapshot(version: try file.group.version(), topRef: file.layout.topRef, logicalSize: file.layout.fileLimit))
    }

    /// The newest version that the session of a file tells of (coordination.md 2.1); nil where there is no session.
    static func newestVersion(inLockFileOf path: String) -> UInt64? {
        var words: (UInt64, UInt64, UInt64) = (0, 0, 0)
        guard let descriptor = try? SideFile.open(path + ".lock", 0) else { return nil }
        defer { SystemCalls.close(descriptor) }
        let count = try? withUnsafeMutableBytes(of: &words) { try SystemCalls.read(descriptor, into: $0, at: 0, path: path) }
        return count == 24 && words.0 & 0xFF == 1 && words.2 > 0 ? words.2 : nil
    }
}

private extension StreamBoard.Probe {
    mutating func take(_ newer: (file: ImmutableFile, snapshot: Snapshot), _ specification: StreamSpecification) {
        sourceVersion = max(sourceVersion ?? 0, newer.snapshot.version)
        guard let replica = specification.localReplica else { return }
        let destinationKey =
            try? specification.isDestinationPlain ? nil : specification.destinationKey.read() ?? specification.key.read()
        guard let older = try? StreamFacts.version(of: replica, destinationKey ?? nil),
            older.snapshot.version <= newer.snapshot.version,
            let from = try? FreeExtents(memory: older.file.memory, snapshot: older.snapshot),
            let to = try? FreeExtents(memory: newer.file.memory, snapshot: newer.snapshot)
        else { return }
        behindByteCount = from.difference(to: to).reduce(0) { $0 + $1.count }
    }
}
