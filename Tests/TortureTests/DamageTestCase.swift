import SharedStore
import TestSupport
import XCTest

/// A test that damages a good file in one way and asks the verifier for exactly that.
class DamageTestCase: XCTestCase {
    /// - Parameters:
    ///   - also: errors that follow from the damage and may be found as well. Nothing else may be.
    func expect(
        _ code: FindingCode, _ severity: Severity = .error, also: Set<FindingCode> = [], in name: String,
        file: StaticString = #filePath, line: UInt = #line, _ damage: (DamagedFile) throws -> Void
    ) throws {
        let damaged = try DamagedFile(fixture(name))
        try damage(damaged)
        let report = try damaged.verify()
        let found = report.findings.filter { $0.code == code && $0.severity == severity }
        XCTAssertFalse(found.isEmpty, "no \(severity) \(code.rawValue) among \(report.findings)", file: file, line: line)
        let others = report.findings.filter { $0.severity == .error && $0.code != code && !also.contains($0.code) }
        XCTAssertTrue(others.isEmpty, "unexpected: \(others)", file: file, line: line)
        if severity == .warning { XCTAssertEqual(report.errorCount, 0, "\(report.findings)", file: file, line: line) }
    }

    func fixture(_ name: String) -> String { Fixtures.core14 + "/" + name + ".realm" }

    /// Tagged form of a number.
    func tagged(_ value: Int64) -> Int64 { value << 1 | 1 }
}
