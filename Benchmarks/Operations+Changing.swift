import SharedStore

/// Objects and lists changed, commits small and large.
extension OperationsWork {
    func change() throws {
        let path = try copyOfMain("change.realm")
        let store = try open(path)
        func changing(_ label: String, _ rounds: Int = 1, _ body: (WriteTransaction, TableEditor) throws -> Void) throws {
            try timed(label, rounds) {
                try store.write { try body($0, $0.editor.editor(named: "class_Item")) }
            }
        }
        try changing("change an int of every object", 3) { _, items in
            let age = try items.column(named: "age")
            for key in try keys(items) {
                guard let row = try items.table.find(key) else { continue }
                try items.setInt(age, of: key, to: row.int(age) &+ 1)
            }
        }
        try changing("change a string of every object", 3) { _, items in
            let name = try items.column(named: "name")
            for (i, key) in try keys(items).enumerated() { try items.set(name, of: key, to: .string(Self.name(i + 7))) }
        }
        try changing("change an indexed int of every tenth", 3) { _, items in
            let number = try items.column(named: "number")
            for i in stride(from: 0, to: count, by: 10) {
                let key = ObjectKey(Int64(i))
                guard let row = try items.table.find(key) else { continue }
                try items.setInt(number, of: key, to: (row.int(number) &+ 1) % 10_000)
            }
        }
        try changing("change a link of every tenth", 3) { transaction, items in
            let owner = try items.column(named: "owner"), owners = try transaction.editor.editor(named: "class_Owner").table
            for i in stride(from: 0, to: count, by: 10) {
                guard let target = try owners.object(at: (i + 1) % 1000) else { continue }
                try items.set(owner, of: ObjectKey(Int64(i)), to: .link(owners.key, target.key))
            }
        }
        try changing("update by primary key 100k", 3) { _, items in
            let age = try items.column(named: "age")
            var jumps = Jumps(count)
            for i in 0..<100_000 {
                try items.setInt(age, of: items.createObject(primaryKey: .int(jumps.next())).key, to: Int64(i % 100))
            }
        }
        try changing("delete a tenth by a query") { transaction, items in
            let query = try Query("age < 10", class: "Item", schema: GroupQuerySchema(transaction.group))
            for key in try query.run(in: transaction.group) { try items.deleteObject(key) }
        }
        try changing("delete 100k one by one") { _, items in
            for _ in 0..<100_000 {
                guard let row = try items.table.object(at: 0) else { return }
                try items.deleteObject(row.key)
            }
        }
        try changing("delete 100k at random") { _, items in
            var jumps = Jumps(count)
            for _ in 0..<100_000 {
                let key = ObjectKey(jumps.next())
                if try items.table.find(key) != nil { try items.deleteObject(key) }
            }
        }
        try changing("delete all") { _, items in try items.deleteAllObjects() }
        try store.close()
        remove(path)
    }

    private func keys(_ items: TableEditor) throws -> [ObjectKey] {
        var keys: [ObjectKey] = []
        try items.table.forEachObject { keys.append($0.key) }
        return keys
    }

    func commit() throws {
        for (durability, label) in [(Durability.full, "synced"), (.unsafe, "unsynced")] {
            let path = file("commit.realm"), rounds = durability == .full ? 500 : 5000
            remove(path)
            let store = try open(path, durability)
            try store.write { transaction in
                let items = try transaction.editor.createTable("class_Item")
                try items.addPrimaryKeyColumn("id", .int)
                try items.addColumn("age", .int)
                for i in 0..<1000 { _ = try items.createObject(primaryKey: .int(Int64(i))) }
            }
            func set(_ transaction: WriteTransaction, _ key: Int, _ value: Int) throws {
                let items = try transaction.editor.editor(named: "class_Item")
                try items.setInt(items.column(named: "age"), of: ObjectKey(Int64(key)), to: Int64(value))
            }
            try timed("commit of one of 1000, \(label)") {
                for i in 0..<rounds {
                    let transaction = try store.beginWrite()
                    try set(transaction, i % 1000, i)
                    try transaction.commit()
                }
            }
            try timed("commit of one of 1000, live, \(label)") {
                var reading = try store.beginRead()
                for i in 0..<rounds {
                    let transaction = try reading.promote()
                    try set(transaction, i % 1000, i)
                    reading.end()
                    reading = try transaction.commitAndRead()
                }
                reading.end()
            }
            try timed("commits of 100 changes, \(label)") {
                for i in 0..<rounds / 5 {
                    let transaction = try store.beginWrite()
                    for j in 0..<100 { try set(transaction, (i * 100 + j) % 1000, i) }
                    try transaction.commit()
                }
            }
            try timed("commit of one new object, \(label)") {
                for i in 0..<rounds {
                    let transaction = try store.beginWrite()
                    let items = try transaction.editor.editor(named: "class_Item")
                    let key = try items.createObject(primaryKey: .int(Int64(100_000 + i))).key
                    try items.setInt(items.column(named: "age"), of: key, to: Int64(i))
                    try transaction.commit()
                }
            }
            try size("size after small commits, \(label)", path)
            try store.close()
            remove(path)
        }
        let path = try copyOfMain("commit2.realm")
        for (durability, label, rounds) in [(Durability.full, "synced x300", 300), (.unsafe, "unsynced x3000", 3000)] {
            let store = try open(path, durability)
            var jumps = Jumps(count)
            try timed("commit of one of 1M, \(label)") {
                for i in 0..<rounds {
                    let transaction = try store.beginWrite()
                    let items = try transaction.editor.editor(named: "class_Item")
                    try items.setInt(items.column(named: "age"), of: ObjectKey(jumps.next()), to: Int64(i % 100))
                    try transaction.commit()
                }
            }
            try store.close()
        }
        try size("size after 3300 commits in 1M", path)
        remove(path)
    }

