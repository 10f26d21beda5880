import Foundation
@testable import SharedStore
import TestSupport
import XCTest

/// Random operations by two participants: every change set, applied to what its observer saw last, gives what is there now.
final class ObservationRandomTests: XCTestCase {
    private static let types = [
        SharedStore.ObjectSchema(
            name: "Item", kind: .topLevel, primaryKey: nil,
            properties: [
                PropertySchema(name: "value", type: .int),
                PropertySchema(name: "next", type: .link, isOptional: true, objectType: "Item"),
            ]),
        SharedStore.ObjectSchema(
            name: "Box", kind: .topLevel, primaryKey: nil,
            properties: [
                PropertySchema(name: "ints", type: .int, collection: .list),
                PropertySchema(name: "items", type: .link, collection: .list, objectType: "Item"),
                PropertySchema(name: "tags", type: .int, collection: .set),
                PropertySchema(name: "map", type: .int, collection: .dictionary),
                PropertySchema(name: "any", type: .mixed, isOptional: true),
            ]),
    ]

    /// What one observer saw at the last call.
    private final class Watcher {
        let name: String
        let read: (Group) throws -> [String]
        var seen: [String] = []
        var calls = 0
        var callback: Observer.Callback?
        init(_ name: String, _ read: @escaping (Group) throws -> [String]) {
            self.name = name
            self.read = read
        }
    }

    private final class World {
        let scratch = ScratchDirectory("random")
        let store: Store
        let session: ObservationSession
        let box: ObjectKey
        var random: SplitMix
        var watchers: [Watcher] = []

        init(seed: UInt64) throws {
            random = SplitMix(seed: seed)
            var options = StoreOptions()
            options.durability = .unsafe
            options.encryptionKey = TestKeys.usual
            store = try Store.open(scratch.file("a.realm"), options)
            _ = try SchemaChanger.open(store, Schema(version: 0, classes: ObservationRandomTests.types), version: 0)
            box = try store.write { transaction in
                let items = try transaction.editor.editor(named: "class_Item")
                for i in 0..<12 { try items.set("value", of: items.createObject(), to: .int(Int64(i % 5))) }
                let boxes = try transaction.editor.editor(named: "class_Box")
                let key = try boxes.createObject()
                try boxes.set("any", of: key, to: .list)
                let any = boxes.identity(try boxes.column(named: "any"), of: key)
                try boxes.listInsert(any, 0, .list)
                try boxes.listInsert(try boxes.nestedIdentity(any, at: 0), 0, .int(1))
                return key
            }
            session = try ObservationSession(store)
        }

        deinit { try? store.close(force: true) }

        func below(_ n: Int) -> Int { Int(random.next() % UInt64(n)) }

        func transaction(_ editor: GroupEditor) throws {
            for _ in 0...below(6) { try operation(editor) }
        }

        private func operation(_ editor: GroupEditor) throws {
            let items = try editor.editor(named: "class_Item"), boxes = try editor.editor(named: "class_Box")
            func item() throws -> ObjectKey? {
                items.table.objectCount == 0 ? nil : try items.table.object(at: below(items.table.objectCount))?.key
            }
            func place(_ name: String) throws -> ChangesetWriter.CollectionIdentity {
                boxes.identity(try boxes.column(named: name), of: box)
            }
            let number = Mixed.int(Int64(below(8)))
            switch below(14) {
            case 0: try items.set("value", of: items.createObject(), to: number)
            case 1: if let key = try item(), items.table.objectCount > 4 { try items.deleteObject(key) }
            case 2, 3: if let key = try item() { try items.set("value", of: key, to: number) }
            case 4:
                if let key = try item(), let target = try item() {
                    try items.set("next", of: key, to: .link(items.table.key, target))
                }
            case 5, 6:
                let list = try place("items"), count = try boxes.count(list)
                if count == 0 || below(2) == 0 {
                    if let key = try item() { try boxes.listInsert(list, below(count + 1), .link(items.table.key, key)) }
                } else if below(3) == 0 {
                    try boxes.listMove(list, from: below(count), to: below(count))
                } else {
                    try boxes.listErase(list, below(count))
                }
            case 7, 8, 9:
                let list = try below(3) == 0 ? boxes.nestedIdentity(place("any"), at: inner(editor)) : place("ints"),
                    count = try boxes.count(list)
                switch count == 0 ? 0 : below(6) {
                case 0, 1: try boxes.listInsert(list, below(count + 1), number)
                case 2: try boxes.listSet(list, below(count), number)
                case 3: try boxes.listMove(list, from: below(count), to: below(count))
                case 4: if below(4) == 0 { try boxes.clear(list) } else { try boxes.listSwap(list, below(count), below(count)) }
                default: try boxes.listErase(list, below(count))
                }
            case 10:
                let any = try place("any")
                // The inner list shifts.
                if below(2) == 0 || inner(editor) == 0 {
                    try boxes.listInsert(any, 0, number)
                } else {
                    try boxes.listErase(any, 0)
                }
            case 11:
                if below(2) == 0 {
                    _ = try boxes.setInsert(place("tags"), number)
                } else {
                    _ = try boxes.setErase(place("tags"), number)
                }
            default:
                let key = "k\(below(6))"
                if below(3) == 0 {
                    _ = try boxes.dictionaryErase(place("map"), key)
                } else {
                    _ = try boxes.dictionarySet(place("map"), key, number)
                }
            }
        }

