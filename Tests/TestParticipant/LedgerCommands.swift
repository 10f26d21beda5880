import Foundation
import Glibc
import SharedStore
import TestSupport

/// Commands that read and write a ledger: accounts whose balances sum to 0, one row a transfer, and a counter of transfers.
///
/// What every snapshot must satisfy: the balances sum to 0, and the counter equals the number of transfers ever made, which is
/// the highest number on a transfer row; the last `transferCountMax` transfers are kept.
enum LedgerCommands {
    nonisolated(unsafe) static var store: Store?
    nonisolated(unsafe) static var held: [(ReadTransaction, String)] = []
    nonisolated(unsafe) static var writing: WriteTransaction?

    static let accountCount = 16, transferCountMax = 40

    static var current: Store {
        get throws {
            guard let store else { throw SessionCommands.CommandError("no store is open") }
            return store
        }
    }

    static func run(_ command: String, _ arguments: [String]) throws -> String? {
        func number<T: LosslessStringConvertible>(_ index: Int, _ fallback: T) -> T {
            index < arguments.count ? T(arguments[index]) ?? fallback : fallback
        }
        switch command {
        // ledger-open PATH [durability=full|unsafe|memory] [limit=seconds] [versions=N] [key=test|fresh]
        // [key-file=PATH] [key-env=NAME]
        case "ledger-open":
            var options = StoreOptions()
            options.encryptionKey = try SessionCommands.key
            for word in arguments.dropFirst() {
                let pair = word.split(separator: "=").map(String.init)
                switch pair[0] {
                case "durability": options.durability = pair[1] == "memory" ? .memoryOnly : pair[1] == "unsafe" ? .unsafe : .full
                case "limit": options.waitLimit = .seconds(Double(pair[1]) ?? 1)
                case "key":
                    options.encryptionKey = try pair[1] == "fresh" ? .generate() : EncryptionKey((0..<64).map { UInt8($0) })
                case "key-file": options.encryptionKey = try EncryptionKey.read(file: pair[1])
                case "key-env":
                    options.encryptionKey = try EncryptionKey.read(environment: pair[1])
                    EncryptionKey.wipe(environment: pair[1])
                case "versions": options.versionCountMax = Int(pair[1])
                default: throw SessionCommands.CommandError("option \(word)?")
                }
            }
            store = try Store.open(arguments.first ?? "", options)
            return "ok"
        case "ledger-close":
            held = []
            try store?.close()
            store = nil
            return "ok"
        // ledger-setup [ROWS PAYLOAD]
        case "ledger-setup":
            try current.write { try setUp($0, payload: number(0, 20)) }
            return "ok \(try current.newestVersion())"
        // ledger-commit TIMES SEED: answers the number of the last transfer.
        case "ledger-commit":
            var random = SplitMix(seed: UInt64(number(1, 1)))
            var last: Int64 = 0
            for _ in 0..<number(0, 1) { last = try current.write { try transfer($0, &random) } }
            return "ok \(last)"
        // ledger-storm SECONDS SEED: commits and checks until the time is up; one line "commit N" after each commit.
        case "ledger-storm":
            var random = SplitMix(seed: UInt64(number(1, 1)))
            let end = Deadline.after(.seconds(number(0, 1.0)))
            while !end.hasPassed {
                let last = try current.write { try transfer($0, &random) }
                let bytes = Array("commit \(last)\n".utf8)
                _ = write(1, bytes, bytes.count)
                let reader = try current.beginRead()
                _ = try check(reader.group)
                reader.end()
            }
            return "ok"
        // ledger-batch TIMES SEED: commits without syncs; the transaction stays open.
        case "ledger-batch":
            var random = SplitMix(seed: UInt64(number(1, 1)))
            let batch = try current.beginWrite()
            writing = batch
            var last: Int64 = 0
            for _ in 0..<number(0, 1) {
                last = try transfer(batch, &random)
                try batch.commitAndContinue(syncing: false)
            }
            return "ok \(last)"
        case "ledger-begin":
            writing = try current.beginWrite()
            var random = SplitMix(seed: 1)
            _ = try writing.map { try transfer($0, &random) }
            return "ok"
        case "ledger-rollback":
            writing?.rollback()
            writing = nil
            return "ok"
        // ledger-check: the newest version; "ok VERSION TRANSFERS".
        case "ledger-check":
            let reader = try current.beginRead()
            defer { reader.end() }
            let last = try check(reader.group)
            return "ok \(reader.version) \(last)"
        // ledger-verify: all invariants of the newest version.
        case "ledger-verify":
            let reader = try current.beginRead()
            defer { reader.end() }
            let report = try Verifier.verify(
                memory: reader.memory, snapshot: reader.snapshot, form: .inPlace, format: FileHeader.currentFormat,
                physicalSize: nil, header: nil)
            return report.isSound && report.findings.isEmpty ? "ok" : "error \(report.findings.prefix(3).map(\.description))"
        // ledger-hold live|frozen: holds the newest version and remembers its content.
        case "ledger-hold":
            let reader = arguments.first == "frozen" ? try current.freeze() : try current.beginRead()
            held.append((reader, try content(reader.group)))
            return "ok \(reader.version)"
        // ledger-held: every held version still has its content.
        case "ledger-held":
            for (reader, before) in held where try content(reader.group) != before {
                return "error version \(reader.version) has changed"
            }
            return "ok \(held.count)"
        case "ledger-release":
            held = []
            return "ok"
        case "ledger-compact": return "ok \(try current.compact())"
        // ledger-exit-amid-commits: four threads commit, and the process ends by exit.
        case "ledger-exit-amid-commits":
            let store = try current
            for seed in 0..<4 {
                Thread.detachNewThread {
                    var random = SplitMix(seed: UInt64(seed))
                    while (try? store.write { try transfer($0, &random) }) != nil {}
                }
            }
            usleep(30_000)
            exit(0)
        // ledger-find-key: how often a part of the key stands in memory that a core dump would show.
        case "ledger-find-key":
            return "ok \(try DumpedMemory.count(current.options.encryptionKey)) of \(try DumpedMemory.byteCount() >> 10) KiB"
        case "ledger-size": return "ok \(try FileManager.default.attributesOfItem(atPath: current.path)[.size] as? Int ?? -1)"
        default: return nil
        }
    }

