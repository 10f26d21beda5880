import Glibc
import Replication
import SharedStore
import SystemCalls

extension Command {
    static let importJSON = Command(
        name: "import",
        summary: "Make a file from JSON or CSV.",
        details: [
            "JSON is what 'export' writes, with all types and object keys, or plainly {\"Class\": [objects]}, whose types are inferred: whole "
                + "numbers, numbers, strings, truth values, lists of these, and Mixed for anything else. CSV has a header row; the class is "
                + "named after the file, or by --class, and an empty field is null. '-' reads standard input.",
            "Nothing is imported otherwise than it stands there: text that is no UTF-8, numbers that would lose digits, and names that stand "
                + "twice are errors. In CSV, what begins with a zero or is too long for a number is text.",
            "Of tables that are no classes, which 'export' writes as \"tables\" without their types, nothing can be made: such a text is refused.",
            "FILE must not exist; it appears whole or not at all. The way to make a seed file in a build job: export what you have, "
                + "change the text, import it.",
        ],
        operands: [
            Operand(name: "TEXT", help: "A file of JSON, or of CSV where its name ends in .csv."),
            Operand(name: "FILE", help: "The realm file to make."),
        ],
        options: [
            .keyFile,
            .flag("csv", nil, "TEXT is CSV, whatever its name says."),
            .value("class", "c", "NAME", "TEXT is CSV, and this is the class of its rows."),
        ],
        exitCodes: [
            (.badData, "the text is damaged or of another form; the message says where"), (.cannotCreate, "FILE exists already"),
        ],
        run: runImport)
}

private func runImport(_ invocation: Invocation) throws -> ExitCode {
    let arguments = invocation.arguments
    let textPath = arguments.operand("TEXT"), destination = arguments.operand("FILE")
    if (try? SystemCalls.linkStatus(path: destination)) != nil { throw NewFile.exists(destination) }
    let text = try ImportedText(textPath)
    let isTable = arguments.has("csv") || arguments.has("class") || textPath.hasSuffix(".csv")
    let count: Int
    do {
        if isTable {
            let converted = try CommaSeparatedText(text.bytes).exportForm(
                className: arguments.string("class") ?? className(textPath))
            count = try converted.withUnsafeBytes { try makeFile(destination, $0, invocation) }
        } else if JSONImporter.isExportForm(text.bytes) {
            count = try makeFile(destination, text.bytes, invocation)
        } else {
            let converted = try PlainObjects(text.bytes).exportForm()
            count = try converted.withUnsafeBytes { try makeFile(destination, $0, invocation) }
        }
    } catch let error as JSONError {
        throw CommandFailure(.badData, "\(Text.visible(textPath)): \(error)")
    } catch let error as TableError {
        throw CommandFailure(.badData, "\(Text.visible(textPath)): \(error)")
    } catch let error as LimitError {
        throw CommandFailure(.badData, "\(Text.visible(textPath)): \(error)")
    }
    try invocation.output.line("\(Text.visible(destination)): \(Text.count(count, "object"))")
    return .ok
}

/// "/data/people.csv" gives "people".
private func className(_ path: String) -> String {
    let name = path.split(separator: "/").last.map(String.init) ?? path
    return name.split(separator: ".").first.map(String.init) ?? name
}

/// - Parameter text: in the form that 'export' writes.
func makeFile(_ destination: String, _ text: UnsafeRawBufferPointer, _ invocation: Invocation) throws -> Int {
    let progress = Progress("import", total: text.count, unit: .bytes, on: invocation.console)
    defer { progress.end() }
    return try NewFile.make(destination, key: try Database.key(invocation)) { store in
        let target = try FileImport(store) { progress.update($0.bytesDone) }
        do { try JSONImporter(text: text, target: target).run() } catch {
            target.abandon()
            throw error
        }
        return try target.finish()
    }
}

/// The bytes of a text as long as this object lives: a mapped file, or all of standard input.
private final class ImportedText {
    let bytes: UnsafeRawBufferPointer
    private let address: UnsafeMutableRawPointer?
    private let isMapped: Bool

    init(_ path: String) throws {
        if path == "-" {
            var all: [UInt8] = []
            try withUnsafeTemporaryAllocation(byteCount: 1 << 16, alignment: 16) { buffer in
                while case let count = try SystemCalls.readSome(STDIN_FILENO, into: buffer, path: "standard input"), count > 0 {
                    all.append(contentsOf: buffer[..<count])
                }
            }
            let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: max(1, all.count), alignment: 16)
            copy.copyBytes(from: all)
            bytes = UnsafeRawBufferPointer(rebasing: copy[..<all.count])
            address = copy.baseAddress
            isMapped = false
            return
        }
        let fd = try SystemCalls.open(path, O_RDONLY | O_NONBLOCK)
        defer { SystemCalls.close(fd) }
        let status = try SystemCalls.status(fd, path: path)
        guard status.isRegularFile else { throw CommandFailure(.noInput, "\(Text.visible(path)) is no file") }
        isMapped = status.size > 0
        address =
            isMapped ? try SystemCalls.map(length: status.size, protection: PROT_READ, flags: MAP_PRIVATE, fd, path: path) : nil
        bytes = UnsafeRawBufferPointer(start: address, count: status.size)
    }

    deinit {
        guard let address else { return }
        if isMapped { SystemCalls.unmap(address, length: bytes.count) } else { address.deallocate() }
    }
}

