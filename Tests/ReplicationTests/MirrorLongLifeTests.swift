import Foundation
@testable import Replication
@testable import SharedStore
import TestSupport
import XCTest

/// A source lives long: it grows past a section border, changes its schema, is emptied and shrinks, while ten readers and
/// observers hold the replica. At each shipped version the replica has every used byte of the source, and the difference by free
/// lists is the one that a walk finds.
///
/// The short form makes some hundred commits; `Scripts/long-mirror` some thousand, which grow over a section border.
final class MirrorLongLifeTests: MirrorTestCase {
    /// Nil in the short form.
    private static let stepsInLongForm = ProcessInfo.processInfo.environment["LONG_MIRROR_STEPS"].flatMap { Int($0) }
    private static let seed = ProcessInfo.processInfo.environment["LONG_MIRROR_SEED"].flatMap { UInt64($0) } ?? 84
    private var random = SplitMix(seed: seed)

    private func number(_ limit: Int) -> Int { Int(random.next() % UInt64(limit)) }

    // MARK: Who holds the replica

    /// A live reader that is told of each version it goes past, none twice and none left out.
    private final class Observer {
        let reading: ReadTransaction
        private(set) var toldCount = 0

        init(_ store: Store) throws { reading = try store.beginRead() }

        /// A message where something was wrong.
        func advance() throws -> String? {
            var last = reading.version
            var wrong: String?
            try reading.refresh { version, changeset in
                if version != last + 1 { wrong = "told of version \(version) after \(last)" }
                last = version
                self.toldCount += 1
                var parser = ChangeCollector()
                try parser.add(changeset)
            }
            return last == reading.version ? wrong : "at version \(reading.version), told of \(last)"
        }
    }

    /// Holds a version, and finds all its bytes as they were when it lets go.
    private final class Holder {
        let reading: ReadTransaction
        private let digest: Digest

        init(_ store: Store, isFrozen: Bool) throws {
            reading = isFrozen ? try store.freeze() : try store.beginRead()
            digest = try Self.digest(reading)
        }

        private static func digest(_ reading: ReadTransaction) throws -> Digest {
            try Applier.digest(reading.memory, FreeExtents(memory: reading.memory, snapshot: reading.snapshot).usedRanges())
        }

        func letGo() throws -> Bool {
            defer { reading.end() }
            return try Self.digest(reading) == digest
        }
    }

    private var observers: [Observer] = []
    private var holders: [Holder] = []
    private var blockedCount = 0

    private func letGo(_ index: Int, _ place: String) throws {
        let holder = holders.remove(at: index)
        XCTAssertTrue(try holder.letGo(), "\(place): version \(holder.reading.version) has changed in a reader's hands")
    }

    /// Applies a step; whoever is in the way has a look at what it holds, and goes.
    private func apply(_ step: MirrorStep, _ applier: Applier, _ place: String) throws {
        for _ in 0..<30 {
            guard case .blocked(let versions) = try applier.attempt(step) else { return }
            blockedCount += 1
            XCTAssertFalse(versions.isEmpty, place)
            for observer in observers where versions.contains(observer.reading.version) {
                if let wrong = try observer.advance() { XCTFail("\(place): \(wrong)") }
            }
            for index in holders.indices.reversed() where versions.contains(holders[index].reading.version) {
                try letGo(index, place)
            }
        }
        XCTFail("\(place): still in the way, though all have gone")
    }

    // MARK: What happens to the source

    private func grow(_ store: Store, objects: Int, bytes: Int) throws {
        try store.write { transaction in
            let table = try transaction.editor.editor(named: "class_Item")
            for _ in 0..<objects {
                try table.set(
                    "text", of: table.createObject(), to: .string(String(repeating: "z", count: bytes + number(bytes / 4))))
            }
        }
    }

    private func changeSchema(_ store: Store, _ step: Int) throws {
        try store.write { transaction in
            let items = try transaction.editor.editor(named: "class_Item")
            let names = transaction.group.tableNames.filter { $0.hasPrefix("class_Extra") }
            let extra = items.table.columns.first { items.table.name(of: $0).hasPrefix("extra") }
            switch number(4) {
            case 0 where !names.isEmpty:
                try transaction.editor.removeTable(transaction.editor.editor(named: names[number(names.count)]).table.key)
            case 1 where extra != nil: try items.renameColumn(extra!.key, to: "extraAgain\(step)")
            case 2 where extra != nil: try items.removeColumn(extra!.key)
            default:
                let table = try transaction.editor.createTable("class_Extra\(step)")
                try table.addPrimaryKeyColumn("id", .string)
                try table.addColumn("link", .link, target: items.table.key)
                try table.addColumn("any", .mixed, .list)
                _ = try table.createObject(primaryKey: .string("object \(step)"))
                try items.addColumn("extra\(step)", .double)
            }
        }
    }

