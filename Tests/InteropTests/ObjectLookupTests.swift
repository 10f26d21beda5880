import SharedStore
import TestSupport
import XCTest

/// The cluster trees of the given files: counts, order, and lookup by key and by position agree with a plain walk.
class ObjectLookupTests: XCTestCase {
    func testEveryObjectIsFoundByKeyAndByPosition() throws {
        let scratch = ScratchDirectory()
        var objects = 0, generalLeaves = 0, deepest = 0
        for name in try GivenFiles.core14() {
            let file = try GivenFiles.open(name, in: Fixtures.core14, scratch)
            for table in try file.group.tables() {
                deepest = max(deepest, table.tree.depth)
                var keys: [ObjectKey] = []
                try table.forEachLeaf { leaf in
                    if leaf.isGeneral { generalLeaves += 1 }
                    for i in 0..<leaf.count { keys.append(leaf.key(i)) }
                }
                XCTAssertEqual(keys.count, table.objectCount, "\(name) \(table.name)")
                XCTAssertEqual(keys, keys.sorted(), "\(name) \(table.name)")
                objects += keys.count
                for (i, key) in keys.enumerated() {
                    let row = try XCTUnwrap(table.find(key), "\(name) \(table.name) \(key)")
                    XCTAssertEqual(row.key, key)
                    if i % 37 == 0 || keys.count < 300 {
                        let same = try XCTUnwrap(table.object(at: i))
                        XCTAssertEqual(same.key, key, "\(name) \(table.name) position \(i)")
                        XCTAssertEqual(same.cluster.ref, row.cluster.ref)
                        XCTAssertEqual(same.index, row.index)
                    }
                }
                let present = Set(keys)
                for key in keys {
                    for absent in [ObjectKey(key.rawValue + 1), ObjectKey(key.rawValue - 1)] where !present.contains(absent) {
                        XCTAssertNil(try table.find(absent), "\(name) \(table.name) \(absent)")
                    }
                }
                XCTAssertNil(try table.find(ObjectKey(.max)))
                XCTAssertNil(try table.find(.null))
                XCTAssertNil(try table.object(at: keys.count))
                XCTAssertNil(try table.object(at: -1))
            }
        }
        XCTAssertGreaterThan(objects, 10_000)
        XCTAssertGreaterThan(generalLeaves, 10)
        XCTAssertGreaterThanOrEqual(deepest, 2)
    }

    func testTombstonesAreFoundByTheirNegativeKeys() throws {
        let (folder, _) = try GivenFiles.older()
        let scratch = ScratchDirectory()
        let file = try GivenFiles.open("upgrade_20", in: folder, scratch)
        var found = 0
        for table in try file.group.tables() {
            guard let tree = try table.tombstones() else { continue }
            try tree.forEachLeaf { leaf in
                for i in 0..<leaf.count {
                    let key = leaf.key(i)
                    XCTAssertTrue(key.isUnresolved)
                    XCTAssertEqual(try table.tombstone(key)?.key, key)
                    XCTAssertNil(try table.find(key))
                    found += 1
                }
            }
        }
        XCTAssertGreaterThan(found, 0)
    }
}

/// The same over files that we have encrypted.
final class EncryptedObjectLookupTests: ObjectLookupTests {
    override func setUp() { GivenFiles.key = TestKeys.test }
    override func tearDown() { GivenFiles.key = TestKeys.usual }

    // A class with a test of its own is found by the test runner, and with it those that it inherits.
    func testTheFilesAreEncrypted() { XCTAssertNotNil(GivenFiles.key) }
}
