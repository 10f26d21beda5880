import Glibc
@testable import SharedStore
import SystemCalls
import TestSupport
import XCTest

/// Commits of hand-made trees against a model, with the tiling of the file checked after each.
final class StorageCommitTests: XCTestCase {
    func testFirstCommitIsThatOfTheDocument() throws {
        // file-format-3 2.6, worked example: names at 24, tables array, lists and top at the places given there.
        let scratch = ScratchDirectory()
        let h = try CommitHarness(path: scratch.file("x.realm"), durability: .full)
        try h.begin()
        let names = try h.makeBytes([UInt8](repeating: 1, count: 8))
        let tables = try h.makeRefs([Int64(try h.makeBytes([UInt8](repeating: 2, count: 100)))])
        try h.commit(top: try h.makeRefs([Int64(names), Int64(tables), 24 << 1 | 1]))
        XCTAssertEqual(h.newest.version, 2)
        XCTAssertEqual(h.newest.logicalSize, 4096)
        let view = try h.file.view(of: h.newest)
        let top = try view.memory.node(h.newest.topRef)
        XCTAssertEqual(top.count, 7)
        XCTAssertEqual(try top.optionalRef(0), 24)
        XCTAssertEqual(try top.optionalRef(1), 152)
        XCTAssertEqual(try top.optionalRef(3), 168)
        XCTAssertEqual(try top.optionalRef(4), 184)
        XCTAssertEqual(try top.optionalRef(5), 200)
        XCTAssertEqual(h.newest.topRef, 208)
        XCTAssertEqual((0..<7).map { top.unchecked($0) }, [24, 152, 8193, 168, 184, 200, 5])
        // The document's top has 32 bits an element; 16 are enough.
        XCTAssertEqual(try view.memory.node(168).integer(0), 232)
        XCTAssertEqual(try view.memory.node(184).integer(0), 3864)
        let header = try h.file.readHeader()
        XCTAssertEqual(header.topRefs.1, 208)
        XCTAssertEqual(header.formats.1, 24)
        XCTAssertEqual(header.flags, 1)
        try h.check()
    }

    private func randomRun(
        seed: UInt64, commits: Int, pins: Int, durability: Durability, reopen: Bool, maxBytes: Int = 300
    ) throws {
        let scratch = ScratchDirectory("commits")
        var random = SplitMix(seed: seed)
        let path = scratch.file("x.realm")
        var h = try CommitHarness(path: path, durability: durability)
        for i in 0..<commits {
            try h.randomCommit(&random, maxBytes: maxBytes)
            try h.check()
            if i % 10 == 0 { try h.checkModel() }
            if Int.random(in: 0..<5, using: &random) == 0 && h.pins.count < pins { try h.pin() }
            if Int.random(in: 0..<8, using: &random) == 0 && !h.pins.isEmpty {
                h.unpin(Int.random(in: 0..<h.pins.count, using: &random))
            }
            // As after a commit of another process: the lists are read from the file.
            if Int.random(in: 0..<20, using: &random) == 0 { h.committer.forgetFreeSpace() }
            if reopen && Int.random(in: 0..<50, using: &random) == 0 {
                let roots = h.roots
                h.file.close()
                h = try CommitHarness(file: try TestKeys.openFile(path, writable: true), durability: durability)
                h.roots = roots
                try h.checkModel()
            }
            if testRun?.failureCount ?? 0 > 0 { return XCTFail("seed \(seed), commit \(i)") }
        }
        try h.checkModel()
    }

    func testRandomCommitsTileTheFile() throws {
        for seed in 1...4 { try randomRun(seed: UInt64(seed), commits: 300, pins: 0, durability: .unsafe, reopen: true) }
    }

    func testRandomCommitsInFullDurability() throws {
        try randomRun(seed: 11, commits: 100, pins: 2, durability: .full, reopen: true)
    }

    func testPinnedVersionsKeepTheirBytes() throws {
        for seed in 21...23 { try randomRun(seed: UInt64(seed), commits: 200, pins: 5, durability: .unsafe, reopen: false) }
    }

    func testLargeNodesAndManyPins() throws {
        try randomRun(seed: 31, commits: 30, pins: 12, durability: .memoryOnly, reopen: false, maxBytes: 20_000)
    }

    func testRandomCommitsThroughEncryptedPages() throws {
        for (seed, durability) in [(UInt64(61), Durability.full), (62, .unsafe)] {
            var random = SplitMix(seed: seed)
            let key = try EncryptionKey((0..<64).map { UInt8($0 * 3) })
            let scratch = ScratchDirectory("encrypted")
            let path = scratch.file("x.realm")
            func open(_ flags: Int32) throws -> DatabaseFile {
                try DatabaseFile(
                    backend: EncryptedFile(descriptor: try SystemCalls.open(path, O_RDWR | flags), path: path, key: key))
            }
            let new = try open(O_CREAT)
            try new.initialize(durability: durability)
            var h = try CommitHarness(file: new, durability: durability)
            for i in 0..<60 {
                try h.randomCommit(&random, maxBytes: 2000)
                try h.check()
                if i % 9 == 0 { try h.checkModel() }
                if i % 7 == 3 && h.pins.count < 2 { try h.pin() }
                if i % 7 == 6 && !h.pins.isEmpty { h.unpin(0) }
                if i % 20 == 19 {
                    let roots = h.roots
                    h.file.close()
                    h = try CommitHarness(file: try open(0), durability: durability)
                    h.roots = roots
                    try h.checkModel()
                }
            }
            // Nothing of the content stands in the file in clear.
            let raw = try Data(contentsOf: URL(fileURLWithPath: path))
            XCTAssertNil(raw.range(of: Data("T-DB".utf8)))
        }
    }

