import SharedStore
import XCTest

/// Damage to cluster trees, links and indexes.
final class DamagedRelationTests: DamageTestCase {
    // MARK: Cluster trees

    private var root: (DamagedFile) -> [Int] { { $0.table("Log") + [2] } }

    func testWrongNumberOfObjects() throws {
        try expect(.clusterSize, in: "many-versions") { file in file.edit(self.root(file)) { $0.elements[2] += 2 } }
    }

    func testWrongDepth() throws {
        try expect(.clusterDepth, in: "many-versions") { file in
            file.edit(self.root(file)) { $0.elements[1] = self.tagged(2) }
        }
    }

    func testRootWithOneChild() throws {
        try expect(.clusterChildren, also: [.clusterOffsets, .clusterSize], in: "many-versions") { file in
            file.edit(self.root(file)) { $0.elements.removeLast() }
        }
    }

    func testOffsetsThatDoNotBeginWithZero() throws {
        try expect(.clusterOffsets, also: [.clusterKeys], in: "many-versions") { file in
            file.edit(self.root(file) + [0]) { $0.elements[0] = 1 }
        }
    }

    func testOffsetsThatDescend() throws {
        try expect(.clusterOffsets, also: [.clusterKeys], in: "many-versions") { file in
            file.edit(self.root(file) + [0]) { $0.elements[1] = 0 }
        }
    }

    func testKeysThatReachIntoTheNextCluster() throws {
        try expect(.clusterKeys, in: "many-versions") { file in file.edit(self.root(file) + [0]) { $0.elements[1] = 3 } }
    }

    func testKeysThatDoNotAscend() throws {
        try expect(.clusterKeys, in: "many-versions") { file in
            file.edit(file.cluster("Log") + [0]) { $0.elements.swapAt(3, 4) }
        }
    }

    func testKeyThatStandsTwice() throws {
        try expect(.clusterKeys, in: "many-versions") { file in
            file.edit(file.cluster("Log") + [0]) { $0.elements[4] = $0.elements[3] }
        }
    }

    func testKeysOfLessThanEightBits() throws {
        try expect(.unsignedWidth, .warning, in: "many-versions") { file in
            let keys = file.append(.init(flags: 0, elements: [0]))
            file.edit(file.cluster("metadata")) { $0.elements[0] = Int64(keys) }
        }
    }

    func testKeyArrayThatIsTooLong() throws {
        try expect(.leafCount, also: [.clusterSize, .clusterKeys], in: "many-versions") { file in
            file.edit(file.cluster("Log") + [0]) {
                $0.elements.append($0.elements[$0.elements.count - 1] + 1)
            }
        }
    }

    func testNegativeKeyOfALiveObject() throws {
        try expect(.clusterKeySign, in: "many-versions") { file in
            let keys = Int64(file.append(.init(flags: 0, elements: [-5], widthMin: 64)))
            file.edit(file.cluster("metadata")) { $0.elements[0] = keys }
        }
    }

    func testClusterWithTooManyRows() throws {
        try expect(.clusterCount, also: [.leafCount], in: "fulltext") { file in
            file.edit(file.cluster("metadata")) { $0.elements[0] = self.tagged(300) }
        }
    }

    func testClusterWithAbsurdlyManyRows() throws {
        try expect(.clusterCount, in: "fulltext") { file in
            file.edit(file.cluster("metadata")) { $0.elements[0] = self.tagged(1 << 60) }
        }
    }

    func testEmptyClusterBelowAnInnerNode() throws {
        try expect(.clusterCount, also: [.clusterSize, .leafCount], in: "many-versions") { file in
            file.edit(file.cluster("Log") + [0]) { $0.elements = [] }
        }
    }

    func testClusterWithoutTheLeafOfAColumn() throws {
        try expect(.nodeElement, in: "many-versions") { file in file.edit(file.cluster("Log")) { $0.elements[2] = 0 } }
    }