        /// Where in the Mixed list the inner list stands.
        private func inner(_ editor: GroupEditor) -> Int {
            let list = try? ObservationRandomTests.collection("any", box, editor.group)
            guard case .list(let reader)? = list else { return 0 }
            return (0..<reader.count).first { (try? reader.value($0)) == .list } ?? 0
        }
    }

    private static func collection(_ name: String, _ box: ObjectKey, _ group: Group) throws -> ObservedCollection? {
        let table = try XCTUnwrap(group.table(ofClass: "Box"))
        let column = try XCTUnwrap(table.column(named: name))
        return try ObservedCollection.find(
            ChangesetWriter.CollectionIdentity(table: table.key, object: box, column: column.key), in: group)?.collection
    }

    func testAppliedChangesGiveTheNewState() throws {
        for seed in UInt64(1)...8 {
            let world = try World(seed: seed)
            try watch(world)
            try world.session.deliver()
            var calls = 0
            for round in 0..<40 {
                for _ in 0...world.below(3) {
                    if world.below(2) == 0 {
                        try world.store.write { try world.transaction($0.editor) }
                    } else {
                        try world.session.begin()
                        check(world, "seed \(seed), round \(round), at the beginning of a transaction")
                        try world.transaction(world.session.writing!.editor)
                        let silent = world.watchers.filter { _ in world.below(5) == 0 }
                        try world.session.commit(skipping: silent.compactMap(\.callback))
                        // Who is skipped is expected to know.
                        for watcher in silent { watcher.seen = try watcher.read(world.session.group) }
                    }
                    if world.below(4) == 0 { try world.session.process() }
                }
                try world.session.refresh()
                check(world, "seed \(seed), round \(round)")
            }
            calls = world.watchers.map(\.calls).reduce(0, +)
            XCTAssertGreaterThan(calls, 150, "seed \(seed)")
        }
    }

    private func check(_ world: World, _ what: String) {
        for watcher in world.watchers {
            XCTAssertEqual(try watcher.read(world.session.group), watcher.seen, "\(what): \(watcher.name)")
        }
    }

