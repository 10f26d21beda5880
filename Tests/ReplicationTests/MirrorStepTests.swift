import Foundation
@testable import Replication
import SharedStore
import SystemCalls
import TestSupport
import XCTest

/// Images and single steps, one after the other by hand.
final class MirrorStepTests: MirrorTestCase {
    /// A source and a replica that stands at its newest version.
    private final class Pair {
        let source: Store
        let applier: Applier
        let reader: Store
        var base: HeldSnapshot

        init(_ source: Store, _ path: String, _ options: StoreOptions) throws {
            self.source = source
            _ = try Mirror.once(source: source.path, destination: path, options: usualMirrorOptions())
            var readOnly = options
            readOnly.access = .readOnly
            reader = try Store.open(path, readOnly)
            applier = try Applier(path, label: "test", key: TestKeys.usual)
            let participant = try XCTUnwrap(source.participant)
            base = try HeldSnapshot(participant, try participant.acquireNewest(.live))
        }

        func next() throws -> MirrorStep {
            let participant = try XCTUnwrap(source.participant)
            return try MirrorStep(
                base, HeldSnapshot(participant, participant.acquireNewest(.live)), source: "source", checks: true)
        }

        func close() throws {
            applier.close()
            try reader.close(force: true)
            try source.close(force: true)
        }
    }

    private func pair(_ prepare: (Store) throws -> Void = { _ in }) throws -> Pair {
        let store = try Store.open(source, options())
        try makeTable(store)
        try prepare(store)
        return try Pair(store, replica, options())
    }

    /// The walk, the free lists, and two whole traversals say the same.
    private func assertExact(_ step: MirrorStep, _ base: HeldSnapshot, _ text: String) throws {
        let walked = try DifferenceWalk.ranges(memory: step.held().memory, older: XCTUnwrap(step.parentExtents), newer: step.this)
        XCTAssertEqual(step.ranges, walked, text)
        let nothing = FreeExtents(positions: [24], lengths: [.max / 2], logicalSize: .max / 2 + 24)
        func nodes(_ held: HeldSnapshot) throws -> [Range<Int>] {
            try DifferenceWalk.ranges(memory: held.memory, older: nothing, newer: held.snapshot)
        }
        let old = FreeExtents.bytes(try nodes(base)), new = FreeExtents.bytes(try nodes(step.held()))
        XCTAssertEqual(FreeExtents.bytes(step.ranges), new.subtracting(old), text)
    }

    private func ship(_ pair: Pair, _ text: String, exact: Bool = true) throws {
        let step = try pair.next()
        if exact { try assertExact(step, pair.base, text) }
        XCTAssertEqual(try pair.applier.attempt(step), .applied, text)
        pair.base = try step.held()
        try assertEqual(pair.source, pair.reader, text)
    }

    func testAtEachShippedVersionTheReplicaEqualsTheSourceInEveryUsedByte() throws {
        let pair = try pair()
        var random = SplitMix(seed: 71)
        print("seed 71")
        for round in 0..<120 {
            for _ in 0...Int(random.next() % 3) { try change(pair.source, &random) }
            try ship(pair, "round \(round)")
        }
        try pair.close()
        try assertSound(replica)
    }

    func testGrowthMassDeletionAndEvacuationTravel() throws {
        let pair = try pair { store in
            try store.write { transaction in
                let table = try transaction.editor.editor(named: "class_Item")
                for i in 0..<1500 {
                    let key = try table.createObject()
                    try table.set("text", of: key, to: .string(String(repeating: "y", count: 300 + i % 500)))
                }
            }
        }
        var random = SplitMix(seed: 72)
        let large = try pair.source.look { $0.snapshot.logicalSize }
        for round in 0..<30 {
            try change(pair.source, &random, adds: round < 8 ? 150 : 2, textLength: 4000, deletes: round < 8 ? 0 : 110)
            try ship(pair, "round \(round)", exact: round % 7 == 0)
        }
        XCTAssertGreaterThan(try SystemCalls.status(path: replica).size, large)
        try pair.close()
        try assertSound(replica)
    }

    func testASchemaChangeTravels() throws {
        let pair = try pair()
        try pair.source.write { transaction in
            let table = try transaction.editor.createTable("class_Other")
            try table.addColumn("link", .link, target: transaction.editor.editor(named: "class_Item").table.key)
            _ = try table.createObject()
            try transaction.editor.editor(named: "class_Item").addColumn("more", .double)
        }
        try ship(pair, "schema")
        XCTAssertNotNil(try pair.reader.look { try $0.group.table(named: "class_Other") })
        try pair.close()
        try assertSound(replica)
    }

