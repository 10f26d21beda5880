@testable import SharedStore
import TestSupport
import XCTest

/// Where the nodes of small commits go: what lasts apart from what the next commit changes again.
final class StoragePlacingTests: XCTestCase {
    /// Changes a tree of many leaves, of which each commit replaces one.
    private func changeLeaves(
        _ h: CommitHarness, leaves: Int, commits: Int, _ random: inout SplitMix, sizes: ClosedRange<Int>
    ) throws {
        for _ in 0..<commits {
            try h.begin()
            let root = try h.root(1)
            var elements = try h.values(root)
            let index = Int.random(in: 0..<leaves, using: &random)
            let leaf = ModelNode.filled(Int.random(in: sizes, using: &random), &random)
            try h.arena.release(Int(elements[index]))
            elements[index] = Int64(try h.make(leaf))
            try h.arena.release(root)
            h.roots[1]?.elements[index] = .child(leaf)
            try h.commit(top: try h.replaceRoots([1: try h.makeRefs(elements)]))
        }
    }

    /// Makes a database with a tree of `leaves` leaves of `bytes` bytes.
    private func harness(leaves: Int, bytes: Int, _ random: inout SplitMix) throws -> CommitHarness {
        let h = try CommitHarness(file: try DatabaseFile.inMemory(), durability: .memoryOnly)
        h.roots[0] = ModelNode(bytes: [1])
        h.roots[1] = ModelNode(elements: (0..<leaves).map { _ in .child(.filled(bytes, &random)) })
        try h.commitModel([0, 1])
        return h
    }

    func testThousandsOfSmallCommitsLeaveFewFreeBlocksAndTheSizeAsItIs() throws {
        var random = SplitMix(seed: 71)
        let h = try harness(leaves: 400, bytes: 3000, &random)
        try changeLeaves(h, leaves: 400, commits: 200, &random, sizes: 3000...3000)
        let size = h.newest.logicalSize
        try changeLeaves(h, leaves: 400, commits: 2000, &random, sizes: 3000...3000)
        let census = try h.check()
        try h.checkModel()
        XCTAssertEqual(h.newest.logicalSize, size)
        XCTAssertLessThanOrEqual(census.extents.count { $0.isFree }, 40)
    }

    func testSmallCommitsBesideAHeldVersionLeaveFewFreeBlocksToo() throws {
        var random = SplitMix(seed: 72)
        let h = try harness(leaves: 100, bytes: 12_000, &random)
        try h.pin()
        try changeLeaves(h, leaves: 100, commits: 1000, &random, sizes: 12_000...12_000)
        let census = try h.check()
        try h.checkModel()
        // Each leaf of the held version is a locked block, or part of one.
        XCTAssertLessThanOrEqual(census.extents.count { $0.isFree && $0.version == 0 }, 100)
        XCTAssertLessThanOrEqual(h.newest.logicalSize, 8 << 20)
    }

    /// Each commit adds a changeset that stays, and replaces a text that the held version has.
    func testChangesetsThatAReaderWaitsForLeaveFewFreeBlocks() throws {
        let directory = ScratchDirectory()
        let store = try Store.open(directory.file("history.realm"), StoreOptions())
        var keys: [ObjectKey] = []
        try store.write { transaction in
            let items = try transaction.editor.createTable("class_Item")
            try items.addColumn("text", .string)
            for i in 0..<300 {
                keys.append(try items.createObject())
                try items.set("text", of: keys[i], to: .string(String(repeating: "x", count: i)))
            }
        }
        let held = try store.beginRead()
        for i in 0..<600 {
            try store.write { transaction in
                let items = try transaction.editor.editor(named: "class_Item")
                let text = String(repeating: "y", count: i * 31 % 200)
                try items.set(items.column(named: "text"), of: keys[i * 7 % 300], to: .string(text))
            }
        }
        let newest = try store.beginRead()
        let top = try newest.memory.node(newest.snapshot.topRef)
        let blocks = try newest.memory.node(top.requiredRef(TopSlot.freePositions)).count
        XCTAssertLessThanOrEqual(blocks, 200)
        XCTAssertLessThanOrEqual(newest.snapshot.logicalSize, 512 << 10)
        newest.end()
        held.end()
        try store.close()
    }

