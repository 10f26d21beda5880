import Foundation
@testable import Replication
import SharedStore
import SystemCalls
import TestSupport
import XCTest

/// What goes into an archive comes out of it.
final class ArchiveTests: ArchiveTestCase {
    /// Each version's export is compared; every twentieth is verified, and all of them with `ARCHIVE_VERIFY_EACH=1`.
    func testEachOf500ArchivedVersionsIsRestoredAsItWas() throws {
        let distance = ProcessInfo.processInfo.environment["ARCHIVE_VERIFY_EACH"] == nil ? 20 : 1
        let store = try makeSource()
        var random = SplitMix(seed: 61)
        let place = MemoryPlace()
        let status = try follow(place, commits: 499) { _ in try self.commit(store, &random) }
        XCTAssertEqual(status?.versionCount, 500)
        try store.close()
        let reader = try ArchiveReader(place, key: key)
        let history = try reader.history()
        XCTAssertEqual(history.map(\.snapshot.version), exports.keys.sorted(), "every version is there, once")
        XCTAssertEqual(history.count, 500)
        var most = 0
        for (index, entry) in history.enumerated() {
            XCTAssertEqual(try reader.version(entry.snapshot.version), entry)
            most = max(most, try assertRestores(reader, entry, verifies: index % distance == 0 || index == 499).readCount)
        }
        XCTAssertLessThanOrEqual(most, 14, "a restore reads about a dozen objects, wherever it goes")
        let summary = try Archive.summary(reader)
        print(
            "500 versions: \(place.requests), changed \(summary.changedByteCount), stored \(summary.storedByteCount), \(summary.imageCount) images, at most \(most) reads"
        )
        XCTAssertLessThan(
            summary.storedByteCount, summary.changedByteCount, "stored, with all merges and images, is less than what was changed"
        )
    }

    func testAMomentIsRestoredToWhatWasTheNewestThen() throws {
        let store = try makeSource()
        var random = SplitMix(seed: 62)
        try follow(place(), commits: 20) { _ in try self.commit(store, &random) }
        let reader = try ArchiveReader(place(), key: key)
        let history = try reader.history()
        for (entry, next) in zip(history, history.dropFirst()) where entry.time < next.time {
            XCTAssertEqual(try reader.version(at: entry.time), entry)
            XCTAssertEqual(try reader.version(at: next.time - 1), entry)
        }
        XCTAssertEqual(try reader.version(at: UInt64.max), history.last)
        XCTAssertThrowsError(try reader.version(at: history[0].time - 1)) {
            XCTAssertTrue("\($0)".contains("no version of that time"), "\($0)")
        }
        XCTAssertThrowsError(try reader.version(9999)) { XCTAssertTrue("\($0)".contains("no version 9999"), "\($0)") }
        try store.close()
    }

    func testAnArchiverGoesOnWhereAnotherStopped() throws {
        let store = try makeSource()
        var random = SplitMix(seed: 63)
        for round in 0..<12 {
            try follow(place(), archiveOptions { $0.pinGrace = .seconds(round % 3 == 0 ? 0 : 60) }, commits: 7) { _ in
                try self.commit(store, &random)
            }
            // Nobody looks; with a pin left behind the next one still finds the step, without it what differs by content.
            for _ in 0..<round % 4 { try commit(store, &random) }
        }
        XCTAssertEqual(try archiveOnce(place())?.snapshot.version, exports.keys.max())
        let reader = try ArchiveReader(place(), key: key)
        let history = try reader.history()
        XCTAssertEqual(history.filter { $0.kind == .start }.count, 1, "no new beginning is needed")
        for entry in history { try assertRestores(reader, entry, verifies: false) }
        XCTAssertEqual(try archiveOnce(place())?.sequence, history.last?.sequence, "nothing new, nothing stored")
        try store.close()
    }

