import SharedStore

/// One version in an archive.
public struct ArchiveEntry: Equatable, Sendable {
    /// How the version follows from the one before; the raw value stands in the index.
    public enum Kind: String, Sendable {
        /// Follows from the version before by its free lists.
        case step = "s"
        /// Follows from the version before by comparison of content: versions in between were missed.
        case content = "c"
        /// Begins anew: nothing leads here from the version before.
        case start = "i"
    }

    /// Number in the archive.
    public var sequence: UInt64
    /// The version in its source.
    public var snapshot: Snapshot
    /// When the source was seen at this version: nanoseconds since 1970.
    public var time: UInt64
    /// What it takes to make it of the version before.
    public var kind: Kind
    /// Bytes that it has more than the one before; of a start, all that it has.
    public var plainByteCount: Int
    /// Bytes that the archive stored for it.
    public var storedByteCount: Int
    /// What led here, as a hash: identifies the version, which its number alone does not.
    public var chain: Digest

    /// No step is so long; sums of many stay numbers.
    static let byteCountMax = 1 << 44

    var line: String {
        "\(sequence) \(snapshot.version) \(snapshot.topRef) \(snapshot.logicalSize) \(time) \(kind.rawValue) \(plainByteCount) \(storedByteCount) \(chain)"
    }

    init(sequence: UInt64, snapshot: Snapshot, time: UInt64, kind: Kind, plainByteCount: Int, storedByteCount: Int, chain: Digest)
    {
        self.sequence = sequence
        self.snapshot = snapshot
        self.time = time
        self.kind = kind
        self.plainByteCount = plainByteCount
        self.storedByteCount = storedByteCount
        self.chain = chain
    }

    init?(line: Substring) {
        let parts = line.split(separator: " ")
        guard parts.count == 9, let sequence = UInt64(parts[0]), let version = UInt64(parts[1]), let top = Int(parts[2]),
            let size = Int(parts[3]),
            let time = UInt64(parts[4]), let kind = Kind(rawValue: String(parts[5])), let plain = Int(parts[6]),
            let stored = Int(parts[7]),
            let chain = Digest(hexadecimal: String(parts[8])), sequence < 1 << 60, top >= 0, size >= 0,
            (0..<Self.byteCountMax).contains(plain), (0..<Self.byteCountMax).contains(stored)
        else { return nil }
        self.init(
            sequence: sequence, snapshot: Snapshot(version: version, topRef: top, logicalSize: size), time: time, kind: kind,
            plainByteCount: plain,
            storedByteCount: stored, chain: chain)
    }
}

/// What must be known of an archive before anything else can be found: the object `realm-archive`, text, replaced whole.
///
/// It is written when an image was, and every 16 versions; what came since is found by name. It never tells of anything that is
/// not there, and never says that something may be removed which is still needed.
struct ArchiveManifest: Equatable {
    struct Image: Equatable {
        var sequence: UInt64
        var version: UInt64
        var time: UInt64
        var plainByteCount: Int
        var storedByteCount: Int
        /// Versions that were archived before it.
        var ordinal: Int
    }

    struct Leaving: Equatable {
        var sequence: UInt64
        /// Nanoseconds since 1970.
        var since: UInt64
    }

    static let magic = "realm-archive 1"
    static let byteCountMax = 64 << 20

    /// Random, for ever.
    var identifier: String
    /// The path that is archived, for people and to notice mix-ups.
    var source: String
    /// `ArchiveCipher.check`, or nil where the archive is not encrypted.
    var keyCheck: String?
    /// The first image that is not given up: what needs earlier ones cannot be restored.
    var oldest: UInt64 = 0
    /// All before this was removed.
    var removed: UInt64 = 0
    /// What was given up and is not removed yet: all before an image, and when that became the oldest one, in order.
    var leaving: [Leaving] = []
    /// The index tells of all up to here; nil where there is nothing yet.
    var indexed: UInt64?
    /// Versions that were archived up to `indexed`.
    var count = 0
    /// Bytes of all steps and starts, and bytes that were stored for them, merges, images and index, up to `indexed`.
    var changedByteCount = 0
    var storedByteCount = 0
    var images: [Image] = []

    init(identifier: String, source: String, keyCheck: String?) {
        self.identifier = identifier
        self.source = source
        self.keyCheck = keyCheck
    }

    var text: String {
        var text = """
            \(Self.magic)
            identifier \(identifier)
            source \(source)
            encrypted \(keyCheck ?? "no")
            oldest \(oldest)
            removed \(removed)
            leaving \(leaving.isEmpty ? "none" : leaving.map { "\($0.sequence):\($0.since)" }.joined(separator: " "))
            indexed \(indexed.map { "\($0)" } ?? "none")
            count \(count)
            changed \(changedByteCount)
            stored \(storedByteCount)

            """
        for image in images {
            text +=
                "image \(image.sequence) \(image.version) \(image.time) \(image.plainByteCount) \(image.storedByteCount) \(image.ordinal)\n"
        }
        return text
    }

