import Foundation
@testable import Replication
import SharedStore
import TestSupport
import XCTest

/// Replicas that are themselves mirrored or archived.
final class ReplicaChainTests: MirrorTestCase {
    override var isInMemory: Bool { true }

    private func export(_ path: String) throws -> [UInt8] {
        try JSONExporter.text(ImmutableFile(path: path, key: key).group)
    }

    func testAReplicaThatIsItselfMirroredTakesANewImageThoughItsMirrorHasItOpenForGood() throws {
        let third = scratch.file("c.realm"), other = scratch.file("other.realm")
        let store = try Store.open(source, options())
        try makeTable(store)
        let first = FollowerThread(source, replica, usualMirrorOptions())
        awaitVersion(2)
        let second = FollowerThread(replica, third, usualMirrorOptions())
        XCTAssertTrue(eventually { second.status()?.version == 2 }, "\(second.notes)")
        try store.close()
        let fresh = try Store.open(other, options())
        try makeTable(fresh)
        var random = SplitMix(seed: 85)
        for _ in 0..<5 { try change(fresh, &random) }
        try fresh.close()
        let expected = try export(other)
        XCTAssertEqual(rename(other, source), 0)
        XCTAssertTrue(eventually(30) { first.status()?.imageCount == 2 }, "\(first.notes) \(second.notes)")
        XCTAssertTrue(first.notes.contains { $0.contains("cannot be replaced while it is open") }, "\(first.notes)")
        XCTAssertTrue(eventually(30) { second.status()?.version == 7 }, "\(second.notes)")
        XCTAssertNil(first.stop())
        XCTAssertNil(second.stop())
        XCTAssertEqual(try export(replica), expected)
        XCTAssertEqual(try export(third), expected)
        XCTAssertFalse(FileManager.default.fileExists(atPath: replica + ".management/replace.wanted"))
    }

    func testWhatAKilledMirrorHasAskedForKeepsNobodyAway() throws {
        let store = try Store.open(source, options())
        try makeTable(store)
        ReplacementWish.make(source)
        XCTAssertTrue(ReplacementWish.isFresh(source))
        func join() throws {
            try SourceSession(
                source, label: "test", key: key, pinGrace: .zero, gatherLimit: .milliseconds(100), onMessage: { _ in }
            ).close()
        }
        XCTAssertThrowsError(try join()) { XCTAssertEqual($0 as? MirrorError, .replacementPending(source: source)) }
        let wish = source + ".management/replace.wanted"
        for seconds in [-3600.0, 3600] {
            try FileManager.default.setAttributes(
                [.modificationDate: Date(timeIntervalSinceNow: seconds)], ofItemAtPath: wish)
            XCTAssertFalse(ReplacementWish.isFresh(source))
            XCTAssertNoThrow(try join())
        }
        try store.close()
    }
}
