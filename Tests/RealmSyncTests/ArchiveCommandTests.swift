import Foundation
import SharedStore
import TestSupport
import XCTest

/// archive, history, restore, follow, verify of an archive.
final class ArchiveCommandTests: XCTestCase {
    private func commit(_ path: String, _ number: Int64) throws {
        let store = try Store.open(path)
        try store.write { transaction in
            let table =
                try transaction.editor.group.table(ofClass: "Note").map { try transaction.editor.editor($0.key) }
                ?? transaction.editor.createTable("class_Note")
            if table.table.column(named: "number") == nil { try table.addColumn("number", .int) }
            try table.set("number", of: try table.createObject(), to: .int(number))
        }
        try store.close()
    }

    func testTheMainWayFromAnArchiveToARestoredFile() throws {
        let scratch = ScratchDirectory(inMemory: true)
        let source = scratch.file("app.realm"), archive = scratch.file("backup")
        for number in 0..<5 {
            try commit(source, Int64(number))
            let run = try RealmSync("archive", source, archive, "--once", "--grace", "0")
            XCTAssertEqual(run.exitCode, 0, run.errors)
        }
        let history = try RealmSync("history", archive, "--json")
        XCTAssertEqual(history.exitCode, 0, history.errors)
        let json = try XCTUnwrap(history.json() as? [String: Any])
        let versions = try XCTUnwrap(json["history"] as? [[String: Any]]).compactMap { $0["version"] as? Int }
        XCTAssertEqual(versions.count, 5)
        XCTAssertTrue(try RealmSync("history", archive).output.contains("write amplification"))
        for (index, version) in versions.enumerated() {
            let path = scratch.file("at-\(version).realm")
            let run = try RealmSync("restore", archive, path, "--version", "\(version)")
            XCTAssertEqual(run.exitCode, 0, run.errors)
            let export = try RealmSync("export", path, "--immutable").output
            XCTAssertTrue(export.contains("\"number\":\(index)}"), export)
            XCTAssertFalse(export.contains("\"number\":\(index + 1)}"), export)
        }
        let newest = scratch.file("newest.realm")
        XCTAssertEqual(try RealmSync("restore", archive, newest).exitCode, 0)
        XCTAssertEqual(try RealmSync("restore", archive, newest).exitCode, 73, "never overwritten")
        XCTAssertEqual(try RealmSync("restore", archive, newest, "--force").exitCode, 0)
        XCTAssertEqual(try RealmSync("compare", newest, source).exitCode, 0)
        XCTAssertEqual(try RealmSync("restore", archive, scratch.file("x"), "--version", "999").exitCode, 66)
        XCTAssertEqual(try RealmSync("restore", archive, scratch.file("x"), "--time", "1999-01-01T00:00:00Z").exitCode, 66)
        XCTAssertEqual(try RealmSync("restore", archive, scratch.file("x"), "--time", "2999-01-01", "--all").exitCode, 64)
        let all = try RealmSync("restore", archive, scratch.file("all"), "--all")
        XCTAssertEqual(all.exitCode, 0, all.errors)
        XCTAssertEqual(
            try FileManager.default.contentsOfDirectory(atPath: scratch.file("all")).filter { $0.hasSuffix(".realm") }.count, 5)
        let whole = try RealmSync("restore", scratch.path, scratch.file("every"), "--all")
        XCTAssertEqual(whole.exitCode, 0, whole.errors)
        XCTAssertTrue(FileManager.default.fileExists(atPath: scratch.file("every") + "/backup.realm"))
        XCTAssertEqual(try RealmSync("history", scratch.file("nowhere")).exitCode, 66)
    }