    func testClusterWithALeafOfNoColumn() throws {
        try expect(.clusterColumns, in: "many-versions") { file in
            let leaf = file.append(.init(flags: 0))
            file.edit(file.cluster("Log")) { $0.elements.append(Int64(leaf)) }
        }
    }

    func testClusterThatIsTooShort() throws {
        try expect(.clusterColumns, in: "many-versions") { file in
            file.edit(file.cluster("Log")) { $0.elements.removeLast() }
        }
    }

    func testClusterTreeWithoutEnd() throws {
        try expect(.depthLimit, also: [.clusterDepth, .clusterChildren], in: "fulltext") { file in
            var child = file.element(file.ref(file.table("metadata")), 2)
            for depth in 1...12 {
                child = Int64(file.append(.init(flags: 0xC0, elements: [0, self.tagged(Int64(depth)), 3, child])))
            }
            file.edit(file.table("metadata")) { $0.elements[2] = child }
        }
    }

    // MARK: Tombstones and collisions

    /// Gives IntKey a tombstone for the primary key 5.
    private func addTombstone(_ file: DamagedFile, key: Int64, primaryKey: Int64 = 5) {
        let table = file.table("IntKey")
        let keys = file.append(.init(flags: 0, elements: [key], widthMin: 64)),
            values = file.append(.init(flags: 0, elements: [primaryKey]))
        let texts = file.append(.init(flags: 0x09, payload: [0], payloadCount: 1))
        let root = file.append(.init(flags: 0x40, elements: [Int64(keys), Int64(values), Int64(texts)]))
        file.edit(table) { $0.elements[13] = Int64(root) }
    }

    func testTombstoneWithoutBacklinks() throws {
        try expect(.tombstoneUnlinked, in: "primary-keys") { self.addTombstone($0, key: -7) }
    }

    func testTombstoneWithTheKeyOfAnother() throws {
        try expect(.tombstoneKey, also: [.tombstoneUnlinked], in: "primary-keys") { self.addTombstone($0, key: -8) }
    }

    /// A collision map with these entries of low half and local key.
    private func addCollisions(_ file: DamagedFile, _ entries: [(low: Int64, key: Int64)]) {
        let arrays = [entries.map(\.low), entries.map { _ in 0 }, entries.map(\.key)].map {
            Int64(file.append(.init(flags: 0, elements: $0)))
        }
        let map = file.append(.init(flags: 0x40, elements: arrays))
        file.edit(file.table("IntKey")) { $0.elements[10] = Int64(map) }
    }

    func testTombstoneWithTheKeyOfAnotherBesideACollisionMap() throws {
        try expect(.tombstoneKey, also: [.tombstoneUnlinked], in: "primary-keys") { file in
            self.addTombstone(file, key: -8)
            self.addCollisions(file, [(70, 0), (71, 1)])
        }
    }

    func testTombstoneWithTheKeyThatTheCollisionMapGives() throws {
        try expect(.tombstoneUnlinked, in: "primary-keys") { file in
            self.addTombstone(file, key: -8)
            self.addCollisions(file, [(5, 6), (70, 0)])
        }
        try expect(.tombstoneKey, also: [.tombstoneUnlinked, .collisionMap], in: "primary-keys") { file in
            self.addTombstone(file, key: -7)
            self.addCollisions(file, [(5, 6), (70, 0)])
        }
    }

    func testTombstoneWithALiveKey() throws {
        try expect(.clusterKeySign, also: [.tombstoneUnlinked, .tombstoneKey], in: "primary-keys") {
            self.addTombstone($0, key: 5)
        }
    }

    func testCollisionMapOfAnObjectThatDoesNotExist() throws {
        try expect(.collisionMap, in: "primary-keys") { file in
            let arrays = [[1, 1 << 62 | 1], [0, 0], [1 << 62, 900]].map { file.append(.init(flags: 0, elements: $0)) }
            let map = file.append(.init(flags: 0x40, elements: arrays.map { Int64($0) }))
            file.edit(file.table("IntKey")) { $0.elements[10] = Int64(map) }
        }
    }

