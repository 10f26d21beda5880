import Foundation
@testable import Replication
import SharedStore
import TestSupport
import XCTest

/// Copies of an archive, made by whoever lists and reads its parts one after the other while it grows.
final class ArchiveCopyTests: ArchiveTestCase {
    /// An archive's life: what it held at each moment.
    private struct Life {
        let changes: [(name: String, bytes: [UInt8]?)]
        /// By name, the moments at which it changed.
        private var history: [String: [(moment: Int, bytes: [UInt8]?)]] = [:]

        init(_ changes: [(name: String, bytes: [UInt8]?)]) {
            self.changes = changes
            for (index, change) in changes.enumerated() { history[change.name, default: []].append((index + 1, change.bytes)) }
        }

        func bytes(_ name: String, at moment: Int) -> [UInt8]? { history[name]?.last { $0.moment <= moment }?.bytes }

        /// What a copier has that lists and reads a part at the moments given.
        func copy(_ moments: (String) -> (listed: Int, read: Int)) -> MemoryPlace {
            let copy = MemoryPlace()
            for name in history.keys {
                let (listed, read) = moments(name)
                if bytes(name, at: listed) != nil, let bytes = bytes(name, at: read) { copy.objects[name] = bytes }
            }
            // Its holder is we.
            copy.objects[ArchiveNames.lease] = nil
            return copy
        }

        /// The number of the newest version at a moment; nil before the index tells of one.
        func newest(at moment: Int) -> UInt64? {
            if bytes(ArchiveNames.index(0), at: moment) == nil { return nil }
            var newest: UInt64?
            for change in changes[..<moment] where change.bytes != nil {
                switch ArchiveNames.meaning(of: change.name) {
                case .image(let sequence), .step(0, let sequence): newest = max(newest ?? 0, sequence)
                default: break
                }
            }
            return newest
        }
    }

    private static let parts = ["", "images", "index", "steps"]

    private static func part(_ name: String) -> Int {
        parts.firstIndex { !$0.isEmpty && name.hasPrefix($0 + "/") } ?? 0
    }

    private func permutations(_ count: Int) -> [[Int]] {
        if count == 0 { return [[]] }
        return permutations(count - 1).flatMap { shorter in
            (0..<count).map { place in
                var longer = shorter
                longer.insert(count - 1, at: place)
                return longer
            }
        }
    }

    private func makeLife(_ options: Archive.Options, commits: Int, seed: UInt64) throws -> Life {
        let store = try makeSource()
        var random = SplitMix(seed: seed)
        let place = MemoryPlace()
        try follow(place, options, commits: commits) { _ in try self.commit(store, &random) }
        try store.close()
        return Life(place.changes)
    }

    /// Restores the newest version that a copy has.
    private func restoreNewest(_ reader: ArchiveReader, _ text: String) throws -> ArchiveEntry {
        let path = scratch.file("copy.realm")
        defer { try? FileManager.default.removeItem(atPath: path) }
        let entry = try Archive.withNewest(of: reader) { entry in
            try? FileManager.default.removeItem(atPath: path)
            _ = try Archive.build(reader, entry, at: path, self.restoreOptions(), durably: false)
            return entry
        }
        XCTAssertEqual(try export(path), exports[entry.snapshot.version], text)
        return entry
    }

    func testACopyMadeInAnyOrderAtAnyMomentHasAllThatWasThereWhenItBegan() throws {
        let life = try makeLife(archiveOptions { $0.snapshotInterval = .zero }, commits: 44, seed: 181)
        let end = life.changes.count
        var count = 0, odd = 0
        for start in stride(from: 1, through: end, by: 6) {
            guard let newest = life.newest(at: start) else { continue }
            for order in permutations(Self.parts.count) {
                count += 1
                let gap = [1, 4, 37][count % 3], listsFirst = count % 2 == 0
                let copy = life.copy { name in
                    let read = min(end, start + (order.firstIndex(of: Self.part(name)) ?? 0) * gap)
                    return (listsFirst ? start : read, read)
                }
                let text = "begun at \(start) of \(end), \(order.map { Self.parts[$0] }), gap \(gap), \(listsFirst)"
                let reader = try ArchiveReader(copy, key: key)
                let entry = try restoreNewest(reader, text)
                XCTAssertGreaterThanOrEqual(entry.sequence, newest, text)
                let history = try reader.history()
                XCTAssertTrue(Set(history.map(\.sequence)).isSuperset(of: 0...newest), text)
                if try reader.looksOutOfStep() { odd += 1 }
                guard count % 16 == 0 else { continue }
                for entry in history { try assertRestores(try ArchiveReader(copy, key: key), entry, verifies: false) }
            }
        }
        print("\(count) copies, of which \(odd) had other images than were named")
        XCTAssertGreaterThan(count, 200)
        XCTAssertGreaterThan(odd, 20)
    }

