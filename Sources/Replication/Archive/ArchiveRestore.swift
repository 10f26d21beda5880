import Glibc
import SharedStore
import SystemCalls

/// A version of an archive on its way to becoming a file: nobody has it open, so bytes go to their places in any order, and the
/// header comes last.
///
/// Every segment is checked (lengths, checksum, chain) before it is stored, and every object must begin at the version and chain
/// hash where the one before ended: what comes out is the version that was archived, or an error.
final class RestoredFile {
    let path: String
    private let backend: FileBackend
    private let reader: ArchiveReader
    private let compressor = Compressor()
    /// Where the content stands; nil before the image.
    private(set) var sequence: UInt64?
    private(set) var snapshot = Snapshot(version: 0, topRef: 0, logicalSize: 24)
    private(set) var chain = Digest()
    /// Merged steps on the way.
    private var merged: [String] = []
    /// Objects and pieces of objects that were asked of the place.
    private(set) var readCount = 0
    /// Called with the bytes that were stored.
    private let onPiece: (Int) throws -> Void

    init(_ path: String, _ reader: ArchiveReader, key: EncryptionKey?, onPiece: @escaping (Int) throws -> Void = { _ in }) throws
    {
        self.path = path
        self.reader = reader
        self.onPiece = onPiece
        let descriptor = try SystemCalls.open(path, O_RDWR | O_CREAT | O_EXCL)
        backend =
            key.map { EncryptedFile(descriptor: descriptor, path: path, key: $0) }
            ?? PlainFile(descriptor: descriptor, path: path)
    }

    deinit { backend.close() }

    /// Goes on to a version, from the image before it, or from where the content stands if that is on the way. Where something on
    /// that way is missing or broken, by another one that is there.
    func advance(to target: ArchiveEntry) throws {
        var base = reader.manifest.base(of: target.sequence)?.sequence
        while true {
            do {
                guard let base else {
                    throw ArchiveError.missing(
                        place: reader.place.description, object: "an image before version \(target.snapshot.version)")
                }
                try go(from: base, to: target)
                if chain == target.chain || merged.isEmpty { break }
                // Merged steps may be of another line than the steps, in a copy that was archived into: by single ones then.
                for name in merged { reader.giveUp(name, "leads to another version") }
                sequence = nil
            } catch let error as ArchiveError {
                let isNews = reader.doWithout(error)
                // Without a listing so far, that no image is named is news too.
                guard let other = try reader.inventory().base(of: target.sequence), isNews || other != base else { throw error }
                base = other
                // Begins anew: what was stored is overwritten.
                sequence = nil
            }
        }
        guard sequence == target.sequence, snapshot == target.snapshot, chain == target.chain else {
            throw ArchiveError.damaged(
                place: reader.place.description, object: ArchiveNames.index(ArchiveNames.chunk(of: target.sequence)),
                reason: "it tells of another version \(target.snapshot.version) than the steps lead to")
        }
    }

    private func go(from base: UInt64, to target: ArchiveEntry) throws {
        if sequence.map({ $0 < base || $0 > target.sequence }) ?? true {
            let name = ArchiveNames.image(base)
            guard try store(name, isImage: true) else {
                throw ArchiveError.missing(place: reader.place.description, object: name)
            }
        }
        merged = []
        while let here = sequence, here < target.sequence {
            var isFound = false
            for candidate in ArchiveReader.candidates(from: here, to: target.sequence) {
                let name = ArchiveNames.step(candidate.level, candidate.last)
                isFound = try store(name, isImage: false)
                if isFound, candidate.level > 0 { merged.append(name) }
                if isFound { break }
            }
            if !isFound { throw ArchiveError.missing(place: reader.place.description, object: ArchiveNames.step(0, here + 1)) }
        }
    }

    /// Stores an object's bytes; false where it is not there.
    private func store(_ name: String, isImage: Bool) throws -> Bool {
        if reader.givenUp[name] != nil { return false }
        guard let object = try ArchiveObjectReader(reader.place, name, cipher: reader.cipher) else { return false }
        let head = object.head
        guard isImage ? head.kind == .image : head.kind != .image && head.kind != .text else {
            throw object.damaged("it is something else")
        }
        if !isImage, head.parentSequence != sequence || head.parentChain != chain {
            throw object.damaged("it does not go on from where the one before it ends")
        }
        let parent = snapshot
        var last = head.parentChain
        var hasMore = true
        while hasMore {
            let segment = try object.segment(compressor) { segment in
                guard let prefix = try ListsPrefix.bytes(segment.parent, reading) else {
                    throw object.damaged("its parent has no lists")
                }
                return prefix
            }
            guard segment.head.this == head.this, segment.head.parentChain == last,
                segment.head.flags.contains(.image) == isImage,
                isImage || segment.head.parent == parent
            else { throw object.damaged("one of its segments belongs to something else") }
            last = segment.head.chain
            hasMore = segment.head.flags.contains(.more)
            try store(segment)
            try onPiece(segment.payload.count)
        }
        readCount += object.readCount
        guard object.isAtEnd else { throw object.damaged("something follows its last segment") }
        sequence = head.sequence
        snapshot = head.this
        chain = head.chain == Digest() ? last : head.chain
        return true
    }

