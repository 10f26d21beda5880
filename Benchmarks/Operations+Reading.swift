import SharedStore

/// Objects found, read, selected, ordered, added up.
extension OperationsWork {
    private func reading(_ body: (Group) throws -> Void) throws {
        let store = try open(file("main.realm"))
        let reading = try store.beginRead()
        try body(reading.group)
        reading.end()
        try store.close()
    }

    func lookUp() throws {
        let lookups = 200_000
        try reading { group in
            let items = try Subject(group, "Item"), age = items["age"], name = items["name"]
            guard let index = try SearchIndex(items.table, items["id"]), let row = try items.table.object(at: count / 2) else {
                return
            }
            try timed("200k lookups by int primary key", 5) {
                var jumps = Jumps(count), sum: Int64 = 0
                for _ in 0..<lookups { sum &+= try index.firstRow(int: jumps.next())?.int(age) ?? 0 }
                keep(sum)
            }
            try timed("200k lookups by object key", 5) {
                var jumps = Jumps(count), sum: Int64 = 0
                for _ in 0..<lookups { sum &+= try items.table.find(ObjectKey(jumps.next()))?.int(age) ?? 0 }
                keep(sum)
            }
            let named = try Subject(group, "Named"), namedAge = named["age"]
            guard let names = try SearchIndex(named.table, named["id"]) else { return }
            var jumps = Jumps(count / 5)
            let keys = (0..<lookups).map { _ in "key-\(Self.value(Int(jumps.next())))" }
            try timed("200k lookups by string primary key", 5) {
                var sum: Int64 = 0
                for key in keys { sum &+= try names.firstRow(.string(key))?.int(namedAge) ?? 0 }
                keep(sum)
            }
            try timed("5M reads of an int of an object", 5) {
                var sum: Int64 = 0
                for _ in 0..<5_000_000 { sum &+= try row.int(age) }
                keep(sum)
            }
            try timed("5M reads of a string of an object", 5) {
                var sum = 0
                for _ in 0..<5_000_000 { sum &+= try row.stringBytes(name)?.count ?? 0 }
                keep(sum)
            }
        }
    }

    func scan() throws {
        try reading { group in
            let items = try Subject(group, "Item"), age = items["age"], value = items["value"], name = items["name"]
            func loop(_ label: String, _ body: (ObjectRow) throws -> Int64) throws {
                try timed("loop over objects, \(label)", 5) {
                    var sum: Int64 = 0
                    try items.table.forEachObject { sum &+= try body($0) }
                    keep(sum)
                }
            }
            try loop("int") { try $0.int(age) }
            try loop("two ints") { try $0.int(age) &+ $0.int(value) }
            try loop("string") { Int64(try $0.stringBytes(name)?.count ?? 0) }
        }
        try objectScan()
    }

    func query() throws {
        try reading { group in
            let schema = try GroupQuerySchema(group)
            func find(_ text: String, _ name: String = "Item") throws -> Int {
                try Query(text, class: name, schema: schema).run(in: group).count
            }
            func count(_ text: String, _ name: String = "Item") throws -> Int {
                try Query(text, class: name, schema: schema).count(in: group)
            }
            for (label, text) in Self.queries {
                try timed("find \(label)", 5) { keep(try find(text)) }
                try timed("count \(label)", 5) { keep(try count(text)) }
                print("# \(label) \(try count(text))")
            }
            try timed("1000 x find indexed string ==", 5) {
                for i in 0..<1000 { keep(try find("code == '\(Self.code(i))'")) }
            }
            try timed("1000 x find indexed int ==", 5) { for i in 0..<1000 { keep(try find("number == \(i)")) } }
            try timed("1000 x find primary key", 5) { for i in 0..<1000 { keep(try find("id == \(i * 977 % self.count)")) } }
            try timed("1000 x find first int == (early)", 5) {
                for i in 0..<1000 { keep(try find("age == \(i % 100) LIMIT(1)")) }
            }
            try timed("subquery over backlinks (1000 x 1000)", 5) { keep(try count("@links.Item.owner.@count > 999", "Owner")) }
            try timed("any of backlinks, int", 3) { keep(try count("ANY @links.Item.owner.age == 7", "Owner")) }
        }
    }

