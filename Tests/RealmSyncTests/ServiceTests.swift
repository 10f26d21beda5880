import Foundation
import Glibc
import SharedStore
import TestSupport
import XCTest

/// The service as a process: streams, reload, ends, folders.
final class ServiceTests: ServiceTestCase {
    private func mirror(_ name: String, _ more: String = "") -> String {
        "[mirror \(name)]\nsource = \(scratch.file(name + ".realm"))\ndestination = \(scratch.file(name + ".copy"))\n\(more)\n"
    }

    func testAMirrorAndAnArchiveOfOneConfigurationFollowTheirSources() throws {
        let a = try makeSource("a.realm"), b = try makeSource("b.realm")
        try configure(mirror("a") + "[archive b]\nsource = \(scratch.file("b.realm"))\narchive = \(scratch.file("b.archive"))\n")
        let child = try start()
        for number in 1...5 {
            let versions = (try commit(a, Int64(number)), try commit(b, Int64(number)))
            try arrive("a", version: versions.0)
            try arrive("b", version: versions.1)
        }
        let (code, json) = try status()
        XCTAssertEqual(code, 0)
        XCTAssertEqual(json["verdict"] as? String, "fine")
        let table = try RealmSync("status", "--socket", socket)
        XCTAssertEqual(table.exitCode, 0)
        XCTAssertTrue(table.output.contains("2 streams: 2 fine"), table.output)
        stop(child)
        XCTAssertEqual(try export(scratch.file("a.copy")), try export(scratch.file("a.realm")))
        let restored = scratch.file("restored.realm")
        XCTAssertEqual(try RealmSync("restore", scratch.file("b.archive"), restored).exitCode, 0)
        XCTAssertEqual(try export(restored), try export(scratch.file("b.realm")))
        XCTAssertFalse(FileManager.default.fileExists(atPath: socket))
    }

    func testFiguresOfAnArchiveCountWhatThisServiceHasStored() throws {
        let a = try makeSource("a.realm")
        try configure("[archive a]\nsource = \(scratch.file("a.realm"))\narchive = \(scratch.file("a.archive"))\n")
        for expected in [4, 3] {
            let child = try start()
            XCTAssertTrue(try eventually { try streams()["a"]?["lagSeconds"] as? Double == 0 })
            for _ in 0..<3 { try arrive("a", version: commit(a)) }
            let stream = try XCTUnwrap(streams()["a"])
            // The first one begins with an image; the second finds three versions more than there were.
            XCTAssertEqual(stream["steps"] as? Int, expected, "\(stream)")
            XCTAssertEqual(stream["images"] as? Int, expected - 3, "\(stream)")
            XCTAssertGreaterThan(stream["bytes"] as? Int ?? 0, 100, "\(stream)")
            stop(child)
        }
        let summary = try RealmSync("history", scratch.file("a.archive"), "--json").output
        XCTAssertTrue(summary.replacingOccurrences(of: " ", with: "").contains("\"versions\":7"), summary)
    }

    func testAFailingStreamHoldsBackNoOtherAndIsTriedAgain() throws {
        let a = try makeSource("a.realm")
        try Data("something else".utf8).write(to: URL(fileURLWithPath: scratch.file("b.copy")))
        let b = try makeSource("b.realm")
        try configure(mirror("a") + mirror("b") + mirror("c"))
        let child = try start()
        try arrive("a", version: commit(a))
        XCTAssertTrue(try eventually { try status().code == 2 })
        XCTAssertTrue(try eventually { try (streams()["c"]?["failures"] as? Int ?? 0) >= 2 })
        let all = try streams()
        XCTAssertEqual(all["a"]?["verdict"] as? String, "fine")
        XCTAssertEqual(all["b"]?["verdict"] as? String, "failed")
        XCTAssertTrue((all["b"]?["lastError"] as? String ?? "").contains("is no mirror of"), "\(all["b"] ?? [:])")
        XCTAssertTrue((all["c"]?["lastError"] as? String ?? "").contains("c.realm"), "\(all["c"] ?? [:])")
        // What was in the way goes, and nobody needs to tell the service.
        try FileManager.default.removeItem(atPath: scratch.file("b.copy"))
        let c = try makeSource("c.realm")
        try arrive("b", version: commit(b))
        try arrive("c", version: commit(c))
        XCTAssertEqual(try status().code, 0)
        stop(child)
    }