    private func store(_ segment: Segment) throws {
        // Blocks for all of it, so that who stores through a mapping later finds no holes on a full disk.
        try backend.preallocate(to: Self.physicalSize(segment.head.this))
        try segment.payload.withUnsafeBytes { payload in
            var at = 0
            for range in segment.ranges {
                try backend.write(UnsafeRawBufferPointer(rebasing: payload[at..<at + range.count]), at: range.lowerBound)
                at += range.count
            }
        }
        try backend.flush()
    }

    private func reading(_ offset: Int, _ count: Int) throws -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: count)
        let found = try bytes.withUnsafeMutableBytes { try backend.read(into: $0, at: offset) }
        bytes.removeLast(count - found)
        return bytes
    }

    /// The header of a file that holds one version.
    static func writeHeader(of snapshot: Snapshot, to backend: FileBackend) throws {
        var header = FileHeader()
        if snapshot.topRef != 0 {
            header.topRefs = (UInt64(snapshot.topRef), 0)
            header.formats = (FileHeader.currentFormat, 0)
        }
        try withUnsafeTemporaryAllocation(byteCount: FileHeader.byteCount, alignment: 8) {
            guard let start = $0.baseAddress else { return }
            header.store(to: start)
            try backend.write(UnsafeRawBufferPointer($0), at: 0)
        }
        try backend.flush()
    }

    static func physicalSize(_ snapshot: Snapshot) -> Int {
        let page = SystemCalls.pageSize
        return max(page, (snapshot.logicalSize + page - 1) / page * page)
    }

    /// Writes the header of the version at which the content stands. It can go on from here.
    /// - Parameter durably: the file survives a power cut.
    func finish(durably: Bool) throws {
        try Self.writeHeader(of: snapshot, to: backend)
        // An older version on the way may have been longer.
        let size = Self.physicalSize(snapshot)
        if try backend.size() > size { try backend.truncate(to: size) }
        if durably { try backend.syncData() }
    }

    func close() { backend.close() }
}

extension Archive {
    /// How a version is restored.
    public struct RestoreOptions: Sendable {
        /// The key of an encrypted archive; the restored file is encrypted with it.
        public var key: EncryptionKey?
        /// Set a file aside that stands where the restored one shall be.
        public var force = false
        /// Check every rule of the format over the whole file before it gets its name.
        public var verifies = true
        /// Called with bytes done and, as far as known, in all.
        public var onProgress: @Sendable (Mirror.Progress) throws -> Void = { _ in }
        /// A plain archive; nothing that stands at the destination is touched; the file is verified.
        public init() {}
    }

    /// What `restore` has made.
    public struct Restored: Sendable, Equatable {
        /// The version that the file has now.
        public var entry: ArchiveEntry
        /// Times that something was asked of the place.
        public var readCount: Int
        /// The name under which the file lives on that stood there.
        public var setAside: String?
    }

    /// Makes a file of the newest version from which one can be made; see `withNewest`.
    @discardableResult
    public static func restoreNewest(_ reader: ArchiveReader, to destination: String, options: RestoreOptions = RestoreOptions())
        throws -> Restored
    {
        try withNewest(of: reader) { try restore(reader, $0, to: destination, options: options) }
    }

    /// Makes a file of a version, whole or not at all.
    ///
    /// - Throws: `ArchiveError`, and what reading and writing may throw; nothing has changed at `destination` then.
    @discardableResult
    public static func restore(
        _ reader: ArchiveReader, _ entry: ArchiveEntry, to destination: String, options: RestoreOptions = RestoreOptions()
    ) throws -> Restored {
        try MirrorPlace.requireNoSideName(destination)
        if !options.force, MirrorImage.exists(destination) { throw ArchiveError.destinationExists(path: destination) }
        let temporary = "\(destination).part-\(getpid())-\(UInt32.random(in: 0...UInt32.max))"
        do {
            let file = try build(reader, entry, at: temporary, options, durably: true)
            let aside = try install(temporary, as: destination, force: options.force, state: nil)
            return Restored(entry: entry, readCount: file.readCount, setAside: aside)
        } catch {
            try? SystemCalls.unlink(temporary)
            throw error
        }
    }