    func lists() throws {
        let path = file("list.realm"), part = count / 5
        remove(path)
        let store = try open(path)
        let transaction = try store.beginWrite()
        try transaction.editor.setSchemaVersion(0)
        let elements = try transaction.editor.createTable("class_OperationsElement")
        let age = try elements.addColumn("age", .int)
        let targets = try (0..<part).map { i in
            let key = try elements.createObject()
            try elements.setInt(age, of: key, to: Int64(i % 100))
            return key
        }
        let boxes = try transaction.editor.createTable("class_OperationsBox")
        let box = try boxes.createObject()
        let ints = try boxes.identity(boxes.addColumn("ints", .int, .list), of: box),
            strings = try boxes.identity(boxes.addColumn("strings", .string, .list), of: box),
            links = try boxes.identity(boxes.addColumn("links", .link, .list, target: elements.table.key), of: box)
        try timed("list append 1 int a time") { for i in 0..<count { try boxes.listInsert(ints, i, .int(Int64(i))) } }
        try timed("list append strings") { for i in 0..<part { try boxes.listInsert(strings, i, .string(Self.name(i))) } }
        try timed("list append links") {
            for i in 0..<part { try boxes.listInsert(links, i, .link(elements.table.key, targets[i])) }
        }
        try timed("list insert in the middle x20000") {
            for i in 0..<20_000 { try boxes.listInsert(ints, count / 2, .int(Int64(i))) }
        }
        try timed("list erase from the middle x20000") { for _ in 0..<20_000 { try boxes.listErase(ints, count / 2) } }
        try timed("list commit") { try transaction.commit() }
        try readLists(store)
        // Who has the file open must agree on syncs: the object API has them.
        try store.close()
        try objectLists(path)
        remove(path)
    }

    private func readLists(_ store: Store) throws {
        let reading = try store.beginRead()
        defer { reading.end() }
        let boxes = try Subject(reading.group, "OperationsBox"), elements = try Subject(reading.group, "OperationsElement")
        let ints = boxes["ints"], strings = boxes["strings"], links = boxes["links"], age = elements["age"]
        guard let row = try boxes.table.object(at: 0) else { return }
        try timed("list iterate ints", 5) {
            var sum: Int64 = 0
            try row.list(ints).tree(IntLeaf.self).forEachLeaf { leaf, _ in
                for i in 0..<leaf.count { sum &+= leaf.unchecked(i) }
            }
            keep(sum)
        }
        try timed("list iterate strings", 5) {
            var sum = 0
            try row.list(strings).tree(StringLeaf.self).forEachLeaf { leaf, _ in
                for i in 0..<leaf.count { sum &+= try leaf.bytes(i)?.count ?? 0 }
            }
            keep(sum)
        }
        try timed("list iterate links, an int of each", 5) {
            var sum: Int64 = 0
            try row.list(links).forEachLink { sum &+= try elements.table.find($0)?.int(age) ?? 0 }
            keep(sum)
        }
        let main = try open(file("main.realm"))
        let mainReading = try main.beginRead()
        let items = try Subject(mainReading.group, "Item"), owners = try Subject(mainReading.group, "Owner")
        let owner = items["owner"], level = owners["level"]
        guard let backlinks = owners.table.backlinkColumn(from: owner) else { return }
        try timed("count backlinks of 1000", 5) {
            var sum = 0
            try owners.table.forEachObject { sum &+= try $0.backlinkCount(backlinks) }
            keep(sum)
        }
        try timed("iterate backlinks, 1000 x 1000", 5) {
            var sum: Int64 = 0
            try owners.table.forEachObject { try $0.forEachBacklink(backlinks) { sum &+= $0.rawValue } }
            keep(sum)
        }
        try timed("follow a link of every object", 5) {
            var sum: Int64 = 0
            try items.table.forEachObject { row in
                if let key = try row.link(owner) { sum &+= try owners.table.find(key)?.int(level) ?? 0 }
            }
            keep(sum)
        }
        mainReading.end()
        try main.close()
    }
}