    func testAReloadDisturbsNoStreamThatDidNotChange() throws {
        let stores = try ["a", "b", "c"].map { try makeSource($0 + ".realm") }
        try configure(mirror("a") + mirror("b"))
        let child = try start()
        try arrive("a", version: commit(stores[0]))
        try arrive("b", version: commit(stores[1]))
        try configure(mirror("a") + mirror("c"))
        child.signal(SIGHUP)
        XCTAssertTrue(eventually { child.errors.contains("loaded again") }, child.errors)
        try arrive("c", version: commit(stores[2]))
        try arrive("a", version: commit(stores[0]))
        let all = try streams()
        XCTAssertEqual(all.keys.sorted(), ["a", "c"])
        // It took one image at the start, and its session was never left.
        XCTAssertEqual(all["a"]?["images"] as? Int, 1)
        XCTAssertEqual(child.errors.components(separatedBy: " a: at version").count, 2, child.errors)
        // A configuration with an error changes nothing, and says where it is.
        try configure(mirror("a") + "[mirror d]\nsourse = /x\n")
        child.signal(SIGHUP)
        XCTAssertTrue(eventually { child.errors.contains("goes on as before") }, child.errors)
        XCTAssertTrue(
            child.errors.contains("\(configuration):15: [mirror] has no key 'sourse'; did you mean 'source'?"), child.errors)
        try arrive("c", version: commit(stores[2]))
        XCTAssertEqual(try status().code, 2)
        XCTAssertTrue((try status().json["configurationError"] as? String ?? "").contains("sourse"))
        stop(child)
    }

    func testAKilledServiceGoesOnWithWhatItHad() throws {
        let a = try makeSource("a.realm")
        try configure(mirror("a"))
        for round in 1...3 {
            let child = try start()
            try arrive("a", version: commit(a, Int64(round)))
            child.signal(SIGKILL)
            XCTAssertEqual(child.waitForEnd(), -SIGKILL)
            try commit(a, Int64(-round))
        }
        let child = try start()
        try arrive("a", version: commit(a))
        stop(child)
        XCTAssertEqual(try export(scratch.file("a.copy")), try export(scratch.file("a.realm")))
        XCTAssertEqual(try RealmSync("verify", scratch.file("a.copy")).exitCode, 0)
    }

    func testASecondServiceAtTheSameSocketIsRefused() throws {
        try configure("")
        let child = try start()
        let second = try RealmSync("run", "--config", configuration)
        XCTAssertNotEqual(second.exitCode, 0)
        XCTAssertTrue(second.errors.contains("somebody listens there already"), second.errors)
        XCTAssertEqual(try status().code, 0)
        stop(child)
        let gone = try RealmSync("status", "--socket", socket)
        XCTAssertEqual(gone.exitCode, 2)
        XCTAssertTrue(gone.errors.contains("does not run"), gone.errors)
    }

