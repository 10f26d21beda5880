import Glibc
import SharedStore
import SystemCalls

/// Brings a seed here from where it is published, and puts it in place when it is proved to be the right one.
///
/// Crash argument: that of `SeedDraft`. What was at the destination stays until the new one is whole, proved and synced.
public struct SeedFetch {
    /// What proves that it is the right one.
    public enum Proof {
        case checksum(Digest)
        /// - Parameters:
        ///   - keys: one of which must have made it.
        ///   - place: an address or a path; nil for the seed's own with `.sig` behind it.
        case signature(keys: [SeedVerifyingKey], place: String?)
    }

    /// How a seed is fetched; what is not said otherwise is limited as the defaults say.
    public struct Options {
        /// Without a proof nothing gets its name.
        public var proof: Proof
        /// The name that must have been signed; nil for the last part of the address.
        public var name: String?
        /// A larger file is refused.
        public var byteCountMax = 16 << 30
        /// A seed may be replaced by one that was signed before it.
        public var allowsOlder = false
        /// Certificates of the authorities that are believed for https; nil for those of the system.
        public var authorities: String?
        /// A transfer in which nothing moves for so long is broken.
        public var silenceSeconds = 30
        /// So often a transfer that broke without bringing anything is tried again; one that brings something goes on.
        public var retriesMax = 4
        /// The pause before the first new attempt; it doubles each time, up to 30 s.
        public var pauseMilliseconds = 500
        /// Looks at the file, which lies at a path of its own, before it gets its name.
        public var examine: (String) throws -> Void = { _ in }
        /// Bytes that have come, and all if that is known.
        public var onProgress: (Int, Int?) -> Void = { _, _ in }
        /// Told where the file lies until it gets its name, so that nothing is left when the process is ended.
        public var onDraft: (String) -> Void = { _ in }

        /// The proof has no default.
        public init(proof: Proof) { self.proof = proof }
    }

    /// How it went.
    public enum Outcome: Equatable, Sendable {
        case installed(byteCount: Int)
        /// The same was there already; nothing but the signature was fetched.
        case unchanged
    }

    private let url: String
    private let destination: String
    private let options: Options
    private let download: SeedDownload

    /// Nothing is fetched yet.
    ///
    /// - Throws: `SeedError.badURL`; `SeedError.unreachable` where the HTTP library cannot be started.
    public init(_ url: String, to destination: String, options: Options) throws {
        self.url = url
        self.destination = destination
        self.options = options
        try SeedDownload.check(url)
        var settings = SeedDownload.Options()
        settings.authorities = options.authorities
        settings.silenceSeconds = options.silenceSeconds
        settings.retriesMax = options.retriesMax
        settings.pauseMilliseconds = options.pauseMilliseconds
        download = try SeedDownload(settings)
    }

    /// Where the signature of a seed is kept beside it.
    public static func signaturePath(_ path: String) -> String { path + ".sig" }

    /// - Throws: `SeedError`, `SystemError`, and what the options' closures throw. What was at the destination is what it was.
    public func run() throws -> Outcome {
        let signature = try provenSignature()
        let expected: Digest
        switch (options.proof, signature) {
        case (.checksum(let digest), _): expected = digest
        case (_, let signature?): expected = signature.digest
        case (.signature, nil): throw SeedError.notTrusted(place: url, reason: "there is no signature")
        }
        let present = try? SystemCalls.linkStatus(path: destination)
        if present?.isDirectory == true { throw OpenError.isDirectory(path: destination) }
        if present != nil, signature.map({ $0.byteCount == present?.size }) ?? true,
            try SeedContent.digest(destination).0 == expected
        {
            try keep(signature)
            return .unchanged
        }
        let draft = try SeedDraft(for: destination)
        options.onDraft(draft.temporaryPath)
        try fetch(into: draft, expected, signature)
        try options.examine(draft.temporaryPath)
        try install(draft)
        try keep(signature)
        return .installed(byteCount: draft.byteCount)
    }

