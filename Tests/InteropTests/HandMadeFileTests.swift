import Foundation
import SharedStore
import TestSupport
import XCTest

/// Shapes that no given file has, made node by node and read.
final class HandMadeFileTests: XCTestCase {
    private func open(_ bytes: [UInt8], _ scratch: ScratchDirectory) throws -> ImmutableFile {
        let path = scratch.file("\(UUID().uuidString).realm")
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        return try ImmutableFile(path: path)
    }

    private func text(_ file: ImmutableFile) throws -> String {
        String(decoding: try JSONExporter.text(file.group), as: UTF8.self)
    }

    func testTheExampleOfTheSpecificationIsRead() throws {
        // file-format-1 1.3: one table t with one int column n and one row with value 5.
        let hex = """
            ffffffffffffffff0000000000000000 542d444218000000 414141410a000001 7400000000000000 4141414100000001 414141410a000001 6e00000000000000
            4141414100000001 4141414100000001 4141414144000006 2830400000480000 4141414103000001 0500000000000000 4141414144000002 0360000000000000
            4141414140000001 4141414106000001 ffffff7f00000000 4141414107000001 ffffffffffffff7f
            414141414500000e 5000000070000100 8000010001008800 9800000000000000 0100000000000000
            4141414145000001 a800000000000000 4141414145000003 1800d000e1010000 e000000000000000 c826e53752123430
            """
        let digits = hex.filter { $0.isHexDigit }
        var bytes: [UInt8] = []
        var rest = digits[...]
        while !rest.isEmpty {
            bytes.append(try XCTUnwrap(UInt8(rest.prefix(2), radix: 16)))
            rest = rest.dropFirst(2)
        }
        XCTAssertEqual(bytes.count, 256)
        XCTAssertEqual(
            try text(open(bytes, ScratchDirectory())),
            #"{"schemaVersion":-1,"classes":{},"tables":{"t":{"objects":[{"_key":0,"n":5}]}}}"#)
    }

    func testTopArraysOfEveryLegalLengthAreReadAndOthersRefused() throws {
        let scratch = ScratchDirectory()
        var file = NodeFile()
        let column = NodeFile.Column("n", type: 0, leaf: file.integers([1, 2, 3]), leafIndex: 0)
        let tree = file.cluster([column], rows: 3)
        let table = file.table(key: 0, [column], tree: tree)
        for slots in 3...12 {
            let bytes = file.inPlace(names: ["class_A"], tables: [table], slots: slots)
            if [3, 5, 7, 9, 10, 11, 12].contains(slots) {
                let group = try open(bytes, scratch).group
                XCTAssertEqual(try group.table(ofClass: "A")?.objectCount, 3)
                XCTAssertEqual(try group.version(), slots > 6 ? 2 : 1)
            } else {
                XCTAssertThrowsError(try open(bytes, scratch)) { error in
                    guard case .damaged(_, let found)? = error as? OpenError else { return XCTFail("\(error)") }
                    XCTAssertTrue(found.reason.contains("\(slots) elements"))
                }
            }
        }
    }

    func testAPrimaryKeyWhoseColumnKeyIsZeroIsOne() throws {
        let scratch = ScratchDirectory()
        var file = NodeFile()
        var id = NodeFile.Column("id", type: 0, leaf: file.integers([7, 0, 300]), leafIndex: 0)
        XCTAssertEqual(id.key, 0)
        // 7, 0 and 300 as chunks: 07000000, 00000000, 2C010000; ascending: 0, 07000000, 2C010000.
        let chunks = file.integers([0, 0x0700_0000, 0x2C01_0000], code: 6)
        id.index = file.refs([chunks, NodeFile.tagged(1), NodeFile.tagged(0), NodeFile.tagged(2)], context: true)
        let tree = file.cluster([id], rows: 3)
        let top = file.table(key: 0, [id], tree: tree, primaryKey: 1)
        let bytes = file.streaming(names: ["class_A"], tables: [top])
        let table = try XCTUnwrap(open(bytes, scratch).group.table(ofClass: "A"))
        XCTAssertEqual(table.primaryKeyColumn?.key.rawValue, 0)
        for (value, key) in [(7, 0), (0, 1), (300, 2)] as [(Int64, Int64)] {
            XCTAssertEqual(try table.find(primaryKey: .int(value))?.key.rawValue, key)
        }
        XCTAssertNil(try table.find(primaryKey: .int(8)))
        // Null has the chunks of int 0 and differs only behind them.
        XCTAssertNil(try table.find(primaryKey: .null))

        let topWithout = file.table(key: 0, [id], tree: tree, primaryKey: 0)
        let without = file.streaming(names: ["class_A"], tables: [topWithout])
        XCTAssertNil(try open(without, scratch).group.table(ofClass: "A")?.primaryKeyColumn)
    }

    func testDictionariesWithIntKeysAreReadAndSearched() throws {
        let scratch = ScratchDirectory()
        var file = NodeFile()
        let keys = file.integers([-5, 0, 7]), values = file.mixed([1 << 8 | 1, 0, 1 << 8 | 2])
        let leaf = file.refs([file.refs([keys, values]), 0])
        let column = NodeFile.Column("d", type: 6, attributes: 16 | 64, leaf: leaf, leafIndex: 0, keyType: 0)
        let tree = file.cluster([column], rows: 2)
        let top = file.table(key: 0, [column], tree: tree)
        let opened = try open(file.streaming(names: ["class_A"], tables: [top]), scratch)
        let table = try XCTUnwrap(opened.group.table(ofClass: "A"))
        let d = try XCTUnwrap(table.column(named: "d"))
        XCTAssertEqual(d.dictionaryKeyType, .int)
        let dictionary = try XCTUnwrap(table.find(ObjectKey(0))).dictionary(d)
        XCTAssertEqual(try (0..<3).map { try dictionary.key($0) }, [.int(-5), .int(0), .int(7)])
        XCTAssertEqual(try dictionary.find(int: 7), 2)
        XCTAssertNil(try dictionary.find(int: 6))
        XCTAssertNil(try dictionary.find("7"))
        XCTAssertTrue(try text(opened).contains(#""d":{"$dict":[[-5,1],[0,null],[7,true]]}"#))
        XCTAssertTrue(try text(opened).contains(#""d":{"$dict":[]}"#))
    }

    func testMixedLeavesOfFourSlotsAndShortKeyArraysAreRead() throws {
        let scratch = ScratchDirectory()
        var file = NodeFile()
        let list = file.mixed([2 << 8 | 1])
        let fourLeaf = file.mixed([5 << 8 | 1, 0, 3 << 5 | 3], strings: ["x"], slots: 4)
        let shortLeaf = file.mixed([0x94, 1 << 8 | 0x96, 1 << 8 | 2], refs: [list, 0], keys: [9])
        let four = NodeFile.Column("four", type: 6, attributes: 16, leaf: fourLeaf, leafIndex: 0)
        let short = NodeFile.Column("short", type: 6, attributes: 16, leaf: shortLeaf, leafIndex: 1)
        let tree = file.cluster([four, short], rows: 3)
        let top = file.table(key: 0, [four, short], tree: tree)
        let opened = try open(file.streaming(names: ["class_A"], tables: [top]), scratch)
        for object in [
            #"{"_key":0,"four":5,"short":[2]}"#, #"{"_key":1,"four":null,"short":{"$dict":[]}}"#,
            #"{"_key":2,"four":"x","short":true}"#,
        ] {
            XCTAssertTrue(try text(opened).contains(object), object)
        }
        let table = try XCTUnwrap(opened.group.table(ofClass: "A")), column = try XCTUnwrap(table.column(named: "short"))
        XCTAssertEqual(try table.find(ObjectKey(0))?.list(column).value(0), .int(2))
        XCTAssertEqual(try table.find(ObjectKey(1))?.dictionary(column).count, 0)
        XCTAssertEqual(try table.find(ObjectKey(1))?.value(column), .dictionary)
    }

    /// A table whose objects 0 and 1 link to 5 (live), -2 and -7 (tombstones of 0 and 5): by link, list and set, and in Mixed.
    func testLinksToTombstonesAreHiddenAndPositionsSkipThem() throws {
        let scratch = ScratchDirectory()
        var file = NodeFile()
        let listRef = file.integers([-2, 5, -7, 5], context: true), setRef = file.integers([-7, -2, 5], context: true)
        var link = NodeFile.Column("link", type: 12, attributes: 16, leaf: file.integers([6, -1]), leafIndex: 0)
        var list = NodeFile.Column("list", type: 12, attributes: 32, leaf: file.refs([listRef, 0]), leafIndex: 1)
        var set = NodeFile.Column("set", type: 12, attributes: 128, leaf: file.refs([setRef, 0]), leafIndex: 2)
        let anyLeaf = file.mixed([2 << 5 | 17, 1 << 8 | 2 << 5 | 17], pairs: [1, 5, 1, -2])
        let any = NodeFile.Column("any", type: 6, attributes: 16, leaf: anyLeaf, leafIndex: 3)
        link.oppositeTable = 1
        list.oppositeTable = 1
        set.oppositeTable = 1
        let tree = file.cluster([link, list, set, any], rows: 2)
        let origin = file.table(key: 0, [link, list, set, any], tree: tree)
        let live = file.cluster([], rows: 1, keys: [5])
        let dead = file.cluster([], rows: 2, keys: [UInt64(bitPattern: -7), UInt64(bitPattern: -2)])
        let target = file.table(key: 1, [], tree: live, tombstones: dead)
        let opened = try open(file.streaming(names: ["class_A", "class_B"], tables: [origin, target]), scratch)
        let a = try XCTUnwrap(opened.group.table(ofClass: "A")), b = try XCTUnwrap(opened.group.table(ofClass: "B"))
        let row = try XCTUnwrap(a.find(ObjectKey(0))), other = try XCTUnwrap(a.find(ObjectKey(1)))
        func column(_ name: String) throws -> Column { try XCTUnwrap(a.column(named: name)) }
        XCTAssertEqual(try row.link(column("link")), ObjectKey(5))
        XCTAssertNil(try other.link(column("link")))
        XCTAssertEqual(try other.storedLink(column("link")), ObjectKey(-2))
        let reader = try row.list(column("list"))
        XCTAssertEqual(reader.count, 2)
        XCTAssertEqual(reader.storedCount, 4)
        XCTAssertEqual(try (0..<2).map { try reader.link($0) }, [ObjectKey(5), ObjectKey(5)])
        XCTAssertEqual(try (0..<2).map { try reader.storedPosition($0) }, [1, 3])
        XCTAssertEqual(try row.set(column("set")).count, 1)
        XCTAssertEqual(try row.set(column("set")).value(0), .link(TableKey(1), ObjectKey(5)))
        XCTAssertEqual(try row.set(column("set")).find(.link(TableKey(1), ObjectKey(5))), 0)
        XCTAssertEqual(try row.value(column("any")), .link(TableKey(1), ObjectKey(5)))
        XCTAssertEqual(try other.value(column("any")), .null)
        XCTAssertEqual(b.objectCount, 1)
        XCTAssertEqual(try b.tombstone(ObjectKey(-7))?.key, ObjectKey(-7))
        XCTAssertEqual(try b.tombstone(ObjectKey(-2))?.index, 1)
        XCTAssertNil(try b.tombstone(ObjectKey(-3)))
        let five = #"{"$link":["B",5]}"#
        XCTAssertTrue(
            try text(opened).contains(#"{"_key":0,"link":\#(five),"list":[\#(five),\#(five)],"set":[\#(five)],"any":\#(five)}"#))
        XCTAssertTrue(try text(opened).contains(#"{"_key":1,"link":null,"list":[],"set":[],"any":null}"#))
    }

    func testAPrimaryKeyWithoutIndexIsFoundThroughTheCollisionMap() throws {
        let scratch = ScratchDirectory()
        var file = NodeFile()
        // file-format-2 4.8: 1 and 1 + 2^62 hash to the same key; the second one got 2^62.
        let id = NodeFile.Column("id", type: 0, leaf: file.integers([1, 1 + 1 << 62]), leafIndex: 0)
        let tree = file.cluster([id], rows: 2, keys: [1, 1 << 62])
        let map = file.refs([file.integers([1, 1 + 1 << 62]), file.integers([0, 0]), file.integers([1, 1 << 62])])
        let table = file.table(key: 0, [id], tree: tree, primaryKey: 1, collisions: map)
        let found = try XCTUnwrap(
            open(file.streaming(names: ["class_A"], tables: [table], format: 20), scratch).group.table(ofClass: "A"))
        XCTAssertEqual(try found.find(primaryKey: .int(1))?.key.rawValue, 1)
        XCTAssertEqual(try found.find(primaryKey: .int(1 + 1 << 62))?.key.rawValue, 1 << 62)
        XCTAssertNil(try found.find(primaryKey: .int(2)))
        XCTAssertEqual(try found.localKey(GlobalKey(high: 0, low: 1 + 1 << 62)), ObjectKey(1 << 62))
        XCTAssertEqual(try found.localKey(GlobalKey(high: 0, low: 77 + 1 << 62)), ObjectKey(77))
    }

    func testGlobalKeysAreThoseOfTheTestVectors() throws {
        func check(_ value: Mixed, _ high: UInt64, _ low: UInt64, line: UInt = #line) {
            XCTAssertEqual(GlobalKey(primaryKey: value), GlobalKey(high: high, low: low), line: line)
        }
        check(.string("foo"), 0xc25b_3c7f_d40d_5dc9, 0xdb0f_3fea_b5c7_ee0b)
        check(.string(""), 0x9018_6095_efbf_5532, 0x0d4b_6b5e_eea3_39da)
        check(.objectId(try XCTUnwrap(ObjectIdValue("507f1f77bcf86cd799439011"))), 0x90c3_ec58_8f8e_6ca7, 0x127f_41c8_cd41_03ee)
        check(
            .uuid(try XCTUnwrap(UUIDValue("3b241101-e2bb-4255-8caf-4136c566a962"))), 0x5542_bbe2_0111_243b, 0x62a9_66c5_3641_af8c)
        check(.null, 1, 0)
        check(.int(-860), 0, 0xffff_ffff_ffff_fca4)
        XCTAssertEqual(GlobalKey(primaryKey: .int(-860))?.hashedLocalKey.rawValue, 0x3fff_ffff_ffff_fca4)
        XCTAssertEqual(GlobalKey(primaryKey: .int(-860))?.hashedLocalKey.unresolved.rawValue, -4_611_686_018_427_387_046)
        XCTAssertNil(GlobalKey(primaryKey: .double(1)))
    }

    /// Words "abcd" (alone at its chunk), "abcdefgh" and "abcdef" (below a sub-index), with stale and double keys in the index.
    func testTheIndexOfAListOfStringsIsReadAsASetAndCheckedWithTheLists() throws {
        let scratch = ScratchDirectory()
        var file = NodeFile()
        let lists = [["abcd", "wxyz"], ["abcdefgh", "abcdef", "abcd"], ["wxyz", "wxyz"], []]
        let leaf = file.refs(lists.map { $0.isEmpty ? 0 : file.strings($0) })
        var column = NodeFile.Column("words", type: 2, attributes: 32 | 1, leaf: leaf, leafIndex: 0)
        func chunk(_ text: String) -> Int { Array(text.utf8).reduce(0) { $0 << 8 | Int($1) } }
        // Behind "abcd": the word itself at 'X', "efX", and "efgh" (alone, without a further level).
        let end = 0x5800_0000, ef = chunk("efX") << 8, efgh = chunk("efgh")
        let subIndex = file.refs(
            [file.integers([end, ef, efgh], code: 6), file.integers([0, 1]), NodeFile.tagged(1), NodeFile.tagged(1)],
            context: true)
        // "wxyz": keys 0, 2 and 2 again, and 3 and 99, which no longer hold the word or do not exist.
        let many = file.integers([0, 2, 2, 3, 99])
        column.index = file.refs([file.integers([chunk("abcd"), chunk("wxyz")], code: 6), subIndex, many], context: true)
        let tree = file.cluster([column], rows: 4)
        let top = file.table(key: 0, [column], tree: tree)
        let opened = try open(file.streaming(names: ["class_A"], tables: [top]), scratch)
        let table = try XCTUnwrap(opened.group.table(ofClass: "A")), words = try XCTUnwrap(table.column(named: "words"))
        let index = try XCTUnwrap(SearchIndex(table, words))
        func find(_ word: String) throws -> [Int64] { try index.find(.string(word)).map(\.rawValue) }
        XCTAssertEqual(try find("abcd"), [0, 1])
        XCTAssertEqual(try find("abcdefgh"), [1])
        XCTAssertEqual(try find("abcdef"), [1])
        XCTAssertEqual(try find("wxyz"), [0, 2])
        for absent in ["", "a", "abc", "abcde", "abcdefghi", "abcdefghijkl", "wxyzw", "wxy"] {
            XCTAssertEqual(try find(absent), [], absent)
        }
        XCTAssertEqual(try index.find(.null), [])
        XCTAssertTrue(try opened.group.objectSchema(table).properties[0].isIndexed)
    }

    func testValuesOverSeveralBlobsAndNodesAcrossSectionsOf64MiBAreRead() throws {
        let scratch = ScratchDirectory()
        var file = NodeFile()
        let part = 0xFFFFF0
        var parts: [Int] = []
        for i in 0..<5 { parts.append(file.blob([UInt8](repeating: UInt8(i + 65), count: i == 4 ? 10 : part))) }
        let section = 1 << 26
        XCTAssertTrue(parts.contains { $0 / section != ($0 + 8 + part) / section }, "no node lies across a section")
        let split = file.refs(parts, context: true)
        let plain = file.blob([1, 2, 3])
        let leaf = file.refs([split, 0, plain], context: true)
        let column = NodeFile.Column("data", type: 4, attributes: 16, leaf: leaf, leafIndex: 0)
        let tree = file.cluster([column], rows: 3)
        let top = file.table(key: 0, [column], tree: tree)
        let opened = try open(file.streaming(names: ["class_A"], tables: [top]), scratch)
        XCTAssertGreaterThan(opened.fileSize, section)
        let table = try XCTUnwrap(opened.group.table(ofClass: "A")), data = try XCTUnwrap(table.column(named: "data"))
        let value = try XCTUnwrap(table.find(ObjectKey(0))?.binary(data))
        XCTAssertEqual(value.count, 4 * part + 10)
        for i in 0..<5 { XCTAssertEqual(value[i * part], UInt8(i + 65)) }
        XCTAssertNil(try table.find(ObjectKey(1))?.binary(data))
        XCTAssertEqual(try table.find(ObjectKey(2))?.binary(data), [1, 2, 3])
    }

    func testTablesAreFoundByKeyOnlyWhileTheTagFits() throws {
        let scratch = ScratchDirectory()
        var file = NodeFile()
        let tree = file.cluster([], rows: 0)
        let first = file.table(key: 0, [], tree: tree)
        let third = file.table(key: 3 << 16 | 2, [], tree: file.cluster([], rows: 2), slots: 12)
        let group = try open(
            file.streaming(names: ["class_A", "", "other"], tables: [first, NodeFile.tagged(1), third]), scratch
        ).group
        XCTAssertEqual(group.tableNames, ["class_A", "other"])
        XCTAssertEqual(group.tableCount, 2)
        XCTAssertEqual(try group.tableKeys(), [TableKey(0), TableKey(3 << 16 | 2)])
        XCTAssertEqual(try group.table(TableKey(3 << 16 | 2))?.objectCount, 2)
        for absent in [2, 2 << 16 | 2, 1, 3, 0x7FFF_FFFF] as [UInt32] {
            XCTAssertNil(try group.table(TableKey(absent)), "\(absent)")
        }
        XCTAssertNil(try group.table(named: ""))
        XCTAssertNil(try group.table(named: "class_other"))
    }
}