/// Commits an import in few large transactions.
private final class FileImport: ImportTarget {
    private var transaction: WriteTransaction
    private let onProgress: (ImportProgress) -> Void

    init(_ store: Store, onProgress: @escaping (ImportProgress) -> Void) throws {
        transaction = try store.beginWrite()
        self.onProgress = onProgress
    }

    var group: GroupEditor { transaction.editor }

    func checkpoint(progress: ImportProgress) throws {
        onProgress(progress)
        try transaction.commitAndContinue()
    }

    /// Ends the last transaction and counts the objects.
    func finish() throws -> Int {
        let count = try transaction.editor.group.classTables().reduce(0) { $0 + $1.objectCount }
        transaction.rollback()
        return count
    }

    func abandon() { if transaction.isOpen { transaction.rollback() } }
}

/// A realm file that appears under its name when it is whole.
enum NewFile {
    /// What this process makes from now on can be read by those only who may read a file of this mode: what is rescued of a file,
    /// or restored, must not be open to more people than the file.
    static func keepPrivate(mode: UInt32) {
        let mask = umask(0o077)
        umask(mask | (~mode & 0o066))
    }

    /// The same for what comes out of an archive: those who may enter its folder.
    static func keepPrivate(likeFolder place: any ArchivePlace) {
        guard let folder = place as? FolderPlace, let status = try? SystemCalls.status(path: folder.path) else { return }
        let mayRead = status.mode & 0o044 & (status.mode << 2)
        keepPrivate(mode: 0o600 | mayRead | mayRead >> 1)
    }

    /// Makes the file in a directory of its own beside `path`, lets `fill` fill it, syncs it and gives it its name.
    static func make<Result>(_ path: String, key: EncryptionKey?, _ fill: (Store) throws -> Result) throws -> Result {
        if (try? SystemCalls.linkStatus(path: path)) != nil { throw exists(path) }
        removeLeftovers(of: path)
        let place = "\(path).part-\(getpid())"
        try SystemCalls.makeDirectory(place, mode: 0o700)
        let temporary = place + "/new.realm"
        defer { remove(place) }
        // As long as we live: a directory without this lock was left by an import that was killed.
        let lock = try SystemCalls.open(place, O_RDONLY | O_DIRECTORY)
        defer { SystemCalls.close(lock) }
        _ = try? SystemCalls.tryLock(lock, exclusive: true, path: place)
        var options = StoreOptions()
        // Nobody but us sees the file before it is whole; one sync at the end serves all transactions.
        options.durability = .unsafe
        options.encryptionKey = key
        options.label = "\(Program.name) import"
        let store = try Store.open(temporary, options)
        let result: Result
        do {
            result = try fill(store)
            try store.close()
        } catch {
            try? store.close(force: true)
            throw error
        }
        let fd = try SystemCalls.open(temporary, O_RDWR)
        defer { SystemCalls.close(fd) }
        try SystemCalls.sync(fd, path: temporary)
        do { try SystemCalls.renameExclusively(temporary, to: path) } catch let error as SystemError where error.code == EEXIST {
            throw exists(path)
        }
        try SystemCalls.syncDirectory(of: path)
        return result
    }

    static func exists(_ path: String) -> CommandFailure {
        CommandFailure(.cannotCreate, "\(Text.visible(path)) exists already; remove it or choose another name")
    }

    private static func removeLeftovers(of path: String) {
        let slash = path.lastIndex(of: "/")
        let folder = slash.map { String(path[...$0]) } ?? "./",
            prefix = (slash.map { String(path[path.index(after: $0)...]) } ?? path) + ".part-"
        for name in (try? SystemCalls.names(inDirectory: folder)) ?? []
        where name.hasPrefix(prefix) && Int32(name.dropFirst(prefix.count)) != nil {
            guard let fd = try? SystemCalls.open(folder + name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW) else { continue }
            defer { SystemCalls.close(fd) }
            // One that is being made at this moment has no file in it yet.
            let isBegun = (try? SystemCalls.linkStatus(path: folder + name + "/new.realm")) != nil
            if isBegun, (try? SystemCalls.tryLock(fd, exclusive: true, path: folder + name)) == true { remove(folder + name) }
        }
    }

    private static func remove(_ directory: String) {
        for name in (try? SystemCalls.names(inDirectory: directory)) ?? [] {
            let path = directory + "/" + name
            if (try? SystemCalls.linkStatus(path: path))?.isDirectory == true {
                remove(path)
            } else {
                try? SystemCalls.unlink(path)
            }
        }
        try? SystemCalls.removeDirectory(directory)
    }
}
