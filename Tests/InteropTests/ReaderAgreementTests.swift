import Foundation
import SharedStore
import TestSupport
import XCTest

/// The several ways to read one value agree: by row, by leaf, by position, by search; and links agree with backlinks.
class ReaderAgreementTests: XCTestCase {
    private func eachTable(_ body: (String, Group, Table) throws -> Void) throws {
        let scratch = ScratchDirectory()
        for name in try GivenFiles.core14() {
            let file = try GivenFiles.open(name, in: Fixtures.core14, scratch)
            for table in try file.group.tables() { try body(name, file.group, table) }
        }
        guard let older = Fixtures.older else { return }
        for name in try GivenFiles.names(older) {
            let file = try GivenFiles.open(name, in: older, scratch)
            for table in try file.group.tables() { try body(name, file.group, table) }
        }
    }

    /// NaN equals itself here.
    private func same(_ a: Mixed, _ b: Mixed) -> Bool {
        switch (a, b) {
        case (.float(let x), .float(let y)): x.bitPattern == y.bitPattern
        case (.double(let x), .double(let y)): x.bitPattern == y.bitPattern
        default: a == b
        }
    }

    func testListsAndSetsReadTheSameByPositionInOneGoAndBySearch() throws {
        var elements = 0, types: Set<ColumnType> = []
        try eachTable { name, _, table in
            for column in table.publicColumns where column.collection == .list || column.collection == .set {
                var rows = 0
                try table.forEachObject { row in
                    rows += 1
                    if rows > 300 { return }
                    let list = column.collection == .list ? try row.list(column) : try row.set(column).elements
                    var walked: [Mixed] = []
                    try list.forEach { walked.append($0) }
                    XCTAssertEqual(walked.count, list.count)
                    // Few positions of a long list are enough.
                    for i in stride(from: 0, to: list.count, by: max(1, list.count / 50)) {
                        XCTAssertTrue(
                            self.same(try list.value(i), walked[i]),
                            "\(name) \(table.name).\(table.name(of: column))[\(i)]")
                        elements += 1
                        types.insert(column.type)
                        if column.collection == .set {
                            let found = try XCTUnwrap(
                                row.set(column).find(walked[i]), "\(name) \(table.name).\(table.name(of: column)): \(walked[i])")
                            XCTAssertEqual(Mixed.compare(walked[found], walked[i]), 0)
                        }
                    }
                    if column.collection == .set { XCTAssertNil(try row.set(column).find(.string("\u{1F480} not there"))) }
                }
            }
        }
        XCTAssertGreaterThan(elements, 1500)
        XCTAssertEqual(types.count, 12, "element types: \(types)")
    }

    func testEveryDictionaryEntryIsFoundByItsKeyInTheNewAndInTheOldForm() throws {
        var entries = 0, old = 0
        try eachTable { name, _, table in
            for column in table.publicColumns where column.collection == .dictionary {
                try table.forEachObject { row in
                    let dictionary = try row.dictionary(column)
                    for i in 0..<dictionary.count {
                        guard case .string(let key) = try dictionary.key(i) else {
                            return XCTFail("\(name): key of another type")
                        }
                        XCTAssertEqual(try dictionary.find(key), i, "\(name) \(table.name).\(table.name(of: column)): \(key)")
                        XCTAssertTrue(self.same(try XCTUnwrap(dictionary.value(forKey: key)), try dictionary.value(i)))
                        entries += 1
                        if table.format < 23 { old += 1 }
                    }
                    XCTAssertNil(try dictionary.find("no such key"))
                }
            }
        }
        XCTAssertGreaterThan(entries, 500)
        if Fixtures.older != nil { XCTAssertGreaterThan(old, 5) }
    }

    func testRowsAndLeavesReadTheSameValues() throws {
        var values = 0
        try eachTable { name, _, table in
            for column in table.publicColumns where column.collection == nil {
                var leaves = 0
                try table.forEachLeaf { leaf in
                    leaves += 1
                    if leaves > 3 { return }
                    let reader = try ColumnReader(leaf.memory, leaf.node, column)
                    XCTAssertEqual(reader.count, leaf.count, "\(name) \(table.name).\(table.name(of: column))")
                    for i in 0..<leaf.count {
                        let byRow = try leaf.row(i).value(column)
                        let byLeaf: Mixed =
                            switch reader {
                            case .int(let leaf): .int(try leaf.value(i))
                            case .optionalInt(let leaf): try leaf.value(i).map(Mixed.int) ?? .null
                            case .bool(let leaf): try leaf.value(i).map(Mixed.bool) ?? .null
                            case .float(let leaf): try leaf.value(i).map(Mixed.float) ?? .null
                            case .double(let leaf): try leaf.value(i).map(Mixed.double) ?? .null
                            case .string(let leaf): try leaf.value(i).map(Mixed.string) ?? .null
                            case .enumeratedString(let leaf): try leaf.value(i).map(Mixed.string) ?? .null
                            case .binary(let leaf): try leaf.value(i).map(Mixed.binary) ?? .null
                            case .timestamp(let leaf): try leaf.value(i).map(Mixed.timestamp) ?? .null
                            case .decimal(let leaf): try leaf.value(i).map(Mixed.decimal) ?? .null
                            case .objectId(let leaf): try leaf.value(i).map(Mixed.objectId) ?? .null
                            case .uuid(let leaf): try leaf.value(i).map(Mixed.uuid) ?? .null
                            case .link(let leaf):
                                try leaf.value(i).rawValue < 0 ? .null : .link(column.oppositeTable, leaf.value(i))
                            case .mixed: try leaf.row(i).mixed(column)
                            case .backlink, .collection: .null
                            }
                        XCTAssertTrue(
                            self.same(byRow, byLeaf),
                            "\(name) \(table.name).\(table.name(of: column)) row \(i): \(byRow), \(byLeaf)")
                        if case .string(let text) = byRow, column.type == .string {
                            XCTAssertEqual(try leaf.row(i).stringBytes(column).map { String(decoding: $0, as: UTF8.self) }, text)
                        }
                        values += 1
                    }
                }
            }
        }
        XCTAssertGreaterThan(values, 5000)
    }

