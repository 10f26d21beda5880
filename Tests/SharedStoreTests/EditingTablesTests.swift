@testable import SharedStore
import TestSupport
import XCTest

/// Random changes through `GroupEditor`, each state checked by the verifier: links equal backlinks, indexes equal rows, sets are
/// sorted, every embedded object has one owner.
final class EditingTablesTests: XCTestCase {
    /// The editor's tree as a file in streaming form, verified.
    static func report(_ group: GroupEditor, _ scratch: ScratchArena) throws -> VerificationReport {
        let top = try group.finish()
        var size = 24
        for _ in 0..<3 {
            scratch.arena.setElement(top, TopSlot.logicalSize, Arena.tag(size))
            let (copy, _) = try scratch.committed(top)
            size = copy.memory.state.pointee.fileLimit
        }
        scratch.arena.setElement(top, TopSlot.logicalSize, Arena.tag(size))
        let (copy, root) = try scratch.committed(top)
        XCTAssertEqual(copy.memory.state.pointee.fileLimit, size)
        let file = UnsafeMutableRawBufferPointer.allocate(byteCount: size + 16, alignment: 16)
        defer { file.deallocate() }
        file.baseAddress!.copyMemory(from: copy.memory.state.pointee.base, byteCount: size)
        var header = FileHeader()
        header.topRefs.0 = FileHeader.streamingMark
        header.formats.0 = 24
        header.store(to: file.baseAddress!)
        file.storeBytes(of: UInt64(root), toByteOffset: size, as: UInt64.self)
        file.storeBytes(of: FileHeader.footerCookie, toByteOffset: size + 8, as: UInt64.self)
        return try Verifier.verify(file: file)
    }

    private func assertSound(_ group: GroupEditor, _ scratch: ScratchArena, _ message: String, line: UInt = #line) throws {
        let report = try Self.report(group, scratch)
        XCTAssertTrue(
            report.findings.isEmpty && report.isSound, "\(message): \(report.findings.prefix(5).map(\.description))", line: line)
    }

    func testANewGroupWithEveryKindOfColumnIsSound() throws {
        let scratch = try ScratchArena()
        let group = try GroupEditor(arena: scratch.arena, topRef: 0)
        let table = try group.createTable("class_Thing")
        let target = try group.createTable("class_Target")
        _ = try target.addPrimaryKeyColumn("id", .string)
        for type in [ColumnType.int, .bool, .string, .binary, .timestamp, .float, .double, .decimal, .objectId, .uuid, .mixed] {
            for attributes in [
                [], .nullable, .list, [.list, .nullable], .set, [.set, .nullable], .dictionary, [.dictionary, .nullable],
            ] as [ColumnAttributes] {
                try table.addColumn("\(type)\(attributes.rawValue)", type, attributes)
            }
        }
        for attributes in [[], .list, .set, .dictionary] as [ColumnAttributes] {
            try table.addColumn("link\(attributes.rawValue)", .link, attributes, target: target.table.key)
        }
        try assertSound(group, scratch, "without rows")
        let (a, _) = try target.createObject(primaryKey: .string("a"))
        XCTAssertFalse(try target.createObject(primaryKey: .string("a")).wasCreated)
        for _ in 0..<300 { _ = try table.createObject() }
        try table.set("link0", of: ObjectKey(5), to: .link(target.table.key, a))
        try table.listInsert(table.identity(table.column(named: "link32"), of: ObjectKey(5)), 0, .link(target.table.key, a))
        try assertSound(group, scratch, "with rows")
        try target.deleteObject(a)
        try assertSound(group, scratch, "after the target went")
        XCTAssertEqual(try table.table.find(ObjectKey(5))?.value(table.column(named: "link0")), .null)
    }

