import Glibc
@testable import SharedStore
import SystemCalls
import TestSupport
import XCTest

/// Streaming copies, their conversion, and compaction.
final class StorageCopyTests: XCTestCase {
    private func open(_ name: String) throws -> (DatabaseFile, FileInspection) {
        let file = try DatabaseFile.open(Fixtures.core14 + "/\(name).realm", writable: false)
        return (file, try file.inspect())
    }

    private func assertSameTree(_ a: Int, _ ma: Memory, _ b: Int, _ mb: Memory, _ line: UInt = #line) throws {
        let na = try ma.node(a), nb = try mb.node(b)
        XCTAssertEqual(na.count, nb.count, line: line)
        if na.hasRefs {
            XCTAssertEqual(na.flags & 0xE0, nb.flags & 0xE0, line: line)
            for i in 0..<min(na.count, nb.count) {
                let va = try na.integer(i), vb = try nb.integer(i)
                if va & 1 != 0 || va == 0 {
                    XCTAssertEqual(va, vb, line: line)
                } else {
                    try assertSameTree(Int(va), ma, Int(vb), mb, line)
                }
            }
        } else {
            XCTAssertEqual(na.flags, nb.flags, line: line)
            XCTAssertTrue(memcmp(na.payload, nb.payload, na.payloadByteCount) == 0, line: line)
        }
    }

    private func checkCopy(_ path: String, of source: FileView, slots: [Int], count: Int) throws {
        let file = try DatabaseFile.open(path, writable: false)
        let inspection = try file.inspect()
        XCTAssertTrue(inspection.isStreaming)
        XCTAssertEqual(inspection.physicalSize, inspection.snapshot.logicalSize + 16)
        let view = try file.view(of: inspection.snapshot)
        let census = try Census(view)
        var end = 24
        for e in census.extents.sorted(by: { $0.position < $1.position }) {
            XCTAssertEqual(e.position, end)
            XCTAssertFalse(e.isFree)
            end = e.position + e.length
        }
        XCTAssertEqual(end, inspection.snapshot.logicalSize)
        let top = try view.memory.node(inspection.snapshot.topRef), old = try source.memory.node(source.snapshot.topRef)
        XCTAssertEqual(top.count, count)
        for slot in slots { try assertSameTree(try old.requiredRef(slot), source.memory, try top.requiredRef(slot), view.memory) }
    }

    func testACopyOfACopyOfTheOriginalIsTheSameBytes() throws {
        // compact-copy.realm was written by the original; a copy in which nothing changes must come out as it did there, but for
        // bytes of padding, which are unspecified.
        let scratch = ScratchDirectory()
        let (file, inspection) = try open("compact-copy")
        let view = try file.view(of: inspection.snapshot)
        let top = try view.memory.node(inspection.snapshot.topRef)
        let path = scratch.file("copy.realm")
        let version = top.count > 3 ? inspection.snapshot.version : nil
        try StreamingCopy(version: version, keepsHistory: true).write(view, toPath: path)
        let ours = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
        let theirs = [UInt8](try Data(contentsOf: URL(fileURLWithPath: file.path)))
        XCTAssertEqual(ours.count, theirs.count)
        let different = zip(ours, theirs).enumerated().filter { $0.element.0 != $0.element.1 }.map(\.offset)
        var padding: Set<Int> = []
        for e in try Census(view).extents {
            let node = try view.memory.node(e.position)
            padding.formUnion((e.position + 8 + node.payloadByteCount)..<(e.position + e.length))
        }
        XCTAssertTrue(different.allSatisfy(padding.contains), "\(different.prefix(20))")
    }

    func testCopiesWithAndWithoutVersionAndHistory() throws {
        let scratch = ScratchDirectory()
        for name in ["many-versions", "big", "all-types", "trees", "compact-copy"] {
            let (file, inspection) = try open(name)
            let view = try file.view(of: inspection.snapshot)
            let bare = scratch.file(name + "-3"), numbered = scratch.file(name + "-7"), whole = scratch.file(name + "-11")
            try StreamingCopy(version: nil, keepsHistory: true).write(view, toPath: bare)
            try checkCopy(bare, of: view, slots: [0, 1], count: 3)
            try StreamingCopy(version: 77, keepsHistory: false).write(view, toPath: numbered)
            try checkCopy(numbered, of: view, slots: [0, 1], count: 7)
            try StreamingCopy(version: 1000, keepsHistory: true).write(view, toPath: whole)
            let hasHistory = inspection.historyType == 2
            try checkCopy(whole, of: view, slots: hasHistory ? [0, 1, 8] : [0, 1], count: hasHistory ? 11 : 7)
            XCTAssertEqual(try DatabaseFile.open(bare, writable: false).inspect().snapshot.version, 1)
            XCTAssertEqual(try DatabaseFile.open(whole, writable: false).inspect().snapshot.version, 1000)
        }
    }