    func testCollisionMapOutOfOrder() throws {
        try expect(.collisionMap, in: "primary-keys") { file in
            let arrays = [[7, 1], [0, 0], [0, 1]].map { file.append(.init(flags: 0, elements: $0)) }
            let map = file.append(.init(flags: 0x40, elements: arrays.map { Int64($0) }))
            file.edit(file.table("IntKey")) { $0.elements[10] = Int64(map) }
        }
    }

    // MARK: Links

    func testMissingBacklink() throws {
        try expect(.backlinkMissing, in: "relationships") { file in
            file.edit(file.cluster("Dog") + [4]) { node in node.elements[node.elements.firstIndex { $0 & 1 != 0 }!] = 0 }
        }
    }

    func testBacklinkWithoutLink() throws {
        try expect(.backlinkExtra, in: "relationships") { file in
            file.edit(file.cluster("Dog") + [4]) { node in node.elements[node.elements.firstIndex(of: 0)!] = self.tagged(4) }
        }
    }

    func testBacklinkThatStandsTwice() throws {
        try expect(.backlinkExtra, in: "relationships") { file in
            let leaf = file.cluster("Dog") + [5], node = file.ref(leaf)
            let row = try XCTUnwrap(
                (0..<file.count(node)).first { file.element(node, $0) != 0 && file.element(node, $0) & 1 == 0 })
            file.edit(leaf + [row]) { $0.elements.append($0.elements[0]) }
        }
    }

    func testListOfOneBacklink() throws {
        try expect(.backlinkList, .warning, in: "relationships") { file in
            let leaf = file.cluster("Dog") + [4], node = file.ref(leaf)
            let row = try XCTUnwrap((0..<file.count(node)).first { file.element(node, $0) & 1 != 0 })
            let list = file.append(.init(flags: 0, elements: [file.element(node, row) >> 1]))
            file.edit(leaf) { $0.elements[row] = Int64(list) }
        }
    }

    func testLinkToAnObjectThatDoesNotExist() throws {
        try expect(.linkDangling, also: [.backlinkExtra], in: "relationships") { file in
            file.edit(file.leaf("Person", "best")) { $0.elements[1] = 4001 }
        }
    }

    func testLinkInAListToAnObjectThatDoesNotExist() throws {
        try expect(.linkDangling, also: [.backlinkExtra], in: "relationships") { file in
            file.edit(file.collection("Person", "dogs")) { $0.elements[0] = 4000 }
        }
    }

    func testLinkInADictionaryToAnotherTable() throws {
        try expect(.linkTarget, also: [.backlinkExtra], in: "relationships") { file in
            file.edit(file.collection("Person", "byNick") + [1, 2]) { $0.elements[0] = 3 }
        }
    }

    func testMixedLinkToATableThatDoesNotExist() throws {
        try expect(.linkTarget, in: "relationships") { self.addMixedLink($0, table: 77, key: 1) }
    }

    func testMixedLinkToAnEmbeddedObject() throws {
        try expect(.linkTarget, also: [.backlinkMissing, .linkDangling], in: "relationships") {
            self.addMixedLink($0, table: 1, key: 1)
        }
    }

    func testMixedLinkWithTheNullKey() throws {
        try expect(.linkTarget, in: "relationships") { self.addMixedLink($0, table: 2, key: -1) }
    }

    func testMixedLinkWithoutBacklinkColumn() throws {
        try expect(.backlinkMissing, in: "relationships") { self.addMixedLink($0, table: 2, key: 1) }
    }

