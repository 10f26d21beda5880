import Foundation
import SharedStore
import TestSupport
import XCTest

/// Copies of given files with bits flipped, bytes replaced and refs spliced: reading them ends with an error or with some text,
/// and soon. The seed is fixed; the text of a failure names seed and step.
final class DamagedCopiesTests: XCTestCase {
    /// Reads everything there is to read; returns the bytes of text.
    private func readAll(_ path: String) throws -> Int {
        let file = try ImmutableFile(path: path)
        var bytes = 0
        try JSONExporter.export(file.group) { bytes += $0.count }
        for table in try file.group.tables() {
            var rows = 0
            for column in table.columns {
                try table.scanLeaves { leaf in
                    for i in 0..<min(leaf.count, 8) {
                        rows += 1
                        let row = leaf.row(i)
                        if column.isBacklink {
                            _ = try row.backlinkCount(column)
                        } else if column.collection == nil {
                            let value = try row.value(column)
                            if let index = try SearchIndex(table, column) { _ = try index.find(value) }
                            if let index = try FullTextIndex(table, column) { _ = try index.find(prefix: Array("a".utf8)) }
                            if column == table.primaryKeyColumn { _ = try table.find(primaryKey: value) }
                        } else if column.collection == .set {
                            let set = try row.set(column)
                            if set.count > 0 { _ = try set.find(set.value(set.count - 1)) }
                        } else if column.collection == .dictionary {
                            let dictionary = try row.dictionary(column)
                            if dictionary.count > 0 { _ = try dictionary.find("a") }
                        }
                    }
                    return rows < 200
                }
            }
            for position in stride(from: 0, to: min(table.objectCount, 2000), by: 97) { _ = try table.object(at: position) }
            try table.tombstones()?.forEachLeaf { _ in }
        }
        return bytes
    }

    func testReadingDamagedCopiesEndsInAnErrorOrInText() throws {
        let scratch = ScratchDirectory()
        let seed: UInt64 = 20_260_401
        var random = SplitMix(seed: seed)
        var refused = 0, read = 0
        for name in ["nested-mixed", "relationships", "primary-keys", "fulltext", "compact-copy", "many-versions"] {
            let good = [UInt8](try Data(contentsOf: URL(fileURLWithPath: Fixtures.core14 + "/\(name).realm")))
            for step in 0..<60 {
                var bytes = good
                for _ in 0..<Int.random(in: 1...4, using: &random) {
                    let at = Int.random(in: 0..<bytes.count, using: &random)
                    switch Int.random(in: 0..<4, using: &random) {
                    case 0: bytes[at] ^= 1 << UInt8.random(in: 0..<8, using: &random)
                    case 1: bytes[at] = UInt8.random(in: 0...255, using: &random)
                    case 2:
                        // Eight bytes of somewhere else.
                        let from = Int.random(in: 0..<bytes.count - 8, using: &random) & ~7, to = min(at & ~7, bytes.count - 8)
                        bytes.replaceSubrange(to..<to + 8, with: Array(bytes[from..<from + 8]))
                    default:
                        // A small number where a 16-bit ref may be.
                        let to = min(at & ~1, bytes.count - 2), ref = Int.random(in: 0..<bytes.count / 8, using: &random) * 8
                        bytes[to] = UInt8(ref & 255)
                        bytes[to + 1] = UInt8(ref >> 8 & 255)
                    }
                }
                let path = scratch.file("damaged.realm")
                try Data(bytes).write(to: URL(fileURLWithPath: path))
                do {
                    _ = try readAll(path)
                    read += 1
                } catch is OpenError {
                    refused += 1
                } catch is FormatError {
                    refused += 1
                } catch { XCTFail("seed \(seed), \(name), step \(step): \(error)") }
            }
        }
        XCTAssertGreaterThan(refused, 30)
        XCTAssertGreaterThan(read, 30)
    }

    /// A list of Mixed whose two elements are the same list, 40 levels: 2^40 values in a few hundred bytes.
    func testSharedCollectionsAreNoWayToWriteForEver() throws {
        let scratch = ScratchDirectory()
        var file = NodeFile()
        var list = file.mixed([1 << 8 | 1, 2 << 8 | 1])
        for _ in 0..<40 { list = file.mixed([0x94, 1 << 8 | 0x94], refs: [list, list], keys: [1, 2]) }
        let column = NodeFile.Column(
            "any", type: 6, attributes: 16, leaf: file.mixed([0x94], refs: [list], keys: [1]), leafIndex: 0)
        let tree = file.cluster([column], rows: 1)
        let top = file.table(key: 0, [column], tree: tree)
        let path = scratch.file("shared.realm")
        try Data(file.streaming(names: ["class_A"], tables: [top])).write(to: URL(fileURLWithPath: path))
        var bytes = 0
        XCTAssertThrowsError(try JSONExporter.export(ImmutableFile(path: path).group) { bytes += $0.count }) {
            XCTAssertTrue($0 is FormatError, "\($0)")
        }
        XCTAssertLessThan(bytes, 1 << 20)
    }

    /// An object that embeds itself, and a cluster tree whose children are one node.
    func testCyclesAndSharedChildrenEndInAnError() throws {
        let scratch = ScratchDirectory()
        var file = NodeFile()
        var link = NodeFile.Column("me", type: 12, attributes: 16, leaf: file.integers([1]), leafIndex: 0)
        link.oppositeTable = 0
        let tree = file.cluster([link], rows: 1)
        let selfEmbedded = file.table(key: 0, [link], tree: tree, kind: 1)
        var path = scratch.file("cycle.realm")
        try Data(file.streaming(names: ["class_A"], tables: [selfEmbedded])).write(to: URL(fileURLWithPath: path))
        XCTAssertThrowsError(try JSONExporter.text(ImmutableFile(path: path).group)) { XCTAssertTrue($0 is FormatError, "\($0)") }

        var node = file.cluster([], rows: 256)
        for depth in 1...7 {
            node = file.refs(
                [0, NodeFile.tagged(depth), NodeFile.tagged(1 << (8 * depth + 7))] + [Int](repeating: node, count: 256),
                inner: true)
        }
        let wide = file.table(key: 0, [], tree: node)
        path = scratch.file("wide.realm")
        try Data(file.streaming(names: ["class_A"], tables: [wide])).write(to: URL(fileURLWithPath: path))
        let group = try ImmutableFile(path: path).group
        XCTAssertThrowsError(try group.table(ofClass: "A")?.forEachLeaf { _ in }) { XCTAssertTrue($0 is FormatError, "\($0)") }
    }
}
