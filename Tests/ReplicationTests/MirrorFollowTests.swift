import Foundation
@testable import Replication
import SharedStore
import SystemCalls
import TestSupport
import XCTest

/// Mirrors that follow, as processes of their own: killed, stopped, started again, beside writers and readers.
final class MirrorFollowTests: MirrorTestCase {
    override var durability: Durability { .full }

    private func mirror(_ arguments: String...) throws -> TestProcess {
        try TestProcess(["mirror", source, replica] + usualKeyArguments + arguments)
    }

    /// A process with a ledger open at `path`.
    private func ledger(_ path: String) throws -> TestProcess {
        let process = try TestProcess(key: key)
        XCTAssertEqual(process.ask("ledger-open \(path)"), "ok")
        return process
    }

    private func writer() throws -> TestProcess {
        let writer = try ledger(source)
        XCTAssertEqual(writer.ask("ledger-setup 30"), "ok 2")
        return writer
    }

    private func version(_ process: TestProcess) -> UInt64 {
        UInt64(process.ask("ledger-check").split(separator: " ").dropFirst().first ?? "0") ?? 0
    }

    /// Source and replica are equal, in their sessions, and the replica verifies.
    private func assertEqualAtTheEnd(_ text: String = "", file: StaticString = #filePath, line: UInt = #line) throws {
        let a = try Store.open(source, options { $0.access = .readOnly }),
            b = try Store.open(replica, options { $0.access = .readOnly })
        try assertEqual(a, b, text, file: file, line: line)
        let reader = try b.beginRead()
        let report = try Verifier.verify(
            memory: reader.memory, snapshot: reader.snapshot, form: .inPlace, format: FileHeader.currentFormat, physicalSize: nil,
            header: nil)
        XCTAssertTrue(report.isSound && report.findings.isEmpty, text, file: file, line: line)
        reader.end()
        try a.close()
        try b.close()
    }

    private func stop(_ mirror: TestProcess, file: StaticString = #filePath, line: UInt = #line) {
        mirror.send("stop")
        XCTAssertEqual(mirror.finish(), 0, file: file, line: line)
    }

    /// The numbers of "status VERSION SOURCE STEPS IMAGES".
    private func status(_ mirror: TestProcess) -> [Int] {
        mirror.send("status")
        while let line = mirror.line() {
            if line.hasPrefix("status") { return line.split(separator: " ").dropFirst().compactMap { Int($0) } }
        }
        return []
    }

    func testAMirrorFollowsWritersBesideReaders() throws {
        let first = try writer(), second = try ledger(source)
        let mirror = try mirror()
        awaitVersion(2)
        let readers = try (0..<2).map { _ in try ledger(replica) }
        first.send("ledger-commit 150 1")
        second.send("ledger-commit 150 2")
        for round in 0..<12 {
            let reader = readers[round % 2]
            XCTAssertTrue(reader.ask("ledger-hold \(round % 3 == 0 ? "frozen" : "live")").hasPrefix("ok"))
            XCTAssertTrue(reader.ask("ledger-check").hasPrefix("ok"))
            XCTAssertTrue(reader.ask("ledger-held").hasPrefix("ok"), "what a reader holds must not change")
            if round % 3 == 2 { reader.ask("ledger-release") }
        }
        readers.forEach { $0.ask("ledger-release") }
        XCTAssertTrue((first.line(within: 60) ?? "").hasPrefix("ok"))
        XCTAssertTrue((second.line(within: 60) ?? "").hasPrefix("ok"))
        awaitVersion(302)
        for reader in readers { XCTAssertEqual(reader.ask("ledger-check"), "ok 302 300") }
        XCTAssertEqual(status(mirror).last, 1, "one image is enough")
        try assertEqualAtTheEnd()
        stop(mirror)
        (readers + [first, second]).forEach { $0.finish() }
    }

