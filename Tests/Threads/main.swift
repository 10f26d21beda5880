// What several threads do with the same file in one process, small enough to be built for a sanitizer within a minute or two:
// `Scripts/sanitize thread --short`, which the build server runs, watches it.
//
//   Threads [COMMITS]     commits of each writer (40)
//
// Two objects hold numbers that cancel each other out, in every version. Writers of all kinds change them, readers of another
// session of the process add them up, each of these keeps an old version meanwhile, somebody hears of the commits. Then the same
// with an encrypted file. The exit status is 1 where a sum was not 0 or a commit is missing.
import Foundation
import Notifier
import SharedStore
import Synchronization
import TestSupport

struct Wrong: Error, CustomStringConvertible { let description: String }

final class Ledger: Sendable {
    let store: Store
    let keys: [ObjectKey]

    init(_ store: Store) throws {
        self.store = store
        keys = try store.write { transaction in
            let items = try transaction.editor.createTable("class_Item")
            try items.addColumn("number", .int)
            try items.addColumn("text", .string)
            return try (0..<2).map { _ in try items.createObject() }
        }
    }

    static func change(_ keys: [ObjectKey], _ transaction: WriteTransaction) throws {
        let items = try transaction.editor.editor(named: "class_Item")
        let number = try items.column(named: "number"), text = try items.column(named: "text")
        let next = Int64(transaction.baseVersion)
        for (key, value) in zip(keys, [next, -next]) {
            try items.setInt(number, of: key, to: value)
            try items.set(text, of: key, to: .string(String(repeating: "x", count: Int(next % 50) * 100)))
        }
    }

    /// The three ways to write.
    func commit(_ way: Int) throws {
        switch way % 3 {
        case 0: try store.write { try Ledger.change(keys, $0) }
        case 1:
            let transaction = try store.beginMovableWrite()
            try Ledger.change(keys, transaction)
            try transaction.commit()
        default:
            let turn = Mutex<Result<WriteTurn, any Error>?>(nil), came = DispatchSemaphore(value: 0)
            try store.requestWriteTurn { result in
                turn.withLock { $0 = result }
                came.signal()
            }
            came.wait()
            guard let transaction = try turn.withLock({ $0 })?.get().begin() else { throw Wrong(description: "no turn came") }
            try Ledger.change(keys, transaction)
            try transaction.commit()
        }
    }

    static func check(_ keys: [ObjectKey], _ reading: ReadTransaction) throws {
        try withExtendedLifetime(reading) {
            guard let table = try reading.group.table(ofClass: "Item"), let number = table.column(named: "number"),
                let text = table.column(named: "text")
            else { throw Wrong(description: "no table") }
            let rows = try keys.compactMap { try table.find($0) }
            let sum = try rows.reduce(0) { try $0 + $1.int(number) }
            let lengths = try rows.map { try $0.string(text)?.utf8.count ?? -1 }
            if rows.count != 2 || sum != 0 || lengths[0] != lengths[1] {
                throw Wrong(description: "\(rows.count) rows, sum \(sum), texts of \(lengths)")
            }
        }
    }
}

func run(_ name: String, _ commits: Int, _ key: EncryptionKey?) throws {
    let scratch = ScratchDirectory(name), path = scratch.file("a.realm")
    var options = StoreOptions()
    options.durability = .unsafe
    options.encryptionKey = key
    options.waitLimit = .seconds(300)
    let ledger = try Ledger(try Store.open(path, options)), other = try Store.open(path, options)
    let begin = try ledger.store.newestVersion()
    let heard = Atomic(0), looks = Atomic(0), isDone = Atomic(false)
    let failures = Mutex<[String]>([])
    let writers = DispatchGroup(), readers = DispatchGroup()
    @Sendable func start(_ group: DispatchGroup, _ body: @escaping @Sendable () throws -> Void) {
        group.enter()
        Thread.detachNewThread {
            do { try body() } catch { failures.withLock { $0.append("\(error)") } }
            group.leave()
        }
    }
    withExtendedLifetime(other.subscribe { _ in heard.add(1, ordering: .relaxed) }) {
        for reader in 0..<3 {
            start(readers) {
                let kept = try other.freeze()
                defer { kept.end() }
                while !isDone.load(ordering: .acquiring) {
                    try Ledger.check(ledger.keys, reader == 0 ? ledger.store.beginRead() : other.beginRead())
                    try Ledger.check(ledger.keys, kept)
                    looks.add(1, ordering: .relaxed)
                }
            }
        }
        for writer in 0..<3 { start(writers) { for _ in 0..<commits { try ledger.commit(writer) } } }
        writers.wait()
        isDone.store(true, ordering: .releasing)
        readers.wait()
    }
    let count = try other.newestVersion() - begin
    if count != 3 * commits { failures.withLock { $0.append("\(count) commits instead of \(3 * commits)") } }
    print("\(name): \(count) commits, \(looks.load(ordering: .relaxed)) looks, heard of \(heard.load(ordering: .relaxed)) times")
    let found = failures.withLock { $0 }
    if !found.isEmpty { throw Wrong(description: found.joined(separator: "\n")) }
    try other.close(force: true)
    try ledger.store.close(force: true)
}

do {
    let commits = CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 40
    try run("plain", commits, nil)
    try run("encrypted", commits, TestKeys.test)
} catch {
    FileHandle.standardError.write(Data("Threads: \(error)\n".utf8))
    exit(1)
}
