import Foundation
import TestSupport
import XCTest

@testable import SharedStore

/// Queries over damaged copies of a file: an error or some answer, never a trap or an endless loop.
final class QueryDamageTests: XCTestCase {
    func testQueriesOverDamagedFilesEndWithAnAnswerOrAnError() throws {
        let (file, schema) = try GoldenQueryTests.people()
        let queries = try GoldenQueryTests.cases { try XCTUnwrap(file.group.table(ofClass: $0)).key }.compactMap {
            try? Query($0.text, arguments: $0.arguments, class: $0.className, schema: schema)
        }
        let shared = try XCTUnwrap(Fixtures.shared)
        let original = try Data(contentsOf: URL(fileURLWithPath: shared + "/queries/people.realm"))
        let seed: UInt64 = 17
        print("seed \(seed)")
        var random = SplitMix(seed: seed)
        let scratch = ScratchDirectory()
        var errors = 0, answers = 0
        for copy in 0..<60 {
            var bytes = original
            for _ in 0..<(1 + random.next() % 12) {
                // Not in the header and not in the footer, which would only keep the file from being opened.
                let position = 24 + Int(random.next() % UInt64(bytes.count - 40))
                bytes[position] =
                    random.next() % 2 == 0
                    ? UInt8(truncatingIfNeeded: random.next()) : bytes[position] ^ (1 << UInt8(random.next() % 8))
            }
            let path = scratch.file("damaged\(copy).realm")
            try bytes.write(to: URL(fileURLWithPath: path))
            guard let damaged = try? ImmutableFile(path: path) else { continue }
            for _ in 0..<60 {
                let query = queries[Int(random.next() % UInt64(queries.count))]
                do {
                    _ = try query.run(in: damaged.group)
                    answers += 1
                } catch { errors += 1 }
            }
            try FileManager.default.removeItem(atPath: path)
        }
        XCTAssertGreaterThan(errors, 0)
        XCTAssertGreaterThan(answers, 0)
    }
}
