import Foundation
import Glibc
import SharedStore
import TestSupport
import XCTest

/// A service with a configuration of the test's own, and sources to mirror.
class ServiceTestCase: XCTestCase {
    lazy var scratch = ScratchDirectory("Service", inMemory: true)
    var configuration: String { scratch.file("realm-sync.conf") }
    var socket: String { scratch.file("s") }

    /// Writes the configuration: the section of the service, and `text`.
    func configure(_ text: String, service: String = "") throws {
        let whole = """
            [service]
            socket = \(socket)
            \(service)

            [defaults]
            retry-min = 50ms
            retry-max = 200ms
            grace = 0

            \(text)
            """
        try Data((whole + "\n").utf8).write(to: URL(fileURLWithPath: configuration), options: .atomic)
    }

    func start(
        _ arguments: [String] = [], environment: [String: String] = [:], file: StaticString = #filePath, line: UInt = #line
    ) throws -> ChildProcess {
        let child = try ChildProcess(
            product: "realm-sync", ["run", "--config", configuration] + arguments, environment: environment)
        XCTAssertTrue(eventually { child.errors.contains("runs as process") }, child.errors, file: file, line: line)
        return child
    }

    /// Ends the service in good order.
    func stop(_ child: ChildProcess, file: StaticString = #filePath, line: UInt = #line) {
        child.signal(SIGTERM)
        XCTAssertEqual(child.waitForEnd(seconds: 30), 0, child.errors, file: file, line: line)
    }

    func eventually(_ seconds: Double = 30, _ condition: () throws -> Bool) rethrows -> Bool {
        let limit = Date(timeIntervalSinceNow: TestTime.limit(seconds))
        while limit.timeIntervalSinceNow > 0 {
            if try condition() { return true }
            usleep(20_000)
        }
        return try condition()
    }

    // MARK: Status

    func status() throws -> (code: Int32?, json: [String: Any]) {
        let run = try RealmSync("status", "--socket", socket, "--json")
        return (run.exitCode, (try? JSONSerialization.jsonObject(with: Data(run.output.utf8))) as? [String: Any] ?? [:])
    }

    func streams() throws -> [String: [String: Any]] {
        let list = try status().json["streams"] as? [[String: Any]] ?? []
        return Dictionary(list.map { ($0["name"] as? String ?? "", $0) }) { $1 }
    }

    /// Waits until a stream is at `version`, and equal.
    func arrive(_ name: String, version: UInt64, file: StaticString = #filePath, line: UInt = #line) throws {
        var last: [String: Any]?
        let isThere = try eventually {
            last = try streams()[name]
            return (last?["version"] as? Int).map { $0 >= Int(version) } == true && last?["lagSeconds"] as? Double == 0
        }
        XCTAssertTrue(isThere, "\(name) does not come to version \(version): \(last ?? [:])", file: file, line: line)
    }

    // MARK: Sources

    func makeSource(_ name: String) throws -> Store {
        let path = scratch.file(name)
        try FileManager.default.createDirectory(
            atPath: (path as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
        var options = StoreOptions()
        options.durability = .unsafe
        let store = try Store.open(path, options)
        try store.write { transaction in
            let table = try transaction.editor.createTable("class_Item")
            try table.addColumn("number", .int)
        }
        return store
    }

    /// One commit; returns the new version.
    @discardableResult
    func commit(_ store: Store, _ number: Int64 = 1) throws -> UInt64 {
        try store.write { transaction in
            let table = try transaction.editor.editor(named: "class_Item")
            try table.set("number", of: table.createObject(), to: .int(number))
        }
        let reading = try store.beginRead()
        return withExtendedLifetime(reading) { reading.snapshot.version }
    }

    /// An HTTP request over the service's socket; nil where the connection ends without an answer.
    func request(_ text: String) -> String? {
        guard let descriptor = connection() else { return nil }
        defer { close(descriptor) }
        let bytes = Array(text.utf8)
        guard send(descriptor, bytes, bytes.count, 0x4000) == bytes.count else { return nil }
        var answer: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65536)
        while true {
            let count = recv(descriptor, &buffer, buffer.count, 0)
            if count <= 0 { break }
            answer += buffer[..<count]
        }
        return answer.isEmpty ? nil : String(decoding: answer, as: UTF8.self)
    }

    /// A connection to the service's socket, whose reads end after some seconds.
    func connection() -> Int32? {
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        let path = socket
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
        let descriptor = Glibc.socket(AF_UNIX, 1, 0)
        var limit = timeval(tv_sec: 15, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        let code = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        if code == 0 { return descriptor }
        close(descriptor)
        return nil
    }

    /// The exported objects of a file.
    func export(_ path: String) throws -> String { try RealmSync("export", path).output }
}
