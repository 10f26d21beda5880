import Foundation
import RealmSwift
import SharedStore

final class BenchmarkItem: Object {
    @Persisted(primaryKey: true) var id: Int
    @Persisted var age: Int
    @Persisted var name: String
}

final class BenchmarkBox: Object {
    @Persisted var numbers: List<Int>
    @Persisted var items: List<BenchmarkItem>
}

/// The object API, beside the storage level under it and beside SQLite with the same model.
///
/// Loops are timed by the processor time of the thread, the best of some rounds, on all three sides: what else runs on the
/// machine then matters less. What waits for the disk is timed by the clock.
enum ObjectBenchmark {
    static func run(_ place: Workplace, count: Int) throws {
        printTitle("The object API: \(count) objects (primary key, int, string)")
        var configuration = Realm.Configuration(fileURL: URL(fileURLWithPath: place.file("objects.realm")))
        configuration.objectTypes = [BenchmarkItem.self, BenchmarkBox.self]
        let realm = try Realm(configuration: configuration)
        let below = try StorageLevel(place, count)
        let sqlite = SQLitePeer(place.file("objects.sqlite"), isSynchronous: true)

        try creating(realm, below, sqlite, count)
        try looping(realm, below, sqlite, count)
        try lookingUp(realm, sqlite, count)
        try changing(realm, below, sqlite, count)
        try listing(realm, count)
        querying(realm, sqlite, count)
        try committing(realm)
    }

    /// Processor time of this thread, the least of some rounds.
    static func busy(_ rounds: Int = 5, _ body: () throws -> Void) rethrows -> Double {
        var best = Double.infinity
        for _ in 0..<rounds {
            let begin = processorTime()
            try body()
            best = min(best, processorTime() - begin)
        }
        return best
    }