    /// Whoever keeps a `Column` over the making of an index of any kind does not damage that index.
    func testAColumnFromBeforeAnIndexWasMadeKeepsThatIndexInStep() throws {
        let scratch = try ScratchArena()
        let group = try GroupEditor(arena: scratch.arena, topRef: 0)
        let table = try group.createTable("class_Thing")
        let text = try table.addColumn("text", .string, .nullable), number = try table.addColumn("number", .int)
        let keys = try (0..<20).map { _ in try table.createObject() }
        for (round, fullText) in [true, false, true].enumerated() {
            try table.addIndex(text.key, fullText: fullText)
            if round == 0 { try table.addIndex(number.key) }
            for (i, key) in keys.enumerated() {
                try table.set(text, of: key, to: i % 5 == 0 ? .null : .string("the quick fox \(i % 3) in round \(round)"))
                try table.set(number, of: key, to: .int(Int64(i * round % 7)))
            }
            try assertSound(group, scratch, "round \(round)")
        }
        try table.removeIndex(text.key)
        try table.set(text, of: keys[3], to: .string("without an index"))
        for key in keys.prefix(10) { try table.deleteObject(key) }
        try assertSound(group, scratch, "at the end")
    }

    /// The original takes the entry of another word where a null that goes is not in the index.
    func testANullInAListOfStringsIsInItsIndex() throws {
        for isIndexedFirst in [true, false] {
            let scratch = try ScratchArena()
            let group = try GroupEditor(arena: scratch.arena, topRef: 0)
            let table = try group.createTable("class_Thing")
            let tags = try table.addColumn("tags", .string, [.list, .nullable])
            if isIndexedFirst { try table.addIndex(tags.key) }
            let lists: [[String?]] = [
                ["abc", nil], [nil], [nil, "abcd", nil], [], ["\0\0\0\0", "a"], ["\0\0\0\0abc", nil], ["", nil, "X"],
                [nil, nil, "abc"],
            ]
            var keys: [ObjectKey] = []
            for list in lists {
                keys.append(try table.createObject())
                let identity = table.identity(tags, of: keys[keys.count - 1])
                for (i, word) in list.enumerated() { try table.listInsert(identity, i, word.map { .string($0) } ?? .null) }
            }
            if !isIndexedFirst { try table.addIndex(tags.key) }
            func check(_ what: String, _ indexes: [Int]) throws {
                let index = try XCTUnwrap(SearchIndex(table.table, table.column(tags.key)))
                XCTAssertEqual(try index.find(.null), indexes.map { keys[$0] }, what)
                try assertSound(group, scratch, what)
            }
            try check("at first", [0, 1, 2, 5, 6, 7])
            try table.listErase(table.identity(tags, of: keys[0]), 1)
            try table.listErase(table.identity(tags, of: keys[2]), 0)
            try check("erased", [1, 2, 5, 6, 7])
            try table.listSet(table.identity(tags, of: keys[2]), 1, .string("abcde"))
            try table.listSet(table.identity(tags, of: keys[0]), 0, .null)
            try table.listSet(table.identity(tags, of: keys[7]), 0, .string("n"))
            try check("set", [0, 1, 5, 6, 7])
            try table.clear(table.identity(tags, of: keys[6]))
            try check("cleared", [0, 1, 5, 7])
            try table.deleteObject(keys[7])
            try table.deleteObject(keys[4])
            try check("deleted", [0, 1, 5])
            let index = try XCTUnwrap(SearchIndex(table.table, table.column(tags.key)))
            XCTAssertEqual(try index.find(.string("abcd")), [keys[2]])
            XCTAssertEqual(try index.find(.string("abcde")), [keys[2]])
            XCTAssertEqual(try index.find(.string("\0\0\0\0abc")), [keys[5]])
            XCTAssertEqual(try index.find(.string("abc")), [])
        }
    }

    func testRandomChangesLeaveEveryInvariantIntact() throws {
        for seed: UInt64 in 1...12 {
            print("seed \(seed)")
            var random = SplitMix(seed: seed)
            var world = try EditingWorld(&random)
            for step in 0..<600 {
                try world.randomChange(&random)
                if step % 60 == 59 { try assertSound(world.group, world.scratch, "seed \(seed), step \(step)") }
            }
        }
    }

