import Foundation
import TestSupport
import XCTest

/// What users of mirroring and backup tools have reported, tried on the commands. The rest of these troubles has its test where
/// the mechanism is; Documentation/reported-troubles.md lists them all.
final class ReportedMirrorTroubleTests: XCTestCase {
    private let scratch = ScratchDirectory("MirrorTroubles", inMemory: true)

    private func writer(_ path: String) throws -> TestProcess {
        let writer = try TestProcess()
        XCTAssertEqual(writer.ask("ledger-open \(path)"), "ok")
        XCTAssertEqual(writer.ask("ledger-setup 20 50"), "ok 2")
        return writer
    }

    private func run(_ code: Int32, _ arguments: String..., line: UInt = #line) throws -> RealmSync {
        let run = try RealmSync(arguments)
        XCTAssertEqual(run.exitCode, code, "\(arguments): \(run.output) \(run.errors)", line: line)
        return run
    }

    private func waitForAVersion(in archive: String) throws {
        for _ in 0..<300 {
            if try RealmSync("history", archive).exitCode == 0 { return }
            usleep(20_000)
        }
    }

    private func byteCount(_ folder: String) throws -> Int {
        let names = try FileManager.default.subpathsOfDirectory(atPath: folder)
        return try names.reduce(0) { sum, name in
            let attributes = try FileManager.default.attributesOfItem(atPath: folder + "/" + name)
            return sum + (attributes[.type] as? FileAttributeType == .typeRegular ? attributes[.size] as? Int ?? 0 : 0)
        }
    }

    /// "Validation says checksum mismatch although a restore is fine", since it raced with what was being written.
    func testAnArchiveVerifiesAndRestoresAtAnyMomentWhileItIsWrittenTo() throws {
        let source = scratch.file("a.realm"), archive = scratch.file("archive")
        let writer = try writer(source)
        let archiver = try ChildProcess(
            product: "realm-sync", ["archive", source, archive, "--follow", "--snapshot-interval", "100ms"])
        defer { archiver.signal(SIGTERM) }
        try waitForAVersion(in: archive)
        for round in 0..<4 {
            writer.send("ledger-commit 15 \(round)")
            _ = try run(0, "verify", archive, "--scratch", scratch.path)
            _ = try run(0, "restore", archive, scratch.file("at-\(round).realm"))
            XCTAssertEqual(writer.line(within: 120), "ok \((round + 1) * 15)")
        }
        archiver.signal(SIGTERM)
        XCTAssertEqual(archiver.waitForEnd(), 0, archiver.errors)
        writer.finish()
    }

    /// "Restore errors, since files were written under their final name": the folder, copied at any moment, is an archive.
    func testACopyOfTheArchivesFolderTakenAtAnyMomentIsAnArchive() throws {
        let source = scratch.file("a.realm"), archive = scratch.file("archive")
        let writer = try writer(source)
        let archiver = try ChildProcess(
            product: "realm-sync", ["archive", source, archive, "--follow", "--snapshot-interval", "100ms"])
        defer { archiver.signal(SIGTERM) }
        try waitForAVersion(in: archive)
        for round in 0..<4 {
            writer.send("ledger-commit 15 \(round)")
            let copy = scratch.file("copy-\(round)")
            // A file that is there when the copy begins to look and is gone when it comes to it is a name that was not final.
            let copied = try ChildProcess(path: "/bin/cp", ["-r", archive, copy])
            XCTAssertNotNil(copied.waitForEnd(seconds: 120))
            let restored = scratch.file("at-\(round).realm")
            _ = try run(0, "restore", copy, restored)
            _ = try run(0, "verify", restored)
            XCTAssertEqual(writer.line(within: 120), "ok \((round + 1) * 15)")
        }
        archiver.signal(SIGTERM)
        XCTAssertEqual(archiver.waitForEnd(), 0, archiver.errors)
        writer.finish()
    }

    /// "After a restore everything is uploaded anew."
    func testAfterARestoreTheArchiveGoesOnWithoutBeingSentAgain() throws {
        let source = scratch.file("a.realm"), archive = scratch.file("archive")
        let writer = try writer(source)
        writer.ask("ledger-commit 300 1")
        _ = try run(0, "archive", source, archive, "--once", "--grace", "0")
        writer.finish()
        let whole = try byteCount(archive)
        // The source is lost, and comes back from the archive.
        for name in try FileManager.default.contentsOfDirectory(atPath: scratch.path) where name.hasPrefix("a.realm") {
            try FileManager.default.removeItem(atPath: scratch.file(name))
        }
        _ = try run(0, "restore", archive, source)
        _ = try run(0, "archive", source, archive, "--once", "--grace", "0")
        let after = try byteCount(archive)
        XCTAssertLessThan(after - whole, whole / 20, "\(whole) bytes became \(after)")
        _ = try run(0, "verify", archive, "--scratch", scratch.path)
    }

