import CShims
import Glibc
import Synchronization
import SystemCalls

/// Who we are and which versions we hold: one small file for each of our participants in `X.management/participants/`.
///
/// The version list has counts without owners; this register gives ours an owner, so that a living participant can give back what
/// a killed one has left (`sweep`), and `status` can say who pins what since when. Other software neither has nor reads it.
///
/// ```
///    0 magic "RLMPART1"   8 layout version (1)   12 counted in the lock file's participants (0, 1)   16 pid   24 start time of the process
///   32 attached since     40 session mark        44 grace, in seconds   48, 56 device and inode of the lock file     64 thread that opened
///   72 length of name     76 length of label     80 program name (<= 64 bytes)   144 label (<= 64 bytes)   208 found dead (0: alive)
/// 4096 entries of 32 bytes, as many as the version list has: version · live since · frozen since · 0       (0 = not held)
/// ```
/// Times are nanoseconds since 1970. All numbers are little-endian.
///
/// *Grace* (0 but for mirrors): for so long after its death, reckoned from when it was first found dead, a participant's pins
/// stay, so that a successor with the same label can take them over and go on where it stopped. They are bounded in time, so what
/// they cost is bounded too. The dead one stays counted as long, else others could make the version list anew under its entries.
///
/// Invariants: the owner holds an open-file-description lock on the file as long as it lives, so the lock's absence *is* death;
/// an entry is only written in the same critical section (list mutex) as the count that it stands for, and says "held" only while
/// the count is raised: raised before it is noted, noted as released before it is lowered. Likewise `counted`, under the control
/// mutex. An entry is held only while `counted`, and `counted` implies that the session's participants are not 0.
///
/// Crash argument: a kill between the two stores leaks one count for the rest of the session, which costs space; it never lowers
/// a count that somebody else owns. A sweeper clears an entry before it lowers the count, for the same reason. A register left by
/// an earlier session has another session mark than the lock file (or the lock file has none): it is removed, its counts are
/// void.
package final class ParticipantRegister: @unchecked Sendable {
    // Sendable: the mapped entries are written under the list mutex, the header under the control mutex.

    static let magic: UInt64 = 0x3154_5241_504D_4C52  // "RLMPART1"
    static let layoutVersion: UInt32 = 1
    static let headerByteCount = 4096
    static let entryByteCount = 32
    static let initialByteCount = 8192
    static let mappedByteCount = 1 << 20
    static let textByteCountMax = 64
    static let fileSuffix = ".participant"

    package let path: String
    private let descriptor: Int32
    private let base: UnsafeMutableRawPointer
    private let lockFile: LockFile
    /// Bytes of the file that are backed by blocks; changed under the list mutex.
    private var backedByteCount = ParticipantRegister.initialByteCount

    private enum Offset {
        static let layoutVersion = 8, counted = 12, pid = 16, startTime = 24, since = 32, mark = 40, grace = 44
        static let device = 48, inode = 56, thread = 64, nameLength = 72, labelLength = 76, name = 80, label = 144,
            foundDead = 208
    }

    private init(path: String, descriptor: Int32, base: UnsafeMutableRawPointer, lockFile: LockFile) {
        self.path = path
        self.descriptor = descriptor
        self.base = base
        self.lockFile = lockFile
    }

    // MARK: The owner's side

    private static let serial = Atomic<UInt64>(0)

    /// Makes the file of this participant. The caller holds the control mutex, as do sweepers, so nobody mistakes it for a dead
    /// one before it is locked.
    static func create(_ paths: SessionPaths, _ lockFile: LockFile, label: String, grace: Duration = .zero) throws
        -> ParticipantRegister
    {
        do { try SystemCalls.makeDirectory(paths.participants) } catch let error as SystemError where error.code == EEXIST {}
        let pid = getpid()
        let number = serial.wrappingAdd(1, ordering: .relaxed).newValue
        let path = "\(paths.participants)/\(pid)-\(number)-\(String(UInt32.random(in: 0...UInt32.max), radix: 16))\(fileSuffix)"
        let descriptor = try SideFile.open(path, O_RDWR | O_CREAT | O_EXCL)
        do {
            guard try SystemCalls.tryDescriptionLock(descriptor, path: path) else {
                throw SystemError(call: "fcntl", code: EAGAIN, path: path)
            }
            try SystemCalls.preallocate(descriptor, to: initialByteCount, path: path)
            let base = try SystemCalls.map(
                length: mappedByteCount, protection: PROT_READ | PROT_WRITE, flags: MAP_SHARED, descriptor, path: path)
            let register = ParticipantRegister(path: path, descriptor: descriptor, base: base, lockFile: lockFile)
            register.fillHeader(pid: pid, label: label, grace: UInt32(clamping: grace.components.seconds))
            return register
        } catch {
            try? SystemCalls.unlink(path)
            SystemCalls.close(descriptor)
            throw error
        }
    }

    private func fillHeader(pid: Int32, label: String, grace: UInt32) {
        func store<T: BitwiseCopyable>(_ value: T, _ offset: Int) { base.storeBytes(of: value, toByteOffset: offset, as: T.self) }
        func store(_ text: String, _ offset: Int, _ lengthOffset: Int) {
            let bytes = Array(text.utf8.prefix(ParticipantRegister.textByteCountMax))
            (base + offset).copyMemory(from: bytes, byteCount: bytes.count)
            store(UInt32(bytes.count), lengthOffset)
        }
        store(ParticipantRegister.layoutVersion, Offset.layoutVersion)
        store(UInt64(pid), Offset.pid)
        store(ParticipantRegister.startTimeOfThisProcess, Offset.startTime)
        store(UInt64(SystemCalls.realTimeNanoseconds()), Offset.since)
        store(lockFile.device, Offset.device)
        store(lockFile.inode, Offset.inode)
        store(grace, Offset.grace)
        store(UInt64(CShims_gettid()), Offset.thread)
        store(ParticipantRegister.nameOfThisProgram, Offset.name, Offset.nameLength)
        store(label, Offset.label, Offset.labelLength)
        CShims_store_u64(base, ParticipantRegister.magic)
    }

    static let nameOfThisProgram =
        (LockHolder.read("/proc/self/comm") ?? "?").split(separator: "\n").first.map(String.init) ?? "?"

    /// In clock ticks since the machine started; with the pid it names a process for good.
    static let startTimeOfThisProcess: UInt64 = {
        // The name in parentheses may hold anything; the fields are counted from the last parenthesis.
        guard let text = LockHolder.read("/proc/self/stat"), let end = text.lastIndex(of: ")") else { return 0 }
        let fields = text[end...].split(separator: " ")
        return fields.count > 20 ? UInt64(fields[20]) ?? 0 : 0
    }()

    private var mark: UInt32 { CShims_load_u32(base + Offset.mark) }

    /// Ties the entries to this session, once that can matter; see `LockFile`.
    func ensureSessionMark() {
        if mark == 0 { CShims_store_u32(base + Offset.mark, lockFile.makeSessionMark()) }
    }

    /// Says whether we are counted in the lock file's participants; control mutex held, with the order of the crash argument.
    func setCounted(_ counted: Bool) {
        if counted && lockFile.participantCount > 1 { ensureSessionMark() }
        CShims_store_u32(base + Offset.counted, counted ? 1 : 0)
    }

    /// Called from time to time: a lone participant needs no mark before somebody joins it. Other software that joins does not
    /// mark it (`markLoneParticipant`).
    func noteOthers() {
        if mark == 0 && lockFile.participantCount > 1 { ensureSessionMark() }
    }

    /// Ties to the session who is alone in it, on behalf of who is about to join; control mutex held. It would do that itself at
    /// its next look, but were it killed before, nobody could tell its count from one of an earlier session, and it would stay.
    ///
    /// Only of who lives is it known that it belongs to this session.
    static func markLoneParticipant(_ paths: SessionPaths, _ lockFile: LockFile) {
        for path in filePaths(paths) {
            guard let descriptor = try? SideFile.open(path, O_RDWR) else { continue }
            defer { SystemCalls.close(descriptor) }
            guard (try? SystemCalls.isDescriptionLocked(descriptor, path: path)) == true,
                let bytes = try? readAll(descriptor, path), let contents = Contents(bytes), contents.isCounted,
                contents.mark == 0, contents.device == lockFile.device, contents.inode == lockFile.inode
            else { continue }
            let mark = lockFile.makeSessionMark()
            try? withUnsafeBytes(of: mark) { try SystemCalls.write(descriptor, $0, at: Offset.mark, path: path) }
        }
    }

    private func sinceOffset(_ kind: VersionList.Kind, _ index: UInt32) -> Int {
        ParticipantRegister.headerByteCount + Int(index) * ParticipantRegister.entryByteCount + (kind == .live ? 8 : 16)
    }

    /// Notes a count that was just raised; list mutex held. What does not fit on the disk is not noted: it could not be given
    /// back.
    func noteAcquired(_ kind: VersionList.Kind, index: UInt32, version: UInt64) {
        let entry = ParticipantRegister.headerByteCount + Int(index) * ParticipantRegister.entryByteCount
        let end = entry + ParticipantRegister.entryByteCount
        if end > backedByteCount {
            let wanted = (end + 4095) & ~4095
            guard wanted <= ParticipantRegister.mappedByteCount,
                (try? SystemCalls.preallocate(descriptor, to: wanted, path: path)) != nil
            else { return }
            backedByteCount = wanted
        }
        ensureSessionMark()
        CShims_store_u64(base + entry, version)
        CShims_store_u64(base + sinceOffset(kind, index), UInt64(SystemCalls.realTimeNanoseconds()))
    }

    /// Notes that a count is about to be lowered; list mutex held.
    func noteReleased(_ kind: VersionList.Kind, index: UInt32) {
        let offset = sinceOffset(kind, index)
        if offset + 8 <= backedByteCount { CShims_store_u64(base + offset, 0) }
    }

    /// The participant has left in good order and counts as nobody any more; control mutex held.
    func removeFile() { try? SystemCalls.unlink(path) }

    /// Lets go of the file; without `removeFile` before, others will find its owner gone and give back what it still notes.
    func close() {
        SystemCalls.unmap(base, length: ParticipantRegister.mappedByteCount)
        SystemCalls.close(descriptor)
    }

    // MARK: Everybody's side

    /// What a register file says.
    struct Contents {
        var isCounted = false
        var pid: UInt64 = 0
        var startTime: UInt64 = 0
        var since: UInt64 = 0
        var mark: UInt32 = 0
        var device: UInt64 = 0
        var inode: UInt64 = 0
        var programName = ""
        var label = ""
        /// Seconds.
        var grace: UInt32 = 0
        /// Nanoseconds since 1970, 0 while nobody has found the owner dead.
        var foundDead: UInt64 = 0
        var entries: [(index: UInt32, kind: VersionList.Kind, version: UInt64, since: UInt64)] = []

        /// Nil where the bytes are not a register of ours.
        init?(_ bytes: [UInt8]) {
            if bytes.count < headerByteCount { return nil }
            func u32(_ at: Int) -> UInt32 { bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: at, as: UInt32.self) } }
            func u64(_ at: Int) -> UInt64 { bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: at, as: UInt64.self) } }
            func text(_ at: Int, _ lengthAt: Int) -> String {
                String(decoding: bytes[at..<at + Int(min(u32(lengthAt), UInt32(textByteCountMax)))], as: UTF8.self)
            }
            guard u64(0) == magic, u32(Offset.layoutVersion) == layoutVersion else { return nil }
            isCounted = u32(Offset.counted) == 1
            pid = u64(Offset.pid)
            startTime = u64(Offset.startTime)
            since = u64(Offset.since)
            mark = u32(Offset.mark)
            device = u64(Offset.device)
            inode = u64(Offset.inode)
            programName = text(Offset.name, Offset.nameLength)
            label = text(Offset.label, Offset.labelLength)
            grace = u32(Offset.grace)
            foundDead = u64(Offset.foundDead)
            var at = headerByteCount
            var index: UInt32 = 0
            while at + entryByteCount <= bytes.count {
                for kind in [VersionList.Kind.live, .frozen] {
                    let since = u64(at + (kind == .live ? 8 : 16))
                    if since != 0 { entries.append((index, kind, u64(at), since)) }
                }
                at += entryByteCount
                index += 1
            }
        }
    }

    static func readAll(_ descriptor: Int32, _ path: String) throws -> [UInt8] {
        let size = min(try SystemCalls.status(descriptor, path: path).size, mappedByteCount)
        var bytes = [UInt8](repeating: 0, count: size)
        let count = try bytes.withUnsafeMutableBytes { try SystemCalls.read(descriptor, into: $0, at: 0, path: path) }
        bytes.removeLast(size - count)
        return bytes
    }

    /// The paths of all register files; none where there is no such directory.
    static func filePaths(_ paths: SessionPaths) -> [String] {
        ((try? SystemCalls.names(inDirectory: paths.participants)) ?? [])
            .filter { $0.hasSuffix(fileSuffix) }.map { paths.participants + "/" + $0 }
    }

    /// True where a register file is there whose owner is gone.
    static func anyOwnerIsGone(_ paths: SessionPaths) -> Bool {
        filePaths(paths).contains { path in
            guard let descriptor = try? SideFile.open(path, O_RDONLY) else { return false }
            defer { SystemCalls.close(descriptor) }
            return (try? SystemCalls.isDescriptionLocked(descriptor, path: path)) == false
        }
    }

    /// Gives back what participants of ours that have died still held in this session, and removes their files.
    ///
    /// The caller holds the control mutex and is counted; the list mutex is taken here. As an initiator (`asInitiator`), who
    /// finds nobody counted and resets the list, no counts are touched. Files that cannot be opened (another user's) stay.
    /// - Parameter headerTop: the top ref in the data file's header. A version that it points to, and that is not the newest,
    ///   belongs to a batch that was never synced: its pin protects the file from a power cut until a writer has set the header
    ///   right, so it stays until then (file-format-3 4.4).
    /// - Parameter claiming: the label of a participant that has taken over what its dead predecessors of the same label held:
    ///   these are swept though their grace is not over.
    /// - Returns: how many dead participants were swept.
    @discardableResult
    static func sweep(
        _ paths: SessionPaths, _ lockFile: LockFile, asInitiator: Bool, headerTop: Int?, claiming: String? = nil,
        _ deadline: Deadline
    ) throws -> Int {
        var swept = 0
        for path in filePaths(paths) {
            guard let descriptor = try? SideFile.open(path, O_RDWR) else { continue }
            defer { SystemCalls.close(descriptor) }
            guard (try? SystemCalls.tryDescriptionLock(descriptor, path: path)) == true else { continue }
            var isDone = true
            if let bytes = try? readAll(descriptor, path), let contents = Contents(bytes), !asInitiator,
                contents.mark != 0, contents.mark == lockFile.sessionMark,
                contents.device == lockFile.device, contents.inode == lockFile.inode
            {
                if contents.label != claiming, try isInGrace(contents, descriptor, path) { continue }
                isDone = try giveBack(contents, descriptor, path, lockFile, headerTop, deadline)
            }
            if isDone {
                try? SystemCalls.unlink(path)
                swept += 1
            }
        }
        return swept
    }

    /// True where the dead owner's pins stay for a while. It stays counted so long: entries imply a counted participant.
    private static func isInGrace(_ contents: Contents, _ descriptor: Int32, _ path: String) throws -> Bool {
        if contents.grace == 0 || contents.entries.isEmpty { return false }
        let now = UInt64(SystemCalls.realTimeNanoseconds())
        if contents.foundDead != 0 {
            // A clock that was set back ends the grace.
            return now >= contents.foundDead && now - contents.foundDead < UInt64(contents.grace) * 1_000_000_000
        }
        try withUnsafeBytes(of: now) { try SystemCalls.write(descriptor, $0, at: Offset.foundDead, path: path) }
        return true
    }

    /// False where an entry had to stay.
    private static func giveBack(
        _ contents: Contents, _ descriptor: Int32, _ path: String, _ lockFile: LockFile, _ headerTop: Int?, _ deadline: Deadline
    ) throws -> Bool {
        func clear(_ offset: Int, byteCount: Int) throws {
            let zeros = [UInt8](repeating: 0, count: byteCount)
            try zeros.withUnsafeBytes { try SystemCalls.write(descriptor, $0, at: offset, path: path) }
        }
        var isDone = true
        if !contents.entries.isEmpty {
            try lockFile.with(.list, deadline) {
                let list = VersionList(lockFile)
                let records = try list.records()
                let newest = list.newest
                for entry in contents.entries {
                    let record = records.first { $0.index == entry.index && $0.snapshot.version == entry.version }
                    if let record, record.index != newest, record.snapshot.topRef != 0, record.snapshot.topRef == headerTop {
                        isDone = false
                        continue
                    }
                    try clear(headerByteCount + Int(entry.index) * entryByteCount + (entry.kind == .live ? 8 : 16), byteCount: 8)
                    KillPoint.reach("sweep.between-register-and-count")
                    if record != nil { try list.giveBack(entry.kind, index: entry.index, version: entry.version) }
                }
            }
        }
        if contents.isCounted && isDone {
            try clear(Offset.counted, byteCount: 4)
            // The sweeper itself is counted, so the count cannot come to 0 here.
            if lockFile.participantCount > 1 { lockFile.participantCount -= 1 }
        }
        return isDone
    }
}