    func testEmptyCommitsKeepTheFileSmall() throws {
        let h = try CommitHarness(file: try DatabaseFile.inMemory(), durability: .memoryOnly)
        var random = SplitMix(seed: 5)
        try h.randomCommit(&random)
        let size = h.newest.logicalSize
        for _ in 0..<300 {
            try h.begin()
            try h.commit(top: h.newest.topRef)
            try h.check()
        }
        XCTAssertLessThanOrEqual(h.newest.logicalSize, 2 * size)
        XCTAssertEqual(h.newest.version, 302)
    }

    func testOnePinnedVersionAndFiveThousandCommitsKeepTheFileUnderAMegabyte() throws {
        let h = try CommitHarness(file: try DatabaseFile.inMemory(), durability: .memoryOnly)
        var random = SplitMix(seed: 9)
        h.roots[1] = ModelNode(elements: (0..<100).map { _ in .child(.random(200, &random)) })
        h.roots[0] = ModelNode(bytes: [1])
        try h.commitModel([0, 1])
        try h.pin()
        for i in 0..<5000 {
            try h.begin()
            var elements = try h.values(try h.root(1))
            for _ in 0..<3 {
                let index = Int.random(in: 0..<100, using: &random)
                try h.arena.release(Int(elements[index]))
                let bytes = (0..<200).map { _ in UInt8.random(in: 0...255, using: &random) }
                h.roots[1]?.elements[index] = .child(ModelNode(bytes: bytes))
                elements[index] = Int64(try h.makeBytes(bytes))
            }
            try h.arena.release(try h.root(1))
            try h.commit(top: try h.replaceRoots([1: try h.makeRefs(elements)]))
            if i % 500 == 0 { try h.check() }
        }
        try h.check()
        try h.checkModel()
        XCTAssertLessThan(h.newest.logicalSize, 1 << 20)
    }

    func testNodesDoNotCrossSections() throws {
        let h = try CommitHarness(file: try DatabaseFile.inMemory(), durability: .memoryOnly)
        var random = SplitMix(seed: 3)
        h.roots[0] = ModelNode(bytes: [1])
        // Blobs of 5 to 15 MiB: over several borders of 64 MiB, then many replacements.
        func blob() -> ModelNode { .filled(Int.random(in: 5...15, using: &random) << 20, &random) }
        h.roots[1] = ModelNode(elements: (0..<16).map { _ in .child(blob()) })
        try h.commitModel([0, 1])
        XCTAssertGreaterThan(h.newest.logicalSize, 1 << 27)
        try h.check()
        for _ in 0..<6 {
            try h.begin()
            var elements = try h.values(try h.root(1))
            for index in [Int.random(in: 0..<8, using: &random), Int.random(in: 8..<16, using: &random)] {
                try h.arena.release(Int(elements[index]))
                let b = blob()
                h.roots[1]?.elements[index] = .child(b)
                elements[index] = Int64(try h.makeBytes(b.bytes ?? []))
            }
            try h.arena.release(try h.root(1))
            try h.commit(top: try h.replaceRoots([1: try h.makeRefs(elements)]))
            try h.check()
        }
    }

    func testDamagedFreeListsAreTypedErrors() throws {
        let scratch = ScratchDirectory()
        let good = [UInt8](try Data(contentsOf: URL(fileURLWithPath: Fixtures.core14 + "/many-versions.realm")))
        var random = SplitMix(seed: 77)
        for round in 0..<120 {
            let path = scratch.file("d\(round).realm")
            var bytes = good
            // The lists and the top of this file lie at its end.
            for _ in 0..<3 { bytes[Int.random(in: 24_000..<24_600, using: &random)] = UInt8.random(in: 0...255, using: &random) }
            try Data(bytes).write(to: URL(fileURLWithPath: path))
            let file = try DatabaseFile.open(path, writable: true)
            do {
                let h = try CommitHarness(file: file)
                for _ in 0..<3 {
                    try h.begin()
                    try h.commit(top: h.newest.topRef)
                }
            } catch is FormatError {} catch is OpenError {} catch is LimitError {}
            file.close()
            unlink(path)
        }
    }

    func testCommitsOnGivenFilesKeepTheirTiling() throws {
        let scratch = ScratchDirectory()
        for name in ["many-versions", "big", "trees", "all-types", "compact-copy"] {
            let path = scratch.file(name + ".realm")
            try TestKeys.copy(Fixtures.core14 + "/\(name).realm", to: path)
            let file = try TestKeys.openFile(path, writable: true)
            let inspection = try file.inspect()
            if inspection.isStreaming { try file.convertFromStreamingForm(inspection, durability: .full) }
            let h = try CommitHarness(file: file, durability: .full)
            let used = try Census(try file.view(of: h.newest)).usedBytes
            for _ in 0..<5 {
                try h.begin()
                try h.commit(top: h.newest.topRef)
                let census = try h.check()
                XCTAssertLessThan(census.usedBytes, used + 4096)
            }
            let view = try file.view(of: h.newest)
            let report = try Verifier.verify(
                memory: view.memory, snapshot: h.newest, form: .inPlace, format: 24,
                physicalSize: try file.backend.size(), header: try file.readHeader())
            XCTAssertEqual(report.errorCount, 0, "\(name): \(report.findings.prefix(3))")
        }
    }
}