    func testWhatIsGivenUpStaysForThoseWhoAreCopyingIt() throws {
        let options = archiveOptions {
            $0.snapshotInterval = .zero
            $0.keep = 6
            $0.removalDelay = .seconds(3600)
        }
        let life = try makeLife(options, commits: 60, seed: 182)
        let end = life.changes.count
        XCTAssertFalse(
            life.changes.contains { $0.bytes == nil && $0.name != ArchiveNames.lease }, "an hour has not gone by")
        var count = 0
        for start in stride(from: 1, through: end, by: 23) {
            guard let newest = life.newest(at: start) else { continue }
            for order in permutations(Self.parts.count) {
                count += 1
                let gap = (end - start) / 3
                let copy = life.copy { name in
                    let moment = start + (order.firstIndex(of: Self.part(name)) ?? 0) * gap
                    return (moment, moment)
                }
                let text = "begun at \(start) of \(end), \(order.map { Self.parts[$0] })"
                let entry = try restoreNewest(try ArchiveReader(copy, key: key), text)
                XCTAssertGreaterThanOrEqual(entry.sequence, newest, text)
            }
        }
        XCTAssertGreaterThan(count, 50)
    }

    func testWhatWasGivenUpIsRemovedAfterTheDelayAlsoWhereTheClockWasSetBack() throws {
        let hour: UInt64 = 3_600_000_000_000
        var manifest = ArchiveManifest(identifier: "a", source: "/s", keyCheck: nil)
        manifest.giveUp(before: 64, at: 100 * hour, delay: hour)
        XCTAssertNil(manifest.due(now: 100 * hour + hour / 2, delay: hour))
        XCTAssertEqual(manifest.due(now: 101 * hour + hour / 15, delay: hour), 64)
        manifest.giveUp(before: 128, at: 101 * hour, delay: hour)
        XCTAssertEqual(manifest.due(now: 101 * hour + hour / 15, delay: hour), 64, "what went later is waited for")
        XCTAssertEqual(try ArchiveManifest(text: manifest.text, place: "p"), manifest)
        // Many in a short time are few lines.
        for index in 0..<1000 {
            manifest.giveUp(before: 129 + UInt64(index), at: 102 * hour + UInt64(index) * hour / 1000, delay: hour)
        }
        XCTAssertLessThan(manifest.leaving.count, 24)
        // Set back by a year: removed an hour after the next giving up, not a year and an hour.
        manifest.giveUp(before: 4000, at: 2 * hour, delay: hour)
        XCTAssertEqual(manifest.due(now: 3 * hour + hour / 15, delay: hour), 4000)
        XCTAssertEqual(try ArchiveManifest(text: manifest.text, place: "p"), manifest)
        // An archive of before there was a delay, killed while it removed.
        let old = manifest.text.split(separator: "\n").filter { !$0.hasPrefix("leaving") }.joined(separator: "\n") + "\n"
        XCTAssertEqual(try ArchiveManifest(text: old, place: "p").due(now: hour, delay: 0), 4000)
        for wrong in ["leaving 1", "leaving 64:1 64:2", "leaving 5000:1", "leaving x:y"] {
            let text = manifest.text.split(separator: "\n").map { $0.hasPrefix("leaving") ? Substring(wrong) : $0 }
            XCTAssertThrowsError(try ArchiveManifest(text: text.joined(separator: "\n") + "\n", place: "p"), wrong)
        }
    }

    func testWhatACopierThatWasEndedHasWrittenHalfIsDoneWithout() throws {
        let life = try makeLife(archiveOptions { $0.snapshotInterval = .zero }, commits: 21, seed: 183)
        let whole = life.copy { _ in (life.changes.count, life.changes.count) }
        let newest = try ArchiveReader(whole, key: key).newest()
        let image = ArchiveNames.image(newest.sequence / 4 * 4), step = ArchiveNames.step(0, newest.sequence)
        XCTAssertNotNil(whole.objects[image])
        for name in [image, step, ArchiveNames.index(0), ArchiveNames.hashes] {
            let good = try XCTUnwrap(whole.objects[name])
            for count in [0, 100, good.count / 2, good.count - 1] {
                whole.objects[name] = Array(good.prefix(count))
                let reader = try ArchiveReader(whole, key: key)
                let entry = try restoreNewest(reader, "\(count) bytes of \(name)")
                XCTAssertEqual(entry.sequence, name == step ? newest.sequence - 1 : newest.sequence, "\(count) bytes of \(name)")
                if name == image || name == step {
                    XCTAssertTrue(reader.notes.contains { $0.hasPrefix(name) }, "\(reader.notes)")
                }
                XCTAssertFalse(reader.hasDamage)
            }
            whole.objects[name] = nil
            XCTAssertEqual(
                try restoreNewest(try ArchiveReader(whole, key: key), "without \(name)").sequence,
                name == step ? newest.sequence - 1 : newest.sequence)
            whole.objects[name] = good
        }
        let manifest = try XCTUnwrap(whole.objects[ArchiveNames.manifest])
        whole.objects[ArchiveNames.manifest] = Array(manifest.dropLast(3))
        XCTAssertThrowsError(try ArchiveReader(whole, key: key)) { XCTAssertTrue("\($0)".contains("ends after"), "\($0)") }
    }