    /// Lets the first null of Person `any` be a link.
    private func addMixedLink(_ file: DamagedFile, table: Int64, key: Int64) {
        let leaf = file.leaf("Person", "any")
        file.edit(leaf + [2]) { $0.elements = [table, key] }
        file.edit(leaf + [0]) { $0.elements[0] = 2 << 5 | 17 }
    }

    func testEmbeddedObjectWithTwoOwners() throws {
        try expect(.embeddedOwners, in: "relationships") { file in
            // Person `home` of row 0 and of row 1 lead to the same address, with both backlinks there.
            let leaf = file.leaf("Person", "home"), node = file.ref(leaf)
            let rows = (0..<file.count(node)).filter { file.element(node, $0) != 0 }
            let keys = rows.prefix(2).map { file.element(file.ref(file.cluster("Person") + [0]), $0) }
            let shared = file.element(node, rows[0]) - 1, orphan = file.element(node, rows[1]) - 1
            file.edit(leaf) { $0.elements[rows[1]] = shared + 1 }
            let addresses = file.ref(file.cluster("Address") + [0])
            let slot = 1 + Int(file.element(file.ref(file.table("Person") + [8]), file.leafIndex("Person", "home")) & 0xFFFF)
            let list = file.append(.init(flags: 0, elements: keys))
            file.edit(file.cluster("Address") + [slot]) { backlinks in
                for row in 0..<file.count(addresses) {
                    if file.element(addresses, row) & 0xFF == shared { backlinks.elements[row] = Int64(list) }
                    if file.element(addresses, row) & 0xFF == orphan { backlinks.elements[row] = 0 }
                }
            }
        }
    }

    func testUnresolvedFlagWithoutUnresolvedLinks() throws {
        try expect(.setUnresolvedFlag, .warning, in: "relationships") { file in
            file.edit(
                file.collection(
                    "Person",
                    "dogs")
            ) { $0.flags |= 0x20 }
        }
    }

    func testUnresolvedLinkWithoutFlag() throws {
        try expect(.setUnresolvedFlag, also: [.linkDangling, .backlinkExtra], in: "relationships") { file in
            file.edit(file.collection("Person", "dogs")) { $0.elements[0] = -9 }
        }
    }

    // MARK: Indexes

    func testIndexWithoutAnEntry() throws {
        try expect(.indexMissing, in: "relationships") { file in
            let root = file.index("Dog", "_id")
            file.edit(root + [0]) { $0.elements.remove(at: 5) }
            file.edit(root) { $0.elements.remove(at: 6) }
        }
    }

    func testIndexWithAnEntryForNobody() throws {
        try expect(.indexExtra, also: [.indexCount, .indexMissing], in: "relationships") { file in
            file.edit(file.index("Dog", "_id")) { $0.elements[6] = self.tagged(5000) }
        }
    }

    func testIndexWithAnEntryInTheWrongPlace() throws {
        try expect(.indexPlace, in: "relationships") { file in
            file.edit(file.index("Dog", "_id")) { $0.elements.swapAt(6, 7) }
        }
    }

    func testIndexWithChunksOutOfOrder() throws {
        try expect(.indexChunks, also: [.indexPlace], in: "relationships") { file in
            file.edit(
                file.index(
                    "Dog",
                    "_id") + [0]
            ) { $0.elements.swapAt(6, 7) }
        }
    }

    func testIndexWithChunksOf64Bits() throws {
        try expect(.indexChunks, also: [.indexPlace], in: "relationships") { file in
            file.edit(
                file.index(
                    "Dog",
                    "_id") + [0]
            ) { $0.elements[45] = 1 << 40 }
        }
    }

    func testIndexWithOneChunkTooFew() throws {
        try expect(.indexChunks, in: "relationships") { file in
            file.edit(
                file.index(
                    "Dog",
                    "_id") + [0]
            ) { $0.elements.removeLast() }
        }
    }

    func testIndexThatIsAnArray() throws {
        try expect(.indexNode, in: "relationships") { file in file.edit(file.index("Dog", "_id")) { $0.flags = 0x40 } }
    }

