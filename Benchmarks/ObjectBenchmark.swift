import Foundation
import RealmSwift
import SharedStore

final class BenchmarkItem: Object {
    @Persisted(primaryKey: true) var id: Int
    @Persisted var age: Int
    @Persisted var name: String
}

/// The object API, beside the storage level under it and beside SQLite with the same model.
enum ObjectBenchmark {
    static func run(_ place: Workplace, count: Int) throws {
        printTitle("The object API: \(count) objects (primary key, int, string)")
        var configuration = Realm.Configuration(fileURL: URL(fileURLWithPath: place.file("objects.realm")))
        configuration.objectTypes = [BenchmarkItem.self]
        let realm = try Realm(configuration: configuration)

        let below = try storageLevel(place, count)
        let creating = try seconds {
            try realm.write {
                for i in 0..<count {
                    let item = BenchmarkItem()
                    item.id = i
                    item.age = i % 100
                    item.name = WriteBenchmarks.name(i)
                    realm.add(item)
                }
            }
        }
        let sqlite = SQLitePeer(place.file("objects.sqlite"), isSynchronous: true)
        let theirs = seconds {
            sqlite.run("BEGIN")
            for i in 0..<count { sqlite.insert(Int64(i), Int64(i % 100), WriteBenchmarks.name(i)) }
            sqlite.run("COMMIT")
        }
        printLine("create and add", Double(count) / creating, "objects/s", "\(ratio(below.creating, creating)) storage, \(ratio(theirs, creating)) SQLite")

        let results = realm.objects(BenchmarkItem.self)
        let loop = median(3) {
            var sum = 0
            for item in results { sum &+= item.age }
            keep(sum)
        }
        printLine("loop over results, one int", loop / Double(count), "s/object", "\(ratio(below.loop, loop)) storage row by row")
        let two = median(3) {
            var sum = 0
            for item in results { sum &+= item.age &+ item.id }
            keep(sum)
        }
        printLine("loop over results, two ints", two / Double(count), "s/object")
        if let item = results.first {
            let reads = 5_000_000
            let time = median(3) {
                var sum = 0
                for _ in 0..<reads { sum &+= item.age }
                keep(sum)
            }
            printLine("read an int of a managed object", time / Double(reads), "s", "\(ratio(below.read, time / Double(reads))) storage")
        }
        let lookups = 200_000
        let byKey = median(3) {
            var sum = 0, k = 1
            for _ in 0..<lookups {
                k = (k &* 48_271) % count
                sum &+= realm.object(ofType: BenchmarkItem.self, forPrimaryKey: k)?.age ?? 0
            }
            keep(sum)
        }
        let theirLookup = seconds {
            var k: Int64 = 1
            for _ in 0..<lookups {
                k = (k &* 48_271) % Int64(count)
                keep(sqlite.age(k))
            }
        }
        printLine("object(ofType:forPrimaryKey:) and an int", Double(lookups) / byKey, "/s", "\(ratio(theirLookup, byKey)) SQLite")
        let changing = try seconds { try realm.write { for item in results { item.age &+= 1 } } }
        let theirChange = seconds { sqlite.run("UPDATE item SET age = age + 1") }
        printLine("change an int of every object", Double(count) / changing, "objects/s", "\(ratio(theirChange, changing)) SQLite")

        let filter = median(5) { keep(results.filter("age >= 50 AND name CONTAINS '7'").count) }
        let theirFilter = median(3) { keep(sqlite.number("SELECT count(*) FROM item WHERE age >= 50 AND name LIKE '%7%'")) }
        printLine("count of a filter on int and string", filter, "s", "\(ratio(theirFilter, filter)) SQLite")
        let sort = median(3) { keep(results.sorted(byKeyPath: "age").last?.id) }
        let theirSort = median(3) { keep(sqlite.number("SELECT id FROM (SELECT id FROM item ORDER BY age) LIMIT 1 OFFSET \(count - 1)")) }
        printLine("sort by an int", sort, "s", "\(ratio(theirSort, sort)) SQLite")
        let sum: Double = median(5) { keep(results.sum(of: \.age) as Int) }
        let theirSum = median(3) { keep(sqlite.number("SELECT sum(age) FROM item")) }
        printLine("sum of a property", sum, "s", "\(ratio(theirSum, sum)) SQLite")

        var times: [[Double]] = [[], []]
        for (i, observes) in [false, true].enumerated() {
            let token = observes ? results.filter("age > 1000000").observe { _ in } : nil
            for round in 0..<200 {
                guard let item = realm.object(ofType: BenchmarkItem.self, forPrimaryKey: round) else { continue }
                times[i].append(try seconds {
                    try realm.write { item.age = round }
                    realm.refresh()
                })
            }
            token?.invalidate()
        }
        printLine("commit of one change and refresh", middle(times[0]), "s")
        printLine("the same with an observer of a filter", middle(times[1]), "s")
    }

    private static func middle(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }

    /// The same objects without the object API: seconds to make all, to loop over all rows, to read one int of a row.
    private static func storageLevel(_ place: Workplace, _ count: Int) throws -> (creating: Double, loop: Double, read: Double) {
        let store = try Store.open(place.file("below.realm"), ReadBenchmarks.options(.full))
        let creating = try seconds {
            try store.write { transaction in
                let items = try transaction.editor.createTable("class_Item")
                try items.addPrimaryKeyColumn("id", .int)
                let age = try items.addColumn("age", .int), name = try items.addColumn("name", .string)
                for i in 0..<count {
                    let (key, _) = try items.createObject(primaryKey: .int(Int64(i)))
                    try items.setInt(age, of: key, to: Int64(i % 100))
                    try items.set(name, of: key, to: .string(WriteBenchmarks.name(i)))
                }
            }
        }
        let reading = try store.beginRead()
        defer { reading.end() }
        guard let table = try reading.group.table(ofClass: "Item"), let age = table.column(named: "age"), let row = try table.object(at: 0) else { return (creating, 0, 0) }
        let loop = try median(3) {
            var sum: Int64 = 0
            try table.forEachObject { sum &+= try $0.int(age) }
            keep(sum)
        }
        let reads = 5_000_000
        let read = try median(3) {
            var sum: Int64 = 0
            for _ in 0..<reads { sum &+= try row.int(age) }
            keep(sum)
        }
        return (creating, loop, read / Double(reads))
    }
}
