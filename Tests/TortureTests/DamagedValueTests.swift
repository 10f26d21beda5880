import SharedStore
import XCTest

@testable import Fuzzer

/// Damage to leaves, B+ trees and collections.
final class DamagedValueTests: DamageTestCase {
    private let all = "all-types"

    /// Path of the first leaf whose flags fit, of one of the columns or of a collection in it.
    private func leaf(_ file: DamagedFile, _ columns: [String], _ table: String = "AllTypes", where fits: (UInt8) -> Bool) throws
        -> [Int]
    {
        for column in columns {
            let path = file.leaf(table, column)
            let node = file.ref(path)
            if !column.hasPrefix("list") && !column.hasPrefix("set") {
                if fits(file.flags(node)) { return path }
                continue
            }
            for i in 0..<file.count(node) where file.element(node, i) != 0 && fits(file.flags(Int(file.element(node, i)))) {
                return path + [i]
            }
        }
        throw FormatError(ref: 0, "the file has no leaf of this form")
    }

    // MARK: Leaves

    func testLeafWithARowTooFew() throws {
        try expect(.leafCount, in: all) { file in file.edit(file.leaf("AllTypes", "intCol")) { $0.elements.removeLast() } }
    }

    func testLeafWithARowTooMany() throws {
        try expect(.leafCount, in: all) { file in
            file.edit(file.leaf("AllTypes", "opt_date") + [0]) {
                $0.elements.append(5)
            }
            file.edit(file.leaf("AllTypes", "opt_date") + [1]) { $0.elements.append(0) }
        }
    }

    func testLeafOfAnotherType() throws {
        // A leaf of doubles in a column of floats.
        try expect(.nodeKind, in: all) { file in
            file.edit(file.leaf("AllTypes", "floatCol")) {
                $0.flags = 0x0C
                $0.payload += $0.payload
            }
        }
    }

    func testNullableIntegersWithoutSentinel() throws {
        try expect(.intSentinel, in: all) { file in file.edit(file.leaf("AllTypes", "opt_int")) { $0.elements = [] } }
    }

    func testSentinelThatIsNotTheUpperBound() throws {
        try expect(.intSentinelValue, .warning, in: all) { file in
            file.edit(file.leaf("AllTypes", "opt_int")) {
                $0.elements = $0.elements.indices.map { $0 == 0 ? 99 : Int64($0) }
                $0.widthMin = 8
            }
        }
    }

    func testBooleanTwo() throws {
        try expect(.boolValue, in: all) { file in file.edit(file.leaf("AllTypes", "opt_bool")) { $0.elements[2] = 2 } }
    }

    func testNullInANonNullableColumn() throws {
        try expect(.valueNull, in: all) { file in file.edit(file.leaf("AllTypes", "boolCol")) { $0.elements[2] = 3 } }
    }

    func testNullInANonNullableColumnOfFloats() throws {
        try expect(.valueNull, in: all) { file in
            file.edit(file.leaf("AllTypes", "floatCol")) { $0.payload.replaceSubrange(4..<8, with: [0xAA, 0, 0xC0, 0x7F]) }
        }
    }

    func testNullInANonNullableColumnOfStrings() throws {
        try expect(.valueNull, in: all) { file in
            let path = file.leaf("AllTypes", "stringCol")
            XCTAssertEqual(file.flags(file.ref(path)) & 0x60, 0x60, "big blobs")
            file.edit(path) { $0.elements[3] = 0 }
        }
    }

    func testSecondsAndNanosecondsOfDifferentSign() throws {
        try expect(.timestampSign, in: all) { file in
            file.edit(file.leaf("AllTypes", "dateCol") + [0]) { $0.elements[4] = 5 }
            file.edit(file.leaf("AllTypes", "dateCol") + [1]) { $0.elements[3] = -1 }
        }
    }

    func testNanosecondsOfASecond() throws {
        try expect(.timestampRange, in: all) { file in
            file.edit(file.leaf("AllTypes", "dateCol") + [0]) { $0.elements[4] = 5 }
            file.edit(file.leaf("AllTypes", "dateCol") + [1]) { $0.elements[3] = 1_000_000_000 }
        }
    }