    func testAFileThatWasSetBackOrReplacedBeginsAnewAndTheOldHistoryStays() throws {
        var store = try makeSource()
        var random = SplitMix(seed: 64)
        try follow(place(), commits: 5) { _ in try self.commit(store, &random) }
        let backup = scratch.file("backup.realm")
        try FileManager.default.copyItem(atPath: source, toPath: backup)
        let versionAtBackup = try XCTUnwrap(exports.keys.max())
        try follow(place(), commits: 6) { _ in try self.commit(store, &random) }
        let before = exports
        try store.close()
        try FileManager.default.removeItem(atPath: source)
        try FileManager.default.moveItem(atPath: backup, toPath: source)
        store = try Store.open(source, options())
        try follow(place(), commits: 9) { _ in try self.commit(store, &random) }
        let reader = try ArchiveReader(place(), key: key)
        let history = try reader.history()
        XCTAssertEqual(history.filter { $0.kind == .start }.count, 2)
        let border = try XCTUnwrap(history.lastIndex { $0.kind == .start })
        for entry in history[border...] { try assertRestores(reader, entry) }
        exports = before
        for entry in history[..<border] { try assertRestores(reader, entry) }
        XCTAssertEqual(
            try reader.version(versionAtBackup + 2).sequence,
            history[border...].first { $0.snapshot.version == versionAtBackup + 2 }?.sequence)
        try store.close()
    }

    func testTheNewestVersionWithTheSameNumbersAndOtherContentIsNotTakenForTheArchivedOne() throws {
        let store = try makeSource()
        var random = SplitMix(seed: 65)
        for _ in 0..<5 { try self.commit(store, &random) }
        try store.close()
        let twin = scratch.file("twin.realm")
        try FileManager.default.copyItem(atPath: source, toPath: twin)
        func commit(_ path: String, _ number: Int64) throws -> Snapshot {
            let store = try Store.open(path, options())
            try store.write { transaction in
                let table = try transaction.editor.editor(named: "class_Item")
                try table.set("number", of: try table.createObject(), to: .int(number))
            }
            let reading = try store.beginRead()
            let snapshot = reading.snapshot
            reading.end()
            try store.close()
            return snapshot
        }
        _ = try archiveOnce(place())
        XCTAssertEqual(try commit(source, 11), try commit(twin, 12), "the same numbers")
        let first = try XCTUnwrap(try archiveOnce(place()))
        try FileManager.default.removeItem(atPath: source)
        try FileManager.default.moveItem(atPath: twin, toPath: source)
        let second = try XCTUnwrap(try archiveOnce(place()))
        XCTAssertNotEqual(first.chain, second.chain)
        let reader = try ArchiveReader(place(), key: key)
        exports[first.snapshot.version] = try export(source)
        try assertRestores(reader, second)
        try Archive.restore(reader, first, to: scratch.file("first.realm"), options: restoreOptions())
        XCTAssertNotEqual(try export(scratch.file("first.realm")), try export(source))
    }

