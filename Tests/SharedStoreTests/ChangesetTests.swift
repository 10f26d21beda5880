import TestSupport
import XCTest
@testable import SharedStore

final class ChangesetTests: XCTestCase {
    private func instructions(_ bytes: [UInt8]) throws -> [ChangesetInstruction] {
        try bytes.withUnsafeBytes {
            var parser = ChangesetParser($0)
            var all: [ChangesetInstruction] = []
            while let next = try parser.next() { all.append(next) }
            return all
        }
    }

    func testIntegersAreEncodedAsInTheDocument() throws {
        let examples: [(Int64, [UInt8])] = [
            (0, [0x00]), (1, [0x01]), (63, [0x3F]), (64, [0xC0, 0x00]), (127, [0xFF, 0x00]), (128, [0x80, 0x01]),
            (8192, [0x80, 0xC0, 0x00]), (-1, [0x40]), (-10, [0x49]), (-64, [0x7F]), (-65, [0xC0, 0x40]),
            (0x20001, [0x81, 0x80, 0x08]), (0x80C0004, [0x84, 0x80, 0xB0, 0xC0, 0x00]),
            (1 << 32 - 1, [0xFF, 0xFF, 0xFF, 0xFF, 0x0F]),
            (Int64.max, [UInt8](repeating: 0xFF, count: 9) + [0x00]), (Int64.min, [UInt8](repeating: 0xFF, count: 9) + [0x40]),
        ]
        for (value, encoded) in examples where value != 1 << 31 {
            let value = encoded.count == 5 && encoded[4] == 0x0F ? Int64(UInt32.max) : value
            var writer = ChangesetWriter()
            writer.removeObject(ObjectKey(value), in: TableKey(0))
            XCTAssertEqual(writer.bytes, [10, 0, 0, 12] + encoded, "\(value)")
            XCTAssertEqual(try instructions(writer.bytes).last, .removeObject(ObjectKey(value)))
        }
    }

    func testChangesOfTheFreshObjectAreNotLogged() throws {
        var writer = ChangesetWriter()
        let t = TableKey(0), c = ColumnKey(3)
        writer.createObject(ObjectKey(0), in: t)
        writer.createObject(ObjectKey(1), in: t)
        writer.set(c, of: ObjectKey(0), in: t)
        writer.set(c, of: ObjectKey(1), in: t)
        XCTAssertEqual(writer.bytes, [10, 0, 0, 0x0B, 0x00, 0x0B, 0x01, 0x0D, 0x03, 0x00])
    }

    func testNestedCollectionsAreSelectedByPath() throws {
        var writer = ChangesetWriter()
        let t = TableKey(0), column = ColumnKey(0x4060007), object = ObjectKey(0)
        let list = ChangesetWriter.CollectionIdentity(table: t, object: object, column: column)
        let dictionary = ChangesetWriter.CollectionIdentity(table: t, object: object, column: column, salts: [-10])
        writer.set(column, of: object, in: t)
        writer.collectionInsert(0, list)
        writer.collectionInsert(1, list)
        writer.collectionInsert(0, dictionary)
        writer.collectionErase(0, dictionary)
        XCTAssertEqual(
            writer.bytes,
            [
                0x0A, 0x00, 0x00, 0x0D, 0x87, 0x80, 0x98, 0x20, 0x00, 0x1E, 0x87, 0x80, 0x98, 0x20, 0x00, 0x1F, 0x00, 0x1F, 0x01,
                0x2D, 0x87, 0x80, 0x98, 0x20, 0x00, 0x01, 0x49, 0x1F, 0x00, 0x23, 0x00,
            ])
        XCTAssertEqual(try instructions(writer.bytes)[5], .selectCollection(column, object, salts: [-10]))
    }

    func testDamagedChangesetsThrowAndNeverTrap() throws {
        let bad: [[UInt8]] = [
            [14], [15], [23], [34], [99], [255], [10], [10, 1, 0], [11], [10, 0, 0x40], [31, 0x40], [45, 0, 0, 0xFF, 0x7F, 0x01],
            [1] + [UInt8](repeating: 0xFF, count: 12), [11] + [UInt8](repeating: 0xFF, count: 10) + [0x01], [37, 2, 5, 1],
            [37, 1, 0, 0], [45, 0, 0, 0x40],
            [1, 0x80, 0x80, 0x80, 0x80, 0x20],
        ]
        for bytes in bad { XCTAssertThrowsError(try instructions(bytes), "\(bytes)") }
        XCTAssertThrowsError(
            try [UInt8]([11, 0]).withUnsafeBytes {
                var c = ChangeCollector(); try c.add($0)
            }, "no table selected")
        var random = SplitMix(seed: 7)
        for _ in 0..<20_000 {
            let bytes = (0..<Int(random.next() % 40)).map { _ in
                UInt8(truncatingIfNeeded: random.next() % 3 == 0 ? random.next() : random.next() % 46)
            }
            _ = try? instructions(bytes)
            bytes.withUnsafeBytes { p in
                var c = ChangeCollector(collectsAllCollections: true)
                _ = try? c.add(p)
            }
        }
    }