    init(text: String, place: String) throws {
        guard text.hasPrefix(Self.magic + "\n") else {
            let first = text.prefix { $0 != "\n" }
            if first.hasPrefix("realm-archive ") { throw ArchiveError.unknownForm(place: place, form: String(first.prefix(40))) }
            throw ArchiveError.notAnArchive(place: place)
        }
        // Each line has its end, so that none can have been cut.
        guard text.hasSuffix("\n") else {
            throw ArchiveError.incomplete(place: place, object: ArchiveNames.manifest, byteCount: text.utf8.count)
        }
        func damaged(_ reason: String) -> ArchiveError { .damaged(place: place, object: ArchiveNames.manifest, reason: reason) }
        var lines: [Substring: Substring] = [:]
        for line in text.split(separator: "\n").dropFirst() {
            let parts = line.split(separator: " ", maxSplits: 1)
            guard parts.count == 2 else { continue }
            if parts[0] != "image" {
                lines[parts[0]] = parts[1]
                continue
            }
            let numbers = parts[1].split(separator: " ").compactMap { UInt64($0) }
            guard numbers.count == 6, numbers[0] < 1 << 60, numbers[3...].allSatisfy({ $0 < 1 << 44 }),
                numbers[0] > images.last?.sequence ?? 0 || images.isEmpty
            else {
                throw damaged("the line of image \(images.count)")
            }
            images.append(
                Image(
                    sequence: numbers[0], version: numbers[1], time: numbers[2], plainByteCount: Int(numbers[3]),
                    storedByteCount: Int(numbers[4]),
                    ordinal: Int(numbers[5])))
        }
        func value(_ key: Substring) throws -> Substring {
            guard let value = lines[key] else { throw damaged("the line '\(key)' is missing") }
            return value
        }
        func number(_ key: Substring) throws -> UInt64 {
            guard let number = UInt64(try value(key)), number < 1 << 60 else {
                throw damaged("the line '\(key)' holds no number")
            }
            return number
        }
        identifier = String(try value("identifier"))
        source = String(try value("source"))
        let check = String(try value("encrypted"))
        keyCheck = check == "no" ? nil : check
        oldest = try number("oldest")
        removed = try number("removed")
        guard let leaving = Self.leaving(lines["leaving"], oldest: oldest, removed: removed) else {
            throw damaged("the line 'leaving' cannot be")
        }
        self.leaving = leaving
        indexed = try value("indexed") == "none" ? nil : try number("indexed")
        count = Int(try number("count"))
        changedByteCount = Int(try number("changed"))
        storedByteCount = Int(try number("stored"))
    }

    /// Nil for what cannot be. Where there is no such line, what was given up was to be removed at once.
    private static func leaving(_ text: Substring?, oldest: UInt64, removed: UInt64) -> [Leaving]? {
        guard let text else { return removed < oldest ? [Leaving(sequence: oldest, since: 0)] : [] }
        if text == "none" { return [] }
        var all: [Leaving] = []
        for item in text.split(separator: " ") {
            let numbers = item.split(separator: ":").compactMap { UInt64($0) }
            guard numbers.count == 2, numbers[0] <= oldest, numbers[0] > all.last?.sequence ?? 0 else { return nil }
            all.append(Leaving(sequence: numbers[0], since: numbers[1]))
        }
        return all
    }

    /// Gives up all before an image, of which there is no need to know the time more exactly than to a fraction of the delay.
    mutating func giveUp(before sequence: UInt64, at now: UInt64, delay: UInt64) {
        oldest = sequence
        let grain = delay / 16
        let since = grain == 0 ? now : (now / grain + 1) &* grain
        // A clock that was set back must not put off removal for ever.
        for index in leaving.indices where leaving[index].since > since { leaving[index].since = since }
        leaving.removeAll { $0.since == since }
        leaving.append(Leaving(sequence: sequence, since: since))
    }

    /// The image before which all was given up so long ago that it can go; nil where there is none.
    func due(now: UInt64, delay: UInt64) -> UInt64? {
        leaving.last { $0.sequence > removed && ($0.since > now ? delay == 0 : now - $0.since >= delay) }?.sequence
    }

    /// The image from which `sequence` is reached.
    func base(of sequence: UInt64) -> Image? { images.last { $0.sequence <= sequence && $0.sequence >= oldest } }
}
