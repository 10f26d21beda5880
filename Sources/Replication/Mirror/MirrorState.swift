import Glibc
import SharedStore
import SystemCalls

/// What a replica knows of itself: the file `X.management/mirror.state` (mirroring.md 8.2).
///
/// Text, one `key value` a line; the first line names the form. It is replaced whole (temporary file, rename), after the version
/// it tells of was published, so it may lag behind the replica, never run ahead of it; only with an image it is written just
/// before the file gets its name, and then says which version that replaces. Its presence makes the file a replica.
public struct MirrorState: Equatable, Sendable {
    /// Which way of mirroring has made the replica; the raw value stands in the file.
    public enum Mode: String, Sendable { case once, follow }

    /// The source by its absolute path.
    public var source: String
    /// The source file itself: device and inode.
    public var sourceDevice: UInt64
    /// See `sourceDevice`.
    public var sourceInode: UInt64
    /// Random, new with every image.
    public var lineage: (UInt64, UInt64)
    /// Steps since the image, which is 0.
    public var sequence: UInt64
    /// The version of the replica, by its numbers.
    public var snapshot: Snapshot
    /// Chain hash of the last step: what tells versions with equal numbers apart.
    public var chain: Digest
    /// When the source was seen at this version: nanoseconds since 1970.
    public var time: UInt64
    /// Which way of mirroring was the last one at work.
    public var mode: Mode
    /// An image was about to take the place of this version of the replica: the file shows either, whatever came between.
    public var replaced: Snapshot?

    /// Whether this state tells of the version, so that nobody else has written it.
    func tells(of snapshot: Snapshot) -> Bool { self.snapshot == snapshot || replaced == snapshot }

    var line: MirrorLine {
        get { MirrorLine(lineage: lineage, sequence: sequence, chain: chain) }
        set { (lineage, sequence, chain) = (newValue.lineage, newValue.sequence, newValue.chain) }
    }

    static let magic = "realm-mirror 1"
    static let byteCountMax = 65_536

    /// The state just after an image: sequence 0, no chain, the time is now.
    public init(source: String, device: UInt64, inode: UInt64, lineage: (UInt64, UInt64), snapshot: Snapshot, mode: Mode) {
        self.source = source
        sourceDevice = device
        sourceInode = inode
        self.lineage = lineage
        sequence = 0
        self.snapshot = snapshot
        chain = Digest()
        time = UInt64(SystemCalls.realTimeNanoseconds())
        self.mode = mode
    }

    public static func == (a: MirrorState, b: MirrorState) -> Bool { a.text == b.text }