    func testLeavesOfAllSizesFindTheirPlaces() throws {
        var random = SplitMix(seed: 73)
        let h = try harness(leaves: 70, bytes: 20_000, &random)
        for round in 0..<40 {
            try changeLeaves(h, leaves: 70, commits: 20, &random, sizes: 0...40_000)
            if round % 4 == 0 { h.committer.forgetFreeSpace() }
            if round % 10 == 3 { try h.pin() }
            if round % 10 == 8 { h.unpin(0) }
            try h.check()
        }
        try h.checkModel()
        XCTAssertLessThanOrEqual(h.newest.logicalSize, 24 << 20)
    }

    /// Whatever is asked for, and whatever blocks there are: each place is free, crosses no section, and is given out once.
    func testPlacesAreFreeAndDisjointAndCrossNoSection() throws {
        var random = SplitMix(seed: 74)
        let staying: [NodeWriter.Staying] = [.passing, .passing, .amongSiblings, .changesets]
        for round in 0..<400 {
            let space = FreeSpace()
            space.paging = [.none, .few, .fresh][round % 3]
            var position = (1 << 26) - Int.random(in: 0..<2000, using: &random) * 8
            for _ in 0..<Int.random(in: 0..<12, using: &random) {
                position += Int.random(in: 1..<100, using: &random) * 8
                let length = Int.random(in: 1..<1200, using: &random) * 8
                space.free.append(Block(position: position, length: length))
                position += length
            }
            space.logicalSize = position + 8 * Int.random(in: 1..<50, using: &random)
            let before = Array(space.free.buffer)
            let end = space.logicalSize
            let sizes = (0..<Int.random(in: 1..<20, using: &random)).map { _ in
                (8 * Int.random(in: 1..<200, using: &random), staying.randomElement(using: &random) ?? .passing)
            }
            var need = FreeSpace.Need(lists: 8 * Int.random(in: 1..<300, using: &random))
            for (size, staying) in sizes {
                if staying != .passing {
                    need.lasting += size
                    need.lastingCount += 1
                } else {
                    need.passing += size
                }
            }
            space.beginPlacing(need)
            var places: [Block] = []
            for (size, staying) in sizes {
                // As if others belonged to it; sometimes they do not come.
                let extra = Bool.random(using: &random) ? 0 : 8 * Int.random(in: 1..<100, using: &random)
                let place =
                    switch staying {
                    case .passing: try space.allocate(size)
                    case .amongSiblings: try space.allocateLasting(size, group: size + extra)
                    case .changesets: try space.allocateForHistory(size)
                    }
                places.append(Block(position: place, length: size))
            }
            places.append(Block(position: try space.allocate(need.lists), length: need.lists))
            space.endPlacing()
            let all = places + Array(space.free.buffer)
            for place in places {
                XCTAssertEqual(place.position >> 26, (place.end - 1) >> 26, "round \(round): \(place) crosses a section")
                XCTAssertEqual(place.position & 7, 0)
                XCTAssertTrue(
                    place.position >= end || before.contains { $0.position <= place.position && place.end <= $0.end },
                    "round \(round): \(place) was not free")
            }
            var last = 0
            for block in all.sorted(by: { $0.position < $1.position }) {
                XCTAssertGreaterThanOrEqual(block.position, last, "round \(round): \(block) overlaps")
                XCTAssertGreaterThan(block.length, 0)
                last = block.end
            }
            let grown = space.logicalSize - end
            XCTAssertEqual(all.reduce(0) { $0 + $1.length }, before.reduce(0) { $0 + $1.length } + grown, "round \(round)")
            for (a, b) in zip(space.free.buffer, space.free.buffer.dropFirst()) {
                XCTAssertLessThan(a.end, b.position, "round \(round): touching blocks were not merged")
            }
            if testRun?.failureCount ?? 0 > 0 { return }
        }
    }
}
