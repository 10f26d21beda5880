import Glibc
import SystemCalls

/// Becoming a participant (coordination.md 3.2 to 3.5).
extension Participant {
    /// Rounds of opening after the file was resized or converted by the round before; more mean that somebody else undoes it.
    static let attachRoundsMax = 20

    /// More participants than any machine can have: processes times descriptors.
    private static let participantCountMax = UInt32(Int32.max)

    /// Joins the session of `path`, or starts it.
    ///
    /// - Throws: `OpenError` where the data file is at fault, `SessionError` where the others or a side file are, `SystemError`
    ///   for anything else, such as a full disk. Nothing is left open, nobody is counted.
    package static func open(_ path: String, _ options: ParticipantOptions = ParticipantOptions()) throws -> Participant {
        ForkedChild.refuse()
        ForkedChild.watch()
        let paths = SessionPaths(path)
        try checkPath(path, options)
        let deadline = options.deadline
        for _ in 0..<attachRoundsMax {
            let lockFile = try LockFile.open(paths, options.properties, deadline)
            do {
                if let participant = try attach(paths, options, lockFile, deadline) { return participant }
            } catch {
                lockFile.close()
                throw error
            }
            lockFile.close()
        }
        throw SessionError.unusable(path: path, reason: "its size was changed by somebody else each time it was set right")
    }

    /// A session of one on a database without a file.
    package static func openPrivate(_ options: ParticipantOptions = ParticipantOptions()) throws -> Participant {
        ForkedChild.refuse()
        ForkedChild.watch()
        let lockFile = try LockFile.inMemory(options.properties)
        do {
            let file = try DatabaseFile.inMemory()
            let inspection = try file.inspect()
            try lockFile.with(.list, options.deadline) { try start(lockFile, options, inspection.snapshot) }
            lockFile.participantCount = 1
            let attachment = Attachment(
                isInitiator: true, inspection: inspection, needsHistoryUpgrade: false, needsFormatUpgrade: false)
            return Participant(
                paths: SessionPaths(""), options: options, lockFile: lockFile, file: file, register: nil, attachedAs: attachment,
                warnings: [])
        } catch {
            lockFile.close()
            throw error
        }
    }

    /// What can be said before any side file is made.
    private static func checkPath(_ path: String, _ options: ParticipantOptions) throws {
        do {
            let status = try SystemCalls.status(path: path)
            if status.isDirectory { throw OpenError.isDirectory(path: path) }
            if !status.isRegularFile { throw OpenError.notARegularFile(path: path) }
            // Whoever may only read cannot take part, and a lock file of theirs would keep those out who can.
            try SystemCalls.requireWritable(path)
        } catch let error as SystemError where error.code == ENOENT {
            if !options.createsFile { throw OpenError.fileNotFound(path: path) }
        } catch let error as SystemError { throw OpenError(error, path: path) }
    }

    /// One round under the control mutex; nil where the file was changed and everything starts again.
    private static func attach(
        _ paths: SessionPaths, _ options: ParticipantOptions, _ lockFile: LockFile, _ deadline: Deadline
    ) throws -> Participant? {
        var warnings: [String] = []
        do { try SystemCalls.makeDirectory(paths.management) } catch let error as SystemError {
            if error.code != EEXIST { warnings.append("\(error)") }
        }
        try lockFile.lock(.control, deadline)
        defer { lockFile.unlock(.control) }
        KillPoint.reach("open.locked")
        let isInitiator = lockFile.participantCount == 0
        if lockFile.participantCount > participantCountMax {
            throw SessionError.unusable(
                path: lockFile.path, reason: "\(lockFile.participantCount) participants are counted, which cannot be")
        }
        if lockFile.participantCount == 1 { ParticipantRegister.markLoneParticipant(paths, lockFile) }
        let file = try openFile(paths, options, lockFile, isInitiator)
        do {
            guard
                let attachment = try isInitiator
                    ? initiate(file, paths, options, lockFile, deadline, &warnings) : join(file, options, lockFile, deadline)
            else {
                file.close()
                return nil
            }
            // The register first, which takes its time: between the count and the note whose it is, a kill leaves the count for
            // good.
            var register: ParticipantRegister?
            do { register = try ParticipantRegister.create(paths, lockFile, label: options.label, grace: options.pinGrace) } catch
            {
                warnings.append("no register of participants: \(error)")
            }
            KillPoint.reach("open.registered")
            if !isInitiator { register?.ensureSessionMark() }
            lockFile.participantCount += 1
            KillPoint.reach("open.counted")
            register?.setCounted(true)
            do {
                if register != nil, !isInitiator, ParticipantRegister.anyOwnerIsGone(paths) {
                    let top = options.durability == .memoryOnly ? nil : attachment.inspection.snapshot.topRef
                    try ParticipantRegister.sweep(paths, lockFile, asInitiator: false, headerTop: top, deadline)
                }
            } catch { warnings.append("participants that have died are counted still: \(error)") }
            return Participant(
                paths: paths, options: options, lockFile: lockFile, file: file, register: register, attachedAs: attachment,
                warnings: warnings)
        } catch {
            file.close()
            throw error
        }
    }