    /// To delete all objects of a table at once leaves what it leaves to delete them one by one.
    func testAllObjectsAtOnceAndOneByOneLeaveTheSame() throws {
        for seed: UInt64 in 1...4 {
            for name in ["class_Dog", "class_Person", "class_Address"] {
                var contents: [[UInt8]] = []
                for isAtOnce in [true, false] {
                    var random = SplitMix(seed: seed)
                    var world = try EditingWorld(&random)
                    for _ in 0..<500 { try world.randomChange(&random) }
                    let table = try world.group.editor(named: name)
                    if isAtOnce {
                        try table.deleteAllObjects()
                    } else {
                        while let row = try table.table.object(at: table.table.objectCount - 1) {
                            try table.deleteObject(row.key)
                        }
                    }
                    XCTAssertEqual(table.table.objectCount, 0)
                    try assertSound(world.group, world.scratch, "seed \(seed), \(name), at once: \(isAtOnce)")
                    var content: [UInt8] = []
                    try JSONExporter.export(world.group.group) { content += $0 }
                    contents.append(content)
                    // The table can be used as before.
                    for _ in 0..<100 { try world.randomChange(&random) }
                    try assertSound(world.group, world.scratch, "seed \(seed), \(name), used again, at once: \(isAtOnce)")
                }
                XCTAssertEqual(
                    String(decoding: contents[0], as: UTF8.self), String(decoding: contents[1], as: UTF8.self),
                    "seed \(seed), \(name)")
            }
        }
    }
}

/// A few tables of all sorts, changed at random.
struct EditingWorld {
    let scratch: ScratchArena
    let group: GroupEditor
    let people: TableEditor
    let dogs: TableEditor
    let addresses: TableEditor
    private var next = 0

    init(_ random: inout SplitMix) throws {
        scratch = try ScratchArena()
        group = try GroupEditor(arena: scratch.arena, topRef: 0)
        people = try group.createTable("class_Person")
        dogs = try group.createTable("class_Dog")
        addresses = try group.createTable("class_Address", kind: .embedded)
        try dogs.addPrimaryKeyColumn("id", .int)
        try dogs.addColumn("name", .string, .nullable)
        try dogs.addColumn("friend", .link, target: dogs.table.key)
        try people.addColumn("age", .int)
        try people.addColumn("name", .string, .nullable)
        try people.addColumn("text", .string)
        try people.addColumn("any", .mixed)
        try people.addColumn("dog", .link, target: dogs.table.key)
        try people.addColumn("dogs", .link, .list, target: dogs.table.key)
        try people.addColumn("dogSet", .link, .set, target: dogs.table.key)
        try people.addColumn("dogMap", .link, .dictionary, target: dogs.table.key)
        try people.addColumn("anyList", .mixed, .list)
        try people.addColumn("anySet", .mixed, .set)
        try people.addColumn("anyMap", .mixed, .dictionary)
        try people.addColumn("tags", .string, [.list, .nullable])
        try people.addColumn("numbers", .double, [.set, .nullable])
        try people.addColumn("address", .link, target: addresses.table.key)
        try people.addColumn("addresses", .link, .list, target: addresses.table.key)
        try people.addColumn("addressMap", .link, .dictionary, target: addresses.table.key)
        try addresses.addColumn("street", .string)
        try addresses.addColumn("inner", .link, .list, target: addresses.table.key)
        try addresses.addColumn("dog", .link, target: dogs.table.key)
        for name in ["age", "name", "any", "tags"] { try people.addIndex(people.column(named: name).key) }
        try people.addIndex(people.column(named: "text").key, fullText: true)
    }

    private func anyKey(_ table: TableEditor, _ random: inout SplitMix) throws -> ObjectKey? {
        let count = table.table.objectCount
        return count == 0 ? nil : try table.table.object(at: Int(random.next() % UInt64(count)))?.key
    }

    private func anyString(_ random: inout SplitMix) -> String {
        let words = [
            "", "a", "ab", "abc", "abcX", "abcd", "abcde", "Zoë", "the quick brown fox", String(repeating: "long ", count: 20),
        ]
        return words[Int(random.next() % UInt64(words.count))]
    }

