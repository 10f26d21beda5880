import Foundation
import SharedStore

/// The check of the engine under the object API, which `realm-sync verify` makes too: every byte of the file, every reference.
enum Verification {
    static func requireSound(_ file: URL) throws {
        let report = try Verifier.verify(try ImmutableFile(path: file.path))
        guard report.isSound else {
            throw SeedError(
                "\(file.lastPathComponent) is not sound: \(report.findings.first.map { "\($0)" } ?? "\(report.errorCount) errors")"
            )
        }
    }
}