    func testAMirrorGoesOnAfterAStopWithoutANewImage() throws {
        let writer = try writer()
        var mirror = try mirror()
        awaitVersion(2)
        stop(mirror)
        writer.ask("ledger-commit 20 1")
        mirror = try self.mirror()
        awaitVersion(22)
        XCTAssertEqual(status(mirror), [22, 22, 1, 0])
        // Asked to open both files again, it does not begin anew either.
        mirror.send("reload")
        writer.ask("ledger-commit 5 2")
        awaitVersion(27)
        XCTAssertEqual(status(mirror).last, 0)
        stop(mirror)
        // With no grace the version is let go.
        mirror = try self.mirror("grace=0")
        awaitVersion(27)
        stop(mirror)
        writer.ask("ledger-commit 20 3")
        mirror = try self.mirror()
        awaitVersion(47)
        XCTAssertEqual(status(mirror).last, 1)
        try assertEqualAtTheEnd()
        stop(mirror)
        writer.finish()
    }

    private static let killPoints = [
        "apply.locked", "apply.aligned", "apply.control", "apply.range:2", "apply.stored", "apply.flipped",
        "publish.before-allocating",
        "publish.after-allocating", "publish.before-newest", "publish.after-newest", "apply.published", "apply.announced",
        "apply.noted",
    ]

    /// mirroring.md 5.4, with a living reader of the replica, and the writer going on.
    func testAMirrorKilledAtAnyStepIsSucceededBesideAReader() throws {
        let writer = try writer()
        let start = try mirror()
        awaitVersion(2)
        stop(start)
        let reader = try ledger(replica)
        for (round, point) in Self.killPoints.enumerated() {
            let victim = try mirror("kill-at=\(point)")
            writer.ask("ledger-commit 3 \(round)")
            XCTAssertEqual(victim.waitUntilGone(), -SIGKILL, point)
            XCTAssertTrue(reader.ask("ledger-check").hasPrefix("ok"), point)
            writer.ask("ledger-commit 2 \(round)")
            let successor = try mirror()
            awaitVersion(version(writer))
            XCTAssertEqual(status(successor).last, 0, "\(point): no new image")
            XCTAssertEqual(reader.ask("ledger-check").split(separator: " ")[1], "\(version(writer))", point)
            XCTAssertEqual(reader.ask("ledger-verify"), "ok", point)
            stop(successor)
        }
        try assertEqualAtTheEnd()
        reader.finish()
        writer.finish()
        try assertSound(replica)
    }

    /// The same with nobody at the replica: it opens at the old version or the new one.
    func testAMirrorKilledAtAnyStepLeavesAWholeReplica() throws {
        let writer = try writer()
        let start = try mirror()
        awaitVersion(2)
        stop(start)
        for (round, point) in Self.killPoints.enumerated() {
            let victim = try mirror("kill-at=\(point)")
            writer.ask("ledger-commit 3 \(round)")
            XCTAssertEqual(victim.waitUntilGone(), -SIGKILL, point)
            try assertSound(replica, point)
            let successor = try mirror()
            awaitVersion(version(writer))
            XCTAssertEqual(status(successor).last, 0, "\(point): no new image")
            stop(successor)
        }
        try assertEqualAtTheEnd()
        writer.finish()
    }

    /// The image takes the place of an older replica: a successor finds the old file or the new one, takes neither for somebody
    /// else's work, and goes on.
    func testAMirrorKilledWhileAnImageReplacesTheReplicaIsSucceeded() throws {
        let writer = try writer()
        let start = try mirror("grace=0")
        awaitVersion(2)
        stop(start)
        for (round, point) in ["image.before-state", "image.before-name", "image.named"].enumerated() {
            writer.ask("ledger-commit 3 \(round)")
            let victim = try mirror("grace=0", "kill-at=\(point)")
            XCTAssertEqual(victim.waitUntilGone(), -SIGKILL, point)
            try assertSound(replica, point)
            writer.ask("ledger-commit 2 \(round)")
            let successor = try mirror("grace=0")
            awaitVersion(version(writer))
            stop(successor)
        }
        try assertEqualAtTheEnd()
        writer.finish()
    }

