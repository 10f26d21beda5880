import Foundation
@testable import Notifier
import TestSupport
import XCTest

/// Notices between real processes.
final class NotifierProcessTests: XCTestCase {
    private let scratch = ScratchDirectory("NotifierProcess")
    private var database: String { scratch.file("a.realm") }
    private var counter: String { scratch.file("counter") }

    override func setUpWithError() throws {
        try Data("content".utf8).write(to: URL(fileURLWithPath: database))
    }

    /// Starts a listener that ends when it has heard `last`, and waits until it listens.
    private func listener(last: Int, options: [String] = [], environment: [String: String] = [:]) throws -> (
        child: ChildProcess, ways: String
    ) {
        let child = try ChildProcess(
            product: "TestParticipant", ["notifier"] + options + ["listen", database, counter, "\(last)"],
            environment: environment)
        let ways = try XCTUnwrap(child.readLine(beginningWith: "ready"), child.errors)
        return (child, ways)
    }

    private func ring(_ count: Int, options: [String] = [], environment: [String: String] = [:]) throws {
        let child = try ChildProcess(
            product: "TestParticipant", ["notifier"] + options + ["ring", database, counter, "\(count)"], environment: environment
        )
        XCTAssertEqual(child.waitForEnd(), 0, child.errors)
    }

    /// So rare that what is heard is not heard by it.
    private let noNet = ["--net", "3600000"]

    func testARingCrossesProcessesThroughTheFIFO() throws {
        let (child, ways) = try listener(last: 1, options: noNet)
        XCTAssertTrue(ways.contains("fifo=\(database).note watches=true,true,true"), ways)
        try ring(1, options: noNet)
        XCTAssertEqual(child.waitForEnd(), 0)
        XCTAssertEqual(child.errors, "")
    }

    /// Four listeners, ten thousand rings at full speed, listeners killed at random and replaced: who lives at the end hears
    /// the last.
    func testEverySurvivorHearsTheLastOfTenThousandRings() throws {
        var random = SplitMix(seed: 4507)
        var listeners = try (0..<4).map { _ in try listener(last: 10_000).child }
        let ringers = try (0..<4).map { _ in
            try ChildProcess(product: "TestParticipant", ["notifier", "ring", database, counter, "2500"])
        }
        for _ in 0..<6 {
            usleep(UInt32(random.next() % 20_000))
            let victim = Int(random.next() % 4)
            listeners[victim].signal(SIGKILL)
            listeners[victim] = try listener(last: 10_000, options: []).child
        }
        for ringer in ringers { XCTAssertEqual(ringer.waitForEnd(), 0) }
        // A listener that came after the last ring hears nothing any more; one more ring reaches it.
        try ring(1)
        for child in listeners { XCTAssertEqual(child.waitForEnd(), 0, child.errors) }
    }

    // MARK: Where a FIFO cannot be made

    /// mkfifo refused by a file system or a security policy: opening works, one warning says why, and the notice comes by
    /// inotify (the committer touches the file), not by the slow look.
    func testWithoutFIFOsTheNoticeCrossesByInotify() throws {
        for code in [EPERM, ENOSYS, EIO, EACCES] {
            let options = ["--fail", "mknod=\(code)", "--net", "3600000"]
            let (child, ways) = try listener(last: 1, options: options)
            XCTAssertTrue(ways.contains("fifo=none watches=false,true,true"), ways)
            try ring(1, options: options)
            XCTAssertEqual(child.waitForEnd(), 0)
            XCTAssertEqual(child.errors.components(separatedBy: "\n").count, 2, child.errors)
            XCTAssertTrue(child.errors.contains("mknod: \(String(cString: strerror(code)))"), child.errors)
            try FileManager.default.removeItem(atPath: counter)
        }
    }

