import Foundation
import SharedStore
import SystemCalls

/// One of many processes that open, read, write, hold and close a file at random, until they are killed (see `KillStormTests`).
///
/// Invariant over two tables: for each process number `account.value` equals the number of its rows in `entry`. Each line says
/// what was acknowledged: `ack VALUE`, or what took long: `slow WHAT MILLISECONDS`, or what is wrong: `wrong TEXT`.
func runStormCommand(_ arguments: [String]) throws -> Int32 {
    guard arguments.count >= 3, let number = Int64(arguments[1]), let seed = UInt64(arguments[2]) else {
        FileHandle.standardError.write(Data("usage: storm FILE NUMBER SEED [KEYBYTE|key=test]\n".utf8))
        return 64
    }
    var storm = Storm(path: arguments[0], number: number, seed: seed)
    if arguments.last == "key=test" {
        storm.options.encryptionKey = try EncryptionKey((0..<64).map { UInt8($0) })
    } else if arguments.count > 3, let byte = UInt8(arguments[3]) {
        storm.options.encryptionKey = try EncryptionKey([UInt8](repeating: byte, count: 64))
    }
    while true { try storm.session() }
}

struct Storm {
    let path: String
    let number: Int64
    var options = StoreOptions()
    private var state: UInt64

    init(path: String, number: Int64, seed: UInt64) {
        self.path = path
        self.number = number
        state = seed
        options.durability = .unsafe
        options.waitLimit = .seconds(20)
    }

    private mutating func random(_ limit: UInt64) -> UInt64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return (state >> 33) % limit
    }

    private func say(_ text: String) { FileHandle.standardOutput.write(Data((text + "\n").utf8)) }

    /// Runs `body` and tells when it took longer than a second.
    private func timed<R>(_ what: String, _ body: () throws -> R) rethrows -> R {
        let begin = SystemCalls.monotonicNanoseconds()
        let result = try body()
        let milliseconds = (SystemCalls.monotonicNanoseconds() - begin) / 1_000_000
        if milliseconds > 1000 { say("slow \(what) \(milliseconds)") }
        return result
    }

    mutating func session() throws {
        let store = try timed("open") { try Store.open(path, options) }
        var held: [ReadTransaction] = []
        for _ in 0..<(1 + random(40)) {
            switch random(10) {
            case 0..<6: try write(store)
            case 6, 7: try check(timed("read") { try store.beginRead() })
            case 8: held.append(try random(2) == 0 ? store.beginRead() : store.freeze())
            default: if !held.isEmpty { try check(held.removeFirst()) }
            }
            if random(8) == 0 { usleep(UInt32(random(3000))) }
        }
        for transaction in held { try check(transaction) }
        try timed("close") { try store.close() }
    }

    private mutating func write(_ store: Store) throws {
        let rollsBack = random(6) == 0
        let transaction = try timed("begin write") { try store.beginWrite() }
        let editor = transaction.editor
        let accounts: TableEditor, entries: TableEditor
        if try editor.group.table(ofClass: "Account") == nil {
            accounts = try editor.createTable("class_Account")
            try accounts.addPrimaryKeyColumn("id", .int)
            try accounts.addColumn("value", .int)
            entries = try editor.createTable("class_Entry")
            try entries.addColumn("owner", .link, target: accounts.table.key)
            try entries.addColumn("text", .string)
        } else {
            accounts = try editor.editor(named: "class_Account")
            entries = try editor.editor(named: "class_Entry")
        }
        let (key, _) = try accounts.createObject(primaryKey: .int(number))
        let column = try accounts.column(named: "value")
        guard let row = try accounts.table.find(key) else { return say("wrong the account just made is not there") }
        let value = try row.int(column) + 1
        try accounts.set(column, of: key, to: .int(value))
        let entry = try entries.createObject()
        try entries.set("owner", of: entry, to: .link(accounts.table.key, key))
        try entries.set("text", of: entry, to: .string(String(repeating: "x", count: Int(random(300)))))
        if rollsBack { return transaction.rollback() }
        try timed("commit") { _ = try transaction.commit() }
        say("ack \(value)")
    }

    private func check(_ transaction: ReadTransaction) throws {
        defer { transaction.end() }
        guard let accounts = try transaction.group.table(ofClass: "Account"),
            let entries = try transaction.group.table(ofClass: "Entry"),
            let value = accounts.column(named: "value")
        else { return }
        guard let backlinks = accounts.backlinkColumns.first else { return say("wrong no backlinks") }
        var sum = 0
        try accounts.forEachObject { row in
            let count = try row.backlinkCount(backlinks)
            if Int(try row.int(value)) != count {
                say("wrong version \(transaction.version): account \(row.key) has \(try row.int(value)), entries \(count)")
            }
            sum += count
        }
        if sum != entries.objectCount {
            say("wrong version \(transaction.version): \(entries.objectCount) entries, \(sum) owned")
        }
    }
}