    private func anyMixed(_ random: inout SplitMix, nesting: Bool = true) throws -> Mixed {
        switch random.next() % 12 {
        case 0: return .null
        case 1: return .int(Int64(random.next() % 5))
        case 2: return .string(anyString(&random))
        case 3: return .double(Double(random.next() % 5))
        case 4: return .bool(random.next() % 2 == 0)
        case 5: return .binary(Array(anyString(&random).utf8))
        case 6: return .timestamp(Timestamp(seconds: Int64(random.next() % 3), nanoseconds: 5))
        case 7: return nesting ? .list : .int(1 << 40)
        case 8: return nesting ? .dictionary : .objectId(ObjectIdValue(high: 7, low: UInt32(random.next() % 4)))
        case 9: return .decimal(Decimal128Bits(Int64(random.next() % 5)))
        default:
            guard let dog = try anyKey(dogs, &random) else { return .null }
            return .link(dogs.table.key, dog)
        }
    }

    mutating func randomChange(_ random: inout SplitMix) throws {
        let person = try anyKey(people, &random), dog = try anyKey(dogs, &random)
        switch random.next() % 22 {
        case 0, 1: _ = try people.createObject()
        case 2:
            next += 1
            _ = try dogs.createObject(primaryKey: .int(Int64(next) * (random.next() % 2 == 0 ? 1 : 1 << 33)))
        case 3: if let person, random.next() % 2 == 0 { try people.deleteObject(person) }
        case 4: if let dog, random.next() % 2 == 0 { try dogs.deleteObject(dog) }
        case 5: if let address = try anyKey(addresses, &random), random.next() % 3 == 0 { try addresses.deleteObject(address) }
        case 6:
            if let dog, let other = try anyKey(dogs, &random) {
                try dogs.set("friend", of: dog, to: .link(dogs.table.key, other))
            }
        case 7:
            if let address = try anyKey(addresses, &random), let dog {
                try addresses.set("dog", of: address, to: .link(dogs.table.key, dog))
            }
        case 8:
            if let address = try anyKey(addresses, &random), addresses.table.objectCount < 200 {
                _ = try addresses.listInsertEmbedded(addresses.identity(addresses.column(named: "inner"), of: address), 0)
            }
        case 9 where random.next() % 40 == 0: try dogs.deleteAllObjects()
        case 10 where random.next() % 10 == 0: if let dog { try dogs.invalidateObject(dog) }
        default:
            guard let person else { return }
            try changePerson(person, dog, &random)
        }
    }

