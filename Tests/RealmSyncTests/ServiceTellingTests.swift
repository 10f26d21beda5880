import Foundation
import Glibc
import SharedStore
import TestSupport
import XCTest

/// What the service tells: service manager, metrics, log, hooks.
final class ServiceTellingTests: ServiceTestCase {
    private func mirror(_ name: String, _ more: String = "") -> String {
        "[mirror \(name)]\nsource = \(scratch.file(name + ".realm"))\ndestination = \(scratch.file(name + ".copy"))\n\(more)\n"
    }

    // MARK: The service manager

    /// A socket as the service manager has one.
    private final class Manager {
        let path: String
        private let descriptor: Int32
        init(_ path: String) {
            self.path = path
            descriptor = Glibc.socket(AF_UNIX, 2, 0)
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
            let code = withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
                }
            }
            XCTAssertEqual(code, 0)
            var limit = timeval(tv_sec: 20, tv_usec: 0)
            setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        }
        deinit { close(descriptor) }

        /// The next datagram that has a line which begins with `text`; nil when none comes.
        func next(_ text: String) -> [String]? {
            var buffer = [UInt8](repeating: 0, count: 4096)
            let limit = Date(timeIntervalSinceNow: TestTime.limit(20))
            while limit.timeIntervalSinceNow > 0 {
                let count = recv(descriptor, &buffer, buffer.count, 0)
                if count <= 0 { return nil }
                let lines = String(decoding: buffer[..<count], as: UTF8.self).split(separator: "\n").map(String.init)
                if lines.contains(where: { $0.hasPrefix(text) }) { return lines }
            }
            return nil
        }
    }

    func testTheServiceManagerIsToldOfReadinessLifeReloadAndEnd() throws {
        _ = try makeSource("a.realm")
        try configure(mirror("a"))
        let manager = Manager(scratch.file("n"))
        let child = try start(environment: ["NOTIFY_SOCKET": manager.path, "WATCHDOG_USEC": "200000"])
        let ready = try XCTUnwrap(manager.next("READY=1"))
        XCTAssertTrue(ready.contains("MAINPID=\(child.processIdentifier)"), "\(ready)")
        XCTAssertTrue(ready.contains { $0.hasPrefix("STATUS=1 streams: ") }, "\(ready)")
        for _ in 0..<3 { XCTAssertEqual(manager.next("WATCHDOG=1"), ["WATCHDOG=1"]) }
        child.signal(SIGHUP)
        XCTAssertTrue(try XCTUnwrap(manager.next("RELOADING=1")).contains { $0.hasPrefix("MONOTONIC_USEC=") })
        XCTAssertNotNil(manager.next("READY=1"))
        child.signal(SIGTERM)
        XCTAssertNotNil(manager.next("STOPPING=1"))
        XCTAssertEqual(child.waitForEnd(), 0, child.errors)
    }

    // MARK: HTTP

    func testMetricsAreInPrometheusForm() throws {
        let a = try makeSource("a.realm")
        try configure(mirror("a") + mirror("nowhere"))
        let child = try start(["--listen", "127.0.0.1:0"])
        let version = try commit(a)
        try arrive("a", version: version)
        XCTAssertTrue(try eventually { try (streams()["nowhere"]?["failures"] as? Int ?? 0) > 0 })
        let answer = try XCTUnwrap(request("GET /metrics HTTP/1.0\r\n\r\n"))
        let parts = answer.components(separatedBy: "\r\n\r\n")
        XCTAssertTrue(parts[0].hasPrefix("HTTP/1.0 200 OK\r\n"), parts[0])
        XCTAssertTrue(parts[0].contains("Content-Length: \(parts[1].utf8.count)"))
        var types: [String: String] = [:], values: [String: Double] = [:]
        for line in parts[1].split(separator: "\n") {
            let words = line.split(separator: " ").map(String.init)
            if line.hasPrefix("# TYPE ") {
                types[words[2]] = words[3]
            } else if !line.hasPrefix("#") {
                XCTAssertEqual(words.count, 2, String(line))
                values[words[0]] = try XCTUnwrap(Double(words[1]), String(line))
                let family = String(words[0].prefix { $0 != "{" })
                XCTAssertNotNil(types[family], family)
                XCTAssertEqual(family.hasSuffix("_total"), types[family] == "counter", family)
            }
        }
        XCTAssertEqual(values["realm_sync_version{stream=\"a\",kind=\"mirror\"}"], Double(version))
        XCTAssertEqual(values["realm_sync_lag_seconds{stream=\"a\",kind=\"mirror\"}"], 0)
        XCTAssertEqual(values["realm_sync_verdict{stream=\"nowhere\",kind=\"mirror\"}"], 2)
        XCTAssertEqual(values["realm_sync_streams"], 2)
        // The same at the port, which the log tells.
        let line = try XCTUnwrap(child.errors.split(separator: "\n").first { $0.contains("listening at 127.0.0.1:") })
        let port = try XCTUnwrap(line.split(separator: ":").last.map(String.init))
        let fetch = try ChildProcess(
            path: "/usr/bin/bash",
            [
                "-c",
                """
                exec 3<>/dev/tcp/127.0.0.1/\(port); printf 'GET /metrics HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3
                """,
            ])
        XCTAssertEqual(fetch.waitForEnd(), 0, fetch.errors)
        XCTAssertTrue(fetch.output.contains("realm_sync_streams 2\n"), fetch.output)
        XCTAssertTrue(try XCTUnwrap(request("GET /health HTTP/1.1\r\nHost: x\r\n\r\n")).hasPrefix("HTTP/1.0 503 "))
        stop(child)
    }

    func testBadRequestsAreRefusedAndBounded() throws {
        try configure("")
        let child = try start()
        XCTAssertTrue(try XCTUnwrap(request("GET /nothing HTTP/1.0\r\n\r\n")).hasPrefix("HTTP/1.0 404 "))
        XCTAssertTrue(try XCTUnwrap(request("DELETE /status HTTP/1.0\r\n\r\n")).hasPrefix("HTTP/1.0 405 "))
        XCTAssertTrue(try XCTUnwrap(request("hello\r\n\r\n")).hasPrefix("HTTP/1.0 400 "))
        XCTAssertTrue(try XCTUnwrap(request("GET /" + String(repeating: "x", count: 5000))).hasPrefix("HTTP/1.0 431 "))
        XCTAssertTrue(try XCTUnwrap(request("HEAD /status HTTP/1.0\r\n\r\n")).hasSuffix("\r\n\r\n"))
        stop(child)
    }

    func testManyIdleConnectionsAreBoundedAndKeepNobodyOut() throws {
        let a = try makeSource("a.realm")
        try configure(mirror("a"))
        let child = try start()
        try arrive("a", version: commit(a))
        func count() -> Int {
            (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(child.processIdentifier)/fd").count) ?? 0
        }
        let before = count()
        var connections: [Int32] = []
        defer { connections.forEach { close($0) } }
        for _ in 0..<300 {
            connections.append(try XCTUnwrap(connection()))
            // Half of them begin a request and never end it.
            if connections.count % 2 == 0 { XCTAssertEqual(send(connections[connections.count - 1], "GET /", 5, 0x4000), 5) }
        }
        try arrive("a", version: commit(a))
        XCTAssertLessThanOrEqual(count(), before + 64 + 8)
        XCTAssertEqual(try status().code, 0)
        stop(child)
    }

    // MARK: Log and hooks

    func testTheLogIsOneObjectALineInJSONForm() throws {
        try configure(mirror("nowhere"))
        let child = try start(["--log-format", "json"])
        XCTAssertTrue(eventually { child.errors.contains("\"event\":\"failure\"") }, child.errors)
        stop(child)
        let lines = child.errors.split(separator: "\n")
        XCTAssertGreaterThan(lines.count, 2)
        for line in lines {
            let object = try XCTUnwrap(JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any], String(line))
            XCTAssertTrue(["debug", "info", "warning", "error"].contains(object["level"] as? String ?? ""), String(line))
            XCTAssertNotNil(object["time"] as? String)
            XCTAssertNotNil(object["message"] as? String)
        }
        // The same failure again and again is one line.
        XCTAssertEqual(lines.filter { $0.contains("\"event\":\"failure\"") }.count, 1, child.errors)
    }

    func testHooksRunOnFailureRecoveryAndSuccessButNotTooOften() throws {
        let record = scratch.file("events")
        let command = "echo $REALM_SYNC_EVENT $REALM_SYNC_STREAM $REALM_SYNC_VERSION \\\"$REALM_SYNC_ERROR\\\" >> \(record)"
        try configure(
            mirror(
                "a",
                """
                on-failure = "\(command)"
                on-recovery = "\(command)"
                on-success = "\(command)"
                hook-interval = 1h
                """))
        let child = try start()
        func events() -> [String] {
            ((try? String(contentsOfFile: record, encoding: .utf8)) ?? "").split(separator: "\n").map(String.init)
        }
        XCTAssertTrue(try eventually { try (streams()["a"]?["failures"] as? Int ?? 0) >= 3 })
        XCTAssertTrue(eventually { !events().isEmpty })
        let a = try makeSource("a.realm")
        try arrive("a", version: commit(a))
        XCTAssertTrue(eventually { events().count == 3 }, "\(events())")
        for _ in 0..<3 { try arrive("a", version: commit(a)) }
        stop(child)
        XCTAssertEqual(
            events().map { String($0.prefix { $0 != " " }) }.sorted(), ["failure", "recovery", "success"], "\(events())")
        XCTAssertTrue(events().contains { $0.hasPrefix("failure a ") && $0.contains("a.realm") }, "\(events())")
    }

    /// Who was told of a failure hears that it is over though the stream is another one by then; and `--problems` shows what is
    /// left.
    func testAFailureThatIsMendedByTheConfigurationIsToldToBeOver() throws {
        let record = scratch.file("events")
        let hooks = "on-failure = echo $REALM_SYNC_EVENT >> \(record)\non-recovery = echo $REALM_SYNC_EVENT >> \(record)\n"
        let a = try makeSource("a.realm")
        let broken = "[mirror b]\nsource = \(scratch.file("a.realm"))\ndestination = \(scratch.file("none/b.copy"))\n" + hooks
        try configure(mirror("a") + broken)
        let child = try start()
        func events() -> String { (try? String(contentsOfFile: record, encoding: .utf8)) ?? "" }
        XCTAssertTrue(eventually { events() == "failure\n" }, events())
        XCTAssertTrue(try eventually { try streams()["a"]?["lagSeconds"] as? Double == 0 })
        let short = try RealmSync("status", "--problems", "--socket", socket)
        XCTAssertEqual(short.exitCode, 2)
        XCTAssertTrue(short.output.contains("2 streams: 1 fine, 1 failed"), short.output)
        XCTAssertEqual(short.output.split(separator: "\n").filter { $0.hasPrefix("a ") }, [], short.output)
        XCTAssertTrue(try RealmSync("status", "--problems", "--json", "--socket", socket).output.contains("\"b\""))
        try configure(mirror("a") + broken.replacingOccurrences(of: "none/b.copy", with: "b.copy"))
        child.signal(SIGHUP)
        XCTAssertTrue(eventually { events() == "failure\nrecovery\n" }, events())
        let rest = try RealmSync("status", "--problems", "--socket", socket)
        XCTAssertTrue(rest.output.hasPrefix("2 streams: 2 fine"), rest.output)
        stop(child)
        try a.close()
    }

    func testCommandsOfTheServiceDoNotGetTheKeysThatItHasFromItsEnvironment() throws {
        let record = scratch.file("variables"), digits = String(repeating: "5a", count: 64)
        try configure(
            mirror("a", "dest-key-env = REALM_TEST_DIGITS\non-success = env > \(record).part; mv \(record).part \(record)"))
        let source = try makeSource("a.realm")
        let child = try start(environment: ["REALM_TEST_DIGITS": digits, "REALM_TEST_OTHER": "other"])
        try arrive("a", version: commit(source))
        XCTAssertTrue(eventually { FileManager.default.fileExists(atPath: record) }, child.errors)
        let text = try String(contentsOfFile: record, encoding: .utf8)
        XCTAssertTrue(text.contains("REALM_TEST_OTHER=other") && text.contains("REALM_SYNC_STREAM=a"), text)
        XCTAssertFalse(text.contains("5a5a5a"), text)
        let environment = try Data(contentsOf: URL(fileURLWithPath: "/proc/\(child.processIdentifier)/environ"))
        XCTAssertFalse(String(decoding: environment, as: UTF8.self).contains("5a5a5a"))
        stop(child)
    }

    func testACommandThatFailsIsTold() throws {
        try configure(mirror("nowhere", "on-failure = exit 3"))
        let child = try start()
        XCTAssertTrue(eventually { child.errors.contains("the command for failure ended with 3") }, child.errors)
        stop(child)
    }
}
