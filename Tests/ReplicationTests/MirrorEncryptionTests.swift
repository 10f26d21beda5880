import Foundation
@testable import Replication
import SharedStore
import SystemCalls
import TestSupport
import XCTest

/// Mirrors between files that are encrypted, with every combination of keys.
final class MirrorEncryptionTests: MirrorTestCase {
    private let keys: [EncryptionKey?] = [
        nil, try? EncryptionKey([UInt8](repeating: 7, count: 64)), try? EncryptionKey((0..<64).map { UInt8($0) }),
    ]
    private let secret = "very secret words"

    private func open(_ path: String, _ key: EncryptionKey?, readOnly: Bool = false) throws -> Store {
        try Store.open(
            path,
            options { options in
                options.encryptionKey = key
                if readOnly { options.access = .readOnly }
            })
    }

    /// Joins the session that the mirror has begun.
    private func openBeside(_ path: String, _ key: EncryptionKey?) throws -> Store {
        var options = StoreOptions()
        options.encryptionKey = key
        options.access = .readOnly
        return try Store.open(path, options)
    }

    private func write(_ store: Store, _ number: Int64) throws {
        try store.write { transaction in
            let table = try transaction.editor.editor(named: "class_Item")
            let key = try table.createObject()
            try table.set("number", of: key, to: .int(number))
            try table.set("text", of: key, to: .string("\(secret) \(number)"))
        }
    }

    private func contains(_ text: String, _ path: String) throws -> Bool {
        try Data(contentsOf: URL(fileURLWithPath: path)).range(of: Data(text.utf8)) != nil
    }

    func testImagesAndStepsBetweenAnyTwoKeysAreFaithfulAndOnlyPlainFilesShowWhatIsInThem() throws {
        for (a, from) in keys.enumerated() {
            for (b, to) in keys.enumerated() {
                let source = scratch.file("s\(a)\(b).realm"), replica = scratch.file("r\(a)\(b).realm")
                let store = try open(source, from)
                try makeTable(store)
                for number in 0..<20 { try write(store, Int64(number)) }
                var mirrorOptions = Mirror.Options()
                (mirrorOptions.sourceKey, mirrorOptions.destinationKey) = (from, to)
                mirrorOptions.checkInterval = 1
                let result = try Mirror.once(source: source, destination: replica, options: mirrorOptions)
                XCTAssertEqual(result.snapshot.version, try store.newestVersion())
                var reader = try open(replica, to, readOnly: true)
                try assertEqual(store, reader, "image \(a) to \(b)")
                try reader.close()
                let thread = FollowerThread(source, replica, mirrorOptions)
                XCTAssertTrue(eventually { thread.status()?.imageCount == 0 }, "it goes on from the image of another mirror")
                reader = try openBeside(replica, to)
                for number in 20..<50 { try write(store, Int64(number)) }
                XCTAssertTrue(
                    try eventually { try reader.newestVersion() == store.newestVersion() }, "\(a) to \(b): \(thread.notes)")
                try assertEqual(store, reader, "steps \(a) to \(b)")
                XCTAssertNil(thread.stop())
                let last = try store.beginRead()
                let text = try JSONExporter.text(last.group)
                last.end()
                try reader.close(force: true)
                try store.close(force: true)
                XCTAssertTrue(try JSONExporter.text(ImmutableFile(path: replica, key: to).group) == text)
                let report = try Verifier.verify(ImmutableFile(path: replica, key: to))
                XCTAssertTrue(report.isSound && report.findings.isEmpty, "\(a) to \(b): \(report.findings.prefix(3))")
                XCTAssertEqual(try contains(secret, source), from == nil)
                XCTAssertEqual(try contains(secret, replica), to == nil)
                // Again, with the replica as it is; then promoted and written to.
                _ = try Mirror.once(source: source, destination: replica, options: mirrorOptions)
                XCTAssertNotNil(try Mirror.promote(replica, key: to))
                let promoted = try open(replica, to)
                try write(promoted, 99)
                try promoted.close()
            }
        }
    }

