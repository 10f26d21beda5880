import Glibc
import SharedStore

/// Reading a file of many objects.
enum ReadBenchmarks {
    static func run(_ path: String, count: Int) throws {
        printTitle("Reading \(count) objects (primary key, int, string)")
        let opening = try median(51) {
            let file = try ImmutableFile(path: path)
            guard let table = try file.group.table(ofClass: "Item"), let row = try table.object(at: count / 2) else {
                fatalError("the benchmark's own file lacks its table")
            }
            keep(try row.int(table.column(named: "age")!))
        }
        printLine("open and first read, no session", opening, "s")
        let joining = try median(21) {
            let store = try Store.open(path, options())
            let reading = try store.beginRead()
            keep(try reading.group.table(ofClass: "Item")!.objectCount)
            reading.end()
            try store.close()
        }
        printLine("open, join the session, first read, close", joining, "s")

        let file = try ImmutableFile(path: path)
        let table = try file.group.table(ofClass: "Item")!
        let id = table.column(named: "id")!, age = table.column(named: "age")!, name = table.column(named: "name")!
        let everything = try median(3) {
            var sum: Int64 = 0, bytes = 0
            try table.forEachLeaf { leaf in
                let ids = try leaf.leaf(IntLeaf.self, id), ages = try leaf.leaf(IntLeaf.self, age),
                    names = try leaf.leaf(StringLeaf.self, name)
                for i in 0..<leaf.count {
                    sum &+= ids.unchecked(i) &+ ages.unchecked(i)
                    bytes &+= try names.bytes(i)?.count ?? 0
                }
            }
            keep(sum)
            keep(bytes)
        }
        printLine("every property of every object, leaf by leaf", Double(count) / everything, "objects/s")
        let rows = try median(3) {
            var sum: Int64 = 0
            try table.forEachObject { sum &+= try $0.int(id) &+ $0.int(age) }
            keep(sum)
        }
        printLine("two ints of every object, row by row", Double(count) / rows, "objects/s")
        let lookups = 200_000
        let byKey = try median(3) {
            var sum: Int64 = 0
            var k: Int64 = 1
            for _ in 0..<lookups {
                k = (k &* 48_271) % Int64(count)
                if let row = try table.find(ObjectKey(k)) { sum &+= try row.int(age) }
            }
            keep(sum)
        }
        printLine("find by object key and read an int", Double(lookups) / byKey, "/s")
        let index = try SearchIndex(table, id)!
        let byPrimaryKey = try median(3) {
            var sum: Int64 = 0
            var k: Int64 = 1
            for _ in 0..<lookups {
                k = (k &* 48_271) % Int64(count)
                if let row = try index.firstRow(int: k) { sum &+= try row.int(age) }
            }
            keep(sum)
        }
        printLine("find by primary key and read an int", Double(lookups) / byPrimaryKey, "/s")
        let scan = try median(5) {
            var sum: Int64 = 0
            try table.forEachLeaf { sum &+= try $0.leaf(IntLeaf.self, age).wrappingSum() }
            keep(sum)
        }
        printLine("sum of an int column", Double(count) / scan, "values/s")
        var exported = 0
        let export = try seconds { try JSONExporter.export(file.group) { exported += $0.count } }
        printLine("export as JSON", Double(exported) / export, "B/s", "\(short(Double(count) / export))objects/s")
        let verify = try seconds { keep(try Verifier.verify(file)) }
        printLine("verify", Double(file.fileSize) / verify, "B/s")
    }

    static func options(_ durability: Durability = .unsafe) -> StoreOptions {
        var options = StoreOptions()
        options.durability = durability
        return options
    }
}