    private static func openFile(
        _ paths: SessionPaths, _ options: ParticipantOptions, _ lockFile: LockFile, _ isInitiator: Bool
    ) throws -> DatabaseFile {
        let path = paths.file
        let descriptor: SystemCalls.Descriptor
        do {
            // Non-blocking, so that nothing odd that took the file's place since `checkPath` makes us wait.
            let flags = O_RDWR | O_NONBLOCK | (isInitiator && options.createsFile ? O_CREAT : 0)
            descriptor = try SystemCalls.open(path, flags)
        } catch let error as SystemError { throw OpenError(error, path: path) }
        let backend = makeBackend(descriptor, path, options, lockFile)
        do {
            let status = try SystemCalls.status(descriptor, path: path)
            if !status.isRegularFile { throw OpenError.notARegularFile(path: path) }
            if isInitiator && options.durability != .memoryOnly, try isRemnantOfCreation(descriptor, status.size, options, path) {
                try SystemCalls.truncate(descriptor, to: 0, path: path)
                return try DatabaseFile(backend: backend)
            }
            // Less than a page with its metadata: nothing that was ever encrypted (file-format-3 8.8).
            let minimum = PageGeometry.smallestFileSize
            if options.encryptionKey != nil, (1..<minimum).contains(status.size), options.durability != .memoryOnly {
                throw try PlainFile.seemsToBe(descriptor, path)
                    ? OpenError.notEncrypted(path: path) : .tooSmall(path: path, size: status.size, minimum: minimum)
            }
            return try DatabaseFile(backend: backend)
        } catch {
            backend.close()
            throw error
        }
    }

    /// What is left where the making of a new file was cut short (`DatabaseFile.initialize`), by a full disk or a power cut:
    /// bytes without any content, to be made a database anew.
    ///
    /// Of a plain file zeros, fewer than a header's sector; of an encrypted one at most its first page, written for the first
    /// time, with its metadata or its data missing. A whole first page under another key is none, nor is a plain database.
    private static func isRemnantOfCreation(
        _ descriptor: SystemCalls.Descriptor, _ size: Int, _ options: ParticipantOptions, _ path: String
    ) throws -> Bool {
        let limit = options.encryptionKey == nil ? FileHeader.byteCount : 2 * PageGeometry.pageByteCount
        if size == 0 || size > limit { return false }
        return try withUnsafeTemporaryAllocation(byteCount: limit, alignment: 8) { buffer in
            let count = try SystemCalls.read(descriptor, into: buffer, at: 0, path: path)
            func isZero(_ range: Range<Int>) -> Bool { buffer[range.clamped(to: 0..<count)].allSatisfy { $0 == 0 } }
            if options.encryptionKey == nil { return isZero(0..<limit) }
            if count >= FileHeader.byteCount, let start = buffer.baseAddress, FileHeader(start).mnemonic == FileHeader.mnemonic {
                return false
            }
            if count < PageGeometry.entryByteCount { return isZero(0..<limit) }
            let half = PageGeometry.entryByteCount / 2, page = PageGeometry.pageByteCount
            return isZero(half..<page) && (isZero(0..<half) || isZero(page..<2 * page))
        }
    }