    func testSecondsWithoutNanoseconds() throws {
        try expect(.timestampCounts, in: all) { file in
            file.edit(
                file.leaf(
                    "AllTypes",
                    "dateCol") + [1]
            ) { $0.elements.removeLast() }
        }
    }

    func testDecimalsOfTwoBytes() throws {
        try expect(.nodeKind, in: "trees") { file in
            file.edit(file.leaf("Small", "e")) { $0.flags = $0.flags & 0xF8 | 2 }
        }
    }

    func testObjectIdsThatAreNoWholeNumber() throws {
        try expect(.fixedSize, in: "all-types") { file in
            file.edit(file.leaf("AllTypes", "objectIdCol")) {
                $0.payloadCount -= 5
                $0.payload.removeLast(5)
            }
        }
    }

    // MARK: Strings

    func testShortStringWithTooMuchPadding() throws {
        try expect(.stringBlock, also: [.indexPlace], in: "relationships") { file in
            file.edit(file.leaf("Dog", "name")) { $0.payload[7] = 0x30 }
        }
    }

    func testShortStringWithBytesBehindItsEnd() throws {
        try expect(.stringPadding, in: "relationships") { file in
            file.edit(file.leaf("Dog", "name")) { $0.payload[6] = 0x30 }
        }
    }

    func testSmallBlobsWithoutTerminator() throws {
        try expect(.stringTerminator, in: all) { file in
            let path = try self.leaf(file, ["opt_string", "list_string", "listOpt_string"]) { $0 & 0x60 == 0x40 }
            let end = Int(file.element(file.ref(path + [0]), 0))
            file.edit(path + [1]) { $0.payload[end - 1] = 0x41 }
        }
    }

    func testBigBlobWithoutTerminator() throws {
        try expect(.stringTerminator, in: all) { file in
            let path = file.leaf("AllTypes", "stringCol") + [2]
            file.edit(path) { $0.payload[$0.payloadCount - 1] = 0x41 }
        }
    }

    func testSmallBlobsWithDescendingOffsets() throws {
        try expect(.blobsOffsets, in: all) { file in
            let path = try self.leaf(file, ["list_string", "listOpt_string", "list_data"]) { $0 & 0x60 == 0x40 }
            file.edit(path + [0]) { $0.elements[0] = $0.elements[$0.elements.count - 1] + 1 }
        }
    }

    func testSmallBlobsOfTwoParts() throws {
        try expect(.blobsShape, in: all) { file in
            let path = try self.leaf(file, ["list_string", "listOpt_string", "list_data"]) { $0 & 0x60 == 0x40 }
            file.edit(path) { $0.elements.removeLast() }
        }
    }

    func testSmallBlobsWithANullFlagOfTwo() throws {
        try expect(.blobsNulls, also: [.valueNull], in: all) { file in
            let path = try self.leaf(file, ["list_string", "listOpt_string", "list_data"]) { $0 & 0x60 == 0x40 }
            file.edit(path + [2]) { $0.elements[0] = 2 }
        }
    }

    func testBlobThatIsAnArray() throws {
        try expect(.nodeKind, in: all) { file in
            file.edit(file.leaf("AllTypes", "stringCol") + [2]) { $0 = .init(flags: 0, elements: [1, 2, 3]) }
        }
    }

    func testStringThatIsNotUTF8() throws {
        try expect(.valueUTF8, .warning, in: "many-versions") { file in
            file.edit(file.leaf("Log", "text") + [0]) { $0.payload[0] = 0xFF }
        }
    }

    func testEnumeratedStringOutsideTheList() throws {
        try expect(.enumIndex, in: "trees") { file in file.edit(file.leaf("Small", "color")) { $0.elements[7] = 4000 } }
    }

