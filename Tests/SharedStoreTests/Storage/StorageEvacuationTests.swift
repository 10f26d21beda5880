import Glibc
@testable import SharedStore
import SystemCalls
import TestSupport
import XCTest

/// The emptying of a file's tail after mass deletion.
final class StorageEvacuationTests: XCTestCase {
    func testEvacuationShrinksTheFileAfterMassDeletion() throws {
        let scratch = ScratchDirectory()
        let path = scratch.file("x.realm")
        let h = try CommitHarness(path: path)
        var random = SplitMix(seed: 17)
        h.roots[0] = ModelNode(bytes: [1])
        h.roots[8] = ModelNode(elements: [.number(1), .child(ModelNode(bytes: [2, 3]))])
        h.roots[1] = ModelNode(
            elements: (0..<40).map { _ in
                .child(
                    ModelNode(
                        elements: (0..<50).map { _ in
                            .child(.filled(1500, &random))
                        }))
            })
        try h.commitModel([0, 1, 8])
        let full = h.newest.logicalSize
        XCTAssertGreaterThanOrEqual(full, 3 << 20)
        // Nine of ten go, spread over the whole file.
        try h.begin()
        var tables = try h.values(try h.root(1))
        for t in tables.indices {
            var elements = try h.values(Int(tables[t]))
            guard case .child(let model) = h.roots[1]!.elements[t] else { continue }
            for i in elements.indices where i % 10 != 3 {
                try h.arena.release(Int(elements[i]))
                elements[i] = 0
                model.elements[i] = .null
            }
            try h.arena.release(Int(tables[t]))
            tables[t] = Int64(try h.makeRefs(elements))
        }
        try h.arena.release(try h.root(1))
        try h.commit(top: try h.replaceRoots([1: try h.makeRefs(tables)]))
        try h.check()
        var stages: Set<String> = []
        for i in 0..<200 {
            try h.begin()
            try h.commit(top: h.newest.topRef)
            try h.check()
            let view = try h.file.view(of: h.newest)
            let top = try view.memory.node(h.newest.topRef)
            let slot = top.count > 11 ? top.unchecked(11) : 0
            stages.insert(slot == 0 ? "idle" : slot & 1 != 0 ? "begin" : "under way")
            if i == 100 { h.committer.forgetFreeSpace() }
            if h.newest.logicalSize < full / 4 { break }
        }
        try h.checkModel()
        XCTAssertLessThan(h.newest.logicalSize, full / 4)
        XCTAssertTrue(stages.contains("under way"), "\(stages)")
        // The physical size follows when the file is opened next.
        XCTAssertGreaterThanOrEqual(try h.file.backend.size(), full)
        let file = try TestKeys.openFile(path, writable: true)
        XCTAssertTrue(try file.alignSize(try file.inspect()))
        XCTAssertLessThan(try file.backend.size(), full / 4)
        let again = try CommitHarness(file: try TestKeys.openFile(path, writable: true))
        again.roots = h.roots
        try again.checkModel()
        for _ in 0..<5 {
            try again.randomCommit(&random)
            try again.check()
        }
    }

    func testEvacuationIsGivenUpWhenItsSpaceIsNeeded() throws {
        let h = try CommitHarness(file: try DatabaseFile.inMemory(), durability: .memoryOnly)
        h.roots[0] = ModelNode(bytes: [1])
        h.roots[1] = ModelNode(elements: (0..<400).map { _ in .child(ModelNode(bytes: [UInt8](repeating: 7, count: 10_000))) })
        try h.commitModel([0, 1])
        h.roots[1] = ModelNode(elements: [.child(ModelNode(bytes: [1, 2]))])
        try h.commitModel([1])
        try h.begin()
        try h.commit(top: h.newest.topRef)  // the lists of the full file are free from now on: evacuation is announced
        let limit = try evacuationLimit(h)
        XCTAssertGreaterThan(limit, 0)
        h.roots[8] = ModelNode(bytes: [UInt8](repeating: 9, count: 2 << 20))
        try h.commitModel([8])
        try h.check()
        XCTAssertEqual(try evacuationLimit(h), 0)
        try h.checkModel()
        for _ in 0..<12 {
            try h.begin()
            try h.commit(top: h.newest.topRef)
            try h.check()
        }
    }

