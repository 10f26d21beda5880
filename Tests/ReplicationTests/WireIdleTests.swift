import Foundation
@testable import Replication
import SharedStore
import SystemCalls
import TestSupport
import XCTest

/// Many clients that are there and say nothing, at a server that is a process of its own.
///
/// `WIRE_IDLE_CLIENTS=5000` takes so many instead of a thousand.
final class WireIdleTests: WireTestCase {
    private let count = ProcessInfo.processInfo.environment["WIRE_IDLE_CLIENTS"].flatMap { Int($0) } ?? 1000

    /// A line such as "VmRSS:   123 kB" of a process or thread.
    private func field(_ name: String, _ path: String) -> Int {
        let text = (try? String(contentsOfFile: path + "/status", encoding: .utf8)) ?? ""
        let line = text.split(separator: "\n").first { $0.hasPrefix(name + ":") } ?? ""
        return line.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap { Int($0) } ?? 0
    }

    /// How often the threads of a process have fallen asleep.
    private func sleeps(_ process: Int32) -> Int {
        let tasks = "/proc/\(process)/task"
        return ((try? FileManager.default.contentsOfDirectory(atPath: tasks)) ?? []).reduce(0) {
            $0 + field("voluntary_ctxt_switches", tasks + "/" + $1)
        }
    }

    func testAThousandIdleClientsCostLittleAndHinderNobody() throws {
        // This process has one end of each connection. Children that others start have the limit that they always have.
        var before = rlimit()
        getrlimit(__rlimit_resource_t(7), &before)
        defer { setrlimit(__rlimit_resource_t(7), &before) }
        SystemCalls.raiseDescriptorLimit()
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(7), &limit)
        let count = min(self.count, Int(clamping: limit.rlim_cur) / 8)
        let server = try ChildProcess(
            product: "realm-sync",
            [
                "serve", "--root", root, "--listen", "127.0.0.1:0", "--cert", certificates + "/server.crt", "--key",
                certificates + "/server.key",
                "--client-ca", certificates + "/ca.crt", "--max-clients", "\(count + 10)",
            ])
        let line = server.readLine(seconds: 20) ?? ""
        let port = try XCTUnwrap(UInt16(line.split(separator: ":").last ?? ""), line)
        let store = try Store.open(source, options())
        try makeTable(store)
        let push = try mirror(source, "realm://127.0.0.1:\(port)/b.realm")
        reaches(2, "\(push.notes)")
        let place = "/proc/\(server.processIdentifier)"
        let memoryBefore = field("VmRSS", place)
        let context = try TLSContext(settings("client"), isServer: false)
        var idle: [FrameChannel] = []
        for i in 0..<count {
            let descriptor = try SystemCalls.connect(
                to: SystemCalls.addresses(host: "127.0.0.1", port: port), milliseconds: 10_000, isStopped: { false })
            let stream = try TLSStream(descriptor, context, host: "127.0.0.1", peer: "server")
            try stream.shakeHands(milliseconds: 20_000, isStopped: { false })
            let channel = FrameChannel(stream)
            try channel.send(.hello(.init(direction: .push, name: "idle/\(i % 100)/\(i).realm", source: "test")))
            guard case .welcome = try channel.next() else { return XCTFail("client \(i)") }
            // What the replica's side says then; after that both are silent.
            guard case .state = try channel.next() else { return XCTFail("client \(i)") }
            idle.append(channel)
        }
        let memory = field("VmRSS", place) - memoryBefore
        let descriptors = try FileManager.default.contentsOfDirectory(atPath: place + "/fd").count
        XCTAssertEqual(field("Threads", place) >= count, true)
        // Nobody wakes while nothing happens: far fewer than one look for each of them in a second.
        let sleepsBefore = sleeps(server.processIdentifier)
        sleep(1)
        let sleepsAfter = sleeps(server.processIdentifier) - sleepsBefore
        XCTAssertLessThan(sleepsAfter, count / 2)
        // Who has something to do is served as ever.
        var random = SplitMix(seed: 141)
        for _ in 0..<10 { try change(store, &random) }
        reaches(12, "\(push.notes)")
        print("\(count) idle clients: \(memory / count) KiB each, \(descriptors) descriptors, \(sleepsAfter) sleeps in a second")
        XCTAssertLessThan(memory / count, 1024)
        XCTAssertNil(push.stop())
        try assertReplicaEquals(store)
        // It says farewell to all of them.
        server.signal(SIGTERM)
        XCTAssertEqual(server.waitForEnd(seconds: 60), 0, server.errors)
        for channel in idle {
            XCTAssertThrowsError(try { while true { _ = try channel.next(milliseconds: 5000) } }()) {
                guard case WireError.closed = $0 else { return XCTFail("\($0)") }
            }
        }
        try store.close()
    }
}