    static func setUp(_ transaction: WriteTransaction, payload: Int) throws {
        let accounts = try transaction.editor.createTable("class_Account")
        try accounts.addColumn("balance", .int)
        for _ in 0..<accountCount { _ = try accounts.createObject() }
        let transfers = try transaction.editor.createTable("class_Transfer")
        try transfers.addColumn("number", .int)
        try transfers.addColumn("note", .string)
        try transfers.addColumn("from", .link, target: accounts.table.key)
        let counter = try transaction.editor.createTable("class_Counter")
        try counter.addColumn("count", .int)
        try counter.addColumn("payload", .int)
        try counter.set("payload", of: counter.createObject(), to: .int(Int64(payload)))
    }

    /// One transfer; returns its number.
    static func transfer(_ transaction: WriteTransaction, _ random: inout SplitMix) throws -> Int64 {
        let editor = transaction.editor
        let accounts = try editor.editor(named: "class_Account"), transfers = try editor.editor(named: "class_Transfer")
        let counter = try editor.editor(named: "class_Counter")
        let from = ObjectKey(Int64(random.below(accountCount))), to = ObjectKey(Int64(random.below(accountCount)))
        let amount = Int64(random.below(1000) + 1)
        let balance = try accounts.column(named: "balance")
        try accounts.add(balance, of: from, -amount)
        try accounts.add(balance, of: to, amount)
        let count = try counter.column(named: "count")
        try counter.add(count, of: ObjectKey(0), 1)
        let number = try counter.table.find(ObjectKey(0))?.int(count) ?? 0
        let payload = try counter.table.find(ObjectKey(0))?.int(counter.column(named: "payload")) ?? 0
        let key = try transfers.createObject()
        try transfers.set("number", of: key, to: .int(number))
        try transfers.set("note", of: key, to: .string(String(repeating: "x", count: Int(payload))))
        try transfers.set("from", of: key, to: .link(accounts.table.key, from))
        while transfers.table.objectCount > transferCountMax, let oldest = try transfers.table.object(at: 0) {
            try transfers.deleteObject(oldest.key)
        }
        return number
    }

    /// Throws where the invariant does not hold; returns the number of transfers.
    static func check(_ group: Group) throws -> Int64 {
        guard let accounts = try group.table(named: "class_Account"), let transfers = try group.table(named: "class_Transfer"),
            let counter = try group.table(named: "class_Counter"), let balance = accounts.column(named: "balance"),
            let number = transfers.column(named: "number"), let count = counter.column(named: "count")
        else { throw SessionCommands.CommandError("the tables are missing") }
        var sum: Int64 = 0, last: Int64 = 0
        try accounts.forEachObject { sum += try $0.int(balance) }
        if sum != 0 { throw SessionCommands.CommandError("the balances sum to \(sum)") }
        try transfers.forEachObject { last = max(last, try $0.int(number)) }
        let counted = try counter.find(ObjectKey(0))?.int(count) ?? -1
        if last != counted {
            throw SessionCommands.CommandError("\(counted) transfers were counted, the last has number \(last)")
        }
        if transfers.objectCount != Int(min(last, Int64(transferCountMax))) {
            throw SessionCommands.CommandError("\(transfers.objectCount) transfers")
        }
        return counted
    }

    static func content(_ group: Group) throws -> String {
        var text = "\(try check(group))"
        if let accounts = try group.table(named: "class_Account"), let balance = accounts.column(named: "balance") {
            try accounts.forEachObject { text += " \(try $0.int(balance))" }
        }
        if let transfers = try group.table(named: "class_Transfer"), let number = transfers.column(named: "number") {
            try transfers.forEachObject { text += " \(try $0.int(number))" }
        }
        return text
    }
}