    /// Neither FIFO nor inotify: the newest version itself is looked at, in short intervals.
    func testWithoutFIFOsAndWatchesTheNetIsTightened() throws {
        let failures = ["--fail", "mknod=\(EPERM)", "--fail", "inotify_add_watch=\(ENOSPC)"]
        let (child, ways) = try listener(last: 1, options: failures)
        XCTAssertTrue(ways.contains("fifo=none watches=false,false,false net=25"), ways)
        try ring(1, options: failures)
        XCTAssertEqual(child.waitForEnd(), 0)
        XCTAssertTrue(child.errors.contains("fs.inotify.max_user_watches"), child.errors)
    }

    /// All watches of the user are taken: the FIFO alone carries the notices.
    func testWithoutWatchesTheFIFOCarriesTheNotice() throws {
        for failure in ["inotify_add_watch=\(ENOSPC)", "inotify_init1=\(EMFILE)"] {
            let options = ["--fail", failure] + noNet
            let (child, ways) = try listener(last: 1, options: options)
            XCTAssertTrue(ways.contains("fifo=\(database).note watches=false,false,false"), ways)
            try ring(1, options: noNet)
            XCTAssertEqual(child.waitForEnd(), 0)
            try FileManager.default.removeItem(atPath: counter)
        }
    }

    /// Without epoll nothing can be waited for; everything is looked at every 25 ms.
    func testWithoutEpollTheListenerLooksInShortIntervals() throws {
        let options = ["--fail", "epoll_create1=\(EMFILE)", "--net", "25"]
        let (child, _) = try listener(last: 1, options: options)
        try ring(1)
        XCTAssertEqual(child.waitForEnd(), 0)
        XCTAssertTrue(child.errors.contains("cannot wait for descriptors"), child.errors)
    }

    /// The FIFO of another user, mode 0600: the fallback is used by all who cannot open it.
    func testAForeignFIFOThatCannotBeOpenedIsGotAround() throws {
        let temporary = scratch.file("tmp")
        try FileManager.default.createDirectory(atPath: temporary, withIntermediateDirectories: false)
        XCTAssertEqual(mkfifo(database + ".note", 0o600), 0)
        let options = ["--fail", "open:realm.note=\(EACCES)"] + noNet
        let (child, ways) = try listener(last: 1, options: options, environment: ["TMPDIR": temporary])
        XCTAssertTrue(ways.contains("fifo=\(temporary)/realm_\(FIFOPath.hash(of: database)).note"), ways)
        try ring(1, options: options, environment: ["TMPDIR": temporary])
        XCTAssertEqual(child.waitForEnd(), 0)
        XCTAssertTrue(child.errors.contains("Permission denied"), child.errors)
    }

    /// A regular file in the place of the FIFO, TMPDIR set (coordination.md section 10, recipe 28).
    func testARegularFileInThePlaceOfTheFIFOLeadsAllToTheTemporaryDirectory() throws {
        try Data().write(to: URL(fileURLWithPath: database + ".note"))
        let environment = ["TMPDIR": scratch.path + "/"]
        let (child, ways) = try listener(last: 1, options: noNet, environment: environment)
        XCTAssertTrue(ways.contains("fifo=\(scratch.path)/realm_\(FIFOPath.hash(of: database)).note"), ways)
        try ring(1, options: noNet, environment: environment)
        XCTAssertEqual(child.waitForEnd(), 0)
    }

    /// The kernel's own refusal, by strace, with nothing of ours between.
    func testMkfifoRefusedByTheKernelIsGotAround() throws {
        let strace = "/usr/bin/strace"
        try XCTSkipUnless(FileManager.default.isExecutableFile(atPath: strace), "strace is not installed")
        let participant = ChildProcess.products.appendingPathComponent("TestParticipant").path
        let arguments = [
            "-f", "-qq", "-e", "trace=mknodat,mknod", "-e", "inject=mknodat,mknod:error=EPERM", "-o", scratch.file("trace"),
            participant,
        ]
        let child = try ChildProcess(path: strace, arguments + ["notifier", "listen", database, counter, "1"])
        let ways = try XCTUnwrap(child.readLine(beginningWith: "ready"), child.errors)
        XCTAssertTrue(ways.contains("fifo=none"), ways)
        let ringer = try ChildProcess(path: strace, arguments + ["notifier", "ring", database, counter, "1"])
        XCTAssertEqual(ringer.waitForEnd(), 0, ringer.errors)
        XCTAssertEqual(child.waitForEnd(), 0, child.errors)
        XCTAssertTrue(child.errors.contains("Operation not permitted"), child.errors)
    }