    func testAMirrorKilledDuringTheImageBeginsAnew() throws {
        let writer = try writer()
        for point in ["image.range", "image.header", "image.synced", "image.before-state", "image.before-name", "image.named"] {
            let victim = try mirror("kill-at=\(point)")
            XCTAssertEqual(victim.waitUntilGone(), -SIGKILL, point)
            if FileManager.default.fileExists(atPath: replica) { try assertSound(replica, point) }
            writer.ask("ledger-commit 3 1")
        }
        let mirror = try mirror()
        awaitVersion(version(writer))
        try assertEqualAtTheEnd()
        XCTAssertFalse(FileManager.default.fileExists(atPath: replica + ".management/mirror.part"))
        stop(mirror)
        writer.finish()
    }

    func testASecondMirrorIsRefusedAndNamesTheFirstUntilThatHasDied() throws {
        let writer = try writer()
        let first = try mirror()
        awaitVersion(2)
        let second = try mirror()
        let line = second.line() ?? ""
        XCTAssertTrue(line.contains("another mirror") && line.contains("process \(first.processIdentifier) on "), line)
        XCTAssertEqual(second.waitUntilGone(), 1)
        first.kill()
        let third = try mirror()
        writer.ask("ledger-commit 3 1")
        awaitVersion(5)
        stop(third)
        writer.finish()
    }

    func testAReplicaThatSomebodyElseChangedIsLeftAlone() throws {
        let writer = try writer()
        let first = try mirror()
        awaitVersion(2)
        let other = try Store.open(replica, options { $0.writesToReplica = true })
        try other.write { _ = try $0.editor.createTable("class_Foreign") }
        writer.ask("ledger-commit 3 1")
        var line = ""
        while let next = first.line() {
            line = next
            if line.hasPrefix("error") { break }
        }
        XCTAssertTrue(line.contains("changed by somebody else"), line)
        XCTAssertEqual(first.waitUntilGone(), 1)
        XCTAssertNotNil(try other.look { try $0.group.table(named: "class_Foreign") })
        try other.close()
        let again = try mirror()
        XCTAssertTrue((again.line() ?? "").hasPrefix("error"))
        let forced = try mirror("force")
        awaitVersion(5)
        try assertEqualAtTheEnd()
        stop(forced)
        XCTAssertEqual(
            try FileManager.default.contentsOfDirectory(atPath: scratch.path).count { $0.hasPrefix("b.realm.replaced-") }, 1)
        writer.finish()
    }

    func testASourceThatIsDeletedAndMadeAnewIsMirroredAnew() throws {
        let writer = try writer()
        let mirror = try mirror()
        writer.ask("ledger-commit 10 1")
        awaitVersion(12)
        writer.finish()
        XCTAssertTrue(eventually { unlink(source) == 0 || errno == ENOENT })
        // Its session is the old file's: whoever begins anew takes the side files away as well.
        XCTAssertEqual(unlink(source + ".lock"), 0)
        let next = try self.writer()
        next.ask("ledger-commit 4 9")
        XCTAssertTrue(eventually { (try? state())?.snapshot.version == 6 })
        try assertEqualAtTheEnd()
        stop(mirror)
        next.finish()
    }

    func testAStoppedReaderOfTheReplicaHoldsTheMirrorBackAndIsNamed() throws {
        let writer = try writer()
        let mirror = try mirror()
        awaitVersion(2)
        let reader = try ledger(replica)
        reader.ask("ledger-hold live")
        for _ in 0..<5 { writer.ask("ledger-commit 10 1") }
        var line = ""
        while let next = mirror.line() {
            line = next
            if line.contains("waiting for readers") { break }
        }
        XCTAssertTrue(line.contains("process \(reader.processIdentifier)"), line)
        XCTAssertEqual(reader.ask("ledger-held"), "ok 1")
        reader.ask("ledger-release")
        awaitVersion(52)
        try assertEqualAtTheEnd()
        stop(mirror)
        reader.finish()
        writer.finish()
    }
}
