import SharedStore
import XCTest

/// Damage to header, top array, nodes and free space.
final class DamagedStructureTests: DamageTestCase {
    // MARK: Header

    func testFileOfAnOddSize() throws {
        try expect(.headerSize, in: "fulltext") { $0.resize(4092) }
    }

    func testFileShorterThanAHeader() throws {
        try expect(.headerSize, in: "fulltext") { $0.resize(16) }
    }

    func testWrongMnemonic() throws {
        try expect(.headerMnemonic, in: "fulltext") { $0.poke(16, 0x55) }
    }

    func testUnknownFormat() throws {
        try expect(.headerFormat, in: "fulltext") { $0.poke(20, 25, 25) }
    }

    func testTopRefOutsideTheFile() throws {
        try expect(.headerTopRef, in: "fulltext") { $0.poke(8 * Int($0.bytes[23] & 1), word: 1 << 40) }
    }

    func testTopRefInsideTheHeader() throws {
        try expect(.headerTopRef, in: "fulltext") { $0.poke(8 * Int($0.bytes[23] & 1), word: 16) }
    }

    func testReservedFlags() throws {
        try expect(.headerReserved, .warning, in: "fulltext") { $0.poke(23, $0.bytes[23] | 0x10) }
    }

    func testStreamingFooterWithoutCookie() throws {
        try expect(.footerCookie, in: "compact-copy") { $0.poke($0.bytes.count - 1, 0x31) }
    }

    func testStreamingFileWithBytesBeforeTheFooter() throws {
        try expect(.footerPosition, .warning, in: "compact-copy") {
            let footer = Array($0.bytes.suffix(16)), size = $0.bytes.count
            $0.resize(size + 8)
            for i in 0..<16 { $0.poke(size - 8 + i, footer[i]) }
        }
    }

    // MARK: Top array

    func testTopArrayOfAnIllegalLength() throws {
        try expect(.topCount, in: "fulltext") { $0.poke($0.topRef + 7, 8) }
    }

    func testTopArrayWithoutTables() throws {
        try expect(.nodeElement, in: "fulltext") { $0.edit([]) { $0.elements[1] = 0 } }
    }

    func testLogicalSizeBeyondTheFile() throws {
        try expect(.topLogicalSize, in: "fulltext") { $0.edit([]) { $0.elements[2] = 1 << 20 | 1 } }
    }

    func testLogicalSizeThatIsARef() throws {
        try expect(.topElement, in: "fulltext") { $0.edit([]) { $0.elements[2] = 4096 } }
    }

    func testVersionZero() throws {
        try expect(.topVersion, .warning, in: "fulltext") { file in
            file.edit([]) { $0.elements[6] = 0 }
            for slot in 3...5 { file.edit([slot]) { $0.elements = [] } }
            file.edit([8]) { $0 = .init(flags: 0x60) }
        }
    }

    func testStateOfCompactionWithOneElement() throws {
        try expect(.evacuationState, in: "fulltext") { file in
            let state = file.append(.init(flags: 0, elements: [65536]))
            file.edit([]) { $0.elements.append(Int64(state)) }
        }
    }

    func testLimitOfCompactionInsideAPage() throws {
        try expect(.evacuationState, in: "fulltext") { file in file.edit([]) { $0.elements.append(self.tagged(70_000)) } }
    }

    func testProgressOfCompactionInTheWrongTree() throws {
        try expect(.evacuationState, in: "fulltext") { file in
            let state = file.append(.init(flags: 0, elements: [65536, 0, 2]))
            file.edit([]) { $0.elements.append(Int64(state)) }
        }
    }

    // MARK: Nodes

    func testRefOutsideTheFile() throws {
        try expect(.nodeRange, in: "relationships") { file in file.edit(file.cluster("Dog")) { $0.elements[3] = 1 << 30 } }
    }

    func testNegativeRef() throws {
        try expect(.nodeRange, in: "relationships") { file in file.edit(file.cluster("Dog")) { $0.elements[3] = -64 } }
    }

    func testUnalignedRef() throws {
        try expect(.nodeUnaligned, in: "relationships") { file in file.edit(file.cluster("Dog")) { $0.elements[3] += 4 } }
    }

    func testNodeReachingPastTheFile() throws {
        try expect(.nodeRange, in: "relationships") { file in
            let ref = file.ref(file.leaf("Dog", "age"))
            file.poke(ref + 4, 0x07, 0x40, 0, 0)
        }
    }

    func testRefIntoTheMiddleOfANode() throws {
        // The payload of the names is made to look like a node of one element.
        try expect(.nodeOverlap, also: [.stringBlock], in: "relationships") { file in
            let names = file.ref(file.leaf("Dog", "name"))
            file.poke(names + 16, 0x41, 0x41, 0x41, 0x41, 0, 0, 0, 46)
            file.edit(file.cluster("Dog")) { $0.elements[3] = Int64(names + 16) }
        }
    }

