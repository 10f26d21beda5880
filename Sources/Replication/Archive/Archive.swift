import SharedStore
import SystemCalls

/// Every version of a file, kept: a place (a folder, a bucket) with whole images and the steps between them, from which any
/// version or moment can be had again.
///
/// How a place is laid out stands in `ArchiveNames`, what an object is in `ArchiveObjectHead`, what a segment is in
/// `SegmentHead`.
public enum Archive {
    /// How a source is archived.
    public struct Options: Sendable {
        /// The key of an encrypted source; its archive is encrypted too.
        public var key: EncryptionKey?
        /// The newest so many versions can be restored, whatever their age; nil with `keepFor` nil for all.
        public var keep: Int?
        /// Every version that was the newest within so long can be restored.
        public var keepFor: Duration?
        /// What is not promised any more is removed so much later: a copy of the place that takes less time than this to be made is
        /// whole.
        public var removalDelay = Duration.seconds(3600)
        /// After so long a new image is made, if anything was changed. It is made sooner where steps have become half as long as
        /// it.
        public var snapshotInterval = Duration.seconds(86_400)
        /// How long nobody else may write to the place after a last sign of life.
        public var leaseDuration = Duration.seconds(60)
        /// Archive another source into a place than the one it was made for.
        public var force = false
        /// For so long after this process has ended, its version of the source stays, so that the next one needs no comparison.
        public var pinGrace = Duration.seconds(900)
        /// As in `Mirror.Options`.
        public var gatherLimit = Duration.milliseconds(100)
        /// So long the source's version is kept while the place cannot be written to.
        public var pinLimit = Duration.seconds(600)
        /// Told of what a person may want to know.
        public var onMessage: @Sendable (String) -> Void = { _ in }
        /// Called with the bytes of each piece that was put; what it throws ends the work.
        public var onPiece: @Sendable (Int) throws -> Void = { _ in }
        /// Everything is kept, and the source is plain.
        public init() {}
    }

    /// The cipher for an archive; nil where it is not encrypted.
    static func cipher(_ manifest: ArchiveManifest, _ key: EncryptionKey?, _ place: any ArchivePlace) throws -> ArchiveCipher? {
        guard let check = manifest.keyCheck else { return nil }
        guard let key else { throw ArchiveError.keyNeeded(place: place.description) }
        let cipher = ArchiveCipher(key, archive: manifest.identifier)
        guard cipher.check == check else { throw ArchiveError.wrongKey(place: place.description) }
        return cipher
    }

    /// What an archive is worth.
    public struct Summary: Sendable, Equatable {
        /// The path of the source, as the last archiver knew it.
        public var source: String
        /// Versions that can be restored.
        public var versionCount: Int
        /// Whole images among them, from which a restore can begin.
        public var imageCount: Int
        /// Bytes that the archived versions had more than the ones before, and bytes that were stored for them, since the
        /// beginning.
        public var changedByteCount: Int
        /// See `changedByteCount`; their quotient is what archiving costs.
        public var storedByteCount: Int
    }

    /// - Throws: `ArchiveError` for what is missing or damaged, and what the place throws.
    public static func summary(_ reader: ArchiveReader) throws -> Summary {
        let history = try reader.history()
        let tail =
            try reader.newest().sequence > reader.manifest.indexed ?? 0
            ? reader.entries(from: (reader.manifest.indexed ?? 0) + 1, through: UInt64.max) : []
        return Summary(
            source: reader.source, versionCount: history.count,
            imageCount: reader.manifest.images.filter { $0.sequence >= reader.manifest.oldest }.count,
            changedByteCount: reader.manifest.changedByteCount + tail.reduce(0) { $0 &+ $1.plainByteCount },
            storedByteCount: reader.manifest.storedByteCount + tail.reduce(0) { $0 &+ $1.storedByteCount })
    }
}