    /// A file with the content of a version under a name of its own, verified if wanted, and synced if it shall stay.
    static func build(
        _ reader: ArchiveReader, _ entry: ArchiveEntry, at temporary: String, _ options: RestoreOptions, durably: Bool
    ) throws -> RestoredFile {
        let total = reader.manifest.base(of: entry.sequence)?.plainByteCount ?? 0
        let counter = ByteCounter()
        let file = try RestoredFile(temporary, reader, key: reader.isEncrypted ? options.key : nil) { count in
            counter.count += count
            try options.onProgress(Mirror.Progress(bytesDone: counter.count, bytesTotal: max(total, counter.count)))
        }
        try file.advance(to: entry)
        try file.finish(durably: durably)
        file.close()
        if options.verifies {
            let report = try Verifier.verify(ImmutableFile(path: temporary, key: reader.isEncrypted ? options.key : nil))
            if !report.isSound {
                throw ArchiveError.unsound(path: temporary, reason: report.findings.first.map { "\($0)" } ?? "it cannot be read")
            }
        }
        return file
    }

    private final class ByteCounter { var count = 0 }

    /// Gives a restored file its name while nobody has one of that name open.
    ///
    /// - Parameter state: what makes it a replica; nil for a file of its own.
    /// - Returns: the name of the file that was set aside.
    static func install(_ temporary: String, as destination: String, force: Bool, state: MirrorState?) throws -> String? {
        let result: String?? = try StoreFiles.withExclusiveAccess(destination) { () -> String? in
            var aside: String?
            if force, MirrorImage.exists(destination) {
                let name =
                    "\(destination).replaced-\(MirrorLock.timeText("%Y%m%d-%H%M%S"))-\(getpid())-\(UInt16.random(in: 0...UInt16.max))"
                try SystemCalls.renameExclusively(destination, to: name)
                aside = name
            }
            let statePath = SessionPaths(destination).mirrorState
            if let state {
                try state.write(replica: destination, durably: true)
            } else if MirrorImage.exists(statePath) {
                // It told of the file that was here before.
                try SystemCalls.rename(statePath, to: statePath + ".replaced")
            }
            do { try SystemCalls.renameExclusively(temporary, to: destination) } catch let error as SystemError
                where error.code == EEXIST
            {
                throw ArchiveError.destinationExists(path: destination)
            }
            try SystemCalls.syncDirectory(of: destination)
            return aside
        }
        guard let result else { throw ArchiveError.inUse(path: destination, holders: MirrorImage.holders(destination)) }
        return result
    }

    /// Restores every version into files of their own: `DIR/<version>.realm`, one after the other, each whole or not at all.
    /// Of versions with equal numbers (the source was set back), only the last one has a file.
    ///
    /// - Returns: how many.
    public static func restoreAll(_ reader: ArchiveReader, to directory: String, options: RestoreOptions = RestoreOptions())
        throws -> Int
    {
        do { try SystemCalls.makeDirectory(directory) } catch let error as SystemError where error.code == EEXIST {}
        let history = try reader.history()
        var last: [UInt64: UInt64] = [:]
        for entry in history { last[entry.snapshot.version] = entry.sequence }
        var count = 0
        for entry in history where last[entry.snapshot.version] == entry.sequence {
            try restore(reader, entry, to: "\(directory)/\(entry.snapshot.version).realm", options: options)
            count += 1
        }
        return count
    }

    /// Restores a version into a scratch file and checks every rule of the format over it; the file is removed.
    ///
    /// - Parameter scratch: the folder for the file, of the size of the source.
    public static func verify(_ reader: ArchiveReader, _ entry: ArchiveEntry, scratch: String, key: EncryptionKey?) throws
        -> VerificationReport
    {
        var options = RestoreOptions()
        options.key = key
        options.verifies = false
        let path = "\(scratch)/verify-\(getpid())-\(UInt32.random(in: 0...UInt32.max)).realm"
        defer { try? SystemCalls.unlink(path) }
        _ = try build(reader, entry, at: path, options, durably: false)
        return try Verifier.verify(ImmutableFile(path: path, key: reader.isEncrypted ? key : nil))
    }
}