    /// "Restarted after changes while it was away: it went on from a false base." Changes, a compaction, another file in its
    /// place.
    func testWhateverHappenedWhileTheMirrorWasAwayTheReplicaIsRightAfterwards() throws {
        let source = scratch.file("a.realm"), replica = scratch.file("b.realm")
        let first = try writer(source)
        _ = try run(0, "mirror", source, replica, "--once")
        first.ask("ledger-commit 200 1")
        first.finish()
        _ = try run(0, "compact", source)
        _ = try run(0, "mirror", source, replica, "--once")
        _ = try run(0, "compare", source, replica)
        // Another database under the same name, at the same version number.
        for name in try FileManager.default.contentsOfDirectory(atPath: scratch.path) where name.hasPrefix("a.realm") {
            try FileManager.default.removeItem(atPath: scratch.file(name))
        }
        let second = try writer(source)
        second.ask("ledger-commit 200 2")
        _ = try run(0, "mirror", source, replica, "--once")
        _ = try run(0, "compare", source, replica)
        _ = try run(0, "verify", replica)
        second.finish()
    }

    /// "The replica gives a disk error when it is written to."
    func testWhoWritesToAReplicaIsToldThatItIsOne() throws {
        let source = scratch.file("a.realm"), replica = scratch.file("b.realm")
        let first = try writer(source)
        _ = try run(0, "mirror", source, replica, "--once")
        let second = try TestProcess()
        XCTAssertEqual(second.ask("ledger-open \(replica)"), "ok")
        let answer = second.ask("ledger-commit 1 1")
        XCTAssertTrue(answer.contains("promote") && answer.contains("is a mirror of "), answer)
        second.finish()
        _ = try run(0, "mirror", source, replica, "--once")
        first.finish()
    }

    /// "Helper and application write at once for years and nobody knows whether both have the same."
    func testCompareAndStatusTellOfADifferenceInContentAtTheSameVersionNumber() throws {
        let one = scratch.file("a.realm"), two = scratch.file("b.realm")
        let first = try writer(one), second = try writer(two)
        first.ask("ledger-commit 5 1")
        second.ask("ledger-commit 5 2")
        let compared = try run(1, "compare", one, two)
        XCTAssertTrue(compared.output.contains("differ"), compared.output)
        first.finish()
        second.finish()
    }

    /// "A folder with very many files: nothing goes out until the first pass is over, and tables overflow."
    func testAFolderOfManyFilesIsMirroredAndChangesToTheFirstGoOutDuringTheFirstPass() throws {
        let count = ProcessInfo.processInfo.environment["MANY_FILES"].flatMap { Int($0) } ?? 60
        let folder = scratch.file("in"), out = scratch.file("out"), socket = scratch.file("s"), seed = scratch.file("seed.realm")
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let first = try writer(seed)
        first.finish()
        for i in 0..<count { try FileManager.default.copyItem(atPath: seed, toPath: folder + "/f\(i).realm") }
        let service = try ChildProcess(
            product: "realm-sync",
            [
                "run", "--set", "service.socket=\(socket)", "--set", "directory all.source=\(folder)", "--set",
                "directory all.destination=\(out)",
            ])
        defer { service.signal(SIGTERM) }
        let writer = try TestProcess()
        XCTAssertEqual(writer.ask("ledger-open \(folder)/f0.realm"), "ok")
        writer.ask("ledger-commit 3 1")
        var fine = 0
        for _ in 0..<600 where fine < count {
            usleep(50_000)
            let text = try RealmSync("status", "--socket", socket, "--json").output
            let status = try? JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
            let streams = status?["streams"] as? [[String: Any]] ?? []
            fine = streams.count { $0["state"] as? String == "following" && $0["lagVersions"] as? Int == 0 }
        }
        XCTAssertEqual(fine, count, service.errors)
        _ = try run(0, "compare", folder + "/f0.realm", out + "/f0.realm")
        writer.finish()
        service.signal(SIGTERM)
        XCTAssertEqual(service.waitForEnd(seconds: 60), 0, service.errors)
    }

