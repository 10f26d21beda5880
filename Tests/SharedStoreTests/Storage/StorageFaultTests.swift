import Glibc
@testable import SharedStore
import SystemCalls
import TestSupport
import XCTest

/// System calls that fail, and power cuts, at every step of a commit.
final class StorageFaultTests: XCTestCase {
    /// - Parameter isPlain: whatever the other files are; for tests that count calls, or look at what each of them writes.
    private func smallDatabase(
        _ path: String, _ random: inout SplitMix, durability: Durability = .full, isPlain: Bool = false
    ) throws -> CommitHarness {
        let h = try CommitHarness(path: path, durability: durability, isPlain: isPlain)
        for _ in 0..<3 { try h.randomCommit(&random) }
        return h
    }

    /// Every call of a commit fails once with each error: the file stays valid, the next commit works.
    func testAnyFailedCallOfACommitLeavesAFileThatWorks() throws {
        let scratch = ScratchDirectory()
        for (code, durability) in [(ENOSPC, Durability.full), (EIO, .full), (EDQUOT, .unsafe), (EIO, .unsafe)] {
            var random = SplitMix(seed: UInt64(code))
            let path = scratch.file("f\(code)\(durability).realm")
            let h = try smallDatabase(path, &random, durability: durability)
            var failures = 0
            for n in 0..<10_000 {
                let before = h.newest, roots = h.roots
                var calls = 0
                SystemCallInterception.hook = {
                    guard $0.path == path else { return nil }
                    calls += 1
                    return calls == n + 1 ? code : nil
                }
                var failed = false
                do {
                    // Large enough that the file grows in some of them.
                    try h.randomCommit(&random, maxBytes: durability == .full ? 3000 : 12_000)
                } catch let error as SystemError {
                    XCTAssertEqual(error.code, code)
                    failed = true
                }
                SystemCallInterception.hook = nil
                if failed {
                    failures += 1
                    XCTAssertEqual(h.newest, before)
                    h.roots = roots
                    // What another process finds: version N, or N+1 where only the last sync was missing; whole in any case.
                    let other = try TestKeys.openFile(path, writable: false)
                    let found = try other.inspect().snapshot
                    XCTAssertTrue(found == before || found.version == before.version + 1)
                    XCTAssertTrue(try Census(try other.view(of: found)).checkTiling(found))
                    // What the session does at the next begin.
                    if try Int(h.file.currentHeader().liveTopRef) != before.topRef {
                        try h.file.pointHeader(to: before.topRef, durability: durability)
                    }
                    try h.checkModel()
                }
                try h.randomCommit(&random)
                try h.check()
                try h.checkModel()
                if !failed && n > 12 { break }
            }
            // Without syncs a commit makes a call only where the file grows.
            XCTAssertGreaterThan(failures, durability == .full ? 4 : 0, "\(durability)")
        }
    }

    func testFullDiskFailsTheCommitThatGrowsAndNoOther() throws {
        let scratch = ScratchDirectory()
        let path = scratch.file("full.realm")
        var random = SplitMix(seed: 4)
        let h = try smallDatabase(path, &random)
        h.roots[8] = ModelNode(bytes: [UInt8](repeating: 1, count: 200_000))
        SystemCallInterception.hook = { $0.name == "fallocate" ? ENOSPC : nil }
        XCTAssertThrowsError(try h.commitModel([8])) { XCTAssertTrue(($0 as? SystemError)?.isOutOfSpace ?? false) }
        h.roots[8] = ModelNode(bytes: [1])
        for _ in 0..<5 {
            try h.commitModel([8])
            try h.check()
        }
        SystemCallInterception.hook = nil
        try h.checkModel()
    }

    func testPreallocationThatIsRefusedIsReplacedByZeros() throws {
        let scratch = ScratchDirectory()
        for code in [EOPNOTSUPP, EPERM, EINVAL] {
            SystemCallInterception.hook = { $0.name == "fallocate" ? code : nil }
            defer { SystemCallInterception.hook = nil }
            var random = SplitMix(seed: 8)
            let h = try smallDatabase(scratch.file("z\(code).realm"), &random)
            h.roots[8] = ModelNode(bytes: [UInt8](repeating: 1, count: 100_000))
            try h.commitModel([8])
            try h.check()
            try h.checkModel()
        }
    }

    func testGrowthAsksForTheGrowthOnly() throws {
        // A second process sees the whole size preallocated at once, the call is made for the new part: counted by its argument.
        let scratch = ScratchDirectory()
        var random = SplitMix(seed: 8)
        let h = try smallDatabase(scratch.file("g.realm"), &random, isPlain: true)
        var sizes: [Int] = []
        SystemCallInterception.hook = {
            if $0.name == "fallocate" { sizes.append($0.offset) }
            return nil
        }
        h.roots[8] = ModelNode(bytes: [UInt8](repeating: 1, count: 100_000))
        try h.commitModel([8])
        SystemCallInterception.hook = nil
        XCTAssertEqual(sizes, [h.newest.logicalSize])
    }

