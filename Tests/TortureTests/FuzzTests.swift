import SharedStore
import TestSupport
import XCTest

@testable import Fuzzer

/// A fixed part of what the fuzzer does; many more cases: `Scripts/fuzz`.
final class FuzzTests: XCTestCase {
    private static let seed: UInt64 = 20_240_501

    override class func setUp() { Exercise.nanosecondsMax = Int64(TestTime.limit(10) * 1e9) }

    private func fuzzing(_ seed: UInt64 = FuzzTests.seed) throws -> Fuzzing {
        let fuzzing = try Fuzzing(seed: seed, directories: [Fixtures.core14, Fixtures.older].compactMap { $0 })
        XCTAssertGreaterThan(fuzzing.fixtures.count, 8)
        return fuzzing
    }

    func testDamagedFilesNeitherCrashNorHangAnyReader() throws {
        let fuzzing = try fuzzing()
        for index in 0..<300 where fuzzing.mutated(index).bytes.count <= 64 << 10 {
            if let failure = fuzzing.run(index) { XCTFail("seed \(fuzzing.seed) case \(index): \(failure)") }
        }
    }

    func testNodesOfAnotherPlaceOrSizeNeitherCrashNorHangAnyReader() throws {
        for generator in [Generator.exchange, .resize] {
            let fuzzing = try Fuzzing(
                seed: FuzzTests.seed, directories: [Fixtures.core14, Fixtures.older].compactMap { $0 }, generator: generator)
            var changed = 0
            for index in 0..<80 {
                let mutator = fuzzing.mutated(index)
                if mutator.fixture.bytes.count > 64 << 10 { continue }
                if !mutator.steps.isEmpty { changed += 1 }
                if let failure = fuzzing.run(index) { XCTFail("\(generator) seed \(fuzzing.seed) case \(index): \(failure)") }
            }
            XCTAssertGreaterThan(changed, 40, "\(generator)")
        }
    }

    /// What the generators of trees begin with is the file itself, written anew.
    func testTreesWrittenAnewHoldTheSame() throws {
        for fixture in try fuzzing().fixtures where fixture.bytes.count <= 512 << 10 {
            guard let tree = fixture.tree else { continue }
            let outcome = try Exercise.run(fixture.bytes), again = try Exercise.run(tree.written())
            XCTAssertTrue(again.report.isSound, "\(fixture.name): \(again.report.findings.prefix(3))")
            XCTAssertEqual(again.exportedByteCount, outcome.exportedByteCount, fixture.name)
            XCTAssertEqual(again.report.objectCount, outcome.report.objectCount, fixture.name)
            XCTAssertEqual(again.report.historyElementCount, outcome.report.historyElementCount, fixture.name)
        }
    }

    func testFilesWithoutDamageAreSoundAndReadable() throws {
        for fixture in try fuzzing().fixtures {
            let outcome = try Exercise.run(fixture.bytes)
            XCTAssertTrue(outcome.report.isSound, "\(fixture.name): \(outcome.report.findings)")
            XCTAssertNil(outcome.readError, fixture.name)
            XCTAssertGreaterThan(outcome.exportedByteCount ?? 0, 40, fixture.name)
        }
    }

    func testDamageIsTheSameForTheSameSeedAndCase() throws {
        let a = try fuzzing(), b = try fuzzing(), c = try fuzzing(5)
        var differences = 0
        for index in 0..<50 {
            XCTAssertEqual(a.mutated(index).bytes, b.mutated(index).bytes)
            if a.mutated(index).bytes != c.mutated(index).bytes { differences += 1 }
        }
        XCTAssertGreaterThan(differences, 45)
    }

    func testMostDamageIsFound() throws {
        let fuzzing = try fuzzing()
        var found = 0, cases = 0
        for index in 0..<200 {
            let mutator = fuzzing.mutated(index)
            if mutator.bytes == mutator.fixture.bytes || mutator.bytes.count > 64 << 10 { continue }
            cases += 1
            if !(try Exercise.run(mutator.bytes).report.isSound) { found += 1 }
        }
        // Damage to free space, to padding, and to values that may be anything is no damage.
        XCTAssertGreaterThan(found * 10, cases * 6, "\(found) of \(cases)")
    }

    func testItTellsADamageThatTheVerifierDoesNotSee() throws {
        // The oracle itself: where the verifier says sound and a reader disagrees, the case fails. A file of an unknown format is
        // not sound, so it does not; an empty one can be read.
        XCTAssertNoThrow(try Exercise.run([]))
        XCTAssertNoThrow(try Exercise.run([UInt8](repeating: 0xFF, count: 4096)))
        let outcome = try Exercise.run(try fuzzing().fixtures[0].bytes.dropLast(4096) + [])
        XCTAssertFalse(outcome.report.isSound)
    }
}