    /// Random edits of an array: applying the net change to the old contents gives the new ones.
    func testNetChangeOfRandomEditsTurnsOldIntoNew() {
        let seed: UInt64 = 20_26
        print("seed \(seed)")
        var random = SplitMix(seed: seed)
        for round in 0..<2000 {
            var next = 0
            func fresh() -> Int { next += 1; return next }
            let old = (0..<Int(random.next() % 8)).map { _ in fresh() }
            var new = old
            var first = CollectionChange(), second = CollectionChange(), whole = CollectionChange()
            var modified: Set<Int> = []
            for step in 0..<Int(random.next() % 14) {
                var edits: [(inout CollectionChange) -> Void] = []
                switch random.next() % 8 {
                case 0...2:
                    let i = Int(random.next() % UInt64(new.count + 1))
                    new.insert(fresh(), at: i)
                    edits.append { $0.insert(i) }
                case 3 where !new.isEmpty, 4 where !new.isEmpty:
                    let i = Int(random.next() % UInt64(new.count))
                    new.remove(at: i)
                    edits.append { $0.erase(i) }
                case 5 where !new.isEmpty:
                    let i = Int(random.next() % UInt64(new.count))
                    modified.insert(new[i])
                    edits.append { $0.set(i) }
                case 6 where new.count > 1:
                    let a = Int(random.next() % UInt64(new.count)), b = Int(random.next() % UInt64(new.count))
                    if a != b {
                        new.insert(new.remove(at: a), at: b)
                        edits.append { $0.move(from: a, to: b) }
                    }
                case 7 where random.next() % 6 == 0:
                    let n = new.count
                    new.removeAll()
                    edits.append { $0.clear(oldCount: n) }
                default: break
                }
                for edit in edits {
                    edit(&whole)
                    if step < 6 { edit(&first) } else { edit(&second) }
                }
            }
            first.finish()
            second.finish()
            whole.finish()
            var composed = first
            composed.append(second)
            for (name, change) in [("whole", whole), ("composed", composed)] {
                var result = old.map { Optional($0) }
                for d in Array(change.deletions).reversed() { result.remove(at: d) }
                for i in change.insertions { result.insert(nil, at: i) }
                XCTAssertEqual(result.count, new.count, "\(name), round \(round)")
                for (i, element) in result.enumerated() where element != nil {
                    XCTAssertEqual(element, new[i], "\(name), round \(round)")
                }
                for move in change.moves {
                    XCTAssertEqual(old[move.from], new[move.to], "\(name), round \(round)")
                    XCTAssertTrue(change.deletions.contains(move.from) && change.insertions.contains(move.to))
                }
                XCTAssertEqual(
                    change.modificationsOld.map { old[$0] }, change.modificationsNew.map { new[$0] }, "\(name), round \(round)")
                XCTAssertTrue(change.modificationsNew.allSatisfy { modified.contains(new[$0]) })
            }
        }
    }

    func testDifferenceOfSequencesTurnsOldIntoNew() {
        var random = SplitMix(seed: 99)
        for _ in 0..<2000 {
            var old = Array(0..<Int(random.next() % 10)), new = old.filter { _ in random.next() % 4 != 0 }
            for i in 0..<Int(random.next() % 4) { new.insert(100 + i, at: Int(random.next() % UInt64(new.count + 1))) }
            if random.next() % 2 == 0 { new.sort { ($0 * 7919) % 31 < ($1 * 7919) % 31 } }
            if random.next() % 3 == 0 { old.reverse() }
            let modified = Set(old.filter { _ in random.next() % 3 == 0 })
            let change = SequenceDifference.compute(old: old, new: new) { modified.contains($0) }
            var result = old.map { Optional($0) }
            for d in Array(change.deletions).reversed() { result.remove(at: d) }
            for i in change.insertions { result.insert(nil, at: i) }
            XCTAssertEqual(result.count, new.count)
            for (i, element) in result.enumerated() where element != nil { XCTAssertEqual(element, new[i]) }
            XCTAssertEqual(
                Set(change.modificationsNew.map { new[$0] }),
                modified.filter { key in
                    guard let n = new.firstIndex(of: key) else { return false }
                    return !change.insertions.contains(n)
                })
        }
    }

    func testMoveOfOneElementIsOneDeletionAndOneInsertion() {
        let change = SequenceDifference.compute(old: [1, 2, 3, 4, 5], new: [2, 3, 4, 5, 1]) { _ in false }
        XCTAssertEqual(Array(change.deletions), [0])
        XCTAssertEqual(Array(change.insertions), [4])
    }
}