    func testAKeyForAnArchiveThatIsPlainIsAnErrorAndNothingPlainIsRestored() throws {
        let scratch = ScratchDirectory(inMemory: true)
        let key = scratch.file("key"), source = scratch.file("app.realm"), folder = scratch.file("backups")
        XCTAssertEqual(try RealmSync("keygen", key).exitCode, 0)
        try commit(source, 1)
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        XCTAssertEqual(try RealmSync("archive", source, folder + "/plain", "--once", "--grace", "0").exitCode, 0)
        for command in [
            ["restore", folder + "/plain", scratch.file("x")], ["verify", folder + "/plain"],
            ["history", folder + "/plain"], ["follow", folder + "/plain", scratch.file("x")],
        ] {
            let run = try RealmSync(command + ["--key-file", key])
            XCTAssertEqual(run.exitCode, 65, "\(command): \(run.errors)")
            XCTAssertTrue(run.errors.contains("is not encrypted"), run.errors)
            XCTAssertFalse(FileManager.default.fileExists(atPath: scratch.file("x")))
        }
        // Of several archives, the key is that of those that have one.
        let csv = scratch.file("t.csv"), secret = scratch.file("secret.realm")
        try Data("name\nsecret words\n".utf8).write(to: URL(fileURLWithPath: csv))
        XCTAssertEqual(try RealmSync("import", csv, secret, "--key-file", key).exitCode, 0)
        let archived = try RealmSync("archive", secret, folder + "/secret", "--once", "--grace", "0", "--key-file", key)
        XCTAssertEqual(archived.exitCode, 0, archived.errors)
        let all = try RealmSync("restore", folder, scratch.file("all"), "--all", "--key-file", key)
        XCTAssertEqual(all.exitCode, 0, all.errors)
        XCTAssertEqual(try RealmSync("verify", scratch.file("all/plain.realm")).exitCode, 0)
        XCTAssertEqual(try RealmSync("verify", scratch.file("all/secret.realm"), "--key-file", key).exitCode, 0)
    }

    func testWhatOnlyItsOwnerMayReadIsNotReadableByOthersInAnArchiveNorRestoredNorRescued() throws {
        let scratch = ScratchDirectory(inMemory: true)
        let source = scratch.file("app.realm")
        try commit(source, 1)
        func mode(_ name: String) throws -> Int {
            try XCTUnwrap(FileManager.default.attributesOfItem(atPath: scratch.file(name))[.posixPermissions] as? Int)
        }
        // The mask with which the tests run may take away more.
        func isWithin(_ name: String, _ limit: Int) throws -> Bool { try mode(name) & ~limit == 0 }
        for (bits, folder, file) in [(0o600, 0o700, 0o600), (0o640, 0o750, 0o640), (0o644, 0o755, 0o644)] {
            chmod(source, mode_t(bits))
            XCTAssertEqual(
                try RealmSync("archive", source, scratch.file("a\(bits)"), "--once", "--grace", "0").exitCode, 0)
            XCTAssertTrue(try isWithin("a\(bits)", folder))
            XCTAssertEqual(try RealmSync("restore", scratch.file("a\(bits)"), scratch.file("r\(bits)")).exitCode, 0)
            XCTAssertTrue(try isWithin("r\(bits)", file))
            XCTAssertEqual(try RealmSync("salvage", source, scratch.file("s\(bits)")).exitCode, 0)
            XCTAssertTrue(try isWithin("s\(bits)", file))
        }
        // A folder that was there is its owner's business.
        try FileManager.default.createDirectory(atPath: scratch.file("open"), withIntermediateDirectories: true)
        chmod(scratch.file("open"), 0o755)
        chmod(source, 0o600)
        XCTAssertEqual(try RealmSync("archive", source, scratch.file("open"), "--once", "--grace", "0").exitCode, 0)
        XCTAssertEqual(try mode("open"), 0o755)
    }

    func testVerifyFindsDamageInAnArchive() throws {
        let scratch = ScratchDirectory(inMemory: true)
        let source = scratch.file("app.realm"), archive = scratch.file("backup")
        for number in 0..<3 {
            try commit(source, Int64(number))
            XCTAssertEqual(try RealmSync("archive", source, archive, "--once").exitCode, 0)
        }
        let good = try RealmSync("verify", archive, "--every", "1", "--scratch", scratch.path)
        XCTAssertEqual(good.exitCode, 0, good.errors + good.output)
        let step = archive + "/steps/0/0000000000000/001"
        var bytes = try Data(contentsOf: URL(fileURLWithPath: step))
        bytes[bytes.count - 3] ^= 1
        try bytes.write(to: URL(fileURLWithPath: step))
        let bad = try RealmSync("verify", archive, "--scratch", scratch.path)
        XCTAssertEqual(bad.exitCode, 1, bad.errors + bad.output)
        XCTAssertTrue(bad.output.contains("steps/0"), bad.output)
        XCTAssertEqual(try RealmSync("restore", archive, scratch.file("x.realm")).exitCode, 65)
        XCTAssertEqual(
            try FileManager.default.contentsOfDirectory(atPath: scratch.path).filter {
                $0.hasPrefix("x.realm") && !$0.hasSuffix(".lock")
            }, [])
    }

