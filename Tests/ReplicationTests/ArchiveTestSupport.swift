import Foundation
@testable import Replication
import SharedStore
import TestSupport
import XCTest

/// A source, a folder for its archive, and a record of what each version held.
class ArchiveTestCase: MirrorTestCase {
    override var isInMemory: Bool { true }
    var folder: String { scratch.file("archive") }
    /// The export of each version that was committed by `commit`.
    var exports: [UInt64: [UInt8]] = [:]

    func place(_ path: String? = nil, creates: Bool = true) throws -> FolderPlace {
        try FolderPlace(path ?? folder, creates: creates)
    }

    func archiveOptions(_ change: (inout Archive.Options) -> Void = { _ in }) -> Archive.Options {
        var options = Archive.Options()
        options.pinGrace = .zero
        options.removalDelay = .zero
        options.key = key
        change(&options)
        return options
    }

    func restoreOptions() -> Archive.RestoreOptions {
        var options = Archive.RestoreOptions()
        options.key = key
        return options
    }

    func makeSource(_ change: (inout StoreOptions) -> Void = { _ in }) throws -> Store {
        let store = try Store.open(source, options(change))
        try makeTable(store)
        try note(store)
        return store
    }

    func note(_ store: Store) throws {
        let reading = try store.beginRead()
        try withExtendedLifetime(reading) { exports[reading.version] = try JSONExporter.text(reading.group) }
        reading.end()
    }

    func commit(_ store: Store, _ random: inout SplitMix, textLength: Int = 40) throws {
        try change(store, &random, adds: 4, textLength: textLength, deletes: 3)
        try note(store)
    }

    /// Follows the source while `commits` are made, one whenever the archiver has nothing to do.
    @discardableResult
    func follow(
        _ place: any ArchivePlace, _ options: Archive.Options? = nil, commits: Int, _ commit: @escaping (Int) throws -> Void
    ) throws -> Archiver.Status? {
        var done = 0
        var thrown: (any Error)?
        var archiver: Archiver?
        var last: Archiver.Status?
        let made = Archiver(source: source, place: place, options: options ?? archiveOptions()) { _, milliseconds in
            // Short waits are for a version that is about to be durable.
            if milliseconds < 1000 {
                if milliseconds > 0 { usleep(1000) }
                return nil
            }
            if done == commits {
                last = archiver?.status()
                return .stop
            }
            do { try commit(done) } catch {
                thrown = error
                return .stop
            }
            done += 1
            return nil
        }
        archiver = made
        try made.run()
        if let thrown { throw thrown }
        return last
    }

    func archiveOnce(_ place: any ArchivePlace, _ options: Archive.Options? = nil) throws -> ArchiveEntry? {
        try Archiver(source: source, place: place, options: options ?? archiveOptions()) { _, milliseconds in
            if milliseconds > 0 { usleep(1000) }
            return nil
        }.once()
    }

    func export(_ path: String, key: EncryptionKey? = nil) throws -> [UInt8] {
        let file = try ImmutableFile(path: path, key: key ?? self.key)
        return try JSONExporter.text(file.group)
    }

    /// Restores a version and fails unless it holds what was noted of it.
    @discardableResult
    func assertRestores(
        _ reader: ArchiveReader, _ entry: ArchiveEntry, verifies: Bool = true, key: EncryptionKey? = nil,
        file: StaticString = #filePath, line: UInt = #line
    ) throws -> Archive.Restored {
        let path = scratch.file("restored-\(entry.sequence).realm")
        var options = Archive.RestoreOptions()
        options.verifies = verifies
        options.key = key ?? self.key
        // Verified ones are made as users make them; the others without waiting for the disk.
        let restored =
            verifies
            ? try Archive.restore(reader, entry, to: path, options: options)
            : Archive.Restored(
                entry: entry, readCount: try Archive.build(reader, entry, at: path, options, durably: false).readCount,
                setAside: nil)
        XCTAssertEqual(
            try export(path, key: key), exports[entry.snapshot.version], "version \(entry.snapshot.version)", file: file,
            line: line)
        for suffix in ["", ".lock"] { try? FileManager.default.removeItem(atPath: path + suffix) }
        return restored
    }
}

/// A place in memory that counts what is asked of it, and fails as a test wants.
final class MemoryPlace: ArchivePlace {
    struct Requests: Equatable { var get = 0, put = 0, list = 0, delete = 0 }
    let description = "memory:"
    var objects: [String: [UInt8]] = [:]
    var requests = Requests()
    /// Everything that was put, and nil for what was removed, in order.
    private(set) var changes: [(name: String, bytes: [UInt8]?)] = []
    /// Asked before each request; what it throws is the answer. `isDone` tells that the request had its effect and only the
    /// answer is lost.
    var fault: (_ request: String, _ name: String) throws -> Void = { _, _ in }
    var lostAnswer: (_ request: String, _ name: String) throws -> Void = { _, _ in }

    private func tag(_ bytes: [UInt8]) -> String { bytes.withUnsafeBytes { String(Checksum.xxh3($0)) } }

    func get(_ name: String, from offset: Int, count: Int) throws -> ArchiveRead? {
        requests.get += 1
        try fault("get", name)
        guard let bytes = objects[name] else { return nil }
        return ArchiveRead(bytes: Array(bytes.dropFirst(offset).prefix(count)), totalByteCount: bytes.count, tag: tag(bytes))
    }

    func put(_ name: String, _ bytes: [UInt8], _ condition: ArchivePutCondition) throws -> String {
        requests.put += 1
        try fault("put", name)
        switch condition {
        case .always: break
        case .absent: if objects[name] != nil { throw ArchivePlaceError.conflict(name: name) }
        case .matches(let tag): if objects[name].map({ self.tag($0) }) != tag { throw ArchivePlaceError.conflict(name: name) }
        }
        objects[name] = bytes
        changes.append((name, bytes))
        try lostAnswer("put", name)
        return tag(bytes)
    }

    func upload(_ name: String) throws -> any ArchiveUpload { Upload(self, name) }

    func list(_ prefix: String) throws -> [String] {
        requests.list += 1
        return objects.keys.filter { $0.hasPrefix(prefix) }.sorted()
    }

    func delete(_ name: String) throws {
        requests.delete += 1
        try fault("delete", name)
        objects[name] = nil
        changes.append((name, nil))
    }

    func removeLeftovers() throws {}

    private final class Upload: ArchiveUpload {
        private let place: MemoryPlace
        private let name: String
        private var bytes: [UInt8] = []
        init(_ place: MemoryPlace, _ name: String) {
            self.place = place
            self.name = name
        }
        func append(_ more: [UInt8]) throws { bytes += more }
        func finish() throws { _ = try place.put(name, bytes, .always) }
        func abandon() {}
    }
}