    func testNullWithBytes() throws {
        try expect(.blobsNullSize, .warning, in: all) { file in
            let path = try self.leaf(file, ["listOpt_string", "listOpt_data"]) { $0 & 0x60 == 0x40 }
            file.edit(path + [2]) { $0.elements[$0.elements.count - 1] = 1 }
            let offsets = file.ref(path + [0]), count = file.count(offsets)
            XCTAssertGreaterThan(file.element(offsets, count - 1) - (count > 1 ? file.element(offsets, count - 2) : 0), 1)
        }
    }

    // MARK: Mixed

    func testMixedWithAPayloadOfAnotherSize() throws {
        // An ObjectId of one byte.
        try expect(.mixedPayload, in: "nested-mixed") { file in
            file.edit(
                file.collection(
                    "Doc",
                    "list") + [0]
            ) { $0.elements[1] = 3 << 5 | 16 }
        }
    }

    private func mixed(_ file: DamagedFile) -> [Int] { file.leaf("Doc", "any") }

    func testMixedOfAnUnknownType() throws {
        try expect(.mixedType, also: [.mixedPayloadUnused], in: "nested-mixed") { file in
            file.edit(self.mixed(file) + [0]) { $0.elements[2] = 1 << 8 | 2 << 5 | 24 }
        }
    }

    func testMixedWithAPayloadArrayOfAnotherType() throws {
        try expect(.mixedType, also: [.mixedPayloadUnused], in: "nested-mixed") { file in
            file.edit(self.mixed(file) + [0]) { $0.elements[2] = 0 << 8 | 1 << 5 | 3 }
        }
    }

    func testMixedPayloadIndexBehindTheEnd() throws {
        try expect(.mixedPayloadIndex, also: [.mixedPayloadUnused], in: "nested-mixed") { file in
            file.edit(self.mixed(file) + [0]) { $0.elements[2] += 7 << 8 }
        }
    }

    func testMixedPayloadUsedTwice() throws {
        try expect(.mixedPayloadShared, also: [.mixedPayloadUnused, .nodeShared], in: "nested-mixed") { file in
            file.edit(self.mixed(file) + [0]) { $0.elements[1] = $0.elements[0] & ~0xFF | $0.elements[1] & 0xFF }
        }
    }

    func testMixedPayloadOfNoValue() throws {
        try expect(.mixedPayloadUnused, in: "nested-mixed") { file in
            file.edit(self.mixed(file) + [2]) { $0.elements += [1, 2] }
        }
    }

    func testMixedPairsThatAreOdd() throws {
        try expect(.mixedPayloadCount, in: "nested-mixed") { file in
            file.edit(self.mixed(file) + [2]) { $0.elements.append(1) }
        }
    }

    func testMixedKeysLongerThanValues() throws {
        try expect(.mixedKeyCount, in: "nested-mixed") { file in
            file.edit(self.mixed(file) + [5]) { $0.elements.append(0) }
        }
    }

    func testMixedKeysShorterThanValues() throws {
        try expect(.mixedKeyCount, .warning, in: "nested-mixed") { file in
            file.edit(self.mixed(file) + [5]) { $0.elements.removeLast() }
        }
    }

    func testNestedCollectionWithoutKey() throws {
        try expect(.mixedKeyMissing, in: "nested-mixed") { file in file.edit(self.mixed(file) + [5]) { $0.elements[1] = 0 } }
    }

    func testNestedCollectionsWithOneKey() throws {
        try expect(.mixedKeyDuplicate, in: "nested-mixed") { file in
            let list = file.collection("Doc", "list")
            file.edit(list + [0]) { $0.elements[1] = 1 << 8 | 4 << 5 | 20 }
            file.edit(list + [4]) { $0.elements.append(0) }
            file.edit(list + [3]) {
                $0.payload = []; $0.payloadCount = 0
            }
            file.edit(list + [5]) { $0.elements[1] = $0.elements[0] }
        }
    }

    func testMixedOfThreeParts() throws {
        try expect(.nodeKind, in: "nested-mixed") { file in file.edit(self.mixed(file)) { $0.elements.removeLast(3) } }
    }

