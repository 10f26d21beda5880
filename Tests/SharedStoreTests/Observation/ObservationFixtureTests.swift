import Foundation
@testable import SharedStore
import TestSupport
import XCTest

/// Every recorded scenario gives the calls that were recorded.
final class ObservationFixtureTests: XCTestCase {
    private func play(_ file: String) throws {
        guard let shared = Fixtures.shared else { throw XCTSkip("the shared fixtures are not beside the package; nothing was tested") }
        let json = try ExactJSON(parsing: Data(contentsOf: URL(fileURLWithPath: shared + "/notifications/\(file).json")))
        var failed: [String] = []
        let scenarios = json["scenarios"]?.elements ?? []
        XCTAssertGreaterThan(scenarios.count, 4)
        for example in scenarios {
            do {
                let scenario = try ObservationScenario(example, json["schemas"] ?? .null)
                try scenario.play()
                if !scenario.problems.isEmpty { failed.append("\(scenario.name)\n  " + scenario.problems.joined(separator: "\n  ")) }
            } catch { failed.append("\(example["name"]?.string ?? ""): \(error)") }
        }
        XCTAssert(failed.isEmpty, "\(failed.count) of \(scenarios.count) scenarios of \(file) differ:\n" + failed.joined(separator: "\n"))
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
}
