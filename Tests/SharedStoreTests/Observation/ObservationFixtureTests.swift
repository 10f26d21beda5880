import Foundation
@testable import SharedStore
import TestSupport
import XCTest

/// Every recorded scenario gives the calls that were recorded.
final class ObservationFixtureTests: XCTestCase {
    private func play(_ file: String) throws {
        guard let shared = Fixtures.shared else {
            throw XCTSkip("the shared fixtures are not beside the package; nothing was tested")
        }
        let json = try ExactJSON(parsing: Data(contentsOf: URL(fileURLWithPath: shared + "/notifications/\(file).json")))
        var failed: [String] = []
        let scenarios = json["scenarios"]?.elements ?? []
        XCTAssertGreaterThan(scenarios.count, 4)
        for example in scenarios {
            do {
                let scenario = try ObservationScenario(example, json["schemas"] ?? .null)
                try scenario.play()
                if !scenario.problems.isEmpty {
                    failed.append("\(scenario.name)\n  " + scenario.problems.joined(separator: "\n  "))
                }
            } catch { failed.append("\(example["name"]?.string ?? ""): \(error)") }
        }
        XCTAssert(
            failed.isEmpty,
            "\(failed.count) of \(scenarios.count) scenarios of \(file) differ:\n" + failed.joined(separator: "\n"))
    }

    func testDeepChanges() throws { try play("deep-changes") }
    func testDelivery() throws { try play("delivery") }
    func testEmbeddedObjects() throws { try play("embedded") }
    func testKeyPaths() throws { try play("key-paths") }
    func testCollectionsOfLinks() throws { try play("link-collections") }
    func testLists() throws { try play("lists") }
    func testCollectionsNestedInMixedValues() throws { try play("nested-mixed") }
    func testObjects() throws { try play("objects") }
    func testRandomLinks() throws { try play("random-links") }
    func testRandomLists() throws { try play("random-lists") }
    func testRandomNestedCollections() throws { try play("random-nested") }
    func testRandomResults() throws { try play("random-results") }
    func testRandomSetsAndDictionaries() throws { try play("random-sets-and-dictionaries") }
    func testResults() throws { try play("results") }
    func testSections() throws { try play("sections") }
    func testSetsAndDictionaries() throws { try play("sets-and-dictionaries") }

    /// Where the original errs: what is right, by scenario and step.
    private static let corrections: [String: [Int: String]] = [
        "defect/silent/cancelled transaction": [
            3: #"[{"obs":"a","del":[1],"now":["i0","i2","i3","i4","i5"]},{"obs":"b","del":[1],"now":["i0","i2","i3","i4","i5"]}]"#
        ],
        "defect/own commit and another one computed together, two observers of one list": [
            2: #"""
            [{"obs":"a","ins":[0],"mod":[2],"modNew":[3],"now":[100,10,11,55,13,14,15]},
             {"obs":"b","ins":[0],"mod":[2],"modNew":[3],"now":[100,10,11,55,13,14,15]},
             {"obs":"srt","del":[3],"ins":[0,1],"now":[100,55,15,14,13,11,10]}]
            """#
        ],
        "defect/dictionary/changed, then the owner deleted": [
            1: #"""
            [{"obs":"d","delKeys":["a","c","e"],"rootDeleted":true,"now":null},{"obs":"o","deleted":true},
             {"obs":"vals","del":[0,1,2],"rootDeleted":true,"now":null}]
            """#
        ],
        "defect/dictionary/coalesce and delete the owner / read in one go": [
            2: #"[{"obs":"d","delKeys":["a","c","e"],"rootDeleted":true,"now":null}]"#
        ],
        "defect/link dictionary/values view, value deleted": [1: #"[{"obs":"v","del":[1],"ins":[1],"now":["d0",null]}]"#],
        "defect/link dictionary/values view with null, another value modified": [
            1: #"[{"obs":"v","del":[0],"ins":[0],"now":[null,"d1"]}]"#, 3: #"[{"obs":"v","mod":[1],"now":[null,"d1"]}]"#,
        ],
    ]

    func testWhereTheOriginalErrsWeDoNot() throws {
        guard let shared = Fixtures.shared else {
            throw XCTSkip("the shared fixtures are not beside the package; nothing was tested")
        }
        let json = try ExactJSON(parsing: Data(contentsOf: URL(fileURLWithPath: shared + "/notifications/original-defects.json")))
        for example in json["scenarios"]?.elements ?? [] {
            let name = try XCTUnwrap(example["name"]?.string)
            let right = try XCTUnwrap(Self.corrections[name], name).mapValues { try ExactJSON(parsing: $0).elements }
            let scenario = try ObservationScenario(example, json["schemas"] ?? .null, corrections: right)
            try scenario.play()
            XCTAssertEqual(scenario.problems, [], name)
        }
    }
}