    private static let queries = [
        ("int > (half)", "value > 1073741824"), ("int == (1 %)", "age == 50"), ("int between", "age BETWEEN {10, 20}"),
        ("double <", "score < 1000"), ("string ==", "name == 'name 7'"), ("string ==[c]", "name ==[c] 'NAME 7'"),
        ("contains", "name CONTAINS '77'"), ("contains[c]", "name CONTAINS[c] 'ME 77'"),
        ("begins with", "name BEGINSWITH 'name 7'"), ("ends with", "name ENDSWITH '77'"), ("like", "name LIKE 'n*7?'"),
        ("compound and", "age >= 50 AND name CONTAINS '7'"), ("compound or", "age == 5 OR name == 'name 7' OR score < 10"),
        ("int in list", "age IN {1, 5, 9, 70}"), ("string in list", "name IN {'name 1', 'name 2', 'name 30'}"),
        ("not", "NOT age < 99"), ("column to column", "age == number"), ("through a link, string", "owner.name == 'owner 7'"),
        ("through a link, int", "owner.level > 5"), ("link ==  null", "owner == NULL"),
        ("indexed int and int", "number == 77 AND age == 77"), ("arithmetic", "age * 2 > 150"),
    ]

    func sort() throws {
        try reading { group in
            let schema = try GroupQuerySchema(group)
            for (label, text) in [
                ("sort by random int", "TRUEPREDICATE SORT(value ASC)"), ("sort by small int", "TRUEPREDICATE SORT(age ASC)"),
                ("sort by string", "TRUEPREDICATE SORT(name ASC)"),
                ("sort by double descending", "TRUEPREDICATE SORT(score DESC)"),
                ("sort by two", "TRUEPREDICATE SORT(age ASC, value DESC)"),
                ("sort by link int", "TRUEPREDICATE SORT(owner.level ASC)"),
                ("sort by distinct strings", "TRUEPREDICATE SORT(code ASC)"), ("filter and sort", "age > 50 SORT(value ASC)"),
                ("filter sort limit", "age > 50 SORT(value ASC) LIMIT(100)"), ("distinct string", "TRUEPREDICATE DISTINCT(name)"),
                ("distinct int", "TRUEPREDICATE DISTINCT(age)"), ("distinct many", "TRUEPREDICATE DISTINCT(value)"),
            ] {
                var result: Int64 = 0
                try timed(label, 3) {
                    let keys = try Query(text, class: "Item", schema: schema).run(in: group)
                    result = Int64(keys.count) &+ (keys.last?.rawValue ?? 0)
                }
                print("# \(label) \(result)")
            }
        }
    }

    func aggregate() throws {
        try reading { group in
            let items = try Subject(group, "Item"), schema = try GroupQuerySchema(group)
            func line(_ label: String, _ text: String, _ kind: QuerySyntax.Path.Aggregate, _ property: String) throws {
                let property = QueryProperty(items[property])
                try timed(label, 9) {
                    keep(try Query(text, class: "Item", schema: schema).aggregate(kind, of: property, in: group))
                }
            }
            for (label, property) in [("int", "value"), ("double", "score")] {
                try line("sum \(label)", "TRUEPREDICATE", .sum, property)
                try line("min \(label)", "TRUEPREDICATE", .min, property)
                try line("max \(label)", "TRUEPREDICATE", .max, property)
                try line("average \(label)", "TRUEPREDICATE", .average, property)
            }
            try line("sum int of filter", "age > 50", .sum, "value")
            try line("max int of filter", "age > 50", .max, "value")
            try line("average double of filter", "age > 50", .average, "score")
        }
    }
}
