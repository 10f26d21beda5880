import Foundation
import Replication
import SharedStore
import SystemCalls
import TestSupport
import XCTest

final class MirrorOnceTests: XCTestCase {
    private func copyOfGiven(_ name: String, _ scratch: ScratchDirectory) throws -> String {
        let path = scratch.file(name)
        try TestKeys.copy(Fixtures.core14 + "/" + name, to: path)
        return path
    }

    /// Used bytes at the same places, equal; the copy passes the verifier and exports the same.
    private func assertFaithful(_ source: String, _ copy: String, _ message: String) throws {
        let a = try ImmutableFile(path: source, key: TestKeys.usual), b = try ImmutableFile(path: copy, key: TestKeys.usual)
        XCTAssertEqual(try JSONExporter.text(a.group), try JSONExporter.text(b.group), message)
        let report = try Verifier.verify(b)
        XCTAssertTrue(report.isSound, "\(message): \(report.findings.prefix(3).map(\.description))")
        XCTAssertEqual(a.layout.topRef, b.layout.topRef, message)
        // An encrypted file has whole pages: where its content ends is told by its top.
        let snapshot = Snapshot(
            version: 1, topRef: a.layout.topRef,
            logicalSize: a.layout.isStreaming && TestKeys.usual == nil
                ? a.layout.fileLimit : try a.memory.node(a.layout.topRef).tagged(TopSlot.logicalSize))
        for range in try FreeExtents(memory: a.memory, snapshot: snapshot).usedRanges() {
            let x = try a.memory.bytes(at: range.lowerBound, length: range.count),
                y = try b.memory.bytes(at: range.lowerBound, length: range.count)
            XCTAssertEqual(memcmp(x, y, range.count), 0, "\(message): bytes \(range)")
        }
    }

    func testEveryGivenFileIsMirroredFaithfully() throws {
        for name in try FileManager.default.contentsOfDirectory(atPath: Fixtures.core14).filter({
            $0.hasSuffix(".realm") && !$0.contains("encrypted")
        }).sorted() {
            let scratch = ScratchDirectory(name)
            let source = try copyOfGiven(name, scratch), copy = scratch.file("copy.realm")
            _ = try Mirror.once(source: source, destination: copy, options: usualMirrorOptions())
            try assertFaithful(source, copy, name)
            // A second time onto the mirror of the same source is allowed.
            _ = try Mirror.once(source: source, destination: copy, options: usualMirrorOptions())
            try assertFaithful(source, copy, name)
        }
    }

    func testAFileThatIsNoMirrorOfThisSourceIsNeverOverwritten() throws {
        let scratch = ScratchDirectory()
        let source = try copyOfGiven("relationships.realm", scratch), other = try copyOfGiven("fulltext.realm", scratch)
        let before = FileManager.default.contents(atPath: other)
        XCTAssertThrowsError(try Mirror.once(source: source, destination: other, options: usualMirrorOptions()))
        XCTAssertEqual(FileManager.default.contents(atPath: other), before)
        XCTAssertThrowsError(try Mirror.once(source: source, destination: source, options: usualMirrorOptions()))
        var options = usualMirrorOptions()
        options.force = true
        _ = try Mirror.once(source: source, destination: other, options: options)
        try assertFaithful(source, other, "forced")
    }

    func testADestinationThatIsOpenIsLeftAlone() throws {
        let scratch = ScratchDirectory()
        let source = try copyOfGiven("relationships.realm", scratch), copy = scratch.file("copy.realm")
        _ = try Mirror.once(source: source, destination: copy, options: usualMirrorOptions())
        var writing = StoreOptions()
        writing.encryptionKey = TestKeys.usual
        var reading = writing
        reading.access = .readOnly
        let reader = try Store.open(copy, reading)
        let writer = try Store.open(source, writing)
        try writer.write { try $0.editor.setSchemaVersion(77) }
        let transaction = try reader.beginRead()
        XCTAssertThrowsError(try Mirror.once(source: source, destination: copy, options: usualMirrorOptions()))
        XCTAssertEqual(try transaction.group.schemaVersion(), 1)
        transaction.end()
        try reader.close()
        try writer.close()
        _ = try Mirror.once(source: source, destination: copy, options: usualMirrorOptions())
        XCTAssertEqual(try ImmutableFile(path: copy, key: TestKeys.usual).group.schemaVersion(), 77)
    }

    func testImagesTakenWhileOthersWriteAreConsistent() throws {
        let scratch = ScratchDirectory()
        let source = scratch.file("live.realm")
        let writers = try (0..<3).map {
            try ChildProcess(
                product: "TestParticipant", ["storm", source, "\($0)", "\($0 + 10)"] + usualKeyArguments)
        }
        defer { for writer in writers { writer.signal(SIGKILL) } }
        for _ in 0..<200 where (try? SystemCalls.status(path: source).size) ?? 0 < 8192 { usleep(20_000) }
        for i in 0..<12 {
            let copy = scratch.file("copy\(i).realm")
            _ = try Mirror.once(source: source, destination: copy, options: usualMirrorOptions())
            let file = try ImmutableFile(path: copy, key: TestKeys.usual)
            let report = try Verifier.verify(file)
            XCTAssertTrue(report.isSound, "\(report.findings.prefix(3).map(\.description))")
            guard let accounts = try file.group.table(ofClass: "Account"), let entries = try file.group.table(ofClass: "Entry")
            else { continue }
            var sum = 0
            try accounts.forEachObject { sum += Int(try $0.int(accounts.column(named: "value")!)) }
            XCTAssertEqual(sum, entries.objectCount)
        }
    }
}
