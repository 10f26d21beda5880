import Foundation
@testable import Replication
import SharedStore
import SystemCalls
import TestSupport
import XCTest

/// A source here, a server on a thread of the test, and certificates for both.
class WireTestCase: MirrorTestCase {
    override var durability: Durability { .full }
    /// Whether a wire carries plain files or encrypted ones is asked by tests of its own.
    override var key: EncryptionKey? { nil }
    var certificates: String { scratch.file("certs") }
    var root: String { scratch.file("root") }
    override var replica: String { root + "/b.realm" }

    private var server: ServerThread?

    override func setUp() async throws {
        let maker = try CertificateMaker(folder: certificates)
        try maker.make(.server, name: "server", hosts: ["127.0.0.1", "localhost", "::1"])
        try maker.make(.client, name: "client")
        try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
    }

    func settings(_ name: String, in folder: String? = nil, authority: String? = nil) -> TLSSettings {
        let base = (folder ?? certificates) + "/" + name
        return TLSSettings(
            certificates: .init(certificate: base + ".crt", key: base + ".key", authority: authority ?? certificates + "/ca.crt"))
    }

    func serve(_ change: (inout MirrorServer.Options) -> Void = { _ in }) throws -> ServerThread {
        var options = MirrorServer.Options(root: root, tls: settings("server"))
        options.address = "127.0.0.1:0"
        change(&options)
        return try ServerThread(options)
    }

    /// A mirror on a thread of the test.
    func mirror(
        _ from: String, _ to: String, tls: TLSSettings? = nil, _ change: (inout Mirror.Options) -> Void = { _ in },
        wire changeWire: (inout WireOptions) -> Void = { _ in }
    ) throws -> RunThread {
        var options = Mirror.Options()
        options.checkInterval = 1
        change(&options)
        var wire = WireOptions()
        wire.tls = tls ?? settings("client")
        changeWire(&wire)
        return RunThread(try MirrorEndpoint(from), try MirrorEndpoint(to), options, wire)
    }

    /// Sources and replicas have the same newest version and the same used bytes in it.
    func assertReplicaEquals(
        _ store: Store, _ path: String? = nil, _ text: String = "", file: StaticString = #filePath, line: UInt = #line
    ) throws {
        let reader = try Store.open(path ?? replica, options { $0.access = .readOnly })
        try assertEqual(store, reader, text, file: file, line: line)
        let transaction = try reader.beginRead()
        let report = try Verifier.verify(
            memory: transaction.memory, snapshot: transaction.snapshot, form: .inPlace, format: FileHeader.currentFormat,
            physicalSize: nil, header: nil)
        XCTAssertTrue(report.isSound && report.findings.isEmpty, text, file: file, line: line)
        transaction.end()
        try reader.close()
    }

    func version(of path: String) -> UInt64 { (try? MirrorState.read(replica: path))?.snapshot.version ?? 0 }

    func reaches(
        _ version: UInt64, at path: String? = nil, _ text: @autoclosure () -> String = "", file: StaticString = #filePath,
        line: UInt = #line
    ) {
        let isThere = eventually {
            self.version(of: path ?? replica) >= version && FileManager.default.fileExists(atPath: path ?? replica)
        }
        XCTAssertTrue(isThere, "\(path ?? replica) does not come to version \(version): \(text())", file: file, line: line)
    }
}

/// Runs on a thread of its own until it is told to stop.
class ControlledThread: @unchecked Sendable {
    // Sendable: everything is guarded by `condition`.
    fileprivate let condition = NSCondition()
    private var requests: [MirrorFollower.Request] = []
    private var isOver = false
    private var failure: (any Error)?
    private var texts: [String] = []
    private var pausesTaken: [Int32] = []
    private var pipe: (reading: Int32, writing: Int32)

    init() { pipe = (try? SystemCalls.makePipe()) ?? (-1, -1) }

    deinit {
        SystemCalls.close(pipe.reading)
        SystemCalls.close(pipe.writing)
    }

