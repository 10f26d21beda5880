import SharedStore

/// Files made anew, opened, copied.
extension OperationsWork {
    func bulk() throws {
        for (label, hasKey, hasIndexes) in [
            ("int string double", false, false), ("with primary key", true, false),
            ("with primary key and two indexes", true, true),
        ] {
            let path = file("bulk.realm")
            remove(path)
            let store = try open(path)
            try timed("bulk \(label)") {
                try store.write { transaction in
                    let items = try transaction.editor.createTable("class_Item")
                    if hasKey { try items.addPrimaryKeyColumn("id", .int) }
                    let age = try items.addColumn("age", .int), name = try items.addColumn("name", .string),
                        score = try items.addColumn("score", .double)
                    if hasIndexes { for column in [age, name] { try items.addIndex(column.key) } }
                    for i in 0..<count {
                        let key = hasKey ? try items.createObject(primaryKey: .int(Int64(i))).key : try items.createObject()
                        try items.setInt(age, of: key, to: Int64(i % 100))
                        try items.set(name, of: key, to: .string(Self.name(i)))
                        try items.set(score, of: key, to: .double(Double(i) * 0.5))
                    }
                }
            }
            try store.close()
            try size("bulk \(label) size", path)
            remove(path)
        }
    }

    func make() throws {
        let path = file("main.realm")
        remove(path)
        let store = try open(path)
        try timed("make eight columns two indexes links") {
            try store.write { transaction in
                try transaction.editor.setSchemaVersion(0)
                let owners = try transaction.editor.createTable("class_Owner")
                let ownerName = try owners.addColumn("name", .string), level = try owners.addColumn("level", .int)
                var ownerKeys: [ObjectKey] = []
                for i in 0..<1000 {
                    let key = try owners.createObject()
                    try owners.set(ownerName, of: key, to: .string("owner \(i)"))
                    try owners.setInt(level, of: key, to: Int64(i % 10))
                    ownerKeys.append(key)
                }
                let items = try transaction.editor.createTable("class_Item")
                try items.addPrimaryKeyColumn("id", .int)
                let age = try items.addColumn("age", .int), value = try items.addColumn("value", .int),
                    name = try items.addColumn("name", .string), score = try items.addColumn("score", .double),
                    code = try items.addColumn("code", .string), number = try items.addColumn("number", .int),
                    owner = try items.addColumn("owner", .link, .nullable, target: owners.table.key)
                for column in [code, number] { try items.addIndex(column.key) }
                for i in 0..<count {
                    let key = try items.createObject(primaryKey: .int(Int64(i))).key
                    try items.setInt(age, of: key, to: Int64(i % 100))
                    try items.setInt(value, of: key, to: Self.value(i))
                    try items.set(name, of: key, to: .string(Self.name(i)))
                    try items.set(score, of: key, to: .double(Double(i) * 0.5))
                    try items.set(code, of: key, to: .string(Self.code(i)))
                    try items.setInt(number, of: key, to: Int64(i % 10_000))
                    try items.set(owner, of: key, to: .link(owners.table.key, ownerKeys[i % 1000]))
                }
            }
        }
        try timed("make string primary keys") {
            try store.write { transaction in
                let named = try transaction.editor.createTable("class_Named")
                try named.addPrimaryKeyColumn("id", .string)
                let age = try named.addColumn("age", .int)
                for i in 0..<count / 5 {
                    let key = try named.createObject(primaryKey: .string("key-\(Self.value(i))")).key
                    try named.setInt(age, of: key, to: Int64(i % 100))
                }
            }
        }
        try store.close()
        try size("make size", path)
    }

    func open() throws {
        let path = file("main.realm")
        func read(_ group: Group, _ position: Int) throws {
            guard let items = try group.table(ofClass: "Item"), let row = try items.object(at: position) else { return }
            keep(try row.int(items.column(named: "age")!))
        }
        try timed("open and first read without session", 51) { try read(ImmutableFile(path: path).group, count / 2) }
        try timed("open join read close", 51) {
            let store = try open(path)
            let reading = try store.beginRead()
            try read(reading.group, count / 2)
            reading.end()
            try store.close()
        }
        let store = try open(path)
        try timed("begin read, table, end x10000", 5) {
            for _ in 0..<10_000 {
                let reading = try store.beginRead()
                keep(try reading.group.table(ofClass: "Item")?.objectCount)
                reading.end()
            }
        }
        try timed("freeze and read x1000", 5) {
            let reading = try store.beginRead()
            for i in 0..<1000 {
                let frozen = try reading.freeze()
                try read(frozen.group, i)
                frozen.end()
            }
            reading.end()
        }
        try store.close()
    }

    func copy() throws {
        let store = try open(file("main.realm")), copy = file("copy.realm"), encrypted = file("copy-enc.realm")
        remove(copy)
        let reading = try store.beginRead()
        try timed("write a copy") {
            try StreamingCopy(version: nil, keepsHistory: false).write(reading.group, toPath: copy)
        }
        try size("copy size", copy)
        let key = try EncryptionKey.generate()
        remove(encrypted)
        try timed("write an encrypted copy") {
            try StreamingCopy(version: nil, keepsHistory: false).write(reading.group, toPath: encrypted, key: key)
        }
        remove(encrypted)
        reading.end()
        try store.close()
        let other = try open(copy)
        try timed("compact") { keep(try other.compact()) }
        try other.close()
        remove(copy)
    }

    func encryption() throws {
        let key = try EncryptionKey.generate(), path = file("enc.realm")
        remove(path)
        let first = try open(path, .full, key: key)
        try timed("encrypted bulk with primary key, synced") { try WriteBenchmarks.fill(first, count) }
        try first.close()
        func loop(_ group: Group) throws {
            let items = try Subject(group, "Item")
            let age = items["age"], name = items["name"]
            var sum: Int64 = 0
            try items.table.forEachObject { sum &+= try $0.int(age) &+ Int64($0.stringBytes(name)?.count ?? 0) }
            keep(sum)
        }
        try timed("encrypted cold loop, int and string", 3) {
            let store = try open(path, .full, key: key)
            let reading = try store.beginRead()
            try loop(reading.group)
            reading.end()
            try store.close()
        }
        let store = try open(path, .full, key: key)
        let reading = try store.beginRead()
        try loop(reading.group)
        try timed("encrypted warm loop, int and string", 5) { try loop(reading.group) }
        let items = try Subject(reading.group, "Item"), age = items["age"]
        guard let index = try SearchIndex(items.table, items["id"]) else { return }
        try timed("encrypted 200k lookups by primary key", 5) {
            var jumps = Jumps(count), sum: Int64 = 0
            for _ in 0..<200_000 { sum &+= try index.firstRow(int: jumps.next())?.int(age) ?? 0 }
            keep(sum)
        }
        let schema = try GroupQuerySchema(reading.group)
        try timed("encrypted count of a filter", 5) {
            keep(try Query("age >= 50 AND name CONTAINS '7'", class: "Item", schema: schema).count(in: reading.group))
        }
        reading.end()
        var jumps = Jumps(count)
        try timed("encrypted commit of one, synced x200") {
            for i in 0..<200 {
                try store.write { transaction in
                    let items = try transaction.editor.editor(named: "class_Item")
                    try items.setInt(items.column(named: "age"), of: ObjectKey(jumps.next()), to: Int64(i % 100))
                }
            }
        }
        try store.close()
        remove(path)
    }
}