    /// What 'encrypt', 'rekey', 'decrypt' and 'copy' leave, and copies by other software: nobody has opened them for writing yet.
    func testACopyThatNobodyHasOpenedYetIsArchivedAndGoesOnFromThere() throws {
        let store = try makeSource()
        var random = SplitMix(seed: 69)
        for _ in 0..<5 { try commit(store, &random) }
        let newest = try store.beginRead()
        let bare = scratch.file("bare.realm")
        try withExtendedLifetime(newest) {
            try StreamingCopy(version: nil, keepsHistory: false).write(newest.group, toPath: bare, key: key)
        }
        newest.end()
        try store.close()
        let rekeyed = scratch.file("rekeyed.realm"), other = try EncryptionKey(3..<67)
        try FileManager.default.copyItem(atPath: source, toPath: rekeyed)
        try StoreFiles.changeKey(rekeyed, from: key, to: other)
        var copies: [(String, String, EncryptionKey?)] = [("bare", bare, key), ("rekeyed", rekeyed, other)]
        if key != nil {
            let plain = scratch.file("plain.realm")
            try FileManager.default.copyItem(atPath: source, toPath: plain)
            try StoreFiles.changeKey(plain, from: key, to: nil)
            copies.append(("decrypted", plain, nil))
        }
        let given = scratch.file("given.realm")
        try FileManager.default.copyItem(atPath: Fixtures.core14 + "/compact-copy.realm", toPath: given)
        copies.append(("given", given, nil))
        func text(_ path: String, _ key: EncryptionKey?) throws -> [UInt8] {
            try JSONExporter.text(ImmutableFile(path: path, key: key).group)
        }
        for (name, path, key) in copies {
            XCTAssertTrue(try ImmutableFile(path: path, key: key).layout.isStreaming, name)
            let place = try place(scratch.file("archive-\(name)")), options = archiveOptions { $0.key = key }
            func archive() throws -> ArchiveEntry {
                try XCTUnwrap(
                    try Archiver(source: path, place: place, options: options) { _, milliseconds in
                        if milliseconds > 0 { usleep(1000) }
                        return nil
                    }.once())
            }
            var expected: [[UInt8]] = [try text(path, key)]
            _ = try archive()
            XCTAssertEqual(try text(path, key), expected[0], name)
            // Somebody opens it and goes on; so does the archive.
            for _ in 0..<3 {
                let store = try Store.open(path, self.options { $0.encryptionKey = key })
                try store.write { transaction in
                    let name = "class_Later"
                    let table =
                        try transaction.editor.group.table(ofClass: "Later").map { try transaction.editor.editor($0.key) }
                        ?? transaction.editor.createTable(name)
                    if table.table.column(named: "number") == nil { try table.addColumn("number", .int) }
                    try table.set("number", of: try table.createObject(), to: .int(Int64(random.next() % 1000)))
                }
                let reading = try store.beginRead()
                expected.append(try withExtendedLifetime(reading) { try JSONExporter.text(reading.group) })
                reading.end()
                try store.close()
                _ = try archive()
            }
            let reader = try ArchiveReader(place, key: key)
            let history = try reader.history()
            XCTAssertEqual(history.count, expected.count, name)
            for (entry, content) in zip(history, expected) {
                let restored = scratch.file("restored.realm")
                var restoring = Archive.RestoreOptions()
                restoring.key = key
                try Archive.restore(reader, entry, to: restored, options: restoring)
                XCTAssertEqual(try text(restored, key), content, "\(name), version \(entry.snapshot.version)")
                for suffix in ["", ".lock"] { try? FileManager.default.removeItem(atPath: restored + suffix) }
            }
        }
    }

    func testWhatIsPromisedStaysAndTheRestGoes() throws {
        let store = try makeSource()
        var random = SplitMix(seed: 66)
        let options = archiveOptions { $0.keep = 40 }
        let place = MemoryPlace()
        try follow(place, options, commits: 400) { _ in try self.commit(store, &random, textLength: 300) }
        let reader = try ArchiveReader(place, key: key)
        let history = try reader.history()
        XCTAssertGreaterThanOrEqual(history.count, 40)
        XCTAssertLessThan(history.count, 300, "old ones were removed")
        for entry in history.suffix(40) { try assertRestores(reader, entry, verifies: false) }
        for entry in history { try assertRestores(reader, entry, verifies: false) }
        let sequences = Set(history.map(\.sequence))
        for name in try place.list("steps/0/") {
            let number = try XCTUnwrap(UInt64(name.split(separator: "/").suffix(2).joined(), radix: 16))
            XCTAssertTrue(sequences.contains(number), "\(name) is of no use any more")
        }
        // By age nothing is given up yet: with both promises, each covers what it covers.
        let count = history.count
        try follow(
            place,
            archiveOptions {
                $0.keep = 1; $0.keepFor = .seconds(3600)
            }, commits: 40
        ) { _ in try self.commit(store, &random) }
        XCTAssertEqual(try ArchiveReader(place, key: key).history().count, count + 40)
        try store.close()
    }

