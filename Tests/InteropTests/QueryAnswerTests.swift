import Foundation
import TestSupport
import XCTest

@testable import SharedStore

/// Queries of the corners of the language, and what the original's query parser answers over `people.realm`
/// (`Tests/Fixtures/queries/answers.json`): lists beside lists, quantifiers that say nothing, elements that are missing, NaN,
/// what is no number in arithmetic, regions at the poles.
final class QueryAnswerTests: XCTestCase {
    private struct Case: Decodable {
        var group: String
        var `class`: String
        var predicate: String
        /// As text of JSON, in the form of the shared queries.
        var arguments: String?
        /// Keys and ranges of keys: "0 3-5 9".
        var keys: String?
        var error: String?
    }

    private static func cases(_ group: String) throws -> [Case] {
        let file = Fixtures.packageRoot.appendingPathComponent("Tests/Fixtures/queries/answers.json")
        return try JSONDecoder().decode([Case].self, from: Data(contentsOf: file)).filter { $0.group == group }
    }

    private func check(_ group: String, line: UInt = #line) throws {
        let (file, schema) = try GoldenQueryTests.people()
        let cases = try QueryAnswerTests.cases(group)
        XCTAssertGreaterThan(cases.count, 5, "too few cases of \(group)", line: line)
        for testCase in cases {
            let json = try JSONSerialization.jsonObject(with: Data((testCase.arguments ?? "[]").utf8))
            let arguments = try XCTUnwrap(json as? [Any]).map { argument in
                try GoldenQueryTests.argument(argument) { try XCTUnwrap(file.group.table(ofClass: $0)).key }
            }
            let answer: GoldenQueryTests.Answer
            if let error = testCase.error {
                answer = .error(try XCTUnwrap(QueryError.Kind(rawValue: error), error))
            } else {
                let keys = try XCTUnwrap(testCase.keys, testCase.predicate).split(separator: " ").flatMap { part in
                    let bounds = part.split(separator: "-").compactMap { Int64($0) }
                    return (try XCTUnwrap(bounds.first)...(try XCTUnwrap(bounds.last))).map { ObjectKey($0) }
                }
                answer = .keys(keys)
            }
            answer.check(testCase.predicate, arguments, testCase.class, file, schema, line: line)
        }
    }

    func testListsWithoutAQuantifierAreComparedAsAWhole() throws { try check("whole") }
    func testWhatOneObjectHoldsIsJudgedByItself() throws { try check("groups") }
    func testTwoPathsOverObjectsAreCompared() throws { try check("twoLists") }
    func testMissingElementsAndNullLinksOnTheWayToACollection() throws { try check("missing") }
    func testQuantifiersBeforeSizesSingleLinksAndSingleValuesSayNothing() throws { try check("quantifiers") }
    func testNumbersOfAggregatesHaveTheTypeOfTheProperty() throws { try check("aggregates") }
    func testNaNIsOrdered() throws { try check("nan") }
    func testTheSuffixFMeansSinglePrecision() throws { try check("single") }
    func testWhatIsNoNumberInArithmetic() throws { try check("arithmetic") }
    func testOnlyStringsAndDataHaveCase() throws { try check("case") }
    func testStarsAtTheEndOfAPattern() throws { try check("like") }
    func testRegionsAtThePoles() throws { try check("geo") }
}