    /// The backend that the options ask for; it closes the descriptor.
    static func makeBackend(
        _ descriptor: SystemCalls.Descriptor, _ path: String, _ options: ParticipantOptions, _ lockFile: LockFile
    ) -> FileBackend {
        let backend: FileBackend =
            options.encryptionKey.map {
                EncryptedFile(descriptor: descriptor, path: path, key: $0, markers: LockFilePageMarkers(lockFile))
            } ?? PlainFile(descriptor: descriptor, path: path)
        // Without syncs, stores through a mapping are twice as fast; with them, they make the device write whole folios.
        backend.setStoresThroughMap(options.durability != .full)
        return backend
    }

    /// Steps 3 to 16 of 3.4. Nil: the file has another size now.
    private static func initiate(
        _ file: DatabaseFile, _ paths: SessionPaths, _ options: ParticipantOptions, _ lockFile: LockFile, _ deadline: Deadline,
        _ warnings: inout [String]
    ) throws -> Attachment? {
        // What a killed session of this kind left is of no use to anybody.
        if options.durability == .memoryOnly { try file.backend.truncate(to: 0) }
        if try file.backend.size() == 0 { try file.initialize(durability: options.durability) }
        let inspection = try inspect(file)
        let backup = options.keepsBackups && options.durability != .memoryOnly ? FormatBackup(paths) : nil
        do { try checkFormat(inspection, options, file.path) } catch OpenError.unsupportedFormat {
            guard let backup, backup.restore() else {
                throw OpenError.unsupportedFormat(path: file.path, format: Int(inspection.format))
            }
            return nil
        }
        let needsUpgrade = try checkHistory(inspection, options, file.path)
        if isOld(inspection) { if let reason = backup?.make(inspection.format) { warnings.append(reason) } }
        backup?.removeExpired()
        if inspection.isStreaming {
            try file.convertFromStreamingForm(inspection, durability: options.durability)
            return nil
        }
        if try file.alignSize(inspection) { return nil }
        try lockFile.with(.list, deadline) {
            // Whatever is registered belongs to sessions that are over: nobody is counted.
            lockFile.clearSessionMark()
            try ParticipantRegister.sweep(paths, lockFile, asInitiator: true, headerTop: nil, deadline)
            try start(lockFile, options, inspection.snapshot)
        }
        return Attachment(
            isInitiator: true, inspection: inspection, needsHistoryUpgrade: needsUpgrade, needsFormatUpgrade: isOld(inspection))
    }

    /// Steps 15 and 16: the session consists of one version. List mutex held, nobody is counted.
    private static func start(_ lockFile: LockFile, _ options: ParticipantOptions, _ snapshot: Snapshot) throws {
        lockFile.fileFormat = FileHeader.currentFormat
        lockFile.numberOfVersions = 1
        lockFile.latestVersion = snapshot.version
        try VersionList(lockFile).reset(to: snapshot)
        // The lock file may be a left-over that another descriptor kept us from initialising: its properties are not ours (step
        // 16).
        lockFile.durability = options.durability.rawValue
        lockFile.historyType = options.historyType.rawValue
        lockFile.historySchemaVersion = options.historyType.schemaVersion
        lockFile.commitInCriticalPhase = false
        lockFile.initiatorProcess = options.encryptionKey == nil ? 0 : UInt64(getpid())
        lockFile.nextServed = lockFile.nextTicket
    }