    /// Links of every kind, nested ones too, as the multiset of (origin table, column, origin, target table, target).
    func testLinksAndBacklinksAreTheSameMultiset() throws {
        struct Link: Hashable {
            var originTable: TableKey, column: ColumnKey, origin: ObjectKey, table: TableKey, target: ObjectKey
        }
        final class Counter {
            var forward: [Link: Int] = [:], backward: [Link: Int] = [:]
        }
        var counters: [ObjectIdentifier: Counter] = [:], files: [Group] = [], total = 0
        try eachTable { _, group, table in
            let counter = counters[ObjectIdentifier(group)] ?? Counter()
            if counters.updateValue(counter, forKey: ObjectIdentifier(group)) == nil { files.append(group) }
            func collect(_ list: ListReader, _ column: Column, _ origin: ObjectKey) throws {
                for i in 0..<list.count {
                    try collect(list.value(i), column, origin, { try list.list(i) }, { try list.dictionary(i) })
                }
            }
            func collect(_ dictionary: DictionaryReader, _ column: Column, _ origin: ObjectKey) throws {
                for i in 0..<dictionary.count {
                    try collect(dictionary.value(i), column, origin, { try dictionary.list(i) }, { try dictionary.dictionary(i) })
                }
            }
            func collect(
                _ value: Mixed, _ column: Column, _ origin: ObjectKey, _ list: () throws -> ListReader,
                _ dictionary: () throws -> DictionaryReader
            ) throws {
                switch value {
                case .link(let target, let object):
                    let link = Link(originTable: table.key, column: column.key, origin: origin, table: target, target: object)
                    counter.forward[link, default: 0] += 1
                case .list: try collect(list(), column, origin)
                case .dictionary: try collect(dictionary(), column, origin)
                default: break
                }
            }
            try table.forEachObject { row in
                for column in table.columns {
                    if column.isBacklink {
                        try row.forEachBacklink(column) {
                            let link = Link(
                                originTable: column.oppositeTable, column: column.oppositeColumn, origin: $0,
                                table: table.key, target: row.key)
                            counter.backward[link, default: 0] += 1
                        }
                        XCTAssertEqual(try row.backlinks(column).count, try row.backlinkCount(column))
                    } else if column.type == .link || column.type == .mixed {
                        switch column.collection {
                        case nil:
                            try collect(
                                row.value(column), column, row.key, { try row.list(column) }, { try row.dictionary(column) })
                        case .list: try collect(row.list(column), column, row.key)
                        case .set: try collect(row.set(column).elements, column, row.key)
                        case .dictionary: try collect(row.dictionary(column), column, row.key)
                        }
                    }
                }
            }
        }
        for group in files {
            let counter = try XCTUnwrap(counters[ObjectIdentifier(group)])
            XCTAssertEqual(counter.forward, counter.backward)
            total += counter.forward.count
        }
        XCTAssertGreaterThan(total, 500)
    }

    func testTheBacklinkColumnOfALinkColumnPointsBackAtIt() throws {
        var pairs = 0
        try eachTable { name, group, table in
            for column in table.publicColumns where column.type == .link {
                let target = try XCTUnwrap(group.table(column.oppositeTable), "\(name) \(table.name)")
                let back = try XCTUnwrap(target.backlinkColumn(from: column), "\(name) \(table.name).\(table.name(of: column))")
                XCTAssertEqual(back.key, column.oppositeColumn)
                XCTAssertEqual(table.column(back.oppositeColumn), column)
                pairs += 1
            }
        }
        XCTAssertGreaterThan(pairs, 10)
    }

    func testTheSchemaOfTheFileIsTheGivenOne() throws {
        let scratch = ScratchDirectory()
        let file = try GivenFiles.open("all-types", in: Fixtures.core14, scratch)
        let schema = try file.group.schema()
        XCTAssertEqual(schema.version, 3)
        let all = try XCTUnwrap(schema.objectSchema(named: "AllTypes"))
        XCTAssertEqual(all.primaryKey, "_id")
        XCTAssertFalse(all.isEmbedded)
        XCTAssertEqual(all.property(named: "_id"), PropertySchema(name: "_id", type: .int, isIndexed: true))
        XCTAssertEqual(all.property(named: "opt_int"), PropertySchema(name: "opt_int", type: .int, isOptional: true))
        XCTAssertEqual(
            all.property(named: "setOpt_int"), PropertySchema(name: "setOpt_int", type: .int, collection: .set, isOptional: true))
        XCTAssertNil(schema.objectSchema(named: "metadata"))
    }
}

/// The same over files that we have encrypted.
final class EncryptedReaderAgreementTests: ReaderAgreementTests {
    override func setUp() { GivenFiles.key = TestKeys.test }
    override func tearDown() { GivenFiles.key = TestKeys.usual }

    // A class with a test of its own is found by the test runner, and with it those that it inherits.
    func testTheFilesAreEncrypted() { XCTAssertNotNil(GivenFiles.key) }
}