    func testRandomMassDeletionsWithPinsAndEvacuation() throws {
        for seed in 41...42 {
            var random = SplitMix(seed: UInt64(seed))
            let h = try CommitHarness(file: try DatabaseFile.inMemory(), durability: .memoryOnly)
            h.roots[0] = ModelNode(bytes: [1])
            h.roots[1] = ModelNode(elements: (0..<30).map { _ in .null })
            try h.commitModel([0, 1])
            var sizes: [Int] = []
            for i in 0..<100 {
                try h.begin()
                var elements = try h.values(try h.root(1))
                let isDeleting = i / 25 % 2 == 1
                for _ in 0..<6 {
                    let index = Int.random(in: 0..<30, using: &random)
                    if elements[index] != 0 { try h.arena.releaseTree(Int(elements[index])) }
                    elements[index] = 0
                    h.roots[1]?.elements[index] = .null
                    if isDeleting { continue }
                    let new = ModelNode(
                        elements: (0..<10).map { _ in
                            .child(.filled(Int.random(in: 0...15_000, using: &random), &random))
                        })
                    h.roots[1]?.elements[index] = .child(new)
                    elements[index] = Int64(try h.make(new))
                }
                try h.arena.release(try h.root(1))
                try h.commit(top: try h.replaceRoots([1: try h.makeRefs(elements)]))
                sizes.append(h.newest.logicalSize)
                try h.check()
                if Int.random(in: 0..<12, using: &random) == 0 && h.pins.count < 3 { try h.pin() }
                if Int.random(in: 0..<6, using: &random) == 0 && !h.pins.isEmpty { h.unpin(0) }
                if Int.random(in: 0..<15, using: &random) == 0 { h.committer.forgetFreeSpace() }
                if testRun?.failureCount ?? 0 > 0 { return XCTFail("seed \(seed), commit \(i)") }
            }
            try h.checkModel()
            XCTAssertTrue(zip(sizes, sizes.dropFirst()).contains { $0 > $1 }, "seed \(seed): the file never shrank")
        }
    }

    func testStrangeStatesOfEvacuationDoNoHarm() throws {
        // Slot 11 as another program, or damage, may have left it: limits that are no multiple of anything, progress into
        // nowhere.
        let states: [[Int64]] = [
            [70_001, 0], [3, 0, 1, 5], [1 << 40, 0], [200_000, 0, 8, 3, 900, 2], [0, 3], [100_000, 2000, 1], [-5, -7, -9],
            [65_536, 0, 1, 0, 0, 0, 0],
        ]
        for state in states {
            var random = SplitMix(seed: 19)
            let h = try CommitHarness(file: try DatabaseFile.inMemory(), durability: .memoryOnly)
            h.roots[0] = ModelNode(bytes: [1])
            h.roots[8] = ModelNode(bytes: [1, 2])
            h.roots[1] = ModelNode(
                elements: (0..<20).map { _ in
                    .child(
                        ModelNode(
                            elements: (0..<10).map { _ in
                                .child(.filled(1000, &random))
                            }))
                })
            try h.commitModel([0, 1, 8])
            // A plain array, placed like any node of the history tree's slot by hand: slot 11 points to it.
            try h.begin()
            let array = try h.makeRefs(state, flags: 0)
            let holder = try h.makeRefs([Int64(array)])
            let oldHistory = try h.root(8)
            try h.arena.release(oldHistory)
            try h.commit(top: try h.replaceRoots([8: holder]))
            let placed = try h.values(try h.root(8))[0]
            // The holder becomes the blob again; the array stays, now owned by slot 11.
            try h.begin()
            try h.arena.release(try h.root(8))
            var top = try h.values(h.newest.topRef)
            while top.count < 12 { top.append(0) }
            top[8] = Int64(try h.makeBytes([1, 2]))
            top[11] = placed
            try h.arena.release(h.newest.topRef)
            try h.commit(top: try h.makeRefs(top))
            try h.check()
            for _ in 0..<30 {
                try h.begin()
                try h.commit(top: h.newest.topRef)
                try h.check()
            }
            try h.checkModel()
        }
    }

    private func evacuationLimit(_ h: CommitHarness) throws -> Int {
        let view = try h.file.view(of: h.newest)
        let top = try view.memory.node(h.newest.topRef)
        guard top.count > 11, top.unchecked(11) != 0 else { return 0 }
        let v = top.unchecked(11)
        return v & 1 != 0 ? Int(v >> 1) : Int(try view.memory.node(Int(v)).integer(0))
    }
}
