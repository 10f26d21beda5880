import Foundation
@testable import SharedStore
import TestSupport
import XCTest

/// The current is cut anywhere in whole transactions and in everything that replaces a file: what is left opens at the old
/// version or the new one, which verifies, and can be written on. Longer: `Scripts/power-cuts`.
class PowerCutTests: XCTestCase {
    var key: EncryptionKey? { nil }
    private let scratch = ScratchDirectory("power")
    private let after = ScratchDirectory("after")
    private static let isLong = ProcessInfo.processInfo.environment["POWER_CUTS_LONG"] != nil
    private var path: String { scratch.file("a.realm") }
    /// The content of each version, as text.
    private var contents: [UInt64: [UInt8]] = [:]

    private func options(_ change: (inout StoreOptions) -> Void = { _ in }) -> StoreOptions {
        var options = StoreOptions()
        options.encryptionKey = key
        options.keepsBackups = false
        change(&options)
        return options
    }

    private func text(_ path: String, _ key: EncryptionKey?) throws -> (version: UInt64, text: [UInt8]) {
        let file = try ImmutableFile(path: path, key: key)
        return (try file.group.version(), try JSONExporter.text(file.group))
    }

    private func note(_ store: Store) throws {
        try store.look {
            contents[$0.version] = try JSONExporter.text($0.group)
            if key == nil { known.append(try KnownVersion($0)) }
        }
    }

    /// Versions that were sound when they were noted, to the byte.
    private var known: [KnownVersion] = []

    private struct KnownVersion {
        let snapshot: Snapshot
        /// All bytes of its nodes.
        private var pieces: [(start: Int, bytes: [UInt8])] = []

        init(_ reading: ReadTransaction) throws {
            snapshot = reading.snapshot
            let report = try Verifier.verify(
                memory: reading.memory, snapshot: snapshot, form: .inPlace, format: FileHeader.currentFormat, physicalSize: nil,
                header: nil)
            XCTAssertTrue(report.isSound, "\(report.findings.prefix(2).map(\.description))")
            let list = try FreeList(reading.memory, snapshot)
            var position = FileHeader.byteCount
            for i in 0...list.blocks.count {
                let end = i < list.blocks.count ? list.blocks[i].position : snapshot.logicalSize
                if end > position {
                    pieces.append(
                        (
                            position,
                            [UInt8](
                                UnsafeRawBufferPointer(
                                    start: try reading.memory.bytes(at: position, length: end - position), count: end - position))
                        ))
                }
                if i < list.blocks.count { position = list.blocks[i].end }
            }
        }

        /// The header of the file shows this version, and all its bytes are there: what else the file holds is of no meaning.
        func isShown(by file: [UInt8]) -> Bool {
            file.withUnsafeBytes { bytes in
                guard bytes.count >= snapshot.logicalSize, bytes.count >= FileHeader.byteCount else { return false }
                let slot = Int(bytes[23] & 1)
                guard bytes.loadUnaligned(fromByteOffset: 8 * slot, as: UInt64.self) == UInt64(snapshot.topRef),
                    bytes[20 + slot] == FileHeader.currentFormat, bytes[16..<20].elementsEqual("T-DB".utf8)
                else { return false }
                return pieces.allSatisfy { piece in
                    piece.bytes.withUnsafeBytes { memcmp($0.baseAddress!, bytes.baseAddress! + piece.start, $0.count) == 0 }
                }
            }
        }
    }

    private func makeTable(_ store: Store) throws {
        try store.write { transaction in
            let table = try transaction.editor.createTable("class_Thing")
            try table.addColumn("number", .int)
            try table.addColumn("text", .string)
            try table.addColumn("others", .link, .list, target: table.table.key)
            try table.addIndex(table.column(named: "number").key)
            for i in 0..<20 { try table.set("number", of: table.createObject(), to: .int(Int64(i))) }
        }
    }

    private func change(_ transaction: WriteTransaction, _ random: inout SplitMix, textLength: Int = 60, adds: Int = 3) throws {
        let table = try transaction.editor.editor(named: "class_Thing")
        for _ in 0..<adds {
            let key = try table.createObject()
            try table.set("number", of: key, to: .int(Int64(random.next() % 100)))
            try table.set("text", of: key, to: .string(String(repeating: "x", count: Int(random.next() % UInt64(textLength)))))
            if let other = try table.table.object(at: 0) {
                try table.listInsert(table.identity(table.column(named: "others"), of: key), 0, .link(table.table.key, other.key))
            }
        }
        if let row = try table.table.object(at: Int(random.next() % UInt64(table.table.objectCount))) {
            try table.set("number", of: row.key, to: .int(Int64(random.next() % 1000)))
        }
        if table.table.objectCount > 24,
            let row = try table.table.object(at: Int(random.next() % UInt64(table.table.objectCount)))
        {
            try table.deleteObject(row.key)
        }
    }