    func testNestingWithoutEnd() throws {
        try expect(.depthLimit, in: "nested-mixed") { file in
            var inner: Int64 = 0
            for _ in 0..<120 {
                let composite = file.append(.init(flags: 0, elements: [0x94])), keys = file.append(.init(flags: 0, elements: [1]))
                let refs = file.append(.init(flags: 0x40, elements: [inner]))
                inner = Int64(file.append(.init(flags: 0x40, elements: [Int64(composite), 0, 0, 0, Int64(refs), Int64(keys)])))
            }
            file.edit(file.collection("Doc", "list") + [4]) { $0.elements[0] = inner }
            file.edit(file.collection("Doc", "list") + [0]) { $0.elements[0] = 0x94 }
        }
    }

    func testNestingOfTreesThatAreDeep() throws {
        // 90 nested lists, each of them below a chain of inner nodes: legal levels of either, too many together.
        try expect(.depthLimit, in: "nested-mixed") { file in
            var inner: Int64 = 0
            for _ in 0..<90 {
                let composite = file.append(.init(flags: 0, elements: [0x94])), keys = file.append(.init(flags: 0, elements: [1]))
                let refs = file.append(.init(flags: 0x40, elements: [inner]))
                inner = Int64(file.append(.init(flags: 0x40, elements: [Int64(composite), 0, 0, 0, Int64(refs), Int64(keys)])))
                for _ in 0..<14 { inner = Int64(file.append(.init(flags: 0xC0, elements: [3, inner, 3]))) }
            }
            file.edit(file.collection("Doc", "list") + [4]) { $0.elements[0] = inner }
            file.edit(file.collection("Doc", "list") + [0]) { $0.elements[0] = 0x94 }
            // And the readers end as well.
            XCTAssertNoThrow(try Exercise.run(Array(file.bytes)))
        }
    }

    // MARK: B+ trees

    /// Path of the first inner root of a list of Holder.
    private func tree(_ file: DamagedFile, compact: Bool) throws -> [Int] {
        for column in ["ints", "texts", "numbers", "anys", "peers"] {
            let node = file.ref(file.leaf("Holder", column))
            for i in 0..<file.count(node) {
                let root = Int(file.element(node, i))
                if root != 0 && file.flags(root) & 0x80 != 0 && (file.element(root, 0) & 1 != 0) == compact {
                    return file.leaf("Holder", column) + [i]
                }
            }
        }
        throw FormatError(ref: 0, "the file has no such tree")
    }

    func testTreeWithAWrongTotal() throws {
        try expect(.treeTotal, in: "trees") { file in
            file.edit(try self.tree(file, compact: false)) { $0.elements[$0.elements.count - 1] += 2 }
        }
    }

    func testTreeWithARefForATotal() throws {
        try expect(.treeTotal, also: [.nodeShared], in: "trees") { file in
            file.edit(try self.tree(file, compact: false)) { $0.elements[$0.elements.count - 1] = $0.elements[1] }
        }
    }

    func testTreeWithWrongOffsets() throws {
        try expect(.treeOffsets, in: "trees") { file in
            file.edit(try self.tree(file, compact: false) + [0]) { $0.elements[0] += 1 }
        }
    }

    func testTreeWithTooFewOffsets() throws {
        try expect(.treeOffsets, in: "trees") { file in
            file.edit(try self.tree(file, compact: false) + [0]) { $0.elements.removeLast() }
        }
    }

    func testCompactTreeWithAnotherNumberAChild() throws {
        try expect(.treeCompact, in: "trees") { file in
            file.edit(try self.tree(file, compact: true)) { $0.elements[0] = self.tagged(999) }
        }
    }

    func testTreeWithLeavesAtDifferentDepths() throws {
        try expect(.treeDepth, in: "trees") { file in
            let path = try self.tree(file, compact: false)
            let count = file.count(file.ref(path))
            // The last leaf gets an inner node of its own above it.
            let last = file.element(file.ref(path), count - 2)
            let before = Int64(UInt16(truncatingIfNeeded: file.element(file.ref(path + [0]), count - 4)))
            let elements = file.element(file.ref(path), count - 1) >> 1 - before
            let inner = file.append(.init(flags: 0xC0, elements: [self.tagged(1000), last, self.tagged(elements)]))
            file.edit(path) { $0.elements[count - 2] = Int64(inner) }
        }
    }

