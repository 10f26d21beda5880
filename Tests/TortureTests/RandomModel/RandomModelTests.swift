import Foundation
@testable import SharedStore
import TestSupport
import XCTest

/// Given files, changed at random in every column over many commits, equal a plain model of the same data.
///
/// The quick form makes a few dozen commits on each file. The long form, `Scripts/random-model [COMMITS]`, makes a thousand on
/// each of them, and includes the largest.
final class RandomModelTests: XCTestCase {
    private struct Given {
        let name: String
        let path: String
        var key: EncryptionKey?
    }

    /// Nil in the quick form.
    private static let commitsInLongForm = ProcessInfo.processInfo.environment["RANDOM_MODEL_COMMITS"].flatMap { Int($0) }
    private static let seedBase = ProcessInfo.processInfo.environment["RANDOM_MODEL_SEED"].flatMap { UInt64($0) } ?? 1

    private func given() throws -> [Given] {
        let key = try EncryptionKey(Array(try Data(contentsOf: URL(fileURLWithPath: Fixtures.core14 + "/encrypted.key"))))
        func files(_ folder: String) throws -> [Given] {
            try FileManager.default.contentsOfDirectory(atPath: folder).sorted().filter { $0.hasSuffix(".realm") }.map {
                Given(name: String($0.dropLast(6)), path: folder + "/" + $0, key: $0.contains("encrypted") ? key : nil)
            }
        }
        var all = try files(Fixtures.core14)
        if let older = Fixtures.older { all += try files(older).filter { $0.name != "sync-client-history-refuse" } }
        return all
    }

    private func options(_ key: EncryptionKey?) -> StoreOptions {
        var options = StoreOptions()
        options.durability = .unsafe
        options.encryptionKey = key
        options.keepsBackups = false
        return options
    }

    private func assertSound(_ path: String, _ key: EncryptionKey?, _ message: String) throws {
        let report = try Verifier.verify(try ImmutableFile(path: path, key: key))
        // Files of older formats keep their columns of the older type for lists of links, which is worth a warning.
        // Lists in their indexes were in the order of the keys.
        let findings = report.findings.filter {
            !($0.severity == .warning && ($0.code == .indexListOrder || $0.what.contains("a link list of older formats")))
        }
        if !report.isSound || !findings.isEmpty { throw ModelError("\(message): \(findings.prefix(3).map(\.description))") }
    }

    /// A file that failed is kept in the directory RANDOM_MODEL_KEEP, if that is given.
    private func run(_ given: Given, commits: Int, seed: UInt64, workMax: Int) throws -> String {
        let scratch = ScratchDirectory("model")
        var trace: [String] = []
        do { return try run(given, scratch, commits: commits, seed: seed, workMax: workMax, &trace) } catch {
            if let folder = ProcessInfo.processInfo.environment["RANDOM_MODEL_KEEP"] {
                try? FileManager.default.copyItem(
                    atPath: scratch.file("a.realm"), toPath: folder + "/\(given.name)-\(seed)-\(getpid()).realm")
            }
            throw ModelError("\(error); the last operations: \(trace.suffix(8).joined(separator: ", "))")
        }
    }