    private static func processorTime() -> Double {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    /// The loops over all objects alone, `count` times a thousand objects each.
    static func loops(_ place: Workplace, count: Int) throws {
        var configuration = Realm.Configuration(fileURL: URL(fileURLWithPath: place.file("loops.realm")))
        configuration.objectTypes = [BenchmarkItem.self, BenchmarkBox.self]
        let realm = try Realm(configuration: configuration)
        try realm.write {
            for i in 0..<1000 { realm.add(BenchmarkItem(value: ["id": i, "age": i % 100, "name": WriteBenchmarks.name(i)])) }
        }
        let results = realm.objects(BenchmarkItem.self)
        func line(_ name: String, _ body: () -> Void) {
            let time = busy { for _ in 0..<count { body() } }
            printLine(name, time / Double(count) / 1000, "s/object")
        }
        line("one int") { oneInt(results) }
        line("two ints") { twoInts(results) }
        line("int and string") { intAndString(results) }
    }

    @inline(never)
    private static func oneInt(_ results: Results<BenchmarkItem>) {
        var sum = 0
        for item in results { sum &+= item.age }
        keep(sum)
    }

    @inline(never)
    private static func twoInts(_ results: Results<BenchmarkItem>) {
        var sum = 0
        for item in results { sum &+= item.age &+ item.id }
        keep(sum)
    }

    @inline(never)
    private static func intAndString(_ results: Results<BenchmarkItem>) {
        var sum = 0
        for item in results { sum &+= item.age &+ item.name.utf8.count }
        keep(sum)
    }

    private static func creating(_ realm: Realm, _ below: StorageLevel, _ sqlite: SQLitePeer, _ count: Int) throws {
        var ours = 0.0, theirs = 0.0
        let clock = try seconds {
            ours = try busy(1) {
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
        }
        let theirClock = seconds {
            theirs = busy(1) {
                sqlite.run("BEGIN")
                for i in 0..<count { sqlite.insert(Int64(i), Int64(i % 100), WriteBenchmarks.name(i)) }
                sqlite.run("COMMIT")
            }
        }
        printLine(
            "create and add, with the commit", Double(count) / clock, "objects/s",
            "\(ratio(below.creatingClock, clock)) storage, \(ratio(theirClock, clock)) SQLite")
        printLine(
            "the same by processor time", Double(count) / ours, "objects/s",
            "\(ratio(below.creating, ours)) storage, \(ratio(theirs, ours)) SQLite")
    }

    private static func looping(_ realm: Realm, _ below: StorageLevel, _ sqlite: SQLitePeer, _ count: Int) throws {
        let results = realm.objects(BenchmarkItem.self)
        func line(_ name: String, _ storage: Double?, _ sql: String, _ body: () -> Void) {
            let ours = busy { body() }, theirs = busy(3) { keep(sqlite.sum(sql)) }
            let under = storage.map { "\(ratio($0, ours)) storage row by row, " } ?? ""
            printLine(name, ours / Double(count), "s/object", "\(under)\(ratio(theirs, ours)) SQLite")
        }
        line("loop over results, one int", below.loop, "SELECT age FROM item") { oneInt(results) }
        line("loop over results, two ints", below.loopOfTwo, "SELECT age, id FROM item") { twoInts(results) }
        line("loop over results, int and string", below.loopOfText, "SELECT age, name FROM item") { intAndString(results) }
        line("results[i], one int", nil, "SELECT age FROM item") {
            var sum = 0
            for i in 0..<count { sum &+= results[i].age }
            keep(sum)
        }
        line("filtered and sorted results, one int", nil, "SELECT age FROM item WHERE age >= 0 ORDER BY id") {
            var sum = 0
            for item in results.filter("age >= 0").sorted(byKeyPath: "id") { sum &+= item.age }
            keep(sum)
        }
        guard let item = results.first else { return }
        let reads = 5_000_000
        let int = busy {
            var sum = 0
            for _ in 0..<reads { sum &+= item.age }
            keep(sum)
        }
        printLine(
            "read an int of a managed object", int / Double(reads), "s", "\(ratio(below.read, int / Double(reads))) storage")
        let text = busy {
            var sum = 0
            for _ in 0..<reads { sum &+= item.name.utf8.count }
            keep(sum)
        }
        printLine(
            "read a string of a managed object", text / Double(reads), "s",
            "\(ratio(below.readText, text / Double(reads))) storage")
    }

    private static func lookingUp(_ realm: Realm, _ sqlite: SQLitePeer, _ count: Int) throws {
        let lookups = 200_000
        let ours = busy(3) {
            var sum = 0, k = 1
            for _ in 0..<lookups {
                k = (k &* 48_271) % count
                sum &+= realm.object(ofType: BenchmarkItem.self, forPrimaryKey: k)?.age ?? 0
            }
            keep(sum)
        }
        let theirs = busy(3) {
            var k: Int64 = 1
            for _ in 0..<lookups {
                k = (k &* 48_271) % Int64(count)
                keep(sqlite.age(k))
            }
        }
        printLine("object(ofType:forPrimaryKey:) and an int", ours / Double(lookups), "s", "\(ratio(theirs, ours)) SQLite")
    }

    private static func changing(_ realm: Realm, _ below: StorageLevel, _ sqlite: SQLitePeer, _ count: Int) throws {
        let results = realm.objects(BenchmarkItem.self)
        let clock = try seconds { try realm.write { for item in results { item.age &+= 1 } } }
        let theirs = seconds { sqlite.run("UPDATE item SET age = age + 1") }
        printLine(
            "change an int of every object, with the commit", Double(count) / clock, "objects/s", "\(ratio(theirs, clock)) SQLite"
        )
        var loop = 0.0
        let again = try busy(3) { try realm.write { loop = busy(1) { for item in results { item.age &+= 1 } } } }
        let under = try below.changing()
        printLine(
            "the same by processor time", Double(count) / again, "objects/s",
            "\(ratio(under, again)) storage; the loop alone \(short(loop / Double(count)))s/object")
        let text = try busy(1) { try realm.write { for item in results { item.name = "other" } } }
        printLine("change a string of every object", Double(count) / text, "objects/s")
    }

    private static func listing(_ realm: Realm, _ count: Int) throws {
        let box = BenchmarkBox()
        try realm.write {
            realm.add(box)
            box.numbers.append(objectsIn: 0..<min(count, 100_000))
            box.items.append(objectsIn: realm.objects(BenchmarkItem.self).prefix(100_000))
        }
        let numbers = box.numbers, items = box.items
        func line(_ name: String, _ body: () -> Int) {
            printLine(name, busy { keep(body()) } / Double(numbers.count), "s/element")
        }
        line("list[i] of ints") { (0..<numbers.count).reduce(0) { $0 &+ numbers[$1] } }
        line("loop over a list of ints") { numbers.reduce(0) { $0 &+ $1 } }
        line("list[i] of objects, one int") { (0..<items.count).reduce(0) { $0 &+ items[$1].age } }
        line("loop over a list of objects, one int") { items.reduce(0) { $0 &+ $1.age } }
    }

    private static func querying(_ realm: Realm, _ sqlite: SQLitePeer, _ count: Int) {
        let results = realm.objects(BenchmarkItem.self)
        let filter = busy { keep(results.filter("age >= 50 AND name CONTAINS '7'").count) }
        let theirFilter = busy(3) { keep(sqlite.number("SELECT count(*) FROM item WHERE age >= 50 AND name LIKE '%7%'")) }
        printLine("count of a filter on int and string", filter, "s", "\(ratio(theirFilter, filter)) SQLite")
        let sort = busy(3) { keep(results.sorted(byKeyPath: "age").last?.id) }
        let theirSort = busy(3) {
            keep(sqlite.number("SELECT id FROM (SELECT id FROM item ORDER BY age) LIMIT 1 OFFSET \(count - 1)"))
        }
        printLine("sort by an int", sort, "s", "\(ratio(theirSort, sort)) SQLite")
        let sum = busy { keep(results.sum(of: \.age) as Int) }
        let theirSum = busy(3) { keep(sqlite.number("SELECT sum(age) FROM item")) }
        printLine("sum of a property", sum, "s", "\(ratio(theirSum, sum)) SQLite")
    }

    private static func committing(_ realm: Realm) throws {
        let results = realm.objects(BenchmarkItem.self)
        for observes in [false, true] {
            var times: [Double] = []
            let token = observes ? results.filter("age > 1000000").observe { _ in } : nil
            for round in 0..<200 {
                guard let item = realm.object(ofType: BenchmarkItem.self, forPrimaryKey: round) else { continue }
                times.append(
                    try seconds {
                        try realm.write { item.age = round }
                        realm.refresh()
                    })
            }
            token?.invalidate()
            printLine(
                observes ? "the same with an observer of a filter" : "commit of one change and refresh",
                times.sorted()[times.count / 2], "s")
        }
    }
}

/// The same objects without the object API: what each job costs there, in seconds.
private struct StorageLevel {
    /// By processor time, and by the clock.
    private(set) var creating = 0.0
    private(set) var creatingClock = 0.0
    private(set) var loop = 0.0
    private(set) var loopOfTwo = 0.0
    private(set) var loopOfText = 0.0
    private(set) var read = 0.0
    private(set) var readText = 0.0
    private let store: Store

    init(_ place: Workplace, _ count: Int) throws {
        store = try Store.open(place.file("below.realm"), ReadBenchmarks.options(.full))
        let clock = try seconds {
            creating = try ObjectBenchmark.busy(1) {
                try WriteBenchmarks.fill(store, count)
            }
        }
        creatingClock = clock
        let reading = try store.beginRead()
        defer { reading.end() }
        guard let table = try reading.group.table(ofClass: "Item"), let age = table.column(named: "age"),
            let id = table.column(named: "id"),
            let name = table.column(named: "name"), let row = try table.object(at: 0)
        else { return }
        func sum(_ body: (ObjectRow) throws -> Int64) throws -> Double {
            try ObjectBenchmark.busy {
                var sum: Int64 = 0
                try table.forEachObject { sum &+= try body($0) }
                keep(sum)
            }
        }
        loop = try sum { try $0.int(age) }
        loopOfTwo = try sum { try $0.int(age) &+ $0.int(id) }
        loopOfText = try sum { try $0.int(age) &+ Int64($0.string(name)?.utf8.count ?? 0) }
        let reads = 5_000_000
        read =
            try ObjectBenchmark.busy {
                var sum: Int64 = 0
                for _ in 0..<reads { sum &+= try row.int(age) }
                keep(sum)
            } / Double(reads)
        readText =
            try ObjectBenchmark.busy {
                var sum = 0
                for _ in 0..<reads { sum &+= try row.string(name)?.utf8.count ?? 0 }
                keep(sum)
            } / Double(reads)
    }

    /// Processor time of a transaction that changes an int of every object.
    func changing() throws -> Double {
        try ObjectBenchmark.busy(1) {
            try store.write { transaction in
                let items = try transaction.editor.editor(named: "class_Item")
                let age = try items.column(named: "age")
                var keys: [ObjectKey] = []
                try items.table.forEachObject { keys.append($0.key) }
                for key in keys {
                    let old = try items.table.find(key)?.int(age) ?? 0
                    try items.setInt(age, of: key, to: old &+ 1)
                }
            }
        }
    }
}