    /// The signature, made with one of the keys for the name that is expected, and not before the one that is there.
    private func provenSignature() throws -> SeedSignature? {
        guard case .signature(let keys, let given) = options.proof else { return nil }
        let place = given ?? url + ".sig"
        let bytes: [UInt8]
        if place.contains("://") {
            var found: [UInt8] = []
            try download.get(place, limit: SeedSignature.byteCountMax, take: { found += $0 }, startOver: { found = [] })
            bytes = found
        } else {
            bytes = try SeedText.read(place, isSecret: false)
        }
        let signature = try SeedSignature(text: bytes, place: place)
        try signature.check(keys, place: place)
        let name = options.name ?? Self.lastPart(of: url)
        if signature.name != name { throw SeedError.otherName(place: place, signed: signature.name, expected: name) }
        if signature.byteCount > options.byteCountMax { throw SeedError.tooLarge(url: url, limit: options.byteCountMax) }
        if !options.allowsOlder, let present = try? SeedSignature.read(Self.signaturePath(destination)),
            (try? present.check(keys, place: "")) != nil,
            present.name == signature.name, present.time > signature.time, MirrorImage.exists(destination)
        {
            throw SeedError.older(path: destination, present: Self.moment(present.time), offered: Self.moment(signature.time))
        }
        return signature
    }

    private static func moment(_ seconds: Int) -> String {
        var time = time_t(seconds), parts = tm()
        guard gmtime_r(&time, &parts) != nil else { return "\(seconds)" }
        var text = [CChar](repeating: 0, count: 64)
        let count = strftime(&text, text.count, "%Y-%m-%dT%H:%M:%SZ", &parts)
        return text.withUnsafeBytes { String(decoding: $0.prefix(count), as: UTF8.self) }
    }

    /// Of "https://host/folder/name?query", decoded.
    static func lastPart(of url: String) -> String {
        let path = url.prefix { $0 != "?" && $0 != "#" }
        let part = Array(path[(path.lastIndex(of: "/").map { path.index(after: $0) } ?? path.startIndex)...].utf8)
        var bytes: [UInt8] = [], at = 0
        while at < part.count {
            if part[at] == UInt8(ascii: "%"), at + 2 < part.count,
                let byte = UInt8(String(decoding: part[at + 1...at + 2], as: UTF8.self), radix: 16)
            {
                bytes.append(byte)
                at += 3
            } else {
                bytes.append(part[at])
                at += 1
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    private func fetch(into draft: SeedDraft, _ expected: Digest, _ signature: SeedSignature?) throws {
        let limit = signature?.byteCount ?? options.byteCountMax
        // A file that was put together from two answers may be neither.
        for attempt in 0..<2 {
            var hash = SHA256Hash()
            try draft.empty()
            try download.get(
                url, limit: limit,
                take: { bytes in
                    try draft.append(bytes)
                    hash.update(bytes)
                    options.onProgress(draft.byteCount, signature?.byteCount)
                },
                startOver: {
                    try draft.empty()
                    hash = SHA256Hash()
                })
            let found = hash.finish()
            if found == expected { return }
            if download.wasResumed && attempt == 0 { continue }
            throw SeedError.otherContent(place: url, reason: "its SHA-256 is \(found), and not \(expected)")
        }
    }

    /// Seeds are for reading.
    private static let mode: UInt32 = 0o444

    private func install(_ draft: SeedDraft) throws {
        guard MirrorImage.exists(destination) else { return try draft.replace(mode: Self.mode) }
        // Nobody may have the old one open: under a name there is one database at a time.
        let isDone: Void? = try StoreFiles.withExclusiveAccess(destination) { try draft.replace(mode: Self.mode) }
        if isDone == nil { throw SeedError.inUse(path: destination, holders: MirrorImage.holders(destination)) }
    }

    /// The signature goes beside the seed, so that it can be proved again, and no older one takes its place.
    private func keep(_ signature: SeedSignature?) throws {
        let path = Self.signaturePath(destination)
        guard let signature else {
            // One that is of another content would be a lie.
            if let old = try? SeedSignature.read(path), (try? old.check(contentOf: destination)) == nil {
                try? SystemCalls.unlink(path)
            }
            return
        }
        let text = signature.text
        if let present = try? SeedText.read(path, isSecret: false), present == Array(text.utf8) { return }
        try signature.write(path)
    }
}

extension SeedSignature {
    /// Puts the signature at `path`, also in the place of another one.
    public func write(_ path: String) throws {
        let draft = try SeedDraft(for: path)
        try Array(text.utf8).withUnsafeBytes { try draft.append($0) }
        try draft.replace(mode: 0o644)
    }
}