    // MARK: Looking at images

    private func put(_ files: [String: [UInt8]]) throws {
        for name in try FileManager.default.contentsOfDirectory(atPath: after.path) {
            try FileManager.default.removeItem(atPath: after.file(name))
        }
        for (name, bytes) in files {
            XCTAssertTrue(FileManager.default.createFile(atPath: after.file(name), contents: Data(bytes)))
        }
    }

    private var images = 0

    /// The file of an image is a version that was promised or the next one, whole; now and then it is opened and written on.
    private func checkVersion(_ files: [String: [UInt8]], _ promised: Int?, _ name: String) throws {
        images += 1
        let place = "\(name), image \(images)"
        guard let bytes = files["a.realm"], promised != nil || !bytes.isEmpty else {
            return XCTAssertNil(promised, "\(place): no file")
        }
        let least = promised.map { UInt64($0) } ?? contents.keys.min() ?? 1
        func check(_ version: UInt64) {
            XCTAssertTrue(version == least || version == least + 1, "\(place): version \(version) after a promise of \(least)")
        }
        let isWrittenOn = images % (Self.isLong ? 5 : 9) == 0
        let file = after.file("a.realm")
        var content: [UInt8]
        if let shown = known.first(where: { $0.isShown(by: bytes) }) {
            check(shown.snapshot.version)
            if !isWrittenOn { return }
            content = contents[shown.snapshot.version] ?? []
            try put(files)
        } else {
            try put(files)
            let (version, text) = try text(file, key)
            content = text
            check(version)
            if let expected = contents[version] {
                XCTAssertTrue(content == expected, "\(place): version \(version) has another content")
            }
            try assertSound(file, place)
        }
        if isWrittenOn {
            let store = try Store.open(file, options { $0.durability = .full })
            XCTAssertTrue(try store.look { try JSONExporter.text($0.group) } == content, place)
            try store.write { try $0.editor.setSchemaVersion(5) }
            try store.close()
            try assertSound(file, "\(place), written on")
        }
    }

    private func assertSound(_ file: String, _ place: String) throws {
        let report = try Verifier.verify(try ImmutableFile(path: file, key: key))
        XCTAssertTrue(
            report.isSound && report.findings.allSatisfy { $0.severity == .warning },
            "\(place): \(report.findings.prefix(2).map(\.description))")
    }

    private func sweep(
        _ recorder: PowerCutDirectory, _ name: String, least: Int, stride: Int = 1, pairs: Bool? = nil,
        _ check: (([String: [UInt8]], Int?) throws -> Void)? = nil
    ) throws {
        images = 0
        var found = 0
        let count = recorder.forEachImage(
            subsets: Self.isLong ? 12 : 2, seed: 7, pairs: pairs ?? (key != nil), stride: Self.isLong ? 1 : stride
        ) { files, promised in
            do {
                if let check { try check(files, promised) } else { try checkVersion(files, promised, name) }
            } catch {
                found += 1
                if found < 4 { XCTFail("\(name), image \(images): \(error)") }
            }
        }
        if Self.isLong { print("\(name)\(key == nil ? "" : ", encrypted"): \(count) images") }
        XCTAssertGreaterThanOrEqual(count, least, name)
    }

    // MARK: Transactions

    private func transactions(
        _ name: String, commits: Int, least: Int, stride: Int = 1, prepare: (Store) throws -> Void = { _ in },
        _ body: (Store, Int, inout SplitMix) throws -> Void
    ) throws {
        let store = try Store.open(path, options())
        try makeTable(store)
        try prepare(store)
        try note(store)
        var random = SplitMix(seed: 3)
        let recorder = try PowerCutDirectory(scratch.path)
        recorder.mark(Int(try store.newestVersion()))
        for i in 0..<commits {
            try recorder.record { try body(store, i, &random) }
            recorder.mark(Int(try store.newestVersion()))
            try note(store)
        }
        try store.close()
        try sweep(recorder, name, least: least, stride: stride)
    }

    func testSmallTransactions() throws {
        try transactions("small", commits: 6, least: 80) { store, _, random in try store.write { try self.change($0, &random) } }
    }