    func testIndexListOutOfOrder() throws {
        try expect(.indexList, in: "relationships") { file in
            file.edit(
                file.index(
                    "Dog",
                    "name") + [4]
            ) { $0.elements.swapAt(1, 2) }
        }
    }

    func testIndexListOfOtherValues() throws {
        try expect(.indexPlace, also: [.indexList, .indexMissing], in: "relationships") { file in
            file.edit(
                file.index(
                    "Dog",
                    "name") + [4]
            ) { $0.elements[1] = 3 }
        }
    }

    func testEmptyListInAnIndex() throws {
        try expect(.indexEmpty, also: [.indexMissing], in: "relationships") { file in
            file.edit(
                file.index(
                    "Dog",
                    "name") + [4]
            ) { $0.elements = [] }
        }
    }

    func testEmptySubIndex() throws {
        try expect(.indexEmpty, also: [.indexMissing], in: "relationships") { file in
            file.edit(file.index("Dog", "name") + [1, 0]) {
                $0.elements = []; $0.widthMin = 32
            }
            file.edit(file.index("Dog", "name") + [1]) { $0.elements = [$0.elements[0]] }
        }
    }

    func testIndexDeeperThanAnyValue() throws {
        try expect(.indexDepth, in: "primary-keys") { file in
            var entry: Int64 = 1
            for _ in 0..<52 {
                let chunks = file.append(.init(flags: 0, elements: [0], widthMin: 32))
                entry = Int64(file.append(.init(flags: 0x60, elements: [Int64(chunks), entry])))
            }
            let root = file.index("IntKey", "k")
            file.edit(root) { $0.elements.append(entry) }
            file.edit(root + [0]) { $0.elements.append(0x7FFF_FFFF) }
        }
    }

    func testPrimaryKeyThatStandsTwice() throws {
        try expect(.primaryKeyDuplicate, in: "primary-keys") { file in
            // Object 4, the last but one in the index, takes the key of object 1, the last one, and the index says so.
            let root = file.index("IntKey", "k")
            XCTAssertEqual(file.node(file.ref(root)).elements.suffix(2), [self.tagged(4), self.tagged(1)])
            file.edit(file.leaf("IntKey", "k")) { $0.elements[4] = $0.elements[1] }
            let list = file.append(.init(flags: 0, elements: [1, 4]))
            file.edit(root) { $0.elements.replaceSubrange(4...5, with: [Int64(list)]) }
            file.edit(root + [0]) { $0.elements.remove(at: 3) }
        }
    }

    func testAttributeOfAnIndexWithoutIndex() throws {
        try expect(.indexAttribute, in: "many-versions") { file in
            file.edit(file.table("Log") + [0, 2]) { $0.elements[0] = 1 }
        }
    }

    func testIndexWithoutAttribute() throws {
        try expect(.indexAttribute, in: "relationships") { file in
            file.edit(file.table("Dog") + [0, 2]) { $0.elements[1] = 0 }
        }
    }

    func testWordMissingInAFullTextIndex() throws {
        try expect(.indexMissing, in: "fulltext") { file in
            let root = file.index("Article", "body")
            file.edit(root + [0]) { $0.elements.remove(at: 0) }
            file.edit(root) { $0.elements.remove(at: 1) }
        }
    }

    func testWordTooManyInAFullTextIndex() throws {
        try expect(.indexExtra, in: "fulltext") { file in
            let root = file.index("Article", "body"), node = file.ref(root)
            let slot = try XCTUnwrap((1..<file.count(node)).first { file.element(node, $0) & 1 != 0 })
            let key = file.element(node, slot) >> 1
            let list = file.append(.init(flags: 0, elements: key == 5 ? [5, 6] : [min(key, 5), max(key, 5)]))
            file.edit(root) { $0.elements[slot] = Int64(list) }
        }
    }
}
