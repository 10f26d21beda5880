import Foundation
@testable import Replication
import SharedStore
import SystemCalls
import TestSupport
import XCTest

/// Mirrors between processes, either side killed at the steps of the protocol, and over a pipe.
final class WireProcessTests: WireTestCase {
    private func startServer(_ arguments: String...) throws -> (process: TestProcess, port: String) {
        let server = try TestProcess(["serve", root, "certs=\(certificates),server"] + arguments)
        let line = server.line() ?? ""
        XCTAssertTrue(line.hasPrefix("listening "), line)
        return (server, String(line.split(separator: ":").last ?? ""))
    }

    private func startMirror(_ from: String, _ to: String, _ arguments: String...) throws -> TestProcess {
        try TestProcess(["mirror", from, to, "certs=\(certificates),client"] + arguments)
    }

    private func stop(_ process: TestProcess, file: StaticString = #filePath, line: UInt = #line) {
        process.send("stop")
        XCTAssertEqual(process.finish(), 0, file: file, line: line)
    }

    /// The numbers of "status VERSION SOURCE STEPS IMAGES".
    private func status(_ process: TestProcess) -> [Int] {
        process.send("status")
        while let line = process.line() {
            if line.hasPrefix("status") { return line.split(separator: " ").dropFirst().compactMap { Int($0) } }
        }
        return []
    }

    private static let senderPoints = ["wire.connected", "wire.step-made", "wire.step-sent", "wire.acknowledged"]
    private static let receiverPoints = [
        "wire.step-received", "apply.locked", "apply.stored", "apply.flipped", "apply.published", "apply.noted",
        "wire.before-acknowledgement",
    ]

    private func sound(_ text: String) throws { try assertSound(replica, text) }

    func testASenderKilledAtAnyStepIsSucceededWithoutANewImage() throws {
        let store = try Store.open(source, options())
        try makeTable(store)
        var random = SplitMix(seed: 131)
        let server = try startServer()
        let url = "realm://127.0.0.1:\(server.port)/b.realm"
        let first = try startMirror(source, url)
        reaches(2)
        XCTAssertTrue(eventually { status(first).last == 1 })
        stop(first)
        for point in Self.senderPoints {
            let victim = try startMirror(source, url, "kill-at=\(point)")
            try change(store, &random)
            XCTAssertEqual(victim.waitUntilGone(), -SIGKILL, point)
            try change(store, &random)
            let successor = try startMirror(source, url)
            reaches(try store.newestVersion(), point)
            XCTAssertEqual(status(successor).last, 0, "\(point): no new image")
            stop(successor)
        }
        try assertReplicaEquals(store)
        stop(server.process)
        try sound("at the end")
        try store.close()
    }

    func testAReceiverKilledAtAnyStepIsSucceededWithoutANewImage() throws {
        let store = try Store.open(source, options())
        try makeTable(store)
        var random = SplitMix(seed: 132)
        let begin = try startServer()
        // The same port for every server, so that the mirror finds its successor.
        let address = "127.0.0.1:\(begin.port)", url = "realm://\(address)/b.realm"
        let mirror = try startMirror(source, url)
        reaches(2)
        XCTAssertTrue(eventually { status(mirror).last == 1 })
        stop(begin.process)
        for point in Self.receiverPoints {
            let victim = try startServer("listen=\(address)", "kill-at=\(point)")
            try change(store, &random)
            XCTAssertEqual(victim.process.waitUntilGone(), -SIGKILL, point)
            try sound(point)
            try change(store, &random)
            let successor = try startServer("listen=\(address)")
            reaches(try store.newestVersion(), point)
            XCTAssertEqual(status(mirror).last, 1, "\(point): no new image")
            stop(successor.process)
        }
        stop(mirror)
        try assertReplicaEquals(store)
        try store.close()
        try sound("at the end")
    }

    func testEitherSideKilledDuringTheImageLeavesTheOldFileOrTheWholeNewOne() throws {
        let store = try Store.open(source, options())
        try makeTable(store)
        var random = SplitMix(seed: 133)
        for _ in 0..<10 { try change(store, &random, adds: 200, textLength: 2000) }
        for point in ["wire.image-announced", "wire.piece-sent", "wire.image-sent"] {
            let server = try startServer()
            let victim = try startMirror(source, "realm://127.0.0.1:\(server.port)/b.realm", "kill-at=\(point)")
            XCTAssertEqual(victim.waitUntilGone(), -SIGKILL, point)
            stop(server.process)
            if FileManager.default.fileExists(atPath: replica) { try sound(point) }
        }
        for point in ["wire.piece-written", "wire.image-whole", "image.before-state", "image.before-name", "image.named"] {
            // An image is needed each time.
            try? FileManager.default.removeItem(atPath: replica)
            let server = try startServer("kill-at=\(point)")
            let mirror = try startMirror(source, "realm://127.0.0.1:\(server.port)/b.realm")
            XCTAssertEqual(server.process.waitUntilGone(), -SIGKILL, point)
            try change(store, &random)
            if FileManager.default.fileExists(atPath: replica) { try sound(point) }
            mirror.kill()
        }
        let server = try startServer()
        let mirror = try startMirror(source, "realm://127.0.0.1:\(server.port)/b.realm")
        reaches(try store.newestVersion())
        try assertReplicaEquals(store)
        stop(mirror)
        stop(server.process)
        XCTAssertFalse(FileManager.default.fileExists(atPath: replica + ".management/mirror.part"))
        try store.close()
        try sound("at the end")
    }

    // MARK: Over a pipe

    /// A stand-in for ssh: leaves out host and options, and lets a shell run the rest, as the real one does.
    private func pipeProgram() throws -> String {
        let path = scratch.file("ssh")
        let program = ChildProcess.products.appendingPathComponent("realm-sync").path
        let text =
            "#!/bin/sh\n[ \"$1\" = -p ] && shift 2\nshift\n[ \"$1\" = realm-sync ] || exit 9\nshift\nexec sh -c \"exec '\(program)' $*\"\n"
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path)
        return path
    }

    func testAMirrorOverAPipeInBothDirectionsWithNamesThatAShellWouldMangle() throws {
        let store = try Store.open(source, options())
        try makeTable(store)
        var random = SplitMix(seed: 134)
        let ssh = try pipeProgram()
        let there = root + "/it's a $(name).realm", back = scratch.file("back.realm")
        let push = try mirror(source, "ssh://user@host:22\(there)", wire: { $0.sshProgram = [ssh] })
        reaches(2, at: there, "\(push.notes)")
        let pull = try mirror("ssh://host\(there)", back, wire: { $0.sshProgram = [ssh] })
        for _ in 0..<10 { try change(store, &random) }
        reaches(12, at: there, "\(push.notes)")
        reaches(12, at: back, "\(pull.notes)")
        try assertReplicaEquals(store, there)
        try assertReplicaEquals(store, back)
        XCTAssertNil(pull.stop())
        XCTAssertNil(push.stop())
        // A source that is not there, and a program that cannot be started.
        guard
            case .refused(_, .notFound, _)? = try mirror(
                "ssh://host\(root)/none.realm", back + "2", wire: { $0.sshProgram = [ssh] }
            ).join() as? WireError
        else { return XCTFail("a file that is not there") }
        let lost = try mirror(source, "ssh://host/x", wire: { $0.sshProgram = [scratch.file("no-such-program")] })
        XCTAssertTrue(eventually { lost.notes.contains { $0.contains("cannot be reached") } }, "\(lost.notes)")
        XCTAssertNil(lost.stop())
        try store.close()
    }
}