    func testAPinnedReaderOfTheReplicaIsWaitedForOnlyWhereItMustBe() throws {
        let pair = try pair()
        var random = SplitMix(seed: 73)
        for _ in 0..<20 { try change(pair.source, &random) }
        try ship(pair, "first")
        let pinned = try pair.reader.beginRead()
        let text = try JSONExporter.text(pinned.group)
        // A reader at V1 never blocks.
        try change(pair.source, &random)
        try ship(pair, "reader at V1")
        var blocked = 0
        for round in 0..<10 {
            try change(pair.source, &random)
            let step = try pair.next()
            if case .blocked(let versions) = try pair.applier.attempt(step) {
                XCTAssertEqual(versions, [pinned.version])
                blocked += 1
                break
            }
            pair.base = try step.held()
            XCTAssertEqual(try JSONExporter.text(pinned.group), text, "round \(round)")
        }
        XCTAssertEqual(blocked, 1, "without a pin at the source, its history or space must stand in the way soon")
        XCTAssertEqual(try JSONExporter.text(pinned.group), text)
        pinned.end()
        try ship(pair, "after the reader")
        try pair.close()
    }

    func testAnObserverOfTheReplicaGetsEveryChangeset() throws {
        let pair = try pair()
        var random = SplitMix(seed: 74)
        let observer = try pair.reader.beginRead()
        var seen: [UInt64] = []
        for _ in 0..<10 {
            for _ in 0..<3 { try change(pair.source, &random) }
            try ship(pair, "step")
            try observer.refresh { version, _ in seen.append(version) }
        }
        XCTAssertEqual(seen, Array(3...32))
        observer.end()
        try pair.close()
    }

    func testAStepThatWasAppliedAlreadyIsRecognisedByItsBytes() throws {
        let pair = try pair()
        var random = SplitMix(seed: 75)
        try change(pair.source, &random)
        let step = try pair.next()
        XCTAssertEqual(try pair.applier.attempt(step), .applied)
        XCTAssertEqual(try pair.applier.attempt(step), .applied)
        try assertEqual(pair.source, pair.reader)
        try pair.close()
    }

    func testTheSameNumbersWithOtherBytesAreADivergence() throws {
        let pair = try pair()
        var writable = options()
        writable.writesToReplica = true
        let other = try Store.open(replica, writable)
        for (store, value) in [(pair.source, Int64(1)), (other, 2)] {
            try store.write { transaction in
                let table = try transaction.editor.editor(named: "class_Item")
                try table.set("number", of: table.createObject(), to: .int(value))
            }
        }
        let before = try other.look { try JSONExporter.text($0.group) }
        let step = try pair.next()
        XCTAssertEqual(step.this, try other.look { $0.snapshot }, "the trap: equal numbers")
        XCTAssertThrowsError(try pair.applier.attempt(step)) {
            guard case MirrorError.diverged = $0 else { return XCTFail("\($0)") }
        }
        XCTAssertEqual(try other.look { try JSONExporter.text($0.group) }, before)
        try other.close()
        try pair.close()
    }

    /// The current is cut on the replica's side while steps are applied: it is the version before a step or the one after it,
    /// whole.
    func testAPowerCutInAStepLeavesTheReplicaAtAVersionOfTheSource() throws {
        #if DEBUG
        let store = try Store.open(source, options())
        try makeTable(store)
        var random = SplitMix(seed: 79)
        for _ in 0..<4 { try change(store, &random, adds: 20) }
        let pair = try Pair(store, replica, options { $0.durability = .full })
        var contents: [UInt64: [UInt8]] = [:]
        func note() throws { try pair.source.look { contents[$0.version] = try JSONExporter.text($0.group) } }
        try note()
        let recorder = try PowerCutDirectory(scratch.path, ignores: { $0 != "b.realm" })
        recorder.mark(Int(try pair.source.newestVersion()))
        for i in 0..<6 {
            for _ in 0...(i % 2) { try change(pair.source, &random, adds: i == 3 ? 200 : 20) }
            try note()
            let step = try pair.next()
            XCTAssertEqual(try recorder.record { try pair.applier.attempt(step) }, .applied)
            pair.base = try step.held()
            recorder.mark(Int(try pair.source.newestVersion()))
        }
        try pair.close()
        let file = scratch.file("cut.realm")
        var before: Int?
        let count = try recorder.forEachImage(subsets: 3, seed: 11, pairs: TestKeys.usual != nil) { files, promised in
            try Data(try XCTUnwrap(files["b.realm"])).write(to: URL(fileURLWithPath: file))
            let image = try ImmutableFile(path: file, key: TestKeys.usual)
            let version = try image.group.version()
            XCTAssertGreaterThanOrEqual(Int(version), promised ?? before ?? 0)
            XCTAssertEqual(try JSONExporter.text(image.group), contents[version], "version \(version)")
            try assertSound(file, "after a promise of \(promised ?? 0)")
            before = promised
        }
        XCTAssertGreaterThan(count, 60)
        #endif
    }