    func testAnImageOfAnEncryptedFileTakesNoMoreMemoryThanItsBuffers() throws {
        let key = try EncryptionKey([UInt8](repeating: 7, count: 64))
        /// The most that a process needs, in KB, to mirror a file with so many texts of 1 MB.
        func peak(_ count: Int) throws -> Int {
            let from = scratch.file("from-\(count).realm"), to = scratch.file("to-\(count).realm")
            let store = try open(from, key)
            try makeTable(store)
            for i in 0..<count {
                try store.write { transaction in
                    let table = try transaction.editor.editor(named: "class_Item")
                    try table.set("text", of: table.createObject(), to: .string(String(repeating: "\(i % 10)", count: 1 << 20)))
                }
            }
            try store.close()
            let mirror = try TestProcess(["mirror", from, to, "grace=0", "key=7"])
            XCTAssertTrue(eventually(60) { FileManager.default.fileExists(atPath: to) })
            XCTAssertTrue(mirror.ask("status", within: 60).hasPrefix("status "))
            let text = try String(contentsOfFile: "/proc/\(mirror.processIdentifier)/status", encoding: .utf8)
            let line = try XCTUnwrap(text.split(separator: "\n").first { $0.hasPrefix("VmHWM:") })
            mirror.send("stop")
            mirror.finish()
            XCTAssertEqual(
                try JSONExporter.text(ImmutableFile(path: to, key: key).group),
                try JSONExporter.text(ImmutableFile(path: from, key: key).group))
            return try XCTUnwrap(line.split(separator: " ").dropLast().last.flatMap { Int($0) })
        }
        let small = try peak(1), large = try peak(64)
        print("peak: \(small) KB for 1 MB, \(large) KB for 64 MB")
        // A sanitizer needs memory for each byte that it has seen.
        if TestTime.sanitizer == nil { XCTAssertLessThan(large, small + 24 << 10) }
    }

    func testAWrongKeyIsRefusedAndNothingIsMade() throws {
        let store = try open(source, keys[1])
        try makeTable(store)
        for wrong in [keys[0], keys[2]] {
            var mirrorOptions = Mirror.Options()
            mirrorOptions.sourceKey = wrong
            XCTAssertThrowsError(try Mirror.once(source: source, destination: replica, options: mirrorOptions))
            XCTAssertFalse(FileManager.default.fileExists(atPath: replica))
            let thread = FollowerThread(source, replica, mirrorOptions)
            XCTAssertNotNil(thread.join())
            XCTAssertFalse(FileManager.default.fileExists(atPath: replica))
        }
        try store.close()
    }
}

/// A follower on a thread of the test.
final class FollowerThread: @unchecked Sendable {
    // Sendable: everything is guarded by `condition`.
    private let condition = NSCondition()
    private var request: MirrorFollower.Request?
    private var isOver = false
    private var failure: (any Error)?
    private var texts: [String] = []
    private var picture: MirrorFollower.Status?

    init(_ source: String, _ destination: String, _ options: Mirror.Options) {
        var options = options
        options.onMessage = { [weak self] text in self?.locked { self?.texts.append(text) } }
        let final = options
        start { MirrorFollower(source: source, destination: destination, options: final, onStatus: $0, control: $1) }
    }

    init(
        _ make:
            @escaping @Sendable (@escaping (MirrorFollower.Status) -> Void, @escaping MirrorFollower.Control) -> MirrorFollower
    ) { start(make) }

    private func start(
        _ make:
            @escaping @Sendable (@escaping (MirrorFollower.Status) -> Void, @escaping MirrorFollower.Control) -> MirrorFollower
    ) {
        Thread.detachNewThread { [self] in
            let follower = make(
                { status in self.locked { self.picture = status } },
                { descriptors, milliseconds in self.control(descriptors, milliseconds) })
            var thrown: (any Error)?
            do { try follower.run() } catch { thrown = error }
            locked {
                failure = thrown
                isOver = true
                condition.broadcast()
            }
        }
    }

    private func locked<T>(_ body: () -> T) -> T {
        condition.lock()
        defer { condition.unlock() }
        return body()
    }

    private func control(_ descriptors: [Int32], _ milliseconds: Int32) -> MirrorFollower.Request? {
        if milliseconds > 0 {
            var requests = descriptors.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            _ = poll(&requests, nfds_t(requests.count), min(milliseconds, 20))
        }
        return locked {
            defer { if request != .stop { request = nil } }
            return request
        }
    }

    var notes: [String] { locked { texts } }

    /// The follower's picture of itself; nil where it does not answer.
    func status() -> MirrorFollower.Status? {
        locked {
            picture = nil
            request = .status
        }
        for _ in 0..<2000 {
            if let found = locked({ picture }) { return found }
            usleep(2000)
        }
        return nil
    }

    func reload() { locked { request = .reload } }

    /// Stops the follower; what it ended with, nil for a good end.
    @discardableResult
    func stop() -> (any Error)? {
        locked { request = .stop }
        return join()
    }

    /// Waits for the end.
    func join() -> (any Error)? {
        let limit = Date(timeIntervalSinceNow: TestTime.limit(30))
        condition.lock()
        defer { condition.unlock() }
        while !isOver {
            if !condition.wait(until: limit) { return WireError.silent(peer: "the follower under test", seconds: 30) }
        }
        return failure
    }
}
