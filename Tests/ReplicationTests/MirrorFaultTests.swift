#if DEBUG
import Foundation
@testable import Replication
@testable import SharedStore
import SystemCalls
import TestSupport
import XCTest

/// Every system call of a mirror's step, of its image and of a promotion fails once, with each error that a disk, a quota or an
/// odd file system has: a clear error, the replica at the version before or after, whole, and the mirror able to go on.
///
/// The quick form goes once through all calls with the errors in turn; the long form, `Scripts/faults`, takes every error at
/// every call.
final class MirrorFaultTests: MirrorTestCase {
    override var durability: Durability { .full }
    private static let codes = [ENOSPC, EIO, EDQUOT, EPERM, EOPNOTSUPP, ENODEV, ENOLCK, EACCES, ENOMEM]
    private static let isLong = ProcessInfo.processInfo.environment["FAULTS_LONG"] != nil

    private func name(_ code: Int32) -> String { String(cString: strerror(code)) }

    /// Runs `body` for n = 1, 2, ... with the n-th call of this thread failing, until no call is left to fail.
    private func sweep<State>(
        _ title: String, least: Int, prepare: (Int) throws -> State, _ body: (State) throws -> Void,
        check: (State, _ place: String, (any Error)?) throws -> Void
    ) throws {
        for codes in Self.isLong ? Self.codes.map({ [$0] }) : [Self.codes] {
            let thread = pthread_self()
            var count = 0, round = 0, failed = ""
            // In the quick form calls of one kind on one file are all the same after some.
            var seen: [String: Int] = [:]
            let rounds = try sweepFaults(
                codes: codes,
                selects: { call in
                    guard pthread_equal(pthread_self(), thread) != 0 else { return false }
                    let call = "\(call.name) \(call.path.split(separator: "/").last ?? "")"
                    seen[call, default: 0] += 1
                    if !Self.isLong && seen[call, default: 0] > 3 { return false }
                    count += 1
                    if count == round { failed = call }
                    return true
                },
                prepare: { number in
                    let state = try prepare(number)
                    (count, round, failed, seen) = (0, number + 1, "", [:])
                    return state
                }, body
            ) { state, error in
                let place = "\(title), call \(round): \(failed): \(name(codes[(round - 1) % codes.count]))"
                if let error { assertClear(error, place) }
                try check(state, place, error)
            }
            XCTAssertGreaterThanOrEqual(rounds, least, title)
            if Self.isLong { print("\(title), \(name(codes[0])): \(rounds) calls") }
        }
    }

    private func assertClear(_ error: any Error, _ place: String) {
        XCTAssertTrue(
            error is OpenError || error is SessionError || error is SystemError || error is MirrorError
                || error is AddressSpaceError,
            "\(place): \(type(of: error)) \(error)")
        XCTAssertTrue("\(error)".contains(scratch.path) && !"\(error)".contains("\n"), "\(place): \(error)")
    }

    private func assertNothingElseIsLeft(_ place: String) throws {
        let allowed = [source, replica].flatMap { path in ["", ".lock", ".note", ".management"].map { path + $0 } }
        let more = try FileManager.default.contentsOfDirectory(atPath: scratch.path).map { scratch.file($0) }.filter {
            !allowed.contains($0)
        }
        XCTAssertEqual(more, [], place)
    }