    // MARK: Images

    func testAnImageTakenWhileOthersWriteIsAVersionOfTheSource() throws {
        let store = try Store.open(source, options())
        try makeTable(store)
        var random = SplitMix(seed: 77)
        for _ in 0..<50 { try change(store, &random) }
        let pinned = try store.beginRead()
        var imageOptions = usualMirrorOptions()
        nonisolated(unsafe) var writer = SplitMix(seed: 78)
        nonisolated(unsafe) let test = self
        imageOptions.onProgress = { _ in try test.change(store, &writer) }
        let result = try Mirror.once(source: source, destination: replica, options: imageOptions)
        XCTAssertEqual(result.snapshot, pinned.snapshot)
        XCTAssertGreaterThan(try store.newestVersion(), pinned.version)
        XCTAssertEqual(
            try JSONExporter.text(ImmutableFile(path: replica, key: TestKeys.usual).group), try JSONExporter.text(pinned.group))
        try assertSound(replica)
        pinned.end()
        try store.close()
    }

    func testAnImageIsRefusedWhereItWouldDestroySomething() throws {
        let store = try Store.open(source, options())
        try makeTable(store)
        func expect(_ destination: String, _ check: (MirrorError) -> Bool, line: UInt = #line) {
            XCTAssertThrowsError(
                try Mirror.once(source: source, destination: destination, options: usualMirrorOptions()), line: line
            ) {
                XCTAssertTrue(($0 as? MirrorError).map(check) ?? false, "\($0)", line: line)
            }
        }
        expect(source) { if case .sameFile = $0 { true } else { false } }
        XCTAssertEqual(symlink(source, scratch.file("link")), 0)
        expect(scratch.file("link")) { if case .sameFile = $0 { true } else { false } }
        XCTAssertEqual(link(source, scratch.file("second-name")), 0)
        expect(scratch.file("second-name")) { if case .sameFile = $0 { true } else { false } }
        try Data("precious".utf8).write(to: URL(fileURLWithPath: replica))
        expect(replica) { if case .notThisMirror(_, _, nil) = $0 { true } else { false } }
        XCTAssertEqual(try Data(contentsOf: URL(fileURLWithPath: replica)), Data("precious".utf8))
        var force = usualMirrorOptions()
        force.force = true
        let aside = try XCTUnwrap(try Mirror.once(source: source, destination: replica, options: force).setAside)
        XCTAssertEqual(try Data(contentsOf: URL(fileURLWithPath: aside)), Data("precious".utf8))
        // Open elsewhere.
        let reader = try Store.open(replica, options { $0.access = .readOnly })
        expect(replica) { if case .inUse(_, let who) = $0 { who.contains("process \(getpid())") } else { false } }
        try reader.close()
        // A chain is no loop, its end is.
        let third = scratch.file("c.realm")
        _ = try Mirror.once(source: replica, destination: third, options: usualMirrorOptions())
        XCTAssertThrowsError(try Mirror.once(source: third, destination: source, options: usualMirrorOptions())) {
            guard case MirrorError.loop = $0 else { return XCTFail("\($0)") }
        }
        XCTAssertThrowsError(
            try Mirror.once(source: scratch.file("missing"), destination: scratch.file("d.realm"), options: usualMirrorOptions()))
        XCTAssertFalse(FileManager.default.fileExists(atPath: scratch.file("d.realm")))
        try store.close()
    }

