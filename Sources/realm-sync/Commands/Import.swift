import Glibc
import SharedStore
import SystemCalls

extension Command {
    static let importJSON = Command(
        name: "import",
        summary: "Make a file from JSON in the form of 'export'.",
        details: [
            "FILE gets the classes, objects and object keys that the JSON describes. It must not exist; it appears whole or not at all. "
                + "The way to make a seed file in a build job: export what you have, change the text, import it.",
        ],
        operands: [Operand(name: "JSON", help: "A file in the form that 'export' writes."), Operand(name: "FILE", help: "The realm file to make.")],
        options: [.keyFile],
        exitCodes: [(.badData, "the JSON is damaged or of another form"), (.cannotCreate, "FILE exists already")],
        run: runImport)
}

private func runImport(_ invocation: Invocation) throws -> ExitCode {
    let json = invocation.arguments.operand("JSON"), destination = invocation.arguments.operand("FILE")
    let text = try MappedText(json)
    guard JSONImporter.isExportForm(text.bytes) else {
        throw CommandFailure(.badData, "\(Text.visible(json)) is no JSON in the form of 'export': an object with \"classes\" in it")
    }
    let progress = Progress("import", total: text.bytes.count, unit: .bytes, on: invocation.console)
    let key = try Database.key(invocation)
    let count = try NewFile.make(destination, key: key) { store in
        let target = try FileImport(store) { progress.update($0.bytesDone) }
        do { try JSONImporter(text: text.bytes, target: target).run() } catch let error as JSONError {
            target.abandon()
            throw CommandFailure(.badData, "\(Text.visible(json)): \(error)")
        } catch let error as TableError {
            target.abandon()
            throw CommandFailure(.badData, "\(Text.visible(json)): \(error)")
        } catch {
            target.abandon()
            throw error
        }
        return try target.finish()
    }
    progress.end()
    try invocation.output.line("\(Text.visible(destination)): \(count) objects")
    return .ok
}

/// The bytes of a file as long as this object lives.
private final class MappedText {
    let bytes: UnsafeRawBufferPointer
    private let address: UnsafeMutableRawPointer?

    init(_ path: String) throws {
        let fd = try SystemCalls.open(path, O_RDONLY | O_NONBLOCK)
        defer { SystemCalls.close(fd) }
        let status = try SystemCalls.status(fd, path: path)
        guard status.isRegularFile else { throw CommandFailure(.noInput, "\(Text.visible(path)) is no file") }
        address = status.size == 0 ? nil : try SystemCalls.map(length: status.size, protection: PROT_READ, flags: MAP_PRIVATE, fd, path: path)
        bytes = UnsafeRawBufferPointer(start: address, count: status.size)
    }

    deinit { if let address { SystemCalls.unmap(address, length: bytes.count) } }
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
    /// Makes the file in a directory of its own beside `path`, lets `fill` fill it, syncs it and gives it its name.
    static func make<Result>(_ path: String, key: EncryptionKey?, _ fill: (Store) throws -> Result) throws -> Result {
        if (try? SystemCalls.linkStatus(path: path)) != nil { throw exists(path) }
        let place = "\(path).part-\(getpid())"
        try SystemCalls.makeDirectory(place, mode: 0o700)
        let temporary = place + "/new.realm"
        defer { remove(place) }
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
        do { try SystemCalls.renameExclusively(temporary, to: path) } catch let error as SystemError where error.code == EEXIST { throw exists(path) }
        try SystemCalls.syncDirectory(of: path)
        return result
    }

    static func exists(_ path: String) -> CommandFailure {
        CommandFailure(.cannotCreate, "\(Text.visible(path)) exists already; remove it or choose another name")
    }

    private static func remove(_ directory: String) {
        for name in (try? SystemCalls.names(inDirectory: directory)) ?? [] {
            let path = directory + "/" + name
            if (try? SystemCalls.linkStatus(path: path))?.isDirectory == true { remove(path) } else { try? SystemCalls.unlink(path) }
        }
        try? SystemCalls.removeDirectory(directory)
    }
}
