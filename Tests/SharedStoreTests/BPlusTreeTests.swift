import SharedStore
import TestSupport
import XCTest

final class BPlusTreeTests: XCTestCase {
    let image = ByteImage()
    var memory: Memory { image.memory }

    func testRefZeroAndAnEmptyLeafAreTheEmptySequence() throws {
        for ref in [0, image.integers([])] {
            let tree = try BPlusTree<IntLeaf>(memory, ref)
            XCTAssertEqual(tree.count, 0)
            XCTAssertThrowsFormatError(try tree.value(at: 0))
            try tree.forEachLeaf { leaf, _ in XCTAssertEqual(leaf.count, 0) }
        }
    }

    func testALeafAsRoot() throws {
        let tree = try BPlusTree<IntLeaf>(memory, image.integers([7, 8, 9]))
        XCTAssertEqual(try values(tree), [7, 8, 9])
        XCTAssertThrowsFormatError(try tree.value(at: 3))
        XCTAssertThrowsFormatError(try tree.value(at: -1))
    }

    /// 2500 integers as appended: three children in compact form.
    func testCompactForm() throws {
        let root = image.inner(
            first: 2 * 1000 + 1, children: [leaf(0..<1000), leaf(1000..<2000), leaf(2000..<2500)], total: 2500)
        let tree = try BPlusTree<IntLeaf>(memory, root)
        XCTAssertEqual(try values(tree), Array(0..<2500))
        for index in [0, 999, 1000, 1999, 2000, 2499] { XCTAssertEqual(try tree.value(at: index), Int64(index)) }
        XCTAssertThrowsFormatError(try tree.value(at: 2500))
        XCTAssertEqual(try tree.leaf(containing: 1500).start, 1000)
    }

    /// The same after an insertion at 1500: offsets 1000, 1501, 2001.
    func testGeneralForm() throws {
        let offsets = image.add(flags: 0x05, count: 3, payload: [0xE8, 0x03, 0xDD, 0x05, 0xD1, 0x07])
        let children = [leaf(0..<1000), leaf(1000..<1501), leaf(1501..<2001), leaf(2001..<2501)]
        let tree = try BPlusTree<IntLeaf>(memory, image.inner(first: offsets, children: children, total: 2501))
        XCTAssertEqual(try values(tree), Array(0..<2501))
        for index in [0, 999, 1000, 1500, 1501, 2000, 2001, 2500] { XCTAssertEqual(try tree.value(at: index), Int64(index)) }
    }

    func testOffsetsAreUnsigned() throws {
        let root = image.inner(first: image.unsigned([200]), children: [leaf(0..<200), leaf(200..<255)], total: 255)
        XCTAssertEqual(try values(BPlusTree<IntLeaf>(memory, root)), Array(0..<255))
    }

    func testThreeLevelsCompactBelowGeneralAndARootWithOneChild() throws {
        let left = image.inner(first: 2 * 3 + 1, children: [leaf(0..<3), leaf(3..<6)], total: 6)
        let right = image.inner(first: image.unsigned([2]), children: [leaf(6..<8), leaf(8..<12)], total: 6)
        let root = image.inner(first: image.unsigned([6]), children: [left, right], total: 12)
        XCTAssertEqual(try values(BPlusTree<IntLeaf>(memory, root)), Array(0..<12))
        let above = image.inner(first: image.unsigned([]), children: [root], total: 12)
        XCTAssertEqual(try values(BPlusTree<IntLeaf>(memory, above)), Array(0..<12))
    }

    func testContextFlagOfTheRoot() throws {
        XCTAssertTrue(try BPlusTree<KeyLeaf>(memory, image.integers([-2, 5], flags: 0x20)).rootHasContext)
        let stale = image.integers([1, 2], flags: 0x20), fresh = image.integers([3])
        XCTAssertFalse(
            try BPlusTree<KeyLeaf>(memory, image.inner(first: 2 * 2 + 1, children: [stale, fresh], total: 3)).rootHasContext)
        XCTAssertTrue(
            try BPlusTree<KeyLeaf>(memory, image.inner(first: 2 * 2 + 1, children: [stale, fresh], total: 3, flags: 0x20))
                .rootHasContext)
    }

    func testDamagedInnerNodesThrow() throws {
        let a = leaf(0..<3), b = leaf(3..<6), c = leaf(6..<7)
        let damaged: [(String, Int)] = [
            ("no children", image.refs([3, 5], flags: 0x80)),
            ("inner without refs", image.integers([7, Int64(a), 7], flags: 0x80)),
            ("no total", image.refs([7, a, b, 8], flags: 0x80)),
            ("total of 0", image.inner(first: 7, children: [a], total: 0)),
            ("compact: 0 values a child", image.inner(first: 1, children: [a, b], total: 6)),
            ("compact: total too large for the children", image.inner(first: 7, children: [a, b], total: 7)),
            ("compact: total too small", image.inner(first: 7, children: [a, b], total: 3)),
            ("compact: negative values a child", image.refs([-1, a, b, 13], flags: 0x80)),
            ("compact: child with too few", image.inner(first: 7, children: [c, b], total: 6)),
            ("no offsets", image.inner(first: 0, children: [a, b], total: 6)),
            ("offsets: too few", image.inner(first: image.unsigned([]), children: [a, b], total: 6)),
            ("offsets: too many", image.inner(first: image.unsigned([3, 6]), children: [a, b], total: 6)),
            ("offsets: wrong", image.inner(first: image.unsigned([2]), children: [a, b], total: 6)),
            ("offsets: beyond the total", image.inner(first: image.unsigned([9]), children: [a, b], total: 6)),
            ("offsets: decreasing", image.inner(first: image.unsigned([6, 3]), children: [a, b, c], total: 7)),
            ("offsets: negative", image.inner(first: image.integers([-1], width: 64), children: [a, b], total: 6)),
            ("offsets: no integers", image.inner(first: image.blob([3]), children: [a, b], total: 6)),
            ("child 0", image.inner(first: 7, children: [a, 0], total: 6)),
            ("child is a number", image.inner(first: 7, children: [a, 5], total: 6)),
            ("child outside of the file", image.inner(first: 7, children: [a, 1 << 40], total: 6)),
            ("a total no file holds", image.inner(first: image.unsigned([3]), children: [a, b], total: 1 << 60)),
        ]
        for (name, ref) in damaged { XCTAssertThrowsFormatError(try values(BPlusTree<IntLeaf>(memory, ref)), name) }
    }

    func testATreeThatContainsItselfThrows() throws {
        let leaf = leaf(0..<3)
        // The second child is the node itself.
        let ref = image.limit
        let root = image.inner(first: 2 * 3 + 1, children: [leaf, ref], total: 6)
        XCTAssertEqual(root, ref)
        XCTAssertThrowsFormatError(try values(BPlusTree<IntLeaf>(memory, root)))
        // A single child that is the node itself agrees with every count; only the depth ends it.
        let loop = image.limit
        XCTAssertEqual(image.inner(first: 2 * 6 + 1, children: [loop], total: 6), loop)
        XCTAssertThrowsFormatError(try values(BPlusTree<IntLeaf>(memory, loop)))
    }

    private func leaf(_ values: Range<Int64>) -> Int { image.integers(Array(values)) }

    private func values(_ tree: BPlusTree<IntLeaf>) throws -> [Int64] {
        var values: [Int64] = []
        try tree.forEachLeaf { leaf, start in
            XCTAssertEqual(start, values.count)
            values += try all(leaf)
        }
        XCTAssertEqual(values.count, tree.count)
        return values
    }
}