    func testOverlappingNodes() throws {
        // A leaf that is made longer reaches into its neighbour.
        let consequences: Set<FindingCode> = [
            .leafCount, .nodeKind, .nodeElement, .nodeShared, .indexExtra, .indexCount, .spaceOverlap, .indexMissing,
        ]
        try expect(
            .nodeOverlap, also: consequences,
            in: "relationships"
        ) { file in
            let ref = file.ref(file.leaf("Dog", "age"))
            file.poke(ref + 7, 200)
        }
    }

    func testNodeWithTwoOwners() throws {
        try expect(.nodeShared, also: [.backlinkExtra], in: "relationships") { file in
            let leaf = file.leaf("Person", "dogs")
            file.edit(leaf) { $0.elements[1] = $0.elements[0] }
        }
    }

    func testCycle() throws {
        try expect(.nodeCycle, also: [.nodeShared, .linkDangling, .backlinkExtra, .backlinkMissing], in: "many-versions") {
            file in
            // An inner node of the cluster tree becomes its own child, in place: the ref must not move.
            let root = file.ref(file.table("Log") + [2])
            XCTAssertEqual(file.flags(root) & 7, 5, "elements of 16 bits")
            file.poke(root + 8 + 2 * 4, UInt8(root & 0xFF), UInt8(root >> 8))
        }
    }

    func testWidthTypeThree() throws {
        try expect(.nodeWidthType, in: "relationships") { file in
            let ref = file.ref(file.leaf("Dog", "age"))
            file.poke(ref + 4, file.flags(ref) | 0x18)
        }
    }

    func testInnerNodeWithoutRefs() throws {
        try expect(.nodeFlags, in: "relationships") { file in
            let ref = file.ref(file.leaf("Dog", "age"))
            file.poke(ref + 4, file.flags(ref) | 0x80)
        }
    }

    func testRefsInBytes() throws {
        try expect(.nodeFlags, in: "relationships") { file in
            let ref = file.ref(file.leaf("Dog", "_id"))
            file.poke(ref + 4, file.flags(ref) | 0x40)
        }
    }

    func testChecksum() throws {
        try expect(.nodeChecksum, .warning, in: "relationships") { file in
            file.poke(file.ref(file.leaf("Dog", "age")), 0x5A)
        }
    }

    func testNodeAcrossASectionOf64MiB() throws {
        try expect(.nodeSection, .warning, in: "relationships") { file in
            file.skip(to: (1 << 26) - 16)
            file.edit(file.leaf("Dog", "age")) { _ in }
        }
    }

    func testPageThatCannotBeRead() throws {
        final class Broken: PageSource {
            struct Unreadable: Error {}
            override func prepare(_ start: Int, _ end: Int) throws { if end > 8192 && start < 12288 { throw Unreadable() } }
        }
        let file = try DamagedFile(fixture("relationships"))
        let source = Broken()
        let state = UnsafeMutablePointer<MemoryState>.allocate(capacity: 1)
        defer { state.deallocate() }
        state.initialize(to: MemoryState(base: file.bytes.baseAddress!, fileLimit: file.bytes.count))
        state.pointee.pager = .passUnretained(source)
        let report = try Verifier.verify(wholeFile: Memory(state), byteCount: file.bytes.count)
        XCTAssertTrue(report.errorCodes.contains(.nodeUnreadable), "\(report.findings)")
        XCTAssertFalse(report.isSound)
    }

    func testArrayOfRefsInPlaceOfIntegers() throws {
        try expect(.nodeKind, in: "relationships") { file in
            file.edit(file.leaf("Dog", "age")) {
                $0.flags |= 0x40
                $0.elements = $0.elements.map { _ in 0 }
            }
        }
    }

    // MARK: Free space

    func testLeakedSpace() throws {
        try expect(.spaceLeaked, .warning, in: "relationships") { file in
            for slot in 3...5 { file.edit([slot]) { $0.elements.remove(at: 4) } }
        }
    }

    func testFreeListsOfDifferentLength() throws {
        try expect(.freeCounts, in: "relationships") { file in file.edit([5]) { $0.elements.removeLast() } }
    }

    func testFreeListOutOfOrder() throws {
        try expect(.freeOrder, in: "relationships") { file in
            for slot in 3...5 { file.edit([slot]) { $0.elements.swapAt(3, 4) } }
        }
    }

    func testOverlappingFreeBlocks() throws {
        try expect(.freeOverlap, in: "relationships") { file in
            // The second of two blocks is moved back into the first.
            file.edit([3]) { $0.elements.insert($0.elements[0] + 8, at: 1) }
            for slot in 4...5 { file.edit([slot]) { $0.elements.insert(8, at: 1) } }
            file.edit([5]) { $0.elements[1] = 1 }
        }
    }

    func testUnalignedFreeBlock() throws {
        try expect(.freeAlignment, in: "relationships") { file in file.edit([4]) { $0.elements[0] -= 4 } }
    }

    func testEmptyFreeBlock() throws {
        try expect(.freeAlignment, in: "relationships") { file in file.edit([4]) { $0.elements[0] = 0 } }
    }

    func testFreeBlockOutsideTheFile() throws {
        try expect(.freeRange, in: "relationships") { file in
            file.edit([4]) { $0.elements[$0.elements.count - 1] += 1 << 24 }
        }
    }

