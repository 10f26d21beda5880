import Glibc
import SharedStore
import SystemCalls

/// Writing, beside SQLite and LMDB doing the same work in the same run.
enum WriteBenchmarks {
    static func name(_ i: Int) -> String { "name \(i % 1000)" }

    /// The objects that nearly all of the benchmarks use, in one transaction.
    static func fill(_ store: Store, _ count: Int) throws {
        try store.write { transaction in
            let items = try transaction.editor.createTable("class_Item")
            try items.addPrimaryKeyColumn("id", .int)
            let age = try items.addColumn("age", .int), name = try items.addColumn("name", .string)
            for i in 0..<count {
                let (key, _) = try items.createObject(primaryKey: .int(Int64(i)))
                try items.setInt(age, of: key, to: Int64(i % 100))
                try items.set(name, of: key, to: .string(Self.name(i)))
            }
        }
    }

    /// Makes the file that the reading benchmarks use.
    static func bulk(_ place: Workplace, count: Int) throws -> String {
        printTitle("Bulk insertion of \(count) objects in one transaction")
        let path = place.file("bulk.realm")
        let store = try Store.open(path, ReadBenchmarks.options())
        let ours = try seconds {
            try fill(store, count)
        }
        try store.close()
        let sqlite = SQLitePeer(place.file("bulk.sqlite"), isSynchronous: false)
        let theirs = seconds {
            sqlite.run("BEGIN")
            for i in 0..<count { sqlite.insert(Int64(i), Int64(i % 100), name(i)) }
            sqlite.run("COMMIT")
        }
        let lmdb = LMDBPeer(place.file("bulk.lmdb"), isSynchronous: false)
        let others = seconds {
            lmdb.begin()
            for i in 0..<count { lmdb.put(Int64(i), Int64(i % 100), name(i)) }
            lmdb.commit()
        }
        printLine("ours", Double(count) / ours, "objects/s", "\(ratio(theirs, ours)) SQLite, \(ratio(others, ours)) LMDB")
        printLine("SQLite", Double(count) / theirs, "rows/s")
        printLine("LMDB", Double(count) / others, "entries/s")

        let lookups = 200_000
        var k: Int64 = 1
        let sqliteLookup = seconds { for _ in 0..<lookups { k = (k &* 48_271) % Int64(count); keep(sqlite.age(k)) } }
        lmdb.begin(readOnly: true)
        let lmdbLookup = seconds { for _ in 0..<lookups { k = (k &* 48_271) % Int64(count); keep(lmdb.age(k)) } }
        let lmdbScan = seconds { keep(lmdb.sumOfAges()) }
        lmdb.commit()
        let sqliteScan = seconds { keep(sqlite.number("SELECT sum(age) FROM item")) }
        printTitle("The peers' reading, for comparison with the lines below")
        printLine("SQLite: find by primary key", Double(lookups) / sqliteLookup, "/s")
        printLine("LMDB: find by key", Double(lookups) / lmdbLookup, "/s")
        printLine("SQLite: sum of an int column", Double(count) / sqliteScan, "values/s")
        printLine("LMDB: sum over a cursor", Double(count) / lmdbScan, "values/s")
        return path
    }

    /// Small commits without syncs, ours alone.
    static func commits(_ place: Workplace, count: Int) throws {
        let store = try Store.open(place.file("commits.realm"), ReadBenchmarks.options(.unsafe))
        try makeItems(store)
        let time = try seconds { try changeItems(store, count) }
        printLine("ours, without syncs", Double(count) / time, "commits/s")
        try store.close()
    }

    private static func makeItems(_ store: Store) throws {
        try store.write { transaction in
            let items = try transaction.editor.createTable("class_Item")
            try items.addPrimaryKeyColumn("id", .int)
            try items.addColumn("age", .int)
            for i in 0..<1000 { _ = try items.createObject(primaryKey: .int(Int64(i))) }
        }
    }

    private static func changeItems(_ store: Store, _ count: Int) throws {
        for i in 0..<count {
            let transaction = try store.beginWrite()
            let items = try transaction.editor.editor(named: "class_Item")
            try items.setInt(items.column(named: "age"), of: ObjectKey(Int64(i % 1000)), to: Int64(i))
            try transaction.commit()
        }
    }

    static func smallCommits(_ place: Workplace) throws {
        printTitle("Small commits: one int of one object of 1000")
        let syncFile = try SystemCalls.open(place.file("sync"), O_RDWR | O_CREAT)
        defer { SystemCalls.close(syncFile) }
        var page = [UInt8](repeating: 1, count: 4096)
        try page.withUnsafeBytes { try SystemCalls.write(syncFile, $0, at: 0) }
        try SystemCalls.sync(syncFile)
        let sync = try median(101) {
            page[0] &+= 1
            try page.withUnsafeBytes { try SystemCalls.write(syncFile, $0, at: 0) }
            try SystemCalls.syncData(syncFile)
        }
        printLine("this machine's own 4 KiB write and fdatasync", sync, "s")
        for (label, durability, count) in [("with syncs", Durability.full, 1500), ("without syncs", .unsafe, 60_000)] {
            let store = try Store.open(place.file("small-\(durability.rawValue).realm"), ReadBenchmarks.options(durability))
            try makeItems(store)
            let ours = try seconds { try changeItems(store, count) }
            let group = durability == .full ? 100 : 0
            let grouped =
                try group == 0
                ? 0
                : seconds {
                    for first in stride(from: 0, to: count, by: group) {
                        let transaction = try store.beginWrite()
                        for i in first..<first + group {
                            let items = try transaction.editor.editor(named: "class_Item")
                            try items.setInt(items.column(named: "age"), of: ObjectKey(Int64(i % 1000)), to: Int64(i))
                            try transaction.commitAndContinue(syncing: false)
                        }
                        try transaction.sync()
                        transaction.rollback()
                    }
                }
            try store.close()
            let sqlite = SQLitePeer(place.file("small-\(durability.rawValue).sqlite"), isSynchronous: durability == .full)
            for i in 0..<1000 { sqlite.insert(Int64(i), 0, "") }
            let theirs = seconds { for i in 0..<count { sqlite.setAge(Int64(i % 1000), Int64(i)) } }
            let lmdb = LMDBPeer(place.file("small-\(durability.rawValue).lmdb"), isSynchronous: durability == .full)
            let others = seconds {
                for i in 0..<count {
                    lmdb.begin()
                    lmdb.put(Int64(i % 1000), Int64(i), "")
                    lmdb.commit()
                }
            }
            let n = Double(count)
            printLine("ours, \(label)", n / ours, "commits/s", "\(ratio(theirs, ours)) SQLite, \(ratio(others, ours)) LMDB")
            if group > 0 {
                printLine(
                    "ours, one sync for each group of \(group)", n / grouped, "commits/s",
                    "\(ratio(others, grouped)) LMDB syncing each")
            }
            printLine("SQLite, \(label)", n / theirs, "commits/s")
            printLine("LMDB, \(label)", n / others, "commits/s")
        }
    }
}