    func testACopyIsConvertedAndCommittedTo() throws {
        let scratch = ScratchDirectory()
        let (source, sourceInspection) = try open("big")
        for version in [nil, 41] as [UInt64?] {
            let path = scratch.file("c\(version ?? 0).realm")
            let view = try source.view(of: sourceInspection.snapshot)
            try StreamingCopy(version: version, keepsHistory: true).write(view, toPath: path)
            var file = try DatabaseFile.open(path, writable: true)
            try file.convertFromStreamingForm(try file.inspect(), durability: .full)
            XCTAssertTrue(try file.alignSize(try file.inspect()))
            file.close()
            file = try DatabaseFile.open(path, writable: true)
            let h = try CommitHarness(file: file, durability: .full)
            XCTAssertEqual(h.newest.version, version ?? 1)
            for _ in 0..<5 {
                try h.begin()
                try h.commit(top: h.newest.topRef)
                try h.check()
            }
        }
    }

    func testAFileWithoutContentIsCopied() throws {
        let scratch = ScratchDirectory()
        let file = try DatabaseFile.inMemory()
        let path = scratch.file("empty.realm")
        try StreamingCopy(version: nil, keepsHistory: false).write(try file.view(of: try file.inspect().snapshot), toPath: path)
        let copy = try DatabaseFile.open(path, writable: false).inspect()
        XCTAssertTrue(copy.isStreaming)
        XCTAssertEqual(copy.snapshot.topRef, 0)
        XCTAssertEqual(copy.physicalSize, 40)
        XCTAssertEqual(copy.format, 0)
    }

    func testAnExistingFileIsReplacedOnlyOnDemand() throws {
        let scratch = ScratchDirectory()
        let (file, inspection) = try open("trees")
        let view = try file.view(of: inspection.snapshot)
        let path = scratch.file("there")
        try Data([1, 2, 3]).write(to: URL(fileURLWithPath: path))
        let copy = StreamingCopy(version: 5, keepsHistory: true)
        XCTAssertThrowsError(try copy.write(view, toPath: path)) { XCTAssertEqual(($0 as? SystemError)?.code, EEXIST) }
        XCTAssertEqual(try Data(contentsOf: URL(fileURLWithPath: path)), Data([1, 2, 3]))
        try copy.write(view, toPath: path, replacing: true)
        XCTAssertEqual(try DatabaseFile.open(path, writable: false).inspect().snapshot.version, 5)
        XCTAssertEqual(try SystemCalls.names(inDirectory: scratch.path), ["there"])
    }

    func testAFailedCallLeavesNothingBehind() throws {
        let scratch = ScratchDirectory()
        let (file, inspection) = try open("trees")
        let view = try file.view(of: inspection.snapshot)
        let path = scratch.file("x.realm")
        for n in 0..<100 {
            var calls = 0
            SystemCallInterception.hook = {
                guard $0.path.hasPrefix(scratch.path), $0.name != "unlink" else { return nil }
                calls += 1
                return calls == n + 1 ? EIO : nil
            }
            defer { SystemCallInterception.hook = nil }
            do {
                try StreamingCopy(version: 5, keepsHistory: true).write(view, toPath: path)
                XCTAssertGreaterThan(n, 4)
                break
            } catch is SystemError {
                SystemCallInterception.hook = nil
                let names = try SystemCalls.names(inDirectory: scratch.path)
                // Only when the very last step failed, the sync of the directory, the copy is there, and whole.
                if names == ["x.realm"] {
                    XCTAssertEqual(try DatabaseFile.open(path, writable: false).inspect().snapshot.version, 5)
                    try SystemCalls.unlink(path)
                } else {
                    XCTAssertEqual(names, [], "call \(n)")
                }
            }
        }
        SystemCallInterception.hook = nil
        XCTAssertEqual(try DatabaseFile.open(path, writable: false).inspect().snapshot.version, 5)
    }