    /// Steps 2 to 5 of 3.5.
    private static func join(
        _ file: DatabaseFile, _ options: ParticipantOptions, _ lockFile: LockFile, _ deadline: Deadline
    ) throws -> Attachment? {
        let inspection = try inspect(file)
        try checkFormat(inspection, options, file.path)
        func compare(_ which: SessionError.Property, _ ours: String, _ theirs: String) throws {
            if ours != theirs {
                throw SessionError.incompatibleSession(path: file.path, which: which, ours: ours, theirs: theirs)
            }
        }
        try compare(
            .durability, "\(options.durability)",
            Durability(rawValue: lockFile.durability).map { "\($0)" } ?? "\(lockFile.durability)")
        try compare(.historyType, name(options.historyType.rawValue), name(lockFile.historyType))
        try compare(.historySchemaVersion, "\(options.historyType.schemaVersion)", "\(lockFile.historySchemaVersion)")
        if lockFile.fileFormat != FileHeader.currentFormat {
            throw SessionError.incompatibleLockFile(
                path: lockFile.path, what: "file format", ours: "\(FileHeader.currentFormat)", theirs: "\(lockFile.fileFormat)")
        }
        let newest = try lockFile.with(.list, deadline) { try VersionList(lockFile).newestRecord() }
        try requireTop(newest.snapshot, inspection, options, lockFile.path)
        // The header is ahead of the list, perhaps for good, where an upgrade is on its way or its process has died.
        let other = inspection.header.liveSlot == 0 ? inspection.header.formats.1 : inspection.header.formats.0
        let mayBeOld =
            options.durability != .memoryOnly && other != 0 && other < FileHeader.currentFormat
            && newest.snapshot.topRef != inspection.snapshot.topRef
        if mayBeOld && !options.acceptsOlderFormats { throw OpenError.upgradeRequired(path: file.path, format: Int(other)) }
        let isBehind = inspection.snapshot.topRef != 0 && inspection.historySchemaVersion < Int(options.historyType.schemaVersion)
        return Attachment(
            isInitiator: false, inspection: inspection, needsHistoryUpgrade: isBehind,
            needsFormatUpgrade: isOld(inspection) || mayBeOld)
    }

    /// The first commit makes a top array, and no later version goes without: one that does would pass for an empty database.
    static func requireTop(_ newest: Snapshot, _ found: FileInspection, _ options: ParticipantOptions, _ path: String) throws {
        if newest.topRef == 0, newest.version > 1, found.snapshot.topRef != 0, options.durability != .memoryOnly {
            throw SessionError.unusable(path: path, reason: "version \(newest.version) has no top array")
        }
    }

    private static func inspect(_ file: DatabaseFile) throws -> FileInspection {
        do { return try file.inspect() } catch let error as FormatError {
            throw OpenError.damaged(path: file.path, error)
        } catch let error as DecryptionError {
            if error.position == 0, let backend = file.backend as? EncryptedFile, (try? backend.seemsToBePlain()) == true {
                throw OpenError.notEncrypted(path: file.path)
            }
            throw OpenError(error)
        }
    }

    private static func isOld(_ inspection: FileInspection) -> Bool {
        inspection.snapshot.topRef != 0 && inspection.format < FileHeader.currentFormat
    }

    /// Step 10: an undecided format belongs to a file without content.
    private static func checkFormat(_ inspection: FileInspection, _ options: ParticipantOptions, _ path: String) throws {
        switch inspection.format {
        case FileHeader.currentFormat: return
        case 0 where inspection.snapshot.topRef == 0: return
        case let format where FileHeader.readableFormats.contains(format):
            if !options.acceptsOlderFormats { throw OpenError.upgradeRequired(path: path, format: Int(format)) }
        case let format: throw OpenError.unsupportedFormat(path: path, format: Int(format))
        }
    }

    /// Step 11. True where the stored history is older than ours.
    private static func checkHistory(_ inspection: FileInspection, _ options: ParticipantOptions, _ path: String) throws -> Bool {
        let stored = inspection.historyType
        if stored != 0 && stored != Int(options.historyType.rawValue) {
            throw OpenError.incompatibleHistory(path: path, found: stored, expected: Int(options.historyType.rawValue))
        }
        let ours = Int(options.historyType.schemaVersion)
        if inspection.historySchemaVersion > ours {
            throw OpenError.incompatibleHistorySchema(path: path, found: inspection.historySchemaVersion, supported: ours)
        }
        return inspection.snapshot.topRef != 0 && inspection.historySchemaVersion < ours
    }

    private static func name(_ historyType: Int8) -> String {
        switch historyType {
        case 0: "none"
        case 1: "out of file"
        case 2: "in file"
        case 3: "sync client"
        case 4: "sync server"
        default: "\(historyType)"
        }
    }
}
