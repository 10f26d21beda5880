import Glibc
import Replication
import SharedStore
import SystemCalls

/// One run of a mirror or archive: from a specification to the loops of Replication, which run until they are told to stop.
struct StreamJob {
    let specification: StreamSpecification
    let control: MirrorFollower.Control
    let onReport: (Report) -> Void
    let onMessage: @Sendable (String) -> Void
    /// Bytes that were copied of an image, and of how many. What it throws ends the run.
    let onProgress: @Sendable (Mirror.Progress) throws -> Void
    /// Bytes of each piece that an archive has taken. What it throws ends the run.
    let onPiece: @Sendable (Int) throws -> Void

    /// What mirrors and archives alike tell of themselves.
    struct Report: Equatable, Sendable {
        var sourceVersion: UInt64?
        var version: UInt64?
        var stepCount = 0, byteCount = 0, imageCount = 0
        var waitsFor: String?
        /// Bytes stored ÷ bytes changed, of an archive.
        var writeAmplification: Double?

        /// Seconds since what is at the destination was the newest version of the source.
        var secondsBehind: Double?

        /// The replica was seen to be equal to the source.
        var isEqual: Bool { waitsFor == nil && sourceVersion != nil && sourceVersion == version }

        /// Equal, or as good as that to a source that is committed to all the time.
        var isCurrent: Bool { isEqual || waitsFor == nil && version != nil && (secondsBehind ?? .infinity) < 1 }
    }

    /// - Throws: what a person must decide, and what waiting does not help.
    func run() throws {
        switch specification.target {
        case .file(let destination): try mirror(to: destination)
        case .archive(let place): try archive(in: place)
        }
    }

    private func mirror(to destination: String) throws {
        let specification = self.specification
        var options = Mirror.Options()
        options.force = specification.force
        options.onMessage = onMessage
        options.onProgress = onProgress
        if let grace = specification.grace { options.pinGrace = grace }
        // A version that stays held would refuse the application's compaction just as well.
        if specification.leaveWhenIdle != nil { options.pinGrace = .zero }
        if let limit = specification.pinLimit { options.pinLimit = limit }
        if let limit = specification.gatherLimit { options.gatherLimit = limit }
        if let interval = specification.checkInterval { options.checkInterval = interval }
        options.sourceKey = try specification.key.read()
        options.destinationKey =
            specification.isDestinationPlain ? nil : try specification.destinationKey.read() ?? options.sourceKey
        let onReport = self.onReport
        let onStatus: (MirrorFollower.Status) -> Void = { status in
            onReport(
                Report(
                    sourceVersion: status.sourceVersion, version: status.version, stepCount: status.stepCount,
                    byteCount: status.byteCount,
                    imageCount: status.imageCount, waitsFor: status.waitsFor, secondsBehind: status.secondsBehind))
        }
        let source = try MirrorEndpoint(specification.source)
        try MirrorRun.run(
            from: source, to: MirrorEndpoint(destination), options: options, wire: wireOptions(from: source), onStatus: onStatus,
            control: control)
    }

    /// How the other machine is reached.
    private func wireOptions(from source: MirrorEndpoint) -> WireOptions {
        let wire = specification.wire
        var options = WireOptions()
        options.allowPlain(wire.allowsPlain, from: source, plainDestination: specification.isDestinationPlain)
        options.remoteKeyFile = wire.remoteKeyFile
        if let program = wire.remoteProgram { options.remoteProgram = program }
        if !wire.sshProgram.isEmpty { options.sshProgram = wire.sshProgram }
        if let certificate = wire.certificate, let key = wire.key, let authority = wire.authority {
            options.tls = TLSSettings(
                certificates: .init(certificate: certificate, key: key, authority: authority), sharedSecrets: wire.sharedSecrets,
                revocations: wire.revocations)
        } else if let secrets = wire.sharedSecrets {
            options.tls = TLSSettings(sharedSecrets: secrets)
        }
        return options
    }

    private func archive(in place: String) throws {
        var options = Archive.Options()
        options.key = try specification.key.read()
        options.keep = specification.keep
        options.keepFor = specification.keepFor
        if let interval = specification.snapshotInterval { options.snapshotInterval = interval }
        if let delay = specification.removalDelay { options.removalDelay = delay }
        if let lease = specification.lease { options.leaseDuration = max(lease, .seconds(1)) }
        if let grace = specification.grace { options.pinGrace = grace }
        if specification.leaveWhenIdle != nil { options.pinGrace = .zero }
        if let limit = specification.pinLimit { options.pinLimit = limit }
        if let limit = specification.gatherLimit { options.gatherLimit = limit }
        options.force = specification.force
        options.onMessage = onMessage
        options.onPiece = onPiece
        // Before a folder is made for nothing.
        _ = try SteadyReading.file(specification.source, key: options.key)
        let onReport = self.onReport
        let archiver = Archiver(
            source: specification.source, place: try ArchiveAddress.place(place, creates: true), options: options,
            onStatus: { status in
                onReport(
                    Report(
                        sourceVersion: status.sourceVersion, version: status.version, stepCount: status.stepCount,
                        byteCount: status.byteCount,
                        imageCount: status.imageCount, waitsFor: status.waitsFor, writeAmplification: status.writeAmplification,
                        secondsBehind: status.secondsBehind))
            }, control: control)
        try archiver.run()
    }

    /// - Throws: an error that says why a source or destination on another machine cannot be.
    static func checkAddress(_ text: String) throws {
        if case .file = try MirrorEndpoint(text) {
            throw UsageError("'\(text)' is no address; there are realm://host:port/name and ssh://host/path")
        }
    }

    /// - Throws: an error that says why an archive cannot be at an address that is no path.
    static func checkPlace(_ text: String) throws {
        guard text.hasPrefix(ArchiveAddress.scheme) else {
            throw UsageError("'\(text)' is no place for an archive; there are folders and s3://bucket/prefix")
        }
    }

    /// The folders of a file of a directory that is mirrored, and the one that all of them are in. What that one is in must be
    /// there.
    static func makeFolders(of path: String, below base: String) throws {
        let parent = SystemCalls.parentDirectory(of: path)
        if parent.count < base.count || (try? SystemCalls.status(path: parent)) != nil { return }
        if parent.count > base.count { try makeFolders(of: parent, below: base) }
        do { try SystemCalls.makeDirectory(parent) } catch let error as SystemError where error.code == EEXIST {}
    }
}