    func testTheCopyIsSyncedBeforeItIsNamedAndTheDirectoryAfterwards() throws {
        let scratch = ScratchDirectory()
        let (file, inspection) = try open("trees")
        var names: [String] = []
        SystemCallInterception.hook = {
            if $0.path.hasPrefix(scratch.path), $0.name != "lstat" { names.append($0.name) }
            return nil
        }
        try StreamingCopy(version: 5, keepsHistory: true).write(try file.view(of: inspection.snapshot), toPath: scratch.file("y"))
        SystemCallInterception.hook = nil
        XCTAssertEqual(names, ["open", "pwrite64", "fdatasync", "rename", "open", "fsync"])
    }

    func testDamagedTreesAreTypedErrors() throws {
        let scratch = ScratchDirectory()
        let good = [UInt8](try Data(contentsOf: URL(fileURLWithPath: Fixtures.core14 + "/trees.realm")))
        var random = SplitMix(seed: 12)
        for round in 0..<80 {
            var bytes = good
            for _ in 0..<20 {
                let at = Int.random(in: 24..<bytes.count, using: &random)
                bytes[at] = UInt8.random(in: 0...255, using: &random)
            }
            let backend = try PlainFile.inMemory()
            try bytes.withUnsafeBytes { try backend.write($0, at: 0) }
            do {
                let file = try DatabaseFile(backend: backend)
                let view = try file.view(of: try file.inspect().snapshot)
                let size = try StreamingCopy(version: 3, keepsHistory: true).write(view, to: try PlainFile.inMemory())
                XCTAssertLessThanOrEqual(size, bytes.count + 256, "round \(round)")
            } catch is FormatError {} catch is OpenError {}
        }
        _ = scratch
    }

    func testCyclesAndSharedNodesAreFound() throws {
        let h = try CommitHarness(file: try DatabaseFile.inMemory(), durability: .memoryOnly)
        h.roots[0] = ModelNode(bytes: [1])
        h.roots[1] = ModelNode(elements: [.child(ModelNode(elements: [.child(ModelNode(bytes: [2])), .null]))])
        try h.commitModel([0, 1])
        let view = try h.file.view(of: h.newest)
        let root = try view.memory.node(try view.memory.node(h.newest.topRef).requiredRef(1))
        // The root's only element is made to point to the root itself.
        let width = root.width
        try withUnsafeBytes(of: Int64(root.ref).littleEndian) {
            try h.file.backend.write(UnsafeRawBufferPointer(rebasing: $0[..<(width / 8)]), at: root.ref + 8)
        }
        XCTAssertThrowsError(try StreamingCopy(version: nil, keepsHistory: false).write(view, to: try PlainFile.inMemory())) {
            XCTAssertTrue($0 is FormatError, "\($0)")
        }
    }

    func testCompactionWritesBesideAndTakesThePlace() throws {
        let scratch = ScratchDirectory()
        let path = scratch.file("x.realm")
        try FileManager.default.copyItem(atPath: Fixtures.core14 + "/big.realm", toPath: path)
        try Data([9]).write(to: URL(fileURLWithPath: path + ".tmp_compaction_space"))  // of a killed predecessor
        let file = try DatabaseFile.open(path, writable: true)
        let before = try file.inspect()
        let copy = StreamingCopy(version: before.snapshot.version + 1, keepsHistory: true, keepsSyncFileIdent: true)
        let discarded = try copy.makeReplacement(try file.view(of: before.snapshot), ofPath: path)
        discarded.discard()
        XCTAssertEqual(try SystemCalls.names(inDirectory: scratch.path), ["x.realm"])
        let replacement = try copy.makeReplacement(try file.view(of: before.snapshot), ofPath: path)
        XCTAssertEqual(try DatabaseFile.open(path, writable: false).inspect().snapshot, before.snapshot)
        try replacement.install()
        file.close()
        let new = try DatabaseFile.open(path, writable: true)
        let after = try new.inspect()
        XCTAssertEqual(after.snapshot.version, before.snapshot.version + 1)
        XCTAssertLessThan(after.physicalSize, before.physicalSize)
        XCTAssertEqual(after.historyType, before.historyType)
        XCTAssertEqual(try SystemCalls.names(inDirectory: scratch.path), ["x.realm"])
    }
}