    func testASmallDurableCommitIsFiveSystemCallsWithTwoSyncs() throws {
        let scratch = ScratchDirectory()
        var random = SplitMix(seed: 2)
        let path = scratch.file("c.realm")
        let h = try smallDatabase(path, &random, isPlain: true)
        h.roots[8] = ModelNode(bytes: [1])
        for _ in 0..<4 { try h.commitModel([8]) }
        var names: [String] = []
        SystemCallInterception.hook = {
            names.append($0.name)
            return nil
        }
        try h.commitModel([8])
        SystemCallInterception.hook = nil
        XCTAssertEqual(names, ["pwrite64", "pwrite64", "fdatasync", "pwrite64", "fdatasync"])
    }

    func testAnUnsyncedCommitMakesNoSystemCall() throws {
        let scratch = ScratchDirectory()
        var random = SplitMix(seed: 2)
        let h = try smallDatabase(scratch.file("c.realm"), &random, durability: .unsafe, isPlain: true)
        h.roots[8] = ModelNode(bytes: [1])
        for _ in 0..<4 { try h.commitModel([8]) }
        var names: [String] = []
        SystemCallInterception.hook = {
            names.append($0.name)
            return nil
        }
        for _ in 0..<5 { try h.commitModel([8]) }
        SystemCallInterception.hook = nil
        XCTAssertEqual(names, [])
        XCTAssertEqual(try h.file.readHeader().liveTopRef, UInt64(h.newest.topRef))
    }

    // MARK: Kills

    func testAProcessKilledAtAnyStepLeavesAWholeVersion() throws {
        let scratch = ScratchDirectory()
        for durability in ["full", "unsafe"] {
            let path = scratch.file(durability + ".realm")
            var least: UInt64 = 0
            // The file is used on and on: each process finds what the killed one left.
            let killed = try sweepKills {
                try ChildProcess(product: "TestParticipant", ["storage", "commit", path, durability, "3", "\($0)"])
            } check: { step, lines in
                let promised = max(least, lines.last.flatMap { UInt64($0) } ?? 0)
                let file = try DatabaseFile.open(path, writable: false)
                if try file.backend.size() == 0 { return XCTAssertLessThan(step, 3) }
                let snapshot = try file.inspect().snapshot
                let isExpected = promised == 0 || snapshot.version == promised || snapshot.version == promised + 1
                XCTAssertTrue(isExpected, "\(snapshot) after \(promised)")
                least = snapshot.topRef == 0 ? 0 : snapshot.version
                if snapshot.topRef == 0 { return }
                let view = try file.view(of: snapshot)
                XCTAssertTrue(try Census(view).checkTiling(snapshot), "step \(step)")
                let top = try view.memory.node(snapshot.topRef)
                XCTAssertEqual(try view.memory.node(try top.requiredRef(0)).integer(0), Int64(snapshot.version))
                let blobs = try view.memory.node(try top.requiredRef(1))
                for i in 0..<blobs.count {
                    let blob = try view.memory.node(try blobs.requiredRef(i))
                    let bytes = UnsafeRawBufferPointer(start: blob.payload, count: blob.count)
                    XCTAssertTrue(bytes.allSatisfy { $0 == bytes[0] }, "step \(step): blob \(i) is torn")
                }
            }
            XCTAssertGreaterThan(killed, 20, durability)
        }
    }

    func testTheSweepOfFaultsReachesEveryCall() throws {
        let scratch = ScratchDirectory()
        let path = scratch.file("s.realm")
        var names: Set<String> = []
        let rounds = try sweepFaults(code: EIO, selects: { names.insert($0.name).inserted || true }) { round -> String in
            path + "\(round)"
        } _: { path in
            let file = try DatabaseFile.open(path, writable: true, create: true)
            try file.initialize(durability: .full)
            try file.pointHeader(to: 64, durability: .full)
        } check: { path, error in
            if let error { XCTAssertEqual((error as? SystemError)?.code, EIO) }
            let header = try? DatabaseFile.open(path, writable: false).readHeader()
            XCTAssertTrue(header == nil || header?.mnemonic == 0 || header?.mnemonic == FileHeader.mnemonic)
        }
        XCTAssertGreaterThanOrEqual(rounds, 10)
        XCTAssertTrue(names.isSuperset(of: ["open", "mmap", "fallocate", "pwrite64", "fdatasync"]), "\(names)")
    }

    // MARK: Power cuts

    /// All nodes of a version, by content.
    private func content(_ file: DatabaseFile, _ snapshot: Snapshot) throws -> Data {
        let view = try file.view(of: snapshot)
        return try Census(view).nodeBytes(view)
    }

    private func load(_ image: [UInt8]) throws -> DatabaseFile {
        let backend = try PlainFile.inMemory()
        try image.withUnsafeBytes { try backend.write($0, at: 0) }
        return try DatabaseFile(backend: backend)
    }