    private func changePerson(_ person: ObjectKey, _ dog: ObjectKey?, _ random: inout SplitMix) throws {
        func identity(_ name: String) throws -> TableEditor.Identity {
            try people.identity(people.column(named: name), of: person)
        }
        let link: Mixed? = dog.map { .link(dogs.table.key, $0) }
        switch random.next() % 19 {
        case 0: try people.set("age", of: person, to: .int(Int64(random.next() % 7)))
        case 1: try people.set("name", of: person, to: random.next() % 4 == 0 ? .null : .string(anyString(&random)))
        case 2: try people.set("text", of: person, to: .string(anyString(&random) + " " + anyString(&random)))
        case 3: try people.set("any", of: person, to: anyMixed(&random))
        case 4: try people.set("dog", of: person, to: random.next() % 3 == 0 ? .null : link ?? .null)
        case 5:
            if let link {
                try people.listInsert(identity("dogs"), Int(random.next() % UInt64(people.count(identity("dogs")) + 1)), link)
            }
        case 6: if let link { _ = try people.setInsert(identity("dogSet"), link) }
        case 7: if let link { _ = try people.setErase(identity("dogSet"), link) }
        case 8: try people.dictionarySet(identity("dogMap"), anyString(&random), random.next() % 4 == 0 ? .null : link ?? .null)
        case 9: _ = try people.setInsert(identity("anySet"), anyMixed(&random, nesting: false))
        case 10: try changeCollection(identity("anyList"), .list, &random, depth: 0)
        case 11: try changeCollection(identity("anyMap"), .dictionary, &random, depth: 0)
        case 12:
            let value = try people.table.find(person)!.value(people.column(named: "any"))
            if value == .list || value == .dictionary {
                try changeCollection(identity("any"), value == .list ? .list : .dictionary, &random, depth: 0)
            }
        case 13: try changeTags(identity("tags"), &random)
        case 14:
            _ = try people.setInsert(identity("numbers"), random.next() % 5 == 0 ? .null : .double(Double(random.next() % 6)))
        case 15:
            _ =
                try random.next() % 3 == 0
                ? {
                    try people.set("address", of: person, to: .null); return ObjectKey.null
                }() : people.setEmbedded(people.column(named: "address"), of: person)
        case 16:
            let list = try identity("addresses"), n = try people.count(list)
            switch random.next() % 4 {
            case 0 where n > 0: try people.listErase(list, Int(random.next() % UInt64(n)))
            case 1 where n > 0: _ = try people.listSetEmbedded(list, Int(random.next() % UInt64(n)))
            case 2 where n > 1:
                try people.listMove(list, from: Int(random.next() % UInt64(n)), to: Int(random.next() % UInt64(n)))
            default: _ = try people.listInsertEmbedded(list, n)
            }
        case 17:
            if random.next() % 2 == 0 {
                _ = try people.dictionarySetEmbedded(identity("addressMap"), anyString(&random))
            } else {
                _ = try people.dictionaryErase(identity("addressMap"), anyString(&random))
            }
        default:
            if random.next() % 4 == 0 {
                try people.clear(
                    identity(
                        ["dogs", "dogSet", "dogMap", "anyList", "anySet", "anyMap", "tags", "addresses", "addressMap"][
                            Int(random.next() % 9)]))
            }
        }
    }

    private func changeTags(_ tags: TableEditor.Identity, _ random: inout SplitMix) throws {
        let n = try people.count(tags)
        switch random.next() % 5 {
        case 0 where n > 0: try people.listErase(tags, Int(random.next() % UInt64(n)))
        case 1 where n > 0:
            let word: Mixed = random.next() % 4 == 0 ? .null : .string(anyString(&random))
            try people.listSet(tags, Int(random.next() % UInt64(n)), word)
        case 2 where n > 1: try people.listSwap(tags, Int(random.next() % UInt64(n)), Int(random.next() % UInt64(n)))
        case 3: try people.listInsert(tags, Int(random.next() % UInt64(n + 1)), .null)
        default: try people.listInsert(tags, Int(random.next() % UInt64(n + 1)), .string(anyString(&random)))
        }
    }

    private func changeCollection(
        _ collection: TableEditor.Identity, _ kind: CollectionKind, _ random: inout SplitMix, depth: Int
    ) throws {
        let n = try people.count(collection)
        if n > 0, depth < 4, random.next() % 2 == 0,
            let nested = try? people.nestedIdentity(collection, at: Int(random.next() % UInt64(n)))
        {
            let value = try people.collection(nested).form.kind
            return try changeCollection(nested, value, &random, depth: depth + 1)
        }
        if kind == .dictionary {
            if random.next() % 4 == 0 {
                _ = try people.dictionaryErase(collection, anyString(&random))
            } else {
                try people.dictionarySet(collection, anyString(&random), anyMixed(&random))
            }
            return
        }
        switch random.next() % 6 {
        case 0 where n > 0: try people.listErase(collection, Int(random.next() % UInt64(n)))
        case 1 where n > 0: try people.listSet(collection, Int(random.next() % UInt64(n)), anyMixed(&random))
        case 2 where n > 1:
            try people.listMove(collection, from: Int(random.next() % UInt64(n)), to: Int(random.next() % UInt64(n)))
        case 3 where n > 1: try people.listSwap(collection, Int(random.next() % UInt64(n)), Int(random.next() % UInt64(n)))
        default: try people.listInsert(collection, Int(random.next() % UInt64(n + 1)), anyMixed(&random))
        }
    }
}