    func testTransactionsThatGrowTheFile() throws {
        try transactions("growing", commits: 4, least: 12, stride: key == nil ? 5 : 9) { store, i, random in
            try store.write { try self.change($0, &random, textLength: 12_000 * (i % 2 + 1), adds: 4) }
        }
    }

    func testTransactionsBesideAReaderOfAnOldVersion() throws {
        var reader: ReadTransaction?
        try transactions("pinned", commits: 6, least: 60) { store, i, random in
            if i == 1 { reader = try store.beginRead() }
            if i == 4 { reader?.end() }
            try store.write { try self.change($0, &random) }
        }
    }

    func testTransactionsWhileTheFileIsEvacuated() throws {
        var before = 0
        try transactions(
            "evacuating", commits: 14, least: 10, stride: key == nil ? 15 : 25,
            prepare: { store in
                try store.write { transaction in
                    let table = try transaction.editor.editor(named: "class_Thing")
                    for _ in 0..<1400 {
                        try table.set("text", of: table.createObject(), to: .string(String(repeating: "e", count: 1000)))
                    }
                }
                try store.write { transaction in
                    let table = try transaction.editor.editor(named: "class_Thing")
                    for i in (0..<table.table.objectCount).reversed() where i % 60 != 0 {
                        if let row = try table.table.object(at: i) { try table.deleteObject(row.key) }
                    }
                }
                before = try store.look { $0.snapshot.logicalSize }
            }, { store, _, random in try store.write { try self.change($0, &random) } })
        let store = try Store.open(path, options())
        XCTAssertLessThan(try store.look { $0.snapshot.logicalSize }, before, "nothing was evacuated")
        try store.close()
    }

    func testABatchIsTheVersionBeforeItOrItsEnd() throws {
        let store = try Store.open(path, options())
        try makeTable(store)
        try note(store)
        var random = SplitMix(seed: 4)
        let recorder = try PowerCutDirectory(scratch.path)
        let first = try store.newestVersion()
        try recorder.record {
            let transaction = try store.beginWrite()
            for _ in 0..<4 {
                try change(transaction, &random)
                try transaction.commitAndContinue(syncing: false)
            }
            try transaction.sync()
            transaction.rollback()
        }
        try note(store)
        let last = try store.newestVersion()
        try store.close()
        try sweep(recorder, "batch", least: 20) { [self] files, _ in
            images += 1
            try put(files)
            let (version, content) = try text(after.file("a.realm"), key)
            XCTAssertTrue(version == first || version == last, "version \(version)")
            XCTAssertTrue(content == contents[version])
            try assertSound(after.file("a.realm"), "batch")
        }
    }

    func testTheFirstTransactionOfANewFile() throws {
        let recorder = try PowerCutDirectory(scratch.path)
        try recorder.record {
            let store = try Store.open(path, options())
            try makeTable(store)
            try note(store)
            try store.close()
        }
        try sweep(recorder, "new", least: 12) { [self] files, _ in
            images += 1
            try put(files)
            // Opening finds the whole table or none, whatever is left of the file.
            let store = try Store.open(after.file("a.realm"), options())
            let (version, content) = try store.look { ($0.version, try JSONExporter.text($0.group)) }
            XCTAssertTrue(version == 1 || content == contents[version], "version \(version)")
            try store.write { try $0.editor.setSchemaVersion(5) }
            try store.close()
            try assertSound(after.file("a.realm"), "new")
        }
    }

    // MARK: What replaces files

    private func prepared() throws -> [UInt8] {
        let store = try Store.open(path, options())
        try makeTable(store)
        var random = SplitMix(seed: 5)
        for _ in 0..<4 { try store.write { try change($0, &random, textLength: 3000) } }
        try note(store)
        try store.close()
        return try text(path, key).text
    }

    func testCompaction() throws {
        let content = try prepared()
        let store = try Store.open(path, options())
        let version = try store.newestVersion()
        let recorder = try PowerCutDirectory(scratch.path)
        recorder.mark(Int(version))
        XCTAssertTrue(try recorder.record { try store.compact() })
        contents[version] = content
        recorder.mark(Int(version))
        for _ in 0..<2 {
            try recorder.record { try store.write { try $0.editor.setSchemaVersion(Int64($0.baseVersion)) } }
            try note(store)
            recorder.mark(Int(try store.newestVersion()))
        }
        try store.close()
        try sweep(recorder, "compaction", least: 25)
    }