    func start(_ body: @escaping @Sendable () throws -> Void) {
        Thread.detachNewThread { [self] in
            var thrown: (any Error)?
            do { try body() } catch { thrown = error }
            locked {
                failure = thrown
                isOver = true
                condition.broadcast()
            }
        }
    }

    func locked<T>(_ body: () -> T) -> T {
        condition.lock()
        defer { condition.unlock() }
        return body()
    }

    func note(_ text: String) { locked { texts.append(text) } }
    var notes: [String] { locked { texts } }

    /// Pauses before another try, in milliseconds.
    var pauses: [Int32] { locked { pausesTaken } }

    func control(_ descriptors: [Int32], _ milliseconds: Int32) -> MirrorFollower.Request? {
        if descriptors.isEmpty && milliseconds > 0 { locked { pausesTaken.append(milliseconds) } }
        var polled = ([pipe.reading] + descriptors).map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        guard poll(&polled, nfds_t(polled.count), milliseconds) > 0, polled[0].revents != 0 else { return nil }
        return locked {
            if requests.first == .stop { return .stop }
            var byte = [UInt8](repeating: 0, count: 1)
            _ = read(pipe.reading, &byte, 1)
            return requests.isEmpty ? nil : requests.removeFirst()
        }
    }

    func ask(_ request: MirrorFollower.Request) {
        locked { requests = request == .stop ? [.stop] : requests + [request] }
        var byte: UInt8 = 1
        _ = write(pipe.writing, &byte, 1)
    }

    /// Stops it; what it ended with, nil for a good end.
    @discardableResult
    func stop() -> (any Error)? {
        ask(.stop)
        return join()
    }

    func join(seconds: Double = 40) -> (any Error)? {
        let limit = Date(timeIntervalSinceNow: TestTime.limit(seconds))
        condition.lock()
        defer { condition.unlock() }
        while !isOver {
            if !condition.wait(until: limit) { return WireError.silent(peer: "the thread under test", seconds: Int(seconds)) }
        }
        return failure
    }
}

final class RunThread: ControlledThread, @unchecked Sendable {
    private var picture: MirrorFollower.Status?

    init(_ from: MirrorEndpoint, _ to: MirrorEndpoint, _ options: Mirror.Options, _ wire: WireOptions) {
        super.init()
        var options = options
        options.onMessage = { [weak self] in self?.note($0) }
        let final = options
        start { [self] in
            try MirrorRun.run(
                from: from, to: to, options: final, wire: wire, onStatus: { status in self.locked { self.picture = status } }
            ) {
                self.control($0, $1)
            }
        }
    }

    func status() -> MirrorFollower.Status? {
        locked { picture = nil }
        ask(.status)
        let limit = Date(timeIntervalSinceNow: TestTime.limit(4))
        while limit.timeIntervalSinceNow > 0 {
            if let found = locked({ picture }) { return found }
            usleep(2000)
        }
        return nil
    }
}

final class ServerThread: ControlledThread, @unchecked Sendable {
    let server: MirrorServer
    let port: UInt16
    private let notesBox: NotesBox

    /// What the server says, before and after this object is whole.
    private final class NotesBox: @unchecked Sendable {
        // Sendable: guarded by the lock.
        private let lock = NSLock()
        private var texts: [String] = []
        func add(_ text: String) {
            lock.lock()
            texts.append(text)
            lock.unlock()
        }
        var all: [String] {
            lock.lock()
            defer { lock.unlock() }
            return texts
        }
    }

    init(_ options: MirrorServer.Options) throws {
        let box = NotesBox()
        var options = options
        options.onMessage = { box.add($0) }
        notesBox = box
        server = try MirrorServer(options)
        port = UInt16(server.addresses[0].split(separator: ":").last ?? "0") ?? 0
        super.init()
        start { [self] in try server.run { self.control($0, $1) } }
    }

    override var notes: [String] { notesBox.all }

    func url(_ name: String = "b.realm") -> String { "realm://127.0.0.1:\(port)/\(name)" }
}