    /// One round of what the present phase of life is made of.
    private func live(_ store: Store, _ step: Int, of steps: Int, size: Int) throws {
        let isLong = Self.stepsInLongForm != nil
        switch step * 8 / steps {
        case 1 where step % 7 == 0 && size < (isLong ? 80 << 20 : 3 << 20):
            try grow(store, objects: 12, bytes: isLong ? 400_000 : 40_000)
        case 2 where step % 5 == 0: try changeSchema(store, step)
        case 4, 5: try change(store, &random, adds: 1, deletes: isLong ? 60 : 40)
        default: for _ in 0...number(3) { try change(store, &random, adds: 30, textLength: 2000, deletes: 20) }
        }
    }

    // MARK: The life

    func testThroughoutALongLifeOfTheSourceEveryShippedVersionIsEqualAndExactBesideTenReaders() throws {
        let steps = Self.stepsInLongForm ?? 96
        print("seed \(Self.seed), \(steps) steps")
        let store = try Store.open(source, options())
        try makeTable(store)
        _ = try Mirror.once(source: source, destination: replica, options: usualMirrorOptions())
        let readers = try (0..<3).map { _ in try Store.open(replica, options { $0.access = .readOnly }) }
        let applier = try Applier(replica, label: "test", key: key)
        let participant = try XCTUnwrap(store.participant)
        var base = try HeldSnapshot(participant, participant.acquireNewest(.live))
        observers = try (0..<5).map { try Observer(readers[$0 % 3]) }
        var shrank = 0, grew = 0, largest = 0, shippedBytes = 0, letGoCount = 0
        for step in 0..<steps {
            let place = "seed \(Self.seed), step \(step)"
            try live(store, step, of: steps, size: base.snapshot.logicalSize)
            let next = try HeldSnapshot(participant, participant.acquireNewest(.live))
            let shipped = try MirrorStep(base, next, source: source, checks: false)
            XCTAssertEqual(
                shipped.ranges, try DifferenceWalk.ranges(memory: next.memory, older: base.extents(), newer: next.snapshot), place
            )
            try apply(shipped, applier, place)
            if next.snapshot.logicalSize < base.snapshot.logicalSize { shrank += 1 }
            if next.snapshot.logicalSize > base.snapshot.logicalSize { grew += 1 }
            (largest, shippedBytes) = (max(largest, next.snapshot.logicalSize), shippedBytes + shipped.byteCount)
            base = next
            try assertEqual(store, readers[step % 3], place)
            // Some look at what is new, some let go what they held, some stay.
            for observer in observers where number(3) == 0 {
                if let wrong = try observer.advance() { XCTFail("\(place): \(wrong)") }
            }
            if !holders.isEmpty && number(4) == 0 {
                try letGo(number(holders.count), place)
                letGoCount += 1
            }
            while holders.count < 5 { holders.append(try Holder(readers[number(3)], isFrozen: number(2) == 0)) }
        }
        for index in holders.indices.reversed() { try letGo(index, "the end") }
        for observer in observers {
            if let wrong = try observer.advance() { XCTFail("the end: \(wrong)") }
            XCTAssertEqual(observer.toldCount, Int(base.snapshot.version) - 2)
            observer.reading.end()
        }
        print(
            """
            \(steps) steps to version \(base.snapshot.version), \(shippedBytes) bytes shipped; the file grew \(grew) times to \(largest), shrank \
            \(shrank) times, ended at \(base.snapshot.logicalSize); readers let go \(letGoCount) times, were in the way \(blockedCount) times
            """)
        XCTAssertGreaterThan(grew, 0)
        XCTAssertGreaterThan(blockedCount, 0)
        if Self.stepsInLongForm ?? 0 >= 800 {
            XCTAssertGreaterThan(largest, FreeSpace.sectionLength)
            XCTAssertGreaterThan(shrank, 0)
        }
        base.letGo()
        applier.close()
        for reader in readers { try reader.close(force: true) }
        try store.close(force: true)
        try assertSound(source)
        try assertSound(replica)
    }
}