    func testOpeningACopyInStreamingForm() throws {
        _ = try prepared()
        let copy = scratch.file("copy.realm")
        let store = try Store.open(path, options())
        try store.look { try StreamingCopy(version: $0.version, keepsHistory: true).write($0.group, toPath: copy, key: key) }
        try store.close()
        try FileManager.default.removeItem(atPath: path)
        try FileManager.default.moveItem(atPath: copy, toPath: path)
        let (version, content) = try text(path, key)
        contents[version] = content
        let recorder = try PowerCutDirectory(scratch.path)
        recorder.mark(Int(version))
        let opened = try recorder.record { try Store.open(path, options()) }
        var random = SplitMix(seed: 6)
        for _ in 0..<2 {
            try recorder.record { try opened.write { try change($0, &random) } }
            try note(opened)
            recorder.mark(Int(try opened.newestVersion()))
        }
        try opened.close()
        try sweep(recorder, "conversion", least: 20)
    }

    func testAChangeOfKey() throws {
        let content = try prepared()
        let other = try EncryptionKey((0..<64).map { UInt8($0 + 100) })
        for (old, new) in key == nil ? [(key, Optional(other))] : [(key, Optional(other)), (other, nil)] {
            let recorder = try PowerCutDirectory(scratch.path)
            try recorder.record { try StoreFiles.changeKey(path, from: old, to: new) }
            // What is written is the new file.
            try sweep(recorder, "rekey", least: 8, pairs: new != nil) { [self] files, _ in
                images += 1
                try put(files)
                let found = try (try? text(after.file("a.realm"), new)) ?? text(after.file("a.realm"), old)
                XCTAssertTrue(found.text == content)
            }
        }
    }

    func testACopyAndASeedAreThereWholeOrNotAtAll() throws {
        let content = try prepared()
        let copy = scratch.file("copy.realm"), installed = scratch.file("installed.realm")
        let store = try Store.open(path, options())
        let recorder = try PowerCutDirectory(scratch.path)
        try recorder.record {
            try store.look { try StreamingCopy(version: $0.version, keepsHistory: true).write($0.group, toPath: copy, key: key) }
            recorder.mark(1)
            XCTAssertTrue(try SeedFile.install(copy, to: installed))
            recorder.mark(2)
        }
        try store.close()
        try sweep(recorder, "copies", least: 12) { [self] files, promised in
            images += 1
            try put(files)
            for (name, number) in [("copy.realm", 1), ("installed.realm", 2)] {
                if files[name] == nil {
                    XCTAssertLessThan(promised ?? 0, number, "\(name) was promised")
                    continue
                }
                XCTAssertTrue(try text(after.file(name), key).text == content, name)
            }
            XCTAssertTrue(try text(after.file("a.realm"), key).text == content)
        }
    }

    func testTheUpgradeOfAnOlderFile() throws {
        guard let older = Fixtures.older else {
            throw XCTSkip("the files of older formats are not beside the package; cuts of their upgrade were not tried")
        }
        if key != nil { return }
        for name in Self.isLong ? ["upgrade_20", "migration-default-v5", "upgrade_1000_22", "upgrade_11"] : ["upgrade_20"] {
            let given = older + "/\(name).realm"
            for file in try FileManager.default.contentsOfDirectory(atPath: scratch.path) {
                try FileManager.default.removeItem(atPath: scratch.file(file))
            }
            XCTAssertTrue(
                FileManager.default.createFile(atPath: path, contents: try Data(contentsOf: URL(fileURLWithPath: given))))
            let recorder = try PowerCutDirectory(
                scratch.path, ignores: { $0.hasSuffix(".lock") || $0.hasSuffix(".note") || $0.hasSuffix("-log") })
            try recorder.record { try Store.open(path, options { $0.keepsBackups = true }).close() }
            let content = try text(path, nil).text
            let original = [UInt8](try Data(contentsOf: URL(fileURLWithPath: given)))
            try sweep(recorder, "upgrade of \(name)", least: 15) { [self] files, _ in
                images += 1
                try put(files)
                for (name, bytes) in files where name.hasSuffix("backup.realm") {
                    XCTAssertEqual(bytes, original, "a backup is whole")
                }
                let store = try Store.open(after.file("a.realm"), options())
                XCTAssertTrue(try store.look { try JSONExporter.text($0.group) } == content)
                try store.close()
                try assertSound(after.file("a.realm"), name)
            }
        }
    }
}

/// The same over encrypted files.
final class EncryptedPowerCutTests: PowerCutTests {
    private static let testKey = try? EncryptionKey((0..<64).map { UInt8($0) })
    override var key: EncryptionKey? { Self.testKey }

    // A class with a test of its own is found by the test runner, and with it those that it inherits.
    func testTheFilesAreEncrypted() { XCTAssertNotNil(key) }
}