    /// The folder was copied while it grew: the manifest is newer than the images and steps beside it.
    func testOfACopyWhoseNewestImageIsMissingTheRestIsRestoredAndTheLossIsSaid() throws {
        let scratch = ScratchDirectory(inMemory: true)
        let source = scratch.file("app.realm"), archive = scratch.file("backup"), copy = scratch.file("copy")
        for number in 0..<9 {
            try commit(source, Int64(number))
            let run = try RealmSync("archive", source, archive, "--once", "--snapshot-interval", "0")
            XCTAssertEqual(run.exitCode, 0, run.errors)
        }
        let versions = try XCTUnwrap(try RealmSync("history", archive, "--json").json() as? [String: Any])
        let numbers = try XCTUnwrap(versions["history"] as? [[String: Any]]).compactMap { $0["version"] as? Int }
        XCTAssertEqual(numbers.count, 9)
        try FileManager.default.copyItem(atPath: archive, toPath: copy)
        // Without its newest image, all can be had from the older one.
        try FileManager.default.removeItem(atPath: copy + "/images/0000000000000008")
        let whole = scratch.file("whole.realm")
        let restored = try RealmSync("restore", copy, whole)
        XCTAssertEqual(restored.exitCode, 0, restored.errors)
        XCTAssertTrue(restored.errors.contains("images/0000000000000008 is missing"), restored.errors)
        XCTAssertEqual(try RealmSync("compare", whole, source).exitCode, 0)
        let sound = try RealmSync("verify", copy, "--scratch", scratch.path)
        XCTAssertEqual(sound.exitCode, 0, sound.errors + sound.output)
        // Without the step and the merges that lead there either, the one before is the newest.
        for name in ["steps/0/0000000000000/008", "steps/1/0000000000000/008"] {
            try FileManager.default.removeItem(atPath: copy + "/" + name)
        }
        let older = scratch.file("older.realm")
        let second = try RealmSync("restore", copy, older)
        XCTAssertEqual(second.exitCode, 0, second.errors)
        XCTAssertTrue(second.output.contains("version \(numbers[7]) "), second.output)
        XCTAssertTrue(second.errors.contains("version \(numbers[8]) is told of"), second.errors)
        let history = try RealmSync("history", copy)
        XCTAssertEqual(history.exitCode, 0, history.errors)
        XCTAssertTrue(history.errors.contains("nothing leads to version \(numbers[8])"), history.errors)
        let verified = try RealmSync("verify", copy, "--scratch", scratch.path, "--every", "1")
        XCTAssertEqual(verified.exitCode, 0, verified.errors + verified.output)
        XCTAssertTrue(verified.output.contains("8 of 8 versions"), verified.output)
        XCTAssertEqual(
            try RealmSync("restore", copy, scratch.file("x"), "--version", "\(numbers[8])").exitCode, 65, "asked for by number")
        // A hole before the newest is no matter of copying.
        try FileManager.default.removeItem(atPath: copy + "/steps/0/0000000000000/002")
        let hole = try RealmSync("verify", copy, "--scratch", scratch.path)
        XCTAssertEqual(hole.exitCode, 1, hole.errors + hole.output)
    }

    func testAnArchiverThatIsKilledAgainAndAgainLosesNothing() throws {
        let scratch = ScratchDirectory(inMemory: true)
        let source = scratch.file("app.realm"), archive = scratch.file("backup"), replica = scratch.file("replica.realm")
        try commit(source, 0)
        var random = SplitMix(seed: 95)
        XCTAssertEqual(try RealmSync("archive", source, archive, "--once").exitCode, 0)
        let follower = try ChildProcess(product: "realm-sync", ["follow", archive, replica, "--poll", "20ms"])
        for round in 0..<8 {
            let archiver = try ChildProcess(product: "realm-sync", ["archive", source, archive, "--follow", "--keep", "20"])
            for number in 0..<6 { try commit(source, Int64(round * 6 + number + 1)) }
            usleep(UInt32(random.next() % 150_000))
            archiver.signal(9)
            archiver.waitForEnd()
        }
        let last = try RealmSync("archive", source, archive, "--once")
        XCTAssertEqual(last.exitCode, 0, last.errors)
        let verify = try RealmSync("verify", archive, "--every", "3", "--scratch", scratch.path)
        XCTAssertEqual(verify.exitCode, 0, verify.output + verify.errors)
        let limit = Date(timeIntervalSinceNow: TestTime.limit(10))
        while try RealmSync("compare", source, replica).exitCode != 0, limit.timeIntervalSinceNow > 0 { usleep(50_000) }
        let compare = try RealmSync("compare", source, replica)
        XCTAssertEqual(compare.exitCode, 0, compare.output)
        follower.signal(15)
        XCTAssertEqual(follower.waitForEnd(), 0, follower.errors)
    }
}
