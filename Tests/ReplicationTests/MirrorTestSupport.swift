import Foundation
@testable import Replication
import SharedStore
import TestSupport
import XCTest

/// What mirrors between files of tests need to know: the key that these may have (`TestKeys.usual`).
func usualMirrorOptions() -> Mirror.Options {
    var options = Mirror.Options()
    options.sourceKey = TestKeys.usual
    options.destinationKey = TestKeys.usual
    return options
}

/// The same for `TestParticipant mirror`.
let usualKeyArguments = TestKeys.usual == nil ? [] : ["key=test"]

/// A source that changes at random, and the means to compare it with a replica.
class MirrorTestCase: XCTestCase {
    lazy var scratch = ScratchDirectory("Mirror", inMemory: isInMemory)
    /// Whether files lie in memory: for what syncs much and has nothing to do with disks.
    var isInMemory: Bool { false }
    var source: String { scratch.file("a.realm") }
    var replica: String { scratch.file("b.realm") }

    /// The key of source and replica.
    var key: EncryptionKey? { TestKeys.usual }

    /// Sessions of files that nobody else opens sync nothing, for speed.
    var durability: Durability { .unsafe }

    func options(_ change: (inout StoreOptions) -> Void = { _ in }) -> StoreOptions {
        var options = StoreOptions()
        options.durability = durability
        options.encryptionKey = key
        change(&options)
        return options
    }

    func makeTable(_ store: Store) throws {
        try store.write { transaction in
            let table = try transaction.editor.createTable("class_Item")
            try table.addColumn("number", .int)
            try table.addColumn("text", .string)
            try table.addIndex(table.column(named: "number").key, fullText: false)
        }
    }

    /// One commit: adds, changes and deletes some objects.
    func change(_ store: Store, _ random: inout SplitMix, adds: Int = 6, textLength: Int = 200, deletes: Int = 5) throws {
        try store.write { transaction in
            let table = try transaction.editor.editor(named: "class_Item")
            for _ in 0..<Int(random.next() % UInt64(adds + 1)) {
                let key = try table.createObject()
                try table.set("number", of: key, to: .int(Int64(random.next() % 1000)))
                try table.set(
                    "text", of: key, to: .string(String(repeating: "x", count: Int(random.next() % UInt64(textLength)))))
            }
            for _ in 0..<3 where table.table.objectCount > 0 {
                guard let row = try table.table.object(at: Int(random.next() % UInt64(table.table.objectCount))) else { continue }
                try table.set("number", of: row.key, to: .int(Int64(random.next() % 1000)))
            }
            for _ in 0..<Int(random.next() % UInt64(deletes + 1)) where table.table.objectCount > 3 {
                guard let row = try table.table.object(at: Int(random.next() % UInt64(table.table.objectCount))) else { continue }
                try table.deleteObject(row.key)
            }
        }
    }

    /// Fails unless both sessions' newest versions have the same numbers and the same used bytes.
    func assertEqual(_ a: Store, _ b: Store, _ text: String = "", file: StaticString = #filePath, line: UInt = #line) throws {
        let x = try a.beginRead(), y = try b.beginRead()
        defer {
            x.end()
            y.end()
        }
        XCTAssertEqual(x.snapshot, y.snapshot, text, file: file, line: line)
        if x.snapshot != y.snapshot { return }
        let extents = try FreeExtents(memory: x.memory, snapshot: x.snapshot)
        for range in extents.usedRanges() {
            let p = try x.memory.bytes(at: range.lowerBound, length: range.count),
                q = try y.memory.bytes(at: range.lowerBound, length: range.count)
            if memcmp(p, q, range.count) != 0 { return XCTFail("\(text): bytes \(range) differ", file: file, line: line) }
        }
    }

    func assertSound(_ path: String, _ text: String = "", file: StaticString = #filePath, line: UInt = #line) throws {
        let report = try Verifier.verify(ImmutableFile(path: path, key: key))
        XCTAssertTrue(
            report.isSound && report.findings.isEmpty, "\(text) \(report.findings.prefix(3).map(\.description))", file: file,
            line: line)
    }

    /// Waits, at most some seconds, until `condition` holds; false where it does not.
    func eventually(_ seconds: Double = 12, _ condition: () throws -> Bool) rethrows -> Bool {
        let limit = Date(timeIntervalSinceNow: TestTime.limit(seconds))
        while limit.timeIntervalSinceNow > 0 {
            if try condition() { return true }
            usleep(2000)
        }
        return try condition()
    }

    func state() throws -> MirrorState { try XCTUnwrap(try MirrorState.read(replica: replica)) }

    /// The version that the replica's state tells, once it is `version` or later.
    func awaitVersion(_ version: UInt64, file: StaticString = #filePath, line: UInt = #line) {
        let isThere = eventually { ((try? MirrorState.read(replica: replica))?.snapshot.version ?? 0) >= version }
        XCTAssertTrue(isThere, "the replica does not come to version \(version)", file: file, line: line)
    }
}

extension MirrorStep {
    /// V2 in the source's session.
    func held() throws -> HeldSnapshot {
        guard case .held(let held) = content else { throw XCTSkip("the step came over a wire") }
        return held
    }
}