    func testFilesOfAFolderArePickedUpAndThoseThatVanishKeepTheirCopy() throws {
        let x = try makeSource("app/x.realm")
        _ = try makeSource("app/sub/y.realm")
        _ = try makeSource("app/sub/not.realm")
        try Data("text".utf8).write(to: URL(fileURLWithPath: scratch.file("app/notes.txt")))
        try configure(
            """
            [directory app]
            source = \(scratch.file("app"))
            pattern = *.realm
            exclude = not.*
            recursive = yes
            scan-interval = 100ms
            destination = \(scratch.file("app/backup"))
            """)
        try FileManager.default.createDirectory(atPath: scratch.file("app/backup"), withIntermediateDirectories: true)
        let child = try start()
        try arrive("app/x.realm", version: commit(x))
        let z = try makeSource("app/z.realm")
        try arrive("app/z.realm", version: commit(z))
        try arrive("app/sub/y.realm", version: 1)
        // Its own copies, which lie within the folder, are not mirrored in turn.
        XCTAssertTrue(try eventually { try status().code == 0 })
        XCTAssertEqual(try streams().keys.sorted(), ["app/sub/y.realm", "app/x.realm", "app/z.realm"])
        let copy = scratch.file("app/backup/z.realm"), before = try export(scratch.file("app/z.realm"))
        try z.close()
        try FileManager.default.removeItem(atPath: scratch.file("app/z.realm"))
        XCTAssertTrue(try eventually { try streams()["app/z.realm"]?["state"] as? String == "vanished" })
        XCTAssertEqual(try status().code, 0)
        XCTAssertEqual(try export(copy), before)
        XCTAssertEqual(try streams().count, 3)
        stop(child)
    }

    // MARK: Frozen and slow peers

    func testTheLagRisesWhileAPeerIsFrozenAndNoOtherStreamWaits() throws {
        let a = try makeSource("a.realm"), b = try makeSource("b.realm")
        try configure(mirror("a", "lag-warning = 300ms") + mirror("b"))
        let child = try start()
        try arrive("a", version: commit(a))
        // Somebody has the replica's write lock, and is frozen.
        let peer = try TestProcess()
        XCTAssertTrue(peer.ask("open \(scratch.file("a.copy")) create=0").hasPrefix("ok"), "the replica cannot be opened")
        XCTAssertTrue(peer.ask("begin").hasPrefix("ok"))
        peer.stop()
        try commit(a)
        let version = try commit(a)
        var lags: [Double] = []
        XCTAssertTrue(
            try eventually {
                guard let stream = try streams()["a"], let lag = stream["lagSeconds"] as? Double, lag > 0 else { return false }
                if lag > lags.last ?? 0 { lags.append(lag) }
                return lags.count >= 4 && stream["lagVersions"] as? Int == 2 && stream["lagBytes"] is Int
            }, "\(lags)")
        XCTAssertTrue(try eventually { try status().code == 1 })
        try arrive("b", version: commit(b))
        peer.resume()
        XCTAssertTrue(peer.ask("end").hasPrefix("ok"))
        try arrive("a", version: version)
        XCTAssertEqual(try status().code, 0)
        stop(child)
    }

    /// Stands for ssh: fails while `gone` is there, and notes its process in `process`.
    private func makeConnector(gone: String, process: String) throws -> String {
        // What follows the name of the host is a command for a shell.
        let script = """
            #!/bin/sh
            [ -e '\(gone)' ] && exit 255
            echo $$ > '\(process)'
            shift
            eval "exec $*"
            """
        let program = scratch.file("connect")
        try Data((script + "\n").utf8).write(to: URL(fileURLWithPath: program))
        chmod(program, 0o700)
        return """
            [mirror a]
            source = \(scratch.file("a.realm"))
            destination = ssh://elsewhere\(scratch.file("a.copy"))
            ssh-program = \(program)
            remote-program = \(ChildProcess.products.appendingPathComponent("realm-sync").path)

            """
    }

    func testAnIdleMirrorWhoseTargetIsOutOfReachIsSaidToBeBehind() throws {
        let a = try makeSource("a.realm")
        let gone = scratch.file("gone"), process = scratch.file("process")
        try configure(makeConnector(gone: gone, process: process) + "lag-warning = 300ms\n")
        let child = try start()
        try arrive("a", version: commit(a))
        XCTAssertEqual(try status().code, 0)
        try Data().write(to: URL(fileURLWithPath: gone))
        let text = try String(contentsOfFile: process, encoding: .utf8).trimmingCharacters(in: .whitespacesAndNewlines)
        kill(try XCTUnwrap(pid_t(text)), SIGKILL)
        // Nothing is committed, and nobody knows what is there.
        XCTAssertTrue(try eventually { try status().code == 1 }, child.errors)
        let stream = try XCTUnwrap(try streams()["a"])
        XCTAssertGreaterThan(stream["lagSeconds"] as? Double ?? 0, 0.3, "\(stream)")
        XCTAssertNotNil(stream["waitsFor"] as? String, "\(stream)")
        try FileManager.default.removeItem(atPath: gone)
        XCTAssertTrue(try eventually { try status().code == 0 }, child.errors)
        stop(child)
    }