    /// A copy becomes the archive when the place that it was copied from is lost.
    func testAnArchiverGoesOnInACopyAndBuildsOnNothingThatIsNotThere() throws {
        let life = try makeLife(archiveOptions { $0.snapshotInterval = .zero }, commits: 44, seed: 184)
        let end = life.changes.count
        let store = try Store.open(source, options())
        var random = SplitMix(seed: 185)
        var anew = 0, count = 0
        for order in permutations(Self.parts.count) {
            for (start, gap) in [(end / 3, 17), (end - 20, 5)] {
                let copy = life.copy { name in
                    let moment = min(end, start + (order.firstIndex(of: Self.part(name)) ?? 0) * gap)
                    return (moment, moment)
                }
                if count % 3 == 0 { copy.objects[ArchiveNames.step(0, 20)] = nil }
                count += 1
                let text = "begun at \(start), \(order.map { Self.parts[$0] })"
                let before = try ArchiveReader(copy, key: key).history()
                let steps = try archiveOnce(copy)
                try commit(store, &random)
                let last = try XCTUnwrap(try archiveOnce(copy), text)
                XCTAssertEqual(last.snapshot.version, exports.keys.max(), text)
                XCTAssertEqual(last.sequence, try XCTUnwrap(steps).sequence + 1, "it goes on by steps: \(text)")
                let reader = try ArchiveReader(copy, key: key)
                XCTAssertEqual(try restoreNewest(reader, text), last)
                let history = try reader.history()
                XCTAssertTrue(Set(history.map(\.sequence)).isSuperset(of: before.map(\.sequence)), "nothing is lost: \(text)")
                if history.count(where: { $0.kind == .start }) > 1 { anew += 1 }
                guard count % 8 == 0 else { continue }
                for entry in history { try assertRestores(reader, entry, verifies: false) }
            }
        }
        try store.close()
        print("\(count) copies, \(anew) begun anew")
        XCTAssertGreaterThan(anew, 8)
    }

    /// The folder was emptied and archived into anew, and a copier that removes nothing has put the new over the old.
    func testWhatAnEarlierArchiveInTheSamePlaceHasLeftIsNotTakenForMore() throws {
        let old = try makeLife(archiveOptions(), commits: 30, seed: 186)
        exports = [:]
        try StoreFiles.delete(source)
        let fresh = try makeLife(archiveOptions(), commits: 9, seed: 187)
        let copy = old.copy { _ in (old.changes.count, old.changes.count) }
        for (name, bytes) in fresh.copy({ _ in (fresh.changes.count, fresh.changes.count) }).objects {
            copy.objects[name] = bytes
        }
        let entry = try ArchiveReader(copy, key: key).newest()
        XCTAssertEqual(entry.snapshot.version, exports.keys.max())
        try assertRestores(try ArchiveReader(copy, key: key), entry, verifies: false)
        let store = try Store.open(source, options())
        var random = SplitMix(seed: 188)
        try commit(store, &random)
        try store.close()
        let last = try XCTUnwrap(try archiveOnce(copy))
        try assertRestores(try ArchiveReader(copy, key: key), last, verifies: false)
    }

    func testAFileThatFollowsACopyGoesAsFarAsTheCopyGoesAndOnWhenTheRestHasCome() throws {
        let life = try makeLife(archiveOptions { $0.snapshotInterval = .zero }, commits: 30, seed: 189)
        let end = life.changes.count
        let whole = life.copy { _ in (end, end) }
        let copy = MemoryPlace()
        copy.objects = whole.objects
        let newest = try ArchiveReader(whole, key: key).newest()
        // The manifest and the index are of now, images and steps of a while ago.
        let missing = whole.objects.keys.filter {
            switch ArchiveNames.meaning(of: $0) {
            case .image(let sequence), .step(_, let sequence): sequence > newest.sequence - 7
            case nil: false
            }
        }
        for name in missing { copy.objects[name] = nil }
        let reader = try ArchiveReader(copy, key: key)
        let known = try XCTUnwrap(try reader.history().last)
        XCTAssertEqual(known.sequence, newest.sequence - 7)
        var versions: [UInt64?] = []
        var follower: ArchiveFollower?
        let made = ArchiveFollower(place: copy, destination: replica, key: key, interval: .milliseconds(1500)) {
            _, milliseconds in
            guard milliseconds == 1500 else {
                if milliseconds > 0 { usleep(1000) }
                return nil
            }
            versions.append(follower?.status().version)
            if versions.count == 2 { copy.objects = whole.objects }
            return versions.count == 4 ? .stop : nil
        }
        follower = made
        try made.run()
        XCTAssertEqual(versions.prefix(2), [known.snapshot.version, known.snapshot.version])
        XCTAssertEqual(versions.last, newest.snapshot.version)
        XCTAssertEqual(made.status().imageCount, 1, "it went on by steps")
        XCTAssertEqual(try export(replica), exports[newest.snapshot.version])
    }
}
