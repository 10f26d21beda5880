import Foundation
import SharedStore
import TestSupport
import XCTest

/// Files that other software wrote keep every rule: the verifier and the documents agree with the world.
final class VerifierFixtureTests: XCTestCase {
    func testFilesOfTheCurrentFormatHaveNoErrors() throws {
        let names = try FileManager.default.contentsOfDirectory(atPath: Fixtures.core14).filter { $0.hasSuffix(".realm") && !$0.contains("encrypted") }
        XCTAssertGreaterThan(names.count, 8)
        for name in names.sorted() {
            let report = try DamagedFile(Fixtures.core14 + "/" + name).verify()
            XCTAssertTrue(report.isSound, "\(name): \(report.findings)")
            XCTAssertEqual(report.leakedByteCount, 0, name)
            XCTAssertGreaterThan(report.nodeCount, 10, name)
        }
    }

    func testFilesOfOlderFormatsHaveNoErrors() throws {
        guard let older = Fixtures.older else { throw XCTSkip("the folder of older files is absent") }
        for name in try FileManager.default.contentsOfDirectory(atPath: older).filter({ $0.hasSuffix(".realm") }).sorted() {
            let report = try DamagedFile(older + "/" + name).verify()
            XCTAssertTrue(report.isSound, "\(name): \(report.findings)")
        }
    }
}