    func testAServiceThatIsStoppedWhileItCopiesTellsOfNoFailure() throws {
        let a = try makeSource("a.realm")
        try a.write { transaction in
            let table = try transaction.editor.editor(named: "class_Item")
            for number in 0..<20_000 { try table.set("number", of: table.createObject(), to: .int(Int64(number * 7919))) }
        }
        try configure(makeConnector(gone: scratch.file("gone"), process: scratch.file("process")) + "rate-limit = 2K\n")
        let child = try start()
        XCTAssertTrue(try eventually { try streams()["a"]?["state"] as? String == "copying" }, child.errors)
        stop(child)
        XCTAssertFalse(child.errors.contains(" error "), child.errors)
    }

    func testAStreamThatHangsIsToldOfThoughNobodyAsks() throws {
        let a = try makeSource("a.realm")
        let record = scratch.file("events")
        try configure(mirror("a", "lag-warning = 300ms\non-failure = echo $REALM_SYNC_EVENT >> \(record)\nhook-interval = 1ms"))
        let child = try start()
        for _ in 0..<500 where !FileManager.default.fileExists(atPath: scratch.file("a.copy")) { usleep(20_000) }
        let peer = try TestProcess()
        XCTAssertTrue(peer.ask("open \(scratch.file("a.copy")) create=0").hasPrefix("ok"))
        XCTAssertTrue(peer.ask("begin").hasPrefix("ok"))
        peer.stop()
        try commit(a)
        XCTAssertTrue(eventually { FileManager.default.fileExists(atPath: record) }, child.errors)
        XCTAssertTrue(child.errors.contains("a: behind for "), child.errors)
        peer.resume()
        XCTAssertTrue(peer.ask("end").hasPrefix("ok"))
        try arrive("a", version: commit(a))
        stop(child)
    }

    func testAServiceWithAFrozenPeerStopsInTime() throws {
        let a = try makeSource("a.realm")
        try configure(mirror("a"), service: "stop-timeout = 200ms")
        let child = try start()
        try arrive("a", version: commit(a))
        let peer = try TestProcess()
        XCTAssertTrue(peer.ask("open \(scratch.file("a.copy")) create=0").hasPrefix("ok"))
        XCTAssertTrue(peer.ask("begin").hasPrefix("ok"))
        peer.stop()
        try commit(a)
        XCTAssertTrue(try eventually { try (streams()["a"]?["lagSeconds"] as? Double ?? 0) > 0 })
        stop(child)
        peer.resume()
    }

    func testAnIdleServiceLeavesTheSessionAndComesBack() throws {
        var a: Store? = try makeSource("a.realm")
        try configure(mirror("a", "leave-when-idle = 200ms"))
        let child = try start()
        try arrive("a", version: commit(try XCTUnwrap(a)))
        XCTAssertTrue(try eventually { try streams()["a"]?["state"] as? String == "left" })
        XCTAssertEqual(try streams()["a"]?["lagSeconds"] as? Double, 0)
        // An application that opens the file now is alone.
        try a?.close()
        a = nil
        let peer = try TestProcess()
        XCTAssertTrue(
            peer.ask("open \(scratch.file("a.realm")) create=0 durability=unsafe").hasPrefix("ok initiator=true participants=1"))
        peer.kill()
        let again = try Store.open(
            scratch.file("a.realm"),
            {
                var o = StoreOptions(); o.durability = .unsafe; return o
            }())
        let version = try commit(again)
        try arrive("a", version: version)
        stop(child)
        XCTAssertEqual(try export(scratch.file("a.copy")), try export(scratch.file("a.realm")))
    }
}