    func testFreeBlockOfAFutureVersion() throws {
        try expect(.freeVersion, in: "relationships") { file in file.edit([5]) { $0.elements[0] = 1000 } }
    }

    func testFreeBlockThatIsInUse() throws {
        try expect(.spaceOverlap, in: "relationships") { file in
            let names = Int64(file.ref([0]))
            file.edit([3]) { $0.elements.insert(names, at: 0) }
            for slot in 4...5 { file.edit([slot]) { $0.elements.insert(8, at: 0) } }
            file.edit([5]) { $0.elements[0] = 1 }
        }
    }

    // MARK: Pinned snapshots

    func testFreeBlockThatAPinnedSnapshotUses() throws {
        let file = try DamagedFile(fixture("relationships"))
        // The version of the file as it is; then a node is written anew, which leaves the old one to the pinned snapshot.
        let version = UInt64(file.element(file.topRef, 6) >> 1)
        let pinned = Snapshot(version: version, topRef: file.topRef, logicalSize: Int(file.element(file.topRef, 2) >> 1))
        let old = file.ref(file.leaf("Dog", "age"))
        file.edit(file.leaf("Dog", "age")) { $0.elements[0] = 7 }
        func report(released: UInt64) throws -> VerificationReport {
            file.edit([3]) { $0.elements.insert(Int64(old), at: 0) }
            file.edit([4]) { $0.elements.insert(32, at: 0) }
            file.edit([5]) { $0.elements.insert(Int64(released), at: 0) }
            let newest = Snapshot(version: version + 1, topRef: file.topRef, logicalSize: Int(file.element(file.topRef, 2) >> 1))
            let state = UnsafeMutablePointer<MemoryState>.allocate(capacity: 1)
            defer { state.deallocate() }
            state.initialize(to: MemoryState(base: file.bytes.baseAddress!, fileLimit: file.bytes.count))
            return try Verifier.verify(pinned: pinned, against: newest, memory: Memory(state))
        }
        XCTAssertTrue(
            try report(released: version + 1).findings.isEmpty,
            "released by the newest version, it waits for the pin to go")
        XCTAssertEqual(try report(released: version).errorCodes, [.pinnedOverlap])
    }

    // MARK: Limits of the verifier

    func testItStopsAtTheLimitOfFindings() throws {
        let file = try DamagedFile(fixture("relationships"))
        file.edit(file.cluster("Dog")) { for i in 1..<$0.elements.count { $0.elements[i] = 3 } }
        var options = VerifierOptions()
        options.findingLimit = 3
        let report = try file.verify(options)
        XCTAssertEqual(report.findings.filter { $0.severity == .error }.count, 3)
        XCTAssertFalse(report.isComplete)
    }

    func testItListsOnlySomeFindingsOfACodeAndCountsTheRest() throws {
        let file = try DamagedFile(fixture("relationships"))
        file.edit(file.leaf("Dog", "age")) { $0.elements[0] = 0 }
        for path in [
            file.leaf(
                "Person",
                "dogs"), file.leaf("Person", "friends"),
        ] { file.edit(path) { $0.elements = $0.elements.map { _ in 5 } } }
        var options = VerifierOptions()
        options.findingsPerCode = 2
        let report = try file.verify(options)
        XCTAssertLessThanOrEqual(report.findings.filter { $0.code == .nodeElement }.count, 2)
        XCTAssertGreaterThan(report.unlisted, 10)
        XCTAssertTrue(report.isComplete)
    }

    func testHugeCountsDoNotKeepItBusy() throws {
        // Nodes of width 0 with 16 million elements cost 8 bytes each.
        let file = try DamagedFile(fixture("nested-mixed"))
        let count = 100
        var leaves: [Int64] = []
        for _ in 0..<count {
            let nulls = file.append(.init(flags: 0))
            file.poke(nulls + 5, 0xFF, 0xFF, 0xFF)
            leaves.append(Int64(file.append(.init(flags: 0x40, elements: [Int64(nulls), 0, 0, 0]))))
        }
        file.edit(file.collection("Doc", "list")) { $0 = .init(flags: 0xC0, elements: [3] + leaves + [3]) }
        let report = try file.verify()
        XCTAssertTrue(report.codes.contains(.treeCompact), "\(report.findings)")
        XCTAssertTrue(report.isComplete, "elements of width 0 are not looked at one by one")
    }

    func testItStopsAtTheLimitOfElements() throws {
        let file = try DamagedFile(fixture("relationships"))
        var options = VerifierOptions()
        options.elementLimit = 200
        let report = try file.verify(options)
        XCTAssertEqual(report.errorCodes, [.elementLimit])
        XCTAssertFalse(report.isComplete)
        XCTAssertFalse(report.isSound)
    }

    func testHugeCountsOfWideElementsAreStoppedByTheSizeOfTheFile() throws {
        // The count of a leaf of strings says 16 million; the node does not fit into the file.
        try expect(.nodeRange, in: "relationships") { file in
            let ref = file.ref(file.leaf("Dog", "name"))
            file.poke(ref + 5, 0xFF, 0xFF, 0xFF)
        }
    }
}