    func testAFailingImageLeavesNothingAtTheDestination() throws {
        #if DEBUG
        let store = try Store.open(source, options())
        try makeTable(store)
        defer { SystemCallInterception.hook = nil }
        for name in ["fallocate", "pwrite64", "fsync", "rename"] {
            SystemCallInterception.hook = {
                $0.name == name && $0.path.contains("b.realm") && !$0.path.contains(".lock") ? ENOSPC : nil
            }
            XCTAssertThrowsError(try Mirror.once(source: source, destination: replica, options: usualMirrorOptions()), name)
            SystemCallInterception.hook = nil
            XCTAssertFalse(FileManager.default.fileExists(atPath: replica), name)
            XCTAssertFalse(FileManager.default.fileExists(atPath: replica + ".management/mirror.part"), name)
        }
        _ = try Mirror.once(source: source, destination: replica, options: usualMirrorOptions())
        try assertSound(replica)
        try store.close()
        #endif
    }

    // MARK: Replicas

    func testAReplicaIsReadOnlyUntilItIsPromoted() throws {
        let store = try Store.open(source, options())
        try makeTable(store)
        _ = try Mirror.once(source: source, destination: replica, options: usualMirrorOptions())
        let opened = try Store.open(replica, options())
        XCTAssertNotNil(try opened.look { try $0.group.table(named: "class_Item") })
        XCTAssertThrowsError(try opened.beginWrite()) { error in
            XCTAssertTrue("\(error)".contains("mirror of \(FileIdentity.absolutePath(source))"), "\(error)")
            XCTAssertTrue("\(error)".contains("promote"), "\(error)")
        }
        XCTAssertEqual(try Mirror.promote(replica, key: TestKeys.usual)?.snapshot, try store.look { $0.snapshot })
        var random = SplitMix(seed: 1)
        try change(opened, &random)
        try opened.close()
        XCTAssertThrowsError(try Mirror.promote(replica, key: TestKeys.usual)) {
            XCTAssertEqual($0 as? MirrorError, .notAReplica(path: replica))
        }
        XCTAssertThrowsError(try Mirror.once(source: source, destination: replica, options: usualMirrorOptions())) {
            guard case MirrorError.notThisMirror(_, _, nil) = $0 else { return XCTFail("\($0)") }
        }
        XCTAssertNil(try Mirror.status(replica))
        try store.close()
        try assertSound(replica)
    }

    func testAReplicaThatSomebodyElseChangedIsNotReplacedByAnImage() throws {
        let store = try Store.open(source, options())
        try makeTable(store)
        _ = try Mirror.once(source: source, destination: replica, options: usualMirrorOptions())
        let other = try Store.open(replica, options { $0.writesToReplica = true })
        try other.write { _ = try $0.editor.createTable("class_Foreign") }
        try other.close()
        XCTAssertThrowsError(try Mirror.once(source: source, destination: replica, options: usualMirrorOptions())) {
            guard case MirrorError.diverged = $0 else { return XCTFail("\($0)") }
        }
        XCTAssertNotNil(try ImmutableFile(path: replica, key: TestKeys.usual).group.table(named: "class_Foreign"))
        var force = usualMirrorOptions()
        force.force = true
        let aside = try XCTUnwrap(try Mirror.once(source: source, destination: replica, options: force).setAside)
        XCTAssertNotNil(try ImmutableFile(path: aside, key: TestKeys.usual).group.table(named: "class_Foreign"))
        XCTAssertNil(try ImmutableFile(path: replica, key: TestKeys.usual).group.table(named: "class_Foreign"))
        try store.close()
    }

    func testTheStateIsReadAsItWasWrittenAndDamageIsNamed() throws {
        let store = try Store.open(source, options())
        try makeTable(store)
        _ = try Mirror.once(source: source, destination: replica, options: usualMirrorOptions())
        let good = try state()
        XCTAssertEqual(try MirrorState(text: good.text, path: "x"), good)
        let lines = good.text.split(separator: "\n")
        for k in lines.indices {
            var cut = lines
            cut.remove(at: k)
            if lines[k].hasPrefix("mode") { cut.removeAll { $0.hasPrefix("time") } }
            XCTAssertThrowsError(try MirrorState(text: cut.joined(separator: "\n"), path: "x"), String(lines[k]))
        }
        try store.close()
    }
}

extension FreeExtents {
    /// The eights of bytes in some ranges.
    static func bytes(_ ranges: [Range<Int>]) -> Set<Int> {
        Set(ranges.flatMap { stride(from: $0.lowerBound, to: $0.upperBound, by: 8) })
    }
}