    func testEveryPowerCutLeavesAVersionThatWasPromisedOrTheNextOne() throws {
        let scratch = ScratchDirectory()
        var random = SplitMix(seed: 6)
        let path = scratch.file("p.realm")
        let h = try smallDatabase(path, &random, isPlain: true)
        var contents: [UInt64: Data] = [h.newest.version: try content(h.file, h.newest)]
        let recorder = PowerCutRecorder(path: path, initial: [UInt8](try Data(contentsOf: URL(fileURLWithPath: path))))
        recorder.mark(Int(h.newest.version))
        for i in 0..<8 {
            try recorder.record { try h.randomCommit(&random, maxBytes: i % 4 == 3 ? 6000 : 300) }
            recorder.mark(Int(h.newest.version))
            contents[h.newest.version] = try content(h.file, h.newest)
            if i == 3 { try h.pin() }
            if i == 6 { h.unpin(0) }
        }
        let count = try recorder.forEachImage(seed: 99) { image, promised in
            let file = try load(image)
            let snapshot = try file.inspect().snapshot
            let least = UInt64(promised ?? 4)
            let isExpected = snapshot.version == least || snapshot.version == least + 1
            XCTAssertTrue(isExpected, "version \(snapshot.version) after a promise of \(least)")
            XCTAssertEqual(try content(file, snapshot), contents[snapshot.version])
            XCTAssertTrue(try Census(try file.view(of: snapshot)).checkTiling(snapshot))
        }
        XCTAssertGreaterThan(count, 100)
    }

    func testEveryPrefixOfTheWritesToAnEncryptedFileIsAVersion() throws {
        let scratch = ScratchDirectory()
        let path = scratch.file("x.realm")
        let key = try EncryptionKey((0..<64).map { UInt8($0) })
        func open(_ descriptor: SystemCalls.Descriptor) throws -> DatabaseFile {
            try DatabaseFile(backend: EncryptedFile(descriptor: descriptor, path: path, key: key))
        }
        let file = try open(try SystemCalls.open(path, O_RDWR | O_CREAT))
        try file.initialize(durability: .full)
        var random = SplitMix(seed: 33)
        let h = try CommitHarness(file: file, durability: .full)
        for _ in 0..<3 { try h.randomCommit(&random) }
        var contents: [UInt64: Data] = [h.newest.version: try content(h.file, h.newest)]
        let recorder = PowerCutRecorder(path: path, initial: [UInt8](try Data(contentsOf: URL(fileURLWithPath: path))))
        recorder.mark(Int(h.newest.version))
        for i in 0..<8 {
            try recorder.record { try h.randomCommit(&random, maxBytes: i % 3 == 2 ? 9000 : 300) }
            recorder.mark(Int(h.newest.version))
            contents[h.newest.version] = try content(h.file, h.newest)
        }
        let count = try recorder.forEachImage(seed: 1, inOrder: true) { image, promised in
            let descriptor = try SystemCalls.memoryFile(name: "image")
            try image.withUnsafeBytes { try SystemCalls.write(descriptor, $0, at: 0) }
            let file = try open(descriptor)
            let snapshot = try file.inspect().snapshot
            let least = UInt64(promised ?? 4)
            XCTAssertTrue(snapshot.version == least || snapshot.version == least + 1, "\(snapshot) after \(least)")
            XCTAssertEqual(try content(file, snapshot), contents[snapshot.version])
        }
        XCTAssertGreaterThan(count, 50)
    }

    func testPowerCutsDuringAnEvacuation() throws {
        let scratch = ScratchDirectory()
        let path = scratch.file("e.realm")
        let h = try CommitHarness(path: path, durability: .full, isPlain: true)
        h.roots[0] = ModelNode(bytes: [1])
        var random = SplitMix(seed: 1)
        h.roots[1] = ModelNode(elements: (0..<1200).map { _ in .child(.filled(1000, &random)) })
        try h.commitModel([0, 1])
        try h.begin()
        var elements = try h.values(try h.root(1))
        for i in elements.indices where i % 20 != 0 {
            try h.arena.release(Int(elements[i]))
            elements[i] = 0
            h.roots[1]?.elements[i] = .null
        }
        try h.arena.release(try h.root(1))
        try h.commit(top: try h.replaceRoots([1: try h.makeRefs(elements)]))
        let full = h.newest.logicalSize
        var snapshots: [UInt64: Snapshot] = [h.newest.version: h.newest]
        let recorder = PowerCutRecorder(path: path, initial: [UInt8](try Data(contentsOf: URL(fileURLWithPath: path))))
        recorder.mark(Int(h.newest.version))
        while h.newest.logicalSize == full {
            try recorder.record {
                try h.begin()
                try h.commit(top: h.newest.topRef)
            }
            recorder.mark(Int(h.newest.version))
            snapshots[h.newest.version] = h.newest
            XCTAssertLessThan(h.newest.version, 60)
        }
        try h.checkModel()
        try recorder.forEachImage(subsets: 4, seed: 3) { image, promised in
            let file = try load(image)
            let snapshot = try file.inspect().snapshot
            XCTAssertGreaterThanOrEqual(Int(snapshot.version), promised ?? 0)
            XCTAssertEqual(snapshot, snapshots[snapshot.version])
            XCTAssertTrue(try Census(try file.view(of: snapshot)).checkTiling(snapshot))
        }
    }
}