    /// A path with the end of a line in it has a key of its own, so that it cannot pass for other lines; `\\`, `\n` and `\r`
    /// stand for themselves and the ends of lines there.
    private var sourceLine: String {
        if !source.unicodeScalars.contains(where: { MirrorState.endsLine($0) }) { return "source \(source)" }
        var escaped = ""
        for scalar in source.unicodeScalars {
            switch scalar {
            case "\\": escaped += "\\\\"
            case "\n": escaped += "\\n"
            case "\r": escaped += "\\r"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return "source-escaped \(escaped)"
    }

    private static func endsLine(_ scalar: Unicode.Scalar) -> Bool { scalar == "\n" || scalar == "\r" }

    private static func unescaped(_ text: Substring) -> String {
        var out = "", isEscaped = false
        for scalar in text.unicodeScalars {
            if !isEscaped, scalar == "\\" {
                isEscaped = true
                continue
            }
            out.unicodeScalars.append(isEscaped && scalar == "n" ? "\n" : isEscaped && scalar == "r" ? "\r" : scalar)
            isEscaped = false
        }
        return out
    }

    var text: String {
        """
        \(MirrorState.magic)
        \(sourceLine)
        source-file \(sourceDevice) \(sourceInode)
        lineage \(lineage.0) \(lineage.1)
        sequence \(sequence)
        version \(snapshot.version) \(snapshot.topRef) \(snapshot.logicalSize)
        chain \(chain)
        time \(time)
        mode \(mode.rawValue)

        """ + (replaced.map { "replaces \($0.version) \($0.topRef) \($0.logicalSize)\n" } ?? "")
    }

    init(text: String, path: String) throws {
        var lines: [Substring: Substring] = [:]
        for line in text.split(separator: "\n").dropFirst() {
            let parts = line.split(separator: " ", maxSplits: 1)
            if parts.count == 2 { lines[parts[0]] = parts[1] }
        }
        func value(_ key: Substring) throws -> Substring {
            guard let value = lines[key] else {
                throw MirrorError.damagedState(path: path, reason: "the line '\(key)' is missing")
            }
            return value
        }
        func numbers(_ key: Substring, _ count: Int) throws -> [UInt64] {
            let found = try value(key).split(separator: " ").compactMap { UInt64($0) }
            if found.count != count {
                throw MirrorError.damagedState(path: path, reason: "the line '\(key)' has no \(count) numbers")
            }
            return found
        }
        guard text.hasPrefix(MirrorState.magic + "\n") else {
            throw MirrorError.damagedState(path: path, reason: "this is no state of a mirror, or one of a newer program")
        }
        source = try lines["source-escaped"].map { MirrorState.unescaped($0) } ?? String(try value("source"))
        let file = try numbers("source-file", 2), lineage = try numbers("lineage", 2), version = try numbers("version", 3)
        (sourceDevice, sourceInode) = (file[0], file[1])
        self.lineage = (lineage[0], lineage[1])
        sequence = try numbers("sequence", 1)[0]
        func snapshot(_ numbers: [UInt64]) throws -> Snapshot {
            guard numbers[1] < UInt64(Int.max), numbers[2] < UInt64(Int.max) else {
                throw MirrorError.damagedState(path: path, reason: "a size cannot be")
            }
            return Snapshot(version: numbers[0], topRef: Int(numbers[1]), logicalSize: Int(numbers[2]))
        }
        self.snapshot = try snapshot(version)
        replaced = lines["replaces"] == nil ? nil : try snapshot(numbers("replaces", 3))
        guard let chain = Digest(hexadecimal: String(try value("chain"))) else {
            throw MirrorError.damagedState(path: path, reason: "the line 'chain' has no 64 hex digits")
        }
        self.chain = chain
        time = try numbers("time", 1)[0]
        mode = Mode(rawValue: String(try value("mode"))) ?? .once
    }

    /// The state of the replica at `path`; nil where the file is none.
    public static func read(replica path: String) throws -> MirrorState? {
        let statePath = SessionPaths(path).mirrorState
        let descriptor: SystemCalls.Descriptor
        do { descriptor = try SideFile.open(statePath, O_RDONLY) } catch let error as SystemError
            where error.code == ENOENT || error.code == ENOTDIR
        { return nil }
        defer { SystemCalls.close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: byteCountMax)
        let count = try bytes.withUnsafeMutableBytes { try SystemCalls.read(descriptor, into: $0, at: 0, path: statePath) }
        return try MirrorState(text: String(decoding: bytes[..<count], as: UTF8.self), path: statePath)
    }

    /// Puts the state beside the replica at `path`.
    /// - Parameter durably: a power cut brings back this state or a later one.
    func write(replica path: String, durably: Bool) throws {
        let paths = SessionPaths(path)
        let temporary = paths.mirrorState + ".part"
        try MirrorState.makeManagementDirectory(paths)
        let descriptor = try SideFile.create(temporary)
        do {
            defer { SystemCalls.close(descriptor) }
            try Array(text.utf8).withUnsafeBytes { try SystemCalls.write(descriptor, $0, at: 0, path: temporary) }
            if durably { try SystemCalls.syncData(descriptor, path: temporary) }
        }
        try SystemCalls.rename(temporary, to: paths.mirrorState)
        if durably { try SystemCalls.syncDirectory(of: paths.mirrorState) }
    }

    /// - Returns: whether the folder was not there.
    @discardableResult
    static func makeManagementDirectory(_ paths: SessionPaths) throws -> Bool {
        do { try SystemCalls.makeDirectory(paths.management) } catch let error as SystemError {
            if error.code == ENOENT { throw OpenError.fileNotFound(path: SystemCalls.parentDirectory(of: paths.management)) }
            if error.code != EEXIST { throw error }
            // Whoever put a link here decides where we write.
            guard try SystemCalls.linkStatus(path: paths.management).isDirectory else {
                throw SessionError.sideFile(path: paths.management, reason: "is no directory; remove it")
            }
            return false
        }
        return true
    }
}