    func testAnyCallOfAStepMayFailWithAnyErrorAndTheStepCanBeRepeated() throws {
        let store = try Store.open(source, options())
        try makeTable(store)
        _ = try Mirror.once(source: source, destination: replica, options: usualMirrorOptions())
        let reader = try Store.open(replica, options { $0.access = .readOnly })
        let writer = try ReplicaWriter(replica, source: FileIdentity.absolutePath(source), options: usualMirrorOptions())
        XCTAssertNotNil(try writer.connect())
        let participant = try XCTUnwrap(store.participant)
        var base = try HeldSnapshot(participant, participant.acquireNewest(.live))
        var random = SplitMix(seed: 76)
        var wasApplied = false
        try sweep(
            "step", least: 8,
            prepare: { round in
                // Some steps make the file grow.
                try change(store, &random, adds: 60, textLength: round % 5 == 0 ? 4000 : 200)
                return try MirrorStep(
                    base, HeldSnapshot(participant, participant.acquireNewest(.live)), source: source, checks: false)
            },
            { step in
                wasApplied = false
                wasApplied = try writer.apply(step, seen: 1, pause: { _, _ in false })
            }
        ) { step, place, _ in
            // What could not be synced is seen by readers all the same.
            let seen = try reader.look { $0.snapshot }
            XCTAssertTrue(seen == step.this || !wasApplied && seen == step.parent, place)
            XCTAssertTrue(try writer.apply(step, seen: 2, pause: { _, _ in false }), place)
            XCTAssertEqual(try self.state().snapshot, step.this, place)
            XCTAssertEqual(
                try ImmutableFile(path: replica, key: TestKeys.usual).group.version(), step.this.version, "\(place): the header")
            base = try step.held()
            try assertEqual(store, reader, place)
        }
        writer.disconnect()
        try reader.close()
        try store.close(force: true)
        try assertNothingElseIsLeft("steps")
        try assertSound(replica)
    }

    func testAnyCallOfAnImageMayFailWithAnyErrorAndTheReplicaIsTheOldOneOrTheNewOne() throws {
        let store = try Store.open(source, options())
        try makeTable(store)
        var random = SplitMix(seed: 77)
        for isFirst in [true, false] {
            try sweep(
                isFirst ? "first image" : "next image", least: 20,
                prepare: { _ in
                    if isFirst {
                        for name in try FileManager.default.contentsOfDirectory(atPath: scratch.path)
                        where name.hasPrefix("b.realm") {
                            try FileManager.default.removeItem(atPath: scratch.file(name))
                        }
                    } else {
                        _ = try Mirror.once(source: source, destination: replica, options: usualMirrorOptions())
                    }
                    try change(store, &random, adds: 20)
                }, { _ = try Mirror.once(source: source, destination: replica, options: usualMirrorOptions()) }
            ) { _, place, error in
                let newest = try store.newestVersion()
                if FileManager.default.fileExists(atPath: replica) {
                    let version = try ImmutableFile(path: replica, key: TestKeys.usual).group.version()
                    XCTAssertTrue(
                        version == newest || !isFirst && error != nil && version == newest - 1,
                        "\(place): version \(version) of \(newest)")
                } else {
                    XCTAssertTrue(isFirst && error != nil, place)
                }
                try assertNothingElseIsLeft(place)
                _ = try Mirror.once(source: source, destination: replica, options: usualMirrorOptions())
                XCTAssertEqual(try ImmutableFile(path: replica, key: TestKeys.usual).group.version(), newest, place)
                try assertSound(replica, place)
                XCTAssertEqual(store.participant?.lockFile.participantCount, 1, place)
            }
        }
        try store.close()
    }

    func testAnyCallOfAPromotionMayFailWithAnyError() throws {
        let store = try Store.open(source, options())
        try makeTable(store)
        try sweep(
            "promotion", least: 8,
            prepare: { _ in
                for name in try FileManager.default.contentsOfDirectory(atPath: scratch.path) where name.hasPrefix("b.realm") {
                    try FileManager.default.removeItem(atPath: scratch.file(name))
                }
                _ = try Mirror.once(source: source, destination: replica, options: usualMirrorOptions())
            }, { try Mirror.promote(replica, key: TestKeys.usual) }
        ) { _, place, error in
            if try MirrorState.read(replica: replica) != nil {
                XCTAssertNotNil(error, place)
                try Mirror.promote(replica, key: TestKeys.usual)
            }
            let promoted = try Store.open(replica, options())
            try promoted.write { try $0.editor.setSchemaVersion(9) }
            try promoted.close()
            try assertSound(replica, place)
        }
        try store.close()
    }
}
#endif
