import Foundation
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
        try expect(code, severity, also: also, of: damaged, file: file, line: line)
    }

    /// The same for a file that is damaged already.
    func expect(
        _ code: FindingCode, _ severity: Severity = .error, also: Set<FindingCode> = [], of damaged: DamagedFile,
        file: StaticString = #filePath, line: UInt = #line
    ) throws {
        let report = try damaged.verify()
        let found = report.findings.filter { $0.code == code && $0.severity == severity }
        XCTAssertFalse(found.isEmpty, "no \(severity) \(code.rawValue) among \(report.findings)", file: file, line: line)
        let others = report.findings.filter { $0.severity == .error && $0.code != code && !also.contains($0.code) }
        XCTAssertTrue(others.isEmpty, "unexpected: \(others)", file: file, line: line)
        if severity == .warning { XCTAssertEqual(report.errorCount, 0, "\(report.findings)", file: file, line: line) }
        try salvage(damaged, file: file, line: line)
    }

    /// Whatever the damage, what is salvaged makes a sound file, or no version is left.
    private func salvage(_ damaged: DamagedFile, file: StaticString, line: UInt) throws {
        let scratch = ScratchDirectory("salvage", inMemory: true)
        let path = scratch.file("damaged.realm")
        try Data(damaged.bytes).write(to: URL(fileURLWithPath: path))
        let salvage: Salvage
        do { salvage = try Salvage(path: path, scratchFolder: scratch.path) } catch is FormatError { return } catch is OpenError {
            return
        }
        let out = scratch.file("out.realm")
        switch salvage.content {
        case .sound(let group):
            XCTAssertEqual(salvage.lossCount, salvage.lostVersions.count, file: file, line: line)
            try StreamingCopy(version: nil, keepsHistory: false, format: UInt8(group.format)).write(group, toPath: out)
        case .objects(let text):
            var options = StoreOptions()
            options.durability = .unsafe
            let store = try Store.open(out, options)
            let transaction = try store.beginWrite()
            do {
                try text.withUnsafeBytes { try JSONImporter(text: $0, target: OneTransaction(transaction)).run() }
                try transaction.commit()
            } catch {
                transaction.rollback()
                XCTFail("what was salvaged makes no file: \(error)", file: file, line: line)
            }
            try store.close()
        }
        let report = try Verifier.verify(ImmutableFile(path: out))
        XCTAssertTrue(report.isSound, "\(report.findings.prefix(3))", file: file, line: line)
    }

    private final class OneTransaction: ImportTarget {
        private let transaction: WriteTransaction
        init(_ transaction: WriteTransaction) { self.transaction = transaction }
        var group: GroupEditor { transaction.editor }
        func checkpoint(progress: ImportProgress) throws {}
    }

    /// Asks that nothing is wrong with a file, warnings of the given codes apart.
    func expectSound(_ damaged: DamagedFile, warnings: Set<FindingCode> = [], file: StaticString = #filePath, line: UInt = #line)
        throws
    {
        let report = try damaged.verify()
        XCTAssertTrue(report.isSound && report.codes.isSubset(of: warnings), "\(report.findings)", file: file, line: line)
        XCTAssertTrue(
            warnings.isSubset(of: report.codes), "no warning of \(warnings): \(report.findings)", file: file, line: line)
    }

    func fixture(_ name: String) -> String { Fixtures.core14 + "/" + name + ".realm" }

    /// Tagged form of a number.
    func tagged(_ value: Int64) -> Int64 { value << 1 | 1 }
}