    func testTreeWithAnEmptyLeaf() throws {
        try expect(.treeEmptyLeaf, also: [.treeCompact, .treeTotal], in: "trees") { file in
            file.edit(try self.tree(file, compact: true) + [2]) { $0 = .init(flags: 0) }
        }
    }

    func testTreeWithALeafOfTooManyElements() throws {
        try expect(.treeNodeCount, .warning, in: "trees") { file in
            file.edit(file.collection("Holder", "ints")) { $0 = .init(flags: 0, elements: (0..<1500).map { Int64($0) }) }
        }
    }

    func testTreeWithoutChildren() throws {
        try expect(.treeShape, in: "trees") { file in
            file.edit(try self.tree(file, compact: true)) { $0.elements = [3, 3] }
        }
    }

    func testTreeWithoutEnd() throws {
        try expect(.depthLimit, in: "trees") { file in
            var child = Int64(file.append(.init(flags: 0, elements: [1])))
            for _ in 0..<40 { child = Int64(file.append(.init(flags: 0xC0, elements: [3, child, 3]))) }
            file.edit(file.collection("Holder", "ints")) { $0 = .init(flags: 0xC0, elements: [3, child, 3]) }
        }
    }

    // MARK: Collections

    func testUnsortedSet() throws {
        try expect(.setOrder, in: all) { file in
            file.edit(
                file.collection(
                    "AllTypes",
                    "set_int", minimum: 3)
            ) { $0.elements.swapAt(0, 2) }
        }
    }

    func testValueTwiceInASet() throws {
        try expect(.setDuplicate, in: all) { file in
            file.edit(
                file.collection(
                    "AllTypes",
                    "set_int", minimum: 2)
            ) { $0.elements[1] = $0.elements[0] }
        }
    }

    func testSetOfMixedOutOfOrder() throws {
        try expect(.setOrder, in: all) { file in
            let leaf = file.leaf("AllTypes", "set_any"), node = file.ref(leaf)
            let row = try XCTUnwrap(
                (0..<file.count(node)).first {
                    file.element(node, $0) != 0 && file.count(Int(file.element(Int(file.element(node, $0)), 0))) >= 3
                })
            file.edit(leaf + [row, 0]) { $0.elements.reverse() }
        }
    }

    func testDictionaryWithKeysOutOfOrder() throws {
        try expect(.dictionaryOrder, in: "relationships") { file in
            let path = file.collection("Person", "byNick", minimum: 2)
            file.edit(path + [0]) { $0.payload[4] = 0x39 }
        }
    }

    func testDictionaryWithAKeyTwice() throws {
        try expect(.dictionaryOrder, in: "relationships") { file in
            let path = file.collection("Person", "byNick", minimum: 2)
            file.edit(path + [0]) { $0.payload[12] = $0.payload[4] }
        }
    }

    func testDictionaryWithMoreKeysThanValues() throws {
        try expect(.dictionaryCounts, in: "relationships") { file in
            let path = file.collection("Person", "byNick", minimum: 1)
            file.edit(path + [0]) {
                $0.payload += Array("zzzz".utf8) + [0, 0, 0, 3]
                $0.payloadCount += 1
            }
        }
    }

    func testDictionaryOfOneTree() throws {
        try expect(.dictionaryShape, in: "nested-mixed") { file in
            file.edit(
                file.collection(
                    "Doc",
                    "map")
            ) { $0.elements.removeLast() }
        }
    }

    func testDictionaryWithAValueOfAnotherType() throws {
        try expect(.dictionaryValue, in: all) { file in
            file.edit(file.collection("AllTypes", "map_bool") + [1, 0]) { $0.elements[0] = 1 << 8 | 1 }
        }
    }

    func testDictionaryWithANullThatIsNotAllowed() throws {
        try expect(.valueNull, in: all) { file in
            file.edit(
                file.collection(
                    "AllTypes",
                    "map_bool") + [1, 0]
            ) { $0.elements[0] = 0 }
        }
    }
}