    func testAnEncryptedFilesArchiveHoldsNothingPlainAndNeedsItsKey() throws {
        let key = try EncryptionKey(0..<64), other = try EncryptionKey(1..<65)
        let store = try makeSource { $0.encryptionKey = key }
        var random = SplitMix(seed: 67)
        let options = archiveOptions { $0.key = key }
        try follow(place(), options, commits: 40) { _ in
            try store.write { transaction in
                let table = try transaction.editor.editor(named: "class_Item")
                try table.set("text", of: try table.createObject(), to: .string("SECRETSECRET\(random.next())"))
            }
            try self.note(store)
        }
        try store.close()
        for name in try place().list("") {
            let bytes = try XCTUnwrap(try place().getAll(name, limit: 1 << 30)).bytes
            for word in ["SECRETSECRET", "class_Item", "RSEG0001"] {
                XCTAssertNil(Data(bytes).range(of: Data(word.utf8)), "\(name) holds \(word)")
            }
        }
        XCTAssertThrowsError(try ArchiveReader(place())) { XCTAssertTrue("\($0)".contains("--key-file"), "\($0)") }
        XCTAssertThrowsError(try ArchiveReader(place(), key: other)) { XCTAssertTrue("\($0)".contains("another key"), "\($0)") }
        let reader = try ArchiveReader(place(), key: key)
        for entry in try reader.history() where entry.sequence % 7 == 0 { try assertRestores(reader, entry, key: key) }
        let path = scratch.file("encrypted.realm")
        var restoring = Archive.RestoreOptions()
        restoring.key = key
        try Archive.restore(reader, try reader.newest(), to: path, options: restoring)
        XCTAssertNil(try Data(contentsOf: URL(fileURLWithPath: path)).range(of: Data("SECRETSECRET".utf8)))
    }

    /// What is damaged is gone around where there is another way, and told in any case; where there is none, nothing is restored.
    func testEveryFlippedByteIsFoundAndNothingWrongIsRestored() throws {
        let store = try makeSource()
        var random = SplitMix(seed: 68)
        try follow(place(), commits: 20) { _ in try self.commit(store, &random) }
        try store.close()
        let target = scratch.file("target.realm")
        var refused = 0, told = 0
        func look(_ name: String) throws {
            do {
                let reader = try ArchiveReader(place(), key: key)
                let entry = try reader.newest()
                try Archive.restore(reader, entry, to: target, options: restoreOptions())
                XCTAssertEqual(try export(target), exports[entry.snapshot.version], name)
                if !reader.notes.isEmpty { told += 1 }
            } catch { refused += 1 }
            for suffix in ["", ".lock"] { try? FileManager.default.removeItem(atPath: target + suffix) }
        }
        for name in try place().list("") where name != "lease" && name != "hashes" {
            let path = folder + "/" + name
            let good = try Data(contentsOf: URL(fileURLWithPath: path))
            for _ in 0..<6 {
                var bad = good
                bad[Int(random.next() % UInt64(bad.count))] ^= UInt8(1 + random.next() % 255)
                try bad.write(to: URL(fileURLWithPath: path))
                try look(name)
            }
            for count in [0, good.count / 2, good.count - 1] {
                try good.prefix(count).write(to: URL(fileURLWithPath: path))
                try look(name)
            }
            try good.write(to: URL(fileURLWithPath: path))
        }
        print("\(refused) were refused, \(told) gone around")
        // The one image has no other way to it; each merged piece that is read has.
        XCTAssertGreaterThanOrEqual(refused, 9)
        XCTAssertGreaterThanOrEqual(told, 9)
        let reader = try ArchiveReader(place(), key: key)
        try assertRestores(reader, try reader.newest())
    }
}
