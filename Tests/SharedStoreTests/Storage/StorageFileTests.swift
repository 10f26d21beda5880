import Glibc
@testable import SharedStore
import SystemCalls
import TestSupport
import XCTest

/// The backend, the span and the checks on header and top array.
final class StorageFileTests: XCTestCase {
    private func copyOfFixture(_ name: String, _ scratch: ScratchDirectory) throws -> String {
        let path = scratch.file(name)
        try FileManager.default.copyItem(atPath: Fixtures.core14 + "/" + name, toPath: path)
        return path
    }

    private func writeFile(_ bytes: [UInt8], _ scratch: ScratchDirectory) throws -> String {
        let path = scratch.file("x\(bytes.count)-\(bytes.reduce(0) { ($0 &* 31 &+ Int($1)) & 0xFFFF }).realm")
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        return path
    }

    func testNewFileIsAPageWithAHeaderThatPointsNowhere() throws {
        let scratch = ScratchDirectory()
        let file = try DatabaseFile.open(scratch.file("new.realm"), writable: true, create: true)
        try file.initialize(durability: .full)
        let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: file.path)))
        XCTAssertEqual(bytes.count, SystemCalls.pageSize)
        XCTAssertEqual(Array(bytes[..<24]), [UInt8](repeating: 0, count: 16) + Array("T-DB".utf8) + [0, 0, 0, 0])
        let inspection = try file.inspect()
        XCTAssertEqual(inspection.snapshot, Snapshot(version: 1, topRef: 0, logicalSize: 24))
        XCTAssertEqual(inspection.format, 0)
    }

    func testGivenFilesAreInspected() throws {
        let scratch = ScratchDirectory()
        let file = try DatabaseFile.open(try copyOfFixture("many-versions.realm", scratch), writable: true)
        let inspection = try file.inspect()
        XCTAssertEqual(inspection.snapshot.topRef, 24448)
        XCTAssertEqual(inspection.snapshot.logicalSize, 32768)
        XCTAssertEqual(inspection.format, 24)
        XCTAssertEqual(inspection.historyType, 2)
        XCTAssertFalse(inspection.isStreaming)
        XCTAssertFalse(try file.alignSize(inspection))
        let view = try file.view(of: inspection.snapshot)
        XCTAssertEqual(try view.memory.node(24448).tagged(TopSlot.logicalSize), 32768)
        XCTAssertThrowsError(try view.memory.node(32768))
    }

    func testStreamingFormIsConvertedAndAligned() throws {
        let scratch = ScratchDirectory()
        let path = try copyOfFixture("compact-copy.realm", scratch)
        let file = try DatabaseFile.open(path, writable: true)
        let streaming = try file.inspect()
        XCTAssertTrue(streaming.isStreaming)
        XCTAssertFalse(try file.alignSize(streaming))
        try file.convertFromStreamingForm(streaming, durability: .full)
        let converted = try file.inspect()
        XCTAssertFalse(converted.isStreaming)
        XCTAssertEqual(converted.snapshot, streaming.snapshot)
        XCTAssertEqual(converted.header.topRefs.0, UInt64.max)
        XCTAssertEqual(converted.header.flags, 1)
        XCTAssertEqual(converted.format, 24)
        XCTAssertTrue(try file.alignSize(converted))
        XCTAssertEqual(try file.backend.size(), converted.alignedSize)
        XCTAssertFalse(try file.alignSize(try file.inspect()))
    }

    func testEveryTruncationIsATypedError() throws {
        let scratch = ScratchDirectory()
        for name in ["many-versions.realm", "compact-copy.realm"] {
            let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: Fixtures.core14 + "/" + name)))
            for size in stride(from: 0, to: bytes.count, by: 1000) {
                let path = try writeFile(Array(bytes[..<size]), scratch)
                XCTAssertThrowsError(try DatabaseFile.open(path, writable: false).inspect(), "\(name) cut to \(size)") {
                    XCTAssertTrue($0 is OpenError, "\($0)")
                }
            }
        }
    }

    func testImpossibleLogicalSizesAreRefused() throws {
        let scratch = ScratchDirectory()
        let good = [UInt8](try Data(contentsOf: URL(fileURLWithPath: Fixtures.core14 + "/many-versions.realm")))
        // The top array at 24448 has 32 bits an element; element 2 is the tagged logical size, element 6 the version.
        for size in [Int32(24456), 32764, 32776] {
            var bytes = good
            withUnsafeBytes(of: size << 1 | 1) { for i in 0..<4 { bytes[24448 + 8 + 8 + i] = $0[i] } }
            let file = try DatabaseFile.open(try writeFile(bytes, scratch), writable: false)
            XCTAssertThrowsError(try file.inspect(), "\(size)") { XCTAssertTrue($0 is OpenError, "\($0)") }
        }
    }

    func testHeaderFlipKeepsTheLiveSlotAndForeignFlagBits() throws {
        let scratch = ScratchDirectory()
        for durability in [Durability.full, .unsafe] {
            let path = scratch.file("flip\(durability).realm")
            var bytes = [UInt8](repeating: 0, count: 4096)
            bytes[0] = 64
            bytes.replaceSubrange(16..<24, with: Array("T-DB".utf8) + [24, 7, 5, 0xA0])
            try Data(bytes).write(to: URL(fileURLWithPath: path))
            let file = try DatabaseFile.open(path, writable: true)
            file.backend.setStoresThroughMap(durability == .unsafe)
            try file.pointHeader(to: 128, durability: durability)
            var header = try file.currentHeader()
            XCTAssertEqual(header.topRefs.0, 64)
            XCTAssertEqual(header.liveTopRef, 128)
            XCTAssertEqual(header.formats.0, 24)
            XCTAssertEqual(header.formats.1, 24)
            XCTAssertEqual(header.reserved, 5)
            XCTAssertEqual(header.flags, 0xA1)
            try file.pointHeader(to: 256, durability: .memoryOnly)
            XCTAssertEqual(try file.currentHeader(), header)
            try file.pointHeader(to: 256, durability: durability)
            header = try file.readHeader()
            XCTAssertEqual(header.liveTopRef, 256)
            XCTAssertEqual(header.topRefs.1, 128)
            XCTAssertEqual(header.flags, 0xA0)
        }
    }

    func testWhatTheFileGainsAppearsInTheSpan() throws {
        let scratch = ScratchDirectory()
        let file = try DatabaseFile.open(scratch.file("grow.realm"), writable: true, create: true)
        try file.initialize(durability: .unsafe)
        let view = try file.view(of: Snapshot(version: 1, topRef: 0, logicalSize: 4096))
        try file.backend.preallocate(to: 1 << 20)
        try [UInt8](Array("AAAA".utf8) + [0, 0, 0, 0]).withUnsafeBytes { try file.backend.write($0, at: 900_000) }
        XCTAssertThrowsError(try view.memory.node(900_000))
        try view.rebind(to: Snapshot(version: 2, topRef: 0, logicalSize: 1 << 20))
        XCTAssertEqual(try view.memory.node(900_000).count, 0)
    }

    func testAViewOfAVersionBeyondTheSpanGetsALargerSpanAndOldViewsStay() throws {
        let file = try DatabaseFile.inMemory()
        let old = try file.view(of: Snapshot(version: 1, topRef: 0, logicalSize: 4096))
        let far = (8 << 30) + (1 << 20)
        try SystemCalls.truncate((file.backend as! PlainFile).descriptor, to: far)  // sparse: no memory is used
        let new = try file.view(of: Snapshot(version: 2, topRef: 0, logicalSize: far))
        XCTAssertNotEqual(old.base, new.base)
        XCTAssertEqual(FileHeader(old.base), FileHeader(new.base))
        try old.rebind(to: new.snapshot)
        XCTAssertEqual(old.base, new.base)
        XCTAssertEqual(try old.memory.bytes(at: far - 8, length: 8).load(as: UInt64.self), 0)
    }

    func testFiveThousandFilesFitInOneProcess() throws {
        let scratch = ScratchDirectory()
        let path = scratch.file("one.realm")
        try DatabaseFile.open(path, writable: true, create: true).initialize(durability: .unsafe)
        let mappingsBefore = try mappingCount()
        // One descriptor for all: the limit on descriptors is the caller's to raise, the mappings are ours to bound.
        let descriptor = try SystemCalls.open(path, O_RDONLY)
        defer { SystemCalls.close(descriptor) }
        var files: [DatabaseFile] = []
        // The thread sanitizer leaves a program a few of the 128 terabytes of addresses.
        let count = TestTime.sanitizer == .thread ? 500 : 5000
        for _ in 0..<count { files.append(try DatabaseFile(backend: SharedDescriptor(descriptor))) }
        let view = try files[count - 1].view(of: Snapshot(version: 1, topRef: 0, logicalSize: 4096))
        XCTAssertEqual(try view.memory.bytes(at: 24, length: 8).load(as: Int.self), 0)
        XCTAssertLessThan(try mappingCount() - mappingsBefore, count * 4)
    }

    private func mappingCount() throws -> Int {
        try String(contentsOfFile: "/proc/self/maps", encoding: .utf8).split(separator: "\n").count
    }

    private final class SharedDescriptor: FileBackend, @unchecked Sendable {
        let descriptor: Int32
        init(_ descriptor: Int32) {
            self.descriptor = descriptor
            super.init(path: "shared")
        }
        override func size() throws -> Int { try SystemCalls.status(descriptor).size }
        override func map(at address: UnsafeMutableRawPointer, length: Int) throws -> PageSource? {
            let flags = MAP_SHARED | MAP_FIXED | MAP_NORESERVE
            _ = try SystemCalls.map(length: length, protection: PROT_READ, flags: flags, descriptor, at: address)
            return nil
        }
    }

    func testLittleAddressSpaceGivesASmallerSpanThenATypedError() throws {
        let scratch = ScratchDirectory()
        let path = scratch.file("small.realm")
        try DatabaseFile.open(path, writable: true, create: true).initialize(durability: .unsafe)
        for limit in [20 << 30, 6 << 30, 300 << 20, 100 << 20] {
            SystemCallInterception.hook = { $0.name == "mmap" && $0.offset > limit ? ENOMEM : nil }
            defer { SystemCallInterception.hook = nil }
            let file = try DatabaseFile.open(path, writable: true)
            let span = try file.span(covering: 4096)
            XCTAssertLessThanOrEqual(span.length, limit)
            let work = try WorkingMemory(file: file, base: Snapshot(version: 1, topRef: 0, logicalSize: 4096))
            let block = try work.arena.allocate(1 << 20)
            XCTAssertEqual(work.arena.capacity(block), 1 << 20)
        }
        SystemCallInterception.hook = { $0.name == "mmap" && $0.offset > 1 << 20 ? ENOMEM : nil }
        defer { SystemCallInterception.hook = nil }
        XCTAssertThrowsError(try DatabaseFile.open(path, writable: true)) { XCTAssertTrue($0 is AddressSpaceError, "\($0)") }
    }

    func testArenaIsUsedAgainAndItsMemoryGivenBack() throws {
        let file = try DatabaseFile.inMemory()
        let base = Snapshot(version: 1, topRef: 0, logicalSize: 4096)
        let work = try WorkingMemory(file: file, base: base)
        for _ in 0..<3 {
            try work.begin(base)
            let first = try work.arena.allocate(64)
            XCTAssertEqual(first, work.memory.state.pointee.arenaStart)
            for _ in 0..<40 {
                let block = try work.arena.allocate(1 << 20)
                memset(work.arena.address(block) + 4, 0xAB, (1 << 20) - 4)
            }
            work.end()
        }
        try work.begin(base)
        let block = try work.arena.allocate(32 << 20)
        XCTAssertEqual((work.arena.address(block) + (30 << 20)).load(as: Int.self), 0, "memory of the last transaction was kept")
    }
}