    /// After each commit everything is compared, but for leaves that neither the commit nor the model has touched; every so many
    /// commits those as well.
    ///
    /// - Parameter workMax: objects and columns, looked at per commit, that decide how often those are.
    private func run(
        _ given: Given, _ scratch: ScratchDirectory, commits: Int, seed: UInt64, workMax: Int, _ trace: inout [String]
    ) throws -> String {
        let path = scratch.file("a.realm")
        var given = given
        if given.key == nil {
            try TestKeys.copy(given.path, to: path)
            given.key = TestKeys.usual
        } else {
            try FileManager.default.copyItem(atPath: given.path, toPath: path)
            try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
        }
        let store = try Store.open(path, options(given.key))
        defer { try? store.close(force: true) }
        let reader = try store.beginRead()
        var changes = ModelChanges(world: try ModelWorld(reader.group), seed: seed)
        if changes.world.order.isEmpty { try makeTable(store, reader, &changes, seed) }
        let size = changes.world.tables.values.reduce(1) { $0 + $1.objects.count * max($1.columns.count, 1) }
        let interval = max(8, size / workMax)
        let verifyInterval = max(1, 3 * size / workMax)
        var pinned: (ReadTransaction, ModelWorld)?
        var known: KnownLeaves?
        var committed = 0, compared = 0, verified = 0, rolledBack = 0
        while committed < commits {
            let before = changes.world
            changes.world.touched = [:]
            let transaction = try store.beginWrite()
            let willRollBack = changes.number(12) == 0
            trace = []
            for _ in 0...changes.number(6) {
                defer { trace.append(changes.lastOperation) }
                try changes.step(transaction.editor)
            }
            if willRollBack {
                transaction.rollback()
                changes.world = before
                rolledBack += 1
                continue
            }
            try transaction.commit()
            committed += 1
            let message = "\(given.name), seed \(seed), commit \(committed)"
            var collector = ChangeCollector()
            _ = try reader.refresh { try collector.add($1) }
            if let untold = changes.world.firstUntold(since: before, collector.finish()) {
                throw ModelError("\(message): history: \(untold)")
            }
            if committed % interval == 0 || committed == commits {
                compared += 1
                known = nil
            }
            if let found = try changes.world.firstDifference(reader.group, known: &known) {
                throw ModelError("\(message): \(found)")
            }
            if committed % verifyInterval == 0 || committed == commits {
                try assertSound(path, given.key, message)
                verified += 1
            }
            if let (old, world) = pinned, changes.number(15) == 0 {
                if let found = try world.firstDifference(old.group) {
                    throw ModelError("\(message), pinned version \(old.version): \(found)")
                }
                old.end()
                pinned = nil
            } else if pinned == nil, changes.number(15) == 0 {
                pinned = (try changes.number(2) == 0 ? store.freeze() : store.beginRead(), changes.world)
            }
        }
        if let (old, world) = pinned {
            if let found = try world.firstDifference(old.group) {
                throw ModelError("\(given.name), pinned version \(old.version): \(found)")
            }
            old.end()
        }
        reader.end()
        try store.close()
        let file = try ImmutableFile(path: path, key: given.key)
        if let found = try changes.world.firstDifference(file.group) {
            throw ModelError("\(given.name), seed \(seed), reopened: \(found)")
        }
        if commits >= 1000 {
            let missed = changes.reachableColumns.subtracting(changes.coverage)
            if !missed.isEmpty { throw ModelError("\(given.name): never changed: \(missed.sorted())") }
        }
        return
            "\(given.name): \(committed) commits, \(compared) full comparisons, \(verified) verifications, \(rolledBack) rolled back, "
            + "\(changes.coverage.count) columns changed, \(try FileManager.default.attributesOfItem(atPath: path)[.size] ?? 0) bytes"
    }

    /// A file without tables gets one with a few columns.
    private func makeTable(_ store: Store, _ reader: ReadTransaction, _ changes: inout ModelChanges, _ seed: UInt64) throws {
        try store.write { transaction in
            let table = try transaction.editor.createTable("class_Thing")
            try table.addColumn("n", .int)
            try table.addColumn("s", .string, .nullable)
            try table.addColumn("any", .mixed)
            try table.addColumn("others", .link, .list, target: table.table.key)
        }
        _ = try reader.refresh()
        changes = ModelChanges(world: try ModelWorld(reader.group), seed: seed)
    }

    func testEveryGivenFileChangedAtRandomEqualsAModelOfItsData() throws {
        let seed = Self.seedBase
        print("seed \(seed)")
        var total = 0
        let only = ProcessInfo.processInfo.environment["RANDOM_MODEL_FILES"]?.split(separator: ",").map(String.init)
        for file in try given() where only?.contains(file.name) ?? true {
            // The largest file is left to the long form.
            if Self.commitsInLongForm == nil && ["trees", "upgrade_1000_23"].contains(file.name) { continue }
            do {
                let commits = Self.commitsInLongForm ?? 30
                let line = try run(
                    file, commits: commits, seed: seed &+ UInt64(total), workMax: Self.commitsInLongForm == nil ? 400 : 3000)
                if Self.commitsInLongForm != nil {
                    print(line)
                    fflush(nil)
                }
                total += 1
            } catch { XCTFail("\(file.name): \(error)") }
        }
        if only == nil { XCTAssertGreaterThanOrEqual(total, 11) }
    }
}
