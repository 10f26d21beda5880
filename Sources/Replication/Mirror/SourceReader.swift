import Glibc
import SharedStore
import SystemCalls

/// The newest version of a file, for a copy of it: held in the file's session, or, where it has none, as it lies there.
///
/// Without a session are files in streaming form or of an older format, those with a history of synchronisation, which no session
/// of ours may join, and those that lie where no side file can be made, or that may not be written. Nothing holds their version
/// then: `checkUnchanged` tells afterwards whether somebody has written meanwhile.
final class SourceReader {
    let view: FileView
    let status: SystemCalls.Status
    /// Of the file, as its header tells.
    let format: UInt8
    private let path: String
    private let held: HeldSnapshot?
    private let participant: Participant?
    private let file: DatabaseFile?
    private let header: [UInt8]

    /// - Throws: `MirrorError.notJoinable` where others have the file open and we may not join them.
    init(_ path: String, label: String, _ options: Mirror.Options) throws {
        self.path = path
        let key = options.sourceKey
        status = try SourceReader.status(path)
        if try SourceReader.isShareable(path, key) {
            do {
                let participant = try SessionMembership.join(path, label: label, key: key)
                do {
                    let held = try HeldSnapshot(participant, try participant.acquireNewest(.live))
                    (self.held, view) = (held, held.view)
                } catch {
                    try? participant.close(force: true)
                    throw error
                }
                self.participant = participant
                (format, file, header) = (FileHeader.currentFormat, nil, [])
                return
            } catch let error where SourceReader.isReadOnlyPlace(error) {
                if SessionProbe.look(path) == .live { throw MirrorError.notJoinable(source: path, reason: "\(error)") }
                options.onMessage("\(path) is read without joining its session (\(error))")
            }
        }
        header = try SourceReader.header(path)
        let file = try MirrorImage.open(path, key: key)
        self.file = file
        let inspection = try file.inspect()
        format = inspection.format == 0 ? FileHeader.currentFormat : inspection.format
        view = try file.view(of: inspection.snapshot)
        held = nil
        participant = nil
    }

    deinit {
        try? participant?.close(force: true)
        file?.close()
    }

    /// To be called when all was read.
    ///
    /// - Throws: `MirrorError.changedMeanwhile` where nothing has kept others from overwriting what was being read, and they may
    ///   have.
    func checkUnchanged() throws {
        if held != nil { return }
        let now = try SourceReader.status(path)
        let isSame = try now.inode == status.inode && now.size == status.size && SourceReader.header(path) == header
        if !isSame || SessionProbe.look(path) == .live { throw MirrorError.changedMeanwhile(source: path) }
    }

    /// Whether it has, or could have, a session that we may join: joining would convert a file in streaming form.
    private static func isShareable(_ path: String, _ key: EncryptionKey?) throws -> Bool {
        let file = try ImmutableFile(path: path, key: key)
        if file.layout.isStreaming { return false }
        if file.layout.format != Int(FileHeader.currentFormat) && file.layout.topRef != 0 { return false }
        guard let type = try? file.group.historyType() else { return true }
        return type == 0 || type == 2
    }

    private static func status(_ path: String) throws -> SystemCalls.Status {
        do { return try SystemCalls.status(path: path) } catch let error as SystemError { throw OpenError(error, path: path) }
    }

    /// The first page, ciphertext or not: every commit changes it.
    private static func header(_ path: String) throws -> [UInt8] {
        let descriptor: SystemCalls.Descriptor
        do { descriptor = try SystemCalls.open(path, O_RDONLY | O_NONBLOCK) } catch let error as SystemError {
            throw OpenError(error, path: path)
        }
        defer { SystemCalls.close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 2 * SystemCalls.pageSize)
        let count = try bytes.withUnsafeMutableBytes { try SystemCalls.read(descriptor, into: $0, at: 0, path: path) }
        return Array(bytes.prefix(count))
    }

    private static func isReadOnlyPlace(_ error: any Error) -> Bool {
        switch error {
        case OpenError.permissionDenied, SessionError.sideFile: true
        case let error as SystemError: error.isPermissionDenied
        default: false
        }
    }
}
