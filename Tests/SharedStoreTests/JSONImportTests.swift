import Foundation
@testable import SharedStore
import TestSupport
import XCTest

final class JSONImportTests: XCTestCase {
    private final class Target: ImportTarget {
        let group: GroupEditor
        init(_ group: GroupEditor) { self.group = group }
        func checkpoint(progress: ImportProgress) {}
    }

    func testImportOfEveryGivenFileExportsTheSameAndIsSound() throws {
        // The largest file, trees.json, is imported by the command in its own tests.
        let names = try FileManager.default.contentsOfDirectory(atPath: Fixtures.core14).filter {
            $0.hasSuffix(".json") && $0 != "trees.json"
        }.sorted()
        XCTAssertGreaterThan(names.count, 8)
        for name in names {
            let json = Array(try Data(contentsOf: URL(fileURLWithPath: Fixtures.core14 + "/" + name)))
            let scratch = try ScratchArena()
            let group = try GroupEditor(arena: scratch.arena, topRef: 0)
            try json.withUnsafeBytes { try JSONImporter(text: $0, target: Target(group)).run() }
            let text = try JSONExporter.text(group.group)
            if !ExactJSON.isSameText(json, text) {
                XCTAssertNil(try ExactJSON(parsing: json).firstDifference(ExactJSON(parsing: text)), name)
            }
            let report = try EditingTablesTests.report(group, scratch)
            XCTAssertTrue(report.isSound && report.findings.isEmpty, "\(name): \(report.findings.prefix(3).map(\.description))")
        }
    }

    func testDamagedTextIsRefusedWithItsPlace() throws {
        let good = Array(try Data(contentsOf: URL(fileURLWithPath: Fixtures.core14 + "/nested-mixed.json")))
        var random = SplitMix(seed: 11)
        for _ in 0..<150 {
            var bad = good
            switch random.next() % 3 {
            case 0: bad.removeSubrange(Int(random.next() % UInt64(bad.count))...)
            case 1: bad[Int(random.next() % UInt64(bad.count))] = UInt8(truncatingIfNeeded: random.next())
            default: bad.remove(at: Int(random.next() % UInt64(bad.count)))
            }
            let scratch = try ScratchArena()
            let group = try GroupEditor(arena: scratch.arena, topRef: 0)
            // An error or, where only a value changed, none; never a trap.
            _ = try? bad.withUnsafeBytes { try JSONImporter(text: $0, target: Target(group)).run() }
        }
        for text in [
            "", "{", "[]", "{\"classes\":{\"A\":{\"objects\":[{}]}}}", "{\"classes\":7}", String(repeating: "[", count: 100_000),
        ] {
            let scratch = try ScratchArena()
            let group = try GroupEditor(arena: scratch.arena, topRef: 0)
            XCTAssertThrowsError(
                try Array(text.utf8).withUnsafeBytes { try JSONImporter(text: $0, target: Target(group)).run() },
                text.prefix(30).description)
        }
    }
}