    // MARK: Harm done to the source

    /// "The helper's permanent lock lets the database grow", and "the helper's bookkeeping is written into the database".
    func testASourceWithAMirrorIsHardlyLargerThanOneWithoutAndTheMirrorNeverWritesToIt() throws {
        let alone = scratch.file("alone.realm"), mirrored = scratch.file("mirrored.realm"),
            replica = scratch.file("replica.realm")
        let first = try writer(alone), second = try writer(mirrored)
        let mirror = try ChildProcess(product: "realm-sync", ["mirror", mirrored, replica, "--follow"])
        defer { mirror.signal(SIGTERM) }
        for _ in 0..<600 where !FileManager.default.fileExists(atPath: replica) { usleep(20_000) }
        for round in 0..<20 {
            XCTAssertEqual(first.ask("ledger-commit 50 \(round)"), "ok \((round + 1) * 50)")
            XCTAssertEqual(second.ask("ledger-commit 50 \(round)"), "ok \((round + 1) * 50)")
        }
        func size(_ path: String) throws -> Int { try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int ?? 0 }
        let without = try size(alone), with = try size(mirrored)
        print("after 1,000 commits: \(without) bytes without a mirror, \(with) with one")
        // Files grow by pages, so a small one gets some of them more.
        XCTAssertLessThan(with, without * 12 / 10 + 65_536)
        // A mirror that is told to end finishes the version that it is at, which need not be the newest.
        var code: Int32? = 1
        for _ in 0..<600 where code != 0 {
            code = try RealmSync("compare", mirrored, replica).exitCode
            if code != 0 { usleep(50_000) }
        }
        XCTAssertEqual(code, 0, "the mirror comes to the newest version: \(mirror.errors)")
        mirror.signal(SIGTERM)
        XCTAssertEqual(mirror.waitForEnd(seconds: 60), 0, mirror.errors)
        first.finish()
        second.finish()
    }

    // MARK: Events

    /// "The queue of events overflows, everything is read anew, and that overflows it again."
    func testAStormOfEventsBesideTheSourceIsOverWhenItIsOver() throws {
        let source = scratch.file("a.realm"), replica = scratch.file("copies.realm")
        let writer = try writer(source)
        let mirror = try ChildProcess(product: "realm-sync", ["mirror", source, replica, "--follow"])
        defer { mirror.signal(SIGTERM) }
        for _ in 0..<600 where !FileManager.default.fileExists(atPath: replica) { usleep(20_000) }
        // More than the kernel keeps for one listener (fs.inotify.max_queued_events is 16,384 as a rule), while the listener is
        // held.
        mirror.signal(SIGSTOP)
        for i in 0..<(ProcessInfo.processInfo.environment["EVENT_STORM"].flatMap { Int($0) } ?? 12_000) {
            let descriptor = open(scratch.file("storm-\(i % 10)"), O_WRONLY | O_CREAT, 0o600)
            close(descriptor)
            unlink(scratch.file("storm-\(i % 10)"))
        }
        mirror.signal(SIGCONT)
        XCTAssertEqual(writer.ask("ledger-commit 5 1"), "ok 5")
        var code: Int32? = 1
        for _ in 0..<300 where code != 0 {
            code = try RealmSync("compare", source, replica).exitCode
            if code != 0 { usleep(50_000) }
        }
        XCTAssertEqual(code, 0, "the mirror goes on: \(mirror.errors)")
        // What came of the storm is done, and nothing goes on by itself.
        func ticks() throws -> Int {
            let text = try String(contentsOfFile: "/proc/\(mirror.processIdentifier)/stat", encoding: .utf8)
            let fields = text[(text.lastIndex(of: ")") ?? text.startIndex)...].split(separator: " ")
            return (Int(fields[12]) ?? 0) + (Int(fields[13]) ?? 0)
        }
        var isQuiet = false
        for _ in 0..<30 where !isQuiet {
            let before = try ticks()
            usleep(500_000)
            // Of 50 that half a second has.
            isQuiet = try ticks() - before <= 5
        }
        XCTAssertTrue(isQuiet, "it does not come to rest")
        mirror.signal(SIGTERM)
        XCTAssertEqual(mirror.waitForEnd(seconds: 60), 0, mirror.errors)
        writer.finish()
    }
}