    // MARK: Files and descriptors

    func testReplacementByAnotherProcessIsHeard() throws {
        let (child, _) = try listener(last: 1, options: noNet)
        let shell = try ChildProcess(
            path: "/bin/sh", ["-c", "echo new > new && mv new a.realm && rm a.realm && echo again > a.realm"],
            workingDirectory: scratch.path)
        XCTAssertEqual(shell.waitForEnd(), 0)
        // The three steps may be seen as fewer, but the last state is always told.
        let line = child.readLine()
        XCTAssertTrue(line == "replaced" || line == "deleted", "\(line ?? "nothing")")
        try ring(1, options: noNet)
        XCTAssertEqual(child.waitForEnd(), 0)
    }

    func testNoDescriptorSurvivesExec() throws {
        let child = try ChildProcess(product: "TestParticipant", ["notifier", "descriptors", database])
        XCTAssertEqual(child.waitForEnd(), 0)
        let lines = child.output.split(separator: "\n")
        XCTAssertTrue(lines.contains { $0.hasSuffix("inotify") } && lines.contains { $0.hasSuffix(".note") }, child.output)
        XCTAssertEqual(lines.filter { $0.hasPrefix("inherited") }, [])
    }
}

/// A FIFO of another user, with that user's own eyes.
final class NotifierOtherUserTests: XCTestCase {
    /// The FIFO belongs to root and has mode 0600; another user of the file gets a warning and hears by other means.
    func testAForeignFIFOOfMode0600IsNoFailure() throws {
        try XCTSkipUnless(getuid() == 0, "only root can be another user")
        let setpriv = "/usr/bin/setpriv"
        try XCTSkipUnless(FileManager.default.isExecutableFile(atPath: setpriv), "setpriv is not installed")
        let scratch = ScratchDirectory("NotifierOtherUser")
        let database = scratch.file("a.realm")
        let counter = scratch.file("counter")
        for path in [database, counter] {
            try Data(repeating: 0, count: 8).write(to: URL(fileURLWithPath: path))
            XCTAssertEqual(chmod(path, 0o666), 0)
        }
        XCTAssertEqual(chmod(scratch.path, 0o777), 0)
        XCTAssertEqual(mkfifo(database + ".note", 0o600), 0)
        let participant = ChildProcess.products.appendingPathComponent("TestParticipant").path
        let other = [participant, "notifier", "--net", "3600000"]
        let identity = ["--reuid=65534", "--regid=65534", "--clear-groups"]
        let trial = try ChildProcess(path: setpriv, identity + [participant])
        try XCTSkipUnless(trial.waitForEnd() == 64, "other users cannot run the program: \(trial.errors)")

        let child = try ChildProcess(path: setpriv, identity + other + ["listen", database, counter, "1"])
        let ways = try XCTUnwrap(child.readLine(beginningWith: "ready"), child.errors)
        XCTAssertTrue(ways.contains("fifo=none watches=false,true,true"), ways)
        let ringer = try ChildProcess(path: setpriv, identity + other + ["ring", database, counter, "1"])
        XCTAssertEqual(ringer.waitForEnd(), 0, ringer.errors)
        XCTAssertEqual(child.waitForEnd(), 0, child.errors)
        XCTAssertTrue(child.errors.contains("Permission denied"), child.errors)
    }
}
