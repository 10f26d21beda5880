import Foundation
@testable import Replication
import SharedStore
import TestSupport
import XCTest

/// A readable file that is kept at the newest version of an archive.
final class ArchiveFollowTests: ArchiveTestCase {
    private static let interval = Duration.milliseconds(1500)

    /// Follows the archive; `idle` is called whenever there is nothing new.
    @discardableResult
    private func followArchive(
        _ place: any ArchivePlace, key: EncryptionKey? = nil, force: Bool = false, rounds: Int,
        _ idle: @escaping (Int) throws -> Void
    ) throws -> ArchiveFollower.Status {
        var thrown: (any Error)?
        var round = 0
        var options = Mirror.Options()
        options.force = force
        let follower = ArchiveFollower(
            place: place, destination: replica, key: key ?? self.key, interval: Self.interval, options: options
        ) {
            _, milliseconds in
            guard milliseconds == 1500 else {
                if milliseconds > 0 { usleep(1000) }
                return nil
            }
            if round == rounds { return .stop }
            do { try idle(round) } catch {
                thrown = error
                return .stop
            }
            round += 1
            return nil
        }
        try follower.run()
        if let thrown { throw thrown }
        return follower.status()
    }

    private func content(_ reading: ReadTransaction) throws -> [UInt8] {
        try withExtendedLifetime(reading) { try JSONExporter.text(reading.group) }
    }

    func testReadersOfTheFileSeeEachVersionWholeAndItComesToTheNewest() throws {
        let store = try makeSource()
        var random = SplitMix(seed: 91)
        let place = try place()
        let archiving = archiveOptions { $0.pinGrace = .seconds(60) }
        _ = try archiveOnce(place, archiving)
        var reader: Store?
        var held: ReadTransaction?
        let status = try followArchive(place, rounds: 40) { round in
            let open =
                try reader
                ?? Store.open(
                    self.replica,
                    self.options {
                        $0.access = .readOnly; $0.durability = .full
                    })
            reader = open
            // One reader looks at the newest, another one holds a version for a while.
            let now = try open.beginRead()
            XCTAssertEqual(try self.content(now), self.exports[now.version], "round \(round)")
            XCTAssertEqual(now.version, self.exports.keys.max())
            now.end()
            if let old = held {
                XCTAssertEqual(try self.content(old), self.exports[old.version], "what is held does not change")
                if round % 4 == 0 {
                    old.end()
                    held = nil
                }
            } else {
                held = try open.beginRead()
            }
            for _ in 0..<round % 3 + 1 {
                try self.commit(store, &random)
                _ = try self.archiveOnce(place, archiving)
            }
            held?.end()
            held = nil
        }
        XCTAssertEqual(status.version, exports.keys.max())
        XCTAssertEqual(status.imageCount, 1)
        XCTAssertGreaterThan(status.stepCount, 40)
        try reader?.close()
        try store.close()
        XCTAssertEqual(try export(replica), exports[try XCTUnwrap(exports.keys.max())])
        try assertSound(replica)
    }

    func testItGoesOnAfterAStopAlsoWhereTheLastNoteWasLost() throws {
        let store = try makeSource()
        var random = SplitMix(seed: 92)
        let place = try place()
        let archiving = archiveOptions { $0.pinGrace = .seconds(60) }
        _ = try archiveOnce(place, archiving)
        try followArchive(place, rounds: 0) { _ in }
        for round in 0..<6 {
            let statePath = replica + ".management/mirror.state"
            let before = try Data(contentsOf: URL(fileURLWithPath: statePath))
            try commit(store, &random)
            _ = try archiveOnce(place, archiving)
            XCTAssertEqual(try followArchive(place, rounds: 0) { _ in }.stepCount, round % 2 == 1 ? 2 : 1, "round \(round)")
            if round % 2 == 0 { try before.write(to: URL(fileURLWithPath: statePath)) }
        }
        XCTAssertEqual(try followArchive(place, rounds: 0) { _ in }.imageCount, 0)
        try store.close()
        XCTAssertEqual(try export(replica), exports[try XCTUnwrap(exports.keys.max())])
    }

    func testWhereTheArchiveBeginsAnewTheFileIsReplacedWhenNobodyHasItOpen() throws {
        var store = try makeSource()
        var random = SplitMix(seed: 93)
        let place = try place()
        _ = try archiveOnce(place)
        var reader: Store?
        let status = try followArchive(place, rounds: 60) { round in
            usleep(10_000)
            if round == 0 {
                reader = try Store.open(
                    self.replica,
                    self.options {
                        $0.access = .readOnly; $0.durability = .full
                    })
                try store.close()
                try StoreFiles.delete(self.source)
                store = try self.makeSource()
                for _ in 0..<9 { try self.commit(store, &random) }
                _ = try self.archiveOnce(place)
                let later = try XCTUnwrap(reader)
                // The follower looks again and again; the reader leaves after a while.
                DispatchQueue.global().asyncAfter(deadline: .now() + 0.3) { try? later.close() }
            }
        }
        XCTAssertEqual(status.imageCount, 2)
        XCTAssertEqual(status.version, exports.keys.max())
        try store.close()
        XCTAssertEqual(try export(replica), exports[try XCTUnwrap(exports.keys.max())])
    }

    func testAnEncryptedArchiveIsFollowedByAnEncryptedFile() throws {
        let key = try EncryptionKey(0..<64)
        let store = try makeSource { $0.encryptionKey = key }
        var random = SplitMix(seed: 94)
        let place = try place()
        let archiving = archiveOptions {
            $0.key = key; $0.pinGrace = .seconds(60)
        }
        _ = try archiveOnce(place, archiving)
        let status = try followArchive(place, key: key, rounds: 5) { _ in
            try self.commit(store, &random)
            _ = try self.archiveOnce(place, archiving)
        }
        XCTAssertEqual(status.version, exports.keys.max())
        XCTAssertEqual(status.imageCount, 1)
        try store.close()
        XCTAssertEqual(try export(replica, key: key), exports[try XCTUnwrap(exports.keys.max())])
        XCTAssertThrowsError(try ImmutableFile(path: replica))
    }

    func testAFileThatIsNoReplicaOfTheArchiveIsNotTouched() throws {
        let store = try makeSource()
        let place = try place()
        _ = try archiveOnce(place)
        try Data("mine".utf8).write(to: URL(fileURLWithPath: replica))
        XCTAssertThrowsError(try followArchive(place, rounds: 0) { _ in })
        XCTAssertEqual(try Data(contentsOf: URL(fileURLWithPath: replica)), Data("mine".utf8))
        XCTAssertEqual(try followArchive(place, force: true, rounds: 0) { _ in }.imageCount, 1)
        try store.close()
    }
}