    private func watch(_ world: World) throws {
        let group = world.session.group, box = world.box
        let schema = try GroupQuerySchema(group)
        let item = try XCTUnwrap(group.table(ofClass: "Item")).key
        func add(_ name: String, _ subject: ObservedSubject, _ read: @escaping (Group) throws -> [String]) throws {
            let watcher = Watcher(name, read)
            let session = world.session
            watcher.callback = try session.engine.observe(subject, in: group) { [unowned watcher, unowned session] change in
                do { try ObservationRandomTests.apply(change, watcher, session.group) } catch { XCTFail("\(error)") }
            }.callback
            world.watchers.append(watcher)
        }
        func show(_ key: ObjectKey, _ group: Group) throws -> String {
            let table = try XCTUnwrap(group.table(item)), row = try XCTUnwrap(table.find(key))
            return
                "\(key)=\(try row.value(XCTUnwrap(table.column(named: "value"))))>\(try row.value(XCTUnwrap(table.column(named: "next"))))"
        }
        for text in [
            "TRUEPREDICATE", "value > 2", "TRUEPREDICATE SORT(value ASC)", "next.value < 4 SORT(value DESC) LIMIT(5)",
            "TRUEPREDICATE DISTINCT(value)",
        ] {
            let query = try Query(text, class: "Item", schema: schema)
            try add(text, .objects(ObservedObjects(query))) { group in try query.run(in: group).map { try show($0, group) } }
        }
        try add("the class", .table(item)) { group in
            var keys: [ObjectKey] = []
            try group.table(item)?.forEachObject { keys.append($0.key) }
            return try keys.map { try show($0, group) }
        }
        let boxes = try XCTUnwrap(group.table(ofClass: "Box"))
        func identity(_ name: String) throws -> ChangesetWriter.CollectionIdentity {
            ChangesetWriter.CollectionIdentity(
                table: boxes.key, object: box, column: try XCTUnwrap(boxes.column(named: name)).key)
        }
        for name in ["ints", "tags", "items"] {
            try add(name, .collection(identity(name))) { group in
                guard let found = try Self.collection(name, box, group) else { return [] }
                return try (0..<found.count).map {
                    let value = try found.value($0)
                    if case .link(_, let key) = value { return try show(key, group) }
                    return "\(value)"
                }
            }
        }
        try add("map", .collection(identity("map"))) { group in
            guard let found = try Self.collection("map", box, group) else { return [] }
            return try found.keys().enumerated().map { "\($0.element):\(try found.value($0.offset))" }
        }
        var nested = try identity("any")
        guard case .list(let any)? = try Self.collection("any", box, group) else { return XCTFail("no list") }
        nested.salts = [try any.nestedKey(0)]
        try add("nested", .collection(nested)) { [nested] group in
            guard let found = try ObservedCollection.find(nested, in: group)?.collection else { return [] }
            return try (0..<found.count).map { "\(try found.value($0))" }
        }
        let ints = try identity("ints")
        let sorted: (Group) throws -> [(Int, Mixed)] = { group in
            guard let found = try ObservedCollection.find(ints, in: group)?.collection else { return [] }
            let values = try (0..<found.count).map { try found.value($0) }
            return values.enumerated().sorted {
                Mixed.compare($0.element, $1.element) == 0 ? $0.offset < $1.offset : Mixed.compare($0.element, $1.element) < 0
            }
            .map { ($0.offset, $0.element) }
        }
        try add("sorted ints", .values(ObservedValues(collection: ints) { try sorted($0).map(\.0) })) {
            try sorted($0).map { "\($0.1)" }
        }
    }

    private static func apply(_ change: ObservedChange, _ watcher: Watcher, _ group: Group) throws {
        let now = try watcher.read(group)
        if change.isInitial {
            watcher.seen = now
            return
        }
        watcher.calls += 1
        var state = watcher.seen
        switch change.content {
        case .positions(let positions):
            XCTAssert(positions.modificationsOld.subtracting(positions.deletions) == positions.modificationsOld, watcher.name)
            for i in Array(positions.deletions).reversed() { state.remove(at: i) }
            for i in positions.insertions { state.insert(now[i], at: i) }
            for i in positions.modificationsNew { state[i] = now[i] }
            for (old, new) in zip(positions.modificationsOld, positions.modificationsNew) {
                XCTAssertLessThan(old, watcher.seen.count)
                XCTAssertLessThan(new, now.count)
            }
        case .keys(let keys):
            func key(_ entry: String) -> String { String(entry.prefix { $0 != ":" }) }
            state.removeAll { keys.deletions.contains(key($0)) || keys.modifications.contains(key($0)) }
            state += now.filter { keys.insertions.contains(key($0)) || keys.modifications.contains(key($0)) }
            state.sort()
        default: XCTFail("\(watcher.name): \(change)")
        }
        XCTAssertEqual(state, now, watcher.name)
        watcher.seen = now
    }
}
