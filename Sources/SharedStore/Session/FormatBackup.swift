import Glibc
import SystemCalls

/// Copies of a file from before the upgrade of its format (file-format-3 7.5, coordination.md 3.6).
///
/// ```
/// /d/a.realm                      the file
/// /d/a.v22.backup.realm.part      a copy being made
/// /d/a.v22.backup.realm           the whole copy, byte by byte: of an encrypted file the ciphertext
/// /d/a.realm.backup-log           what was done, a line each
/// ```
/// All happens under the control mutex by the initiator of a session, so nobody writes the file meanwhile: an upgrade begins
/// after its opener has let that mutex go. A copy is made once and never replaced; a copy in streaming form stays so.
///
/// Crash argument: the copy is written under another name and synced before it gets its own; a `.part` that a killed process left
/// is overwritten by the next. Nothing here touches the file itself but `restore`, whose rename is atomic.
///
/// No failure keeps a file from being opened: the upgrade goes on without a copy.
struct FormatBackup {
    private let paths: SessionPaths

    init(_ paths: SessionPaths) { self.paths = paths }

    /// Copies are removed when they are older than this.
    static let secondsMax = 3 * 31 * 24 * 3600

    private static var formats: ArraySlice<UInt8> { FileHeader.readableFormats.dropFirst() }

    private func exists(_ path: String) -> Bool { (try? SystemCalls.linkStatus(path: path)) != nil }

    /// Copies the file, which has `format`, unless such a copy is there. Returns why there is none, nil where there is.
    func make(_ format: UInt8) -> String? {
        let path = paths.backup(ofFormat: Int(format))
        if exists(path) { return nil }
        let part = path + ".part"
        do {
            let source = try SystemCalls.open(paths.file, O_RDONLY)
            defer { SystemCalls.close(source) }
            let status = try SystemCalls.status(source, path: paths.file)
            let free = try SystemCalls.freeDiskBytes(path: SystemCalls.parentDirectory(of: path))
            if free / 2 < status.size {
                return log("no backup \(path): \(free) bytes are free, twice the file's \(status.size) are asked for")
            }
            try? SystemCalls.unlink(part)
            // Whoever may not read the file must not read its copy.
            let target = try SystemCalls.open(part, O_WRONLY | O_CREAT | O_EXCL, mode: status.mode & 0o777)
            defer { SystemCalls.close(target) }
            try copy(source, target, part)
            KillPoint.reach("backup.copied")
            try SystemCalls.syncData(target, path: part)
            try SystemCalls.renameExclusively(part, to: path)
            KillPoint.reach("backup.renamed")
            try SystemCalls.syncDirectory(of: path)
            _ = log("made \(path), \(status.size) bytes")
            return nil
        } catch {
            try? SystemCalls.unlink(part)
            return log("no backup \(path): \(error)")
        }
    }

    private func copy(_ source: SystemCalls.Descriptor, _ target: SystemCalls.Descriptor, _ part: String) throws {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: 1 << 20, alignment: 4096)
        defer { buffer.deallocate() }
        var position = 0
        while true {
            let count = try SystemCalls.read(source, into: buffer, at: position, path: paths.file)
            if count == 0 { return }
            try SystemCalls.write(target, UnsafeRawBufferPointer(rebasing: buffer[..<count]), at: position, path: part)
            position += count
        }
    }

    /// Puts the newest copy in the place of a file whose format is unknown. False where there is none, or it cannot be moved.
    func restore() -> Bool {
        for format in FileHeader.readableFormats {
            let path = paths.backup(ofFormat: Int(format))
            guard exists(path) else { continue }
            do {
                try SystemCalls.rename(path, to: paths.file)
                try SystemCalls.syncDirectory(of: paths.file)
                _ = log("the file had an unknown format and was replaced by \(path)")
                return true
            } catch {
                _ = log("the file has an unknown format, but \(path) cannot take its place: \(error)")
                return false
            }
        }
        return false
    }

    func removeExpired() {
        let now = Int(SystemCalls.realTimeNanoseconds() / 1_000_000_000)
        for format in FormatBackup.formats {
            let path = paths.backup(ofFormat: Int(format))
            guard let status = try? SystemCalls.linkStatus(path: path), status.isRegularFile,
                now - status.modifiedSeconds > FormatBackup.secondsMax
            else { continue }
            do {
                try SystemCalls.unlink(path)
                _ = log("removed \(path), older than 93 days")
            } catch { _ = log("\(path) is older than 93 days and cannot be removed: \(error)") }
        }
    }

    /// Appends a line to the log where that is possible; returns the text.
    private func log(_ text: String) -> String {
        guard let descriptor = try? SideFile.open(paths.backupLog, O_WRONLY | O_CREAT | O_APPEND) else { return text }
        defer { SystemCalls.close(descriptor) }
        let line = Array("\(SystemCalls.realTimeNanoseconds() / 1_000_000_000) \(text)\n".utf8)
        line.withUnsafeBytes { _ = try? SystemCalls.writeSome(descriptor, $0, path: paths.backupLog) }
        return text
    }
}
