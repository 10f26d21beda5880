import Foundation
import TestSupport
import XCTest

/// The pages of the guide hold the samples that the tests run.
final class GuidePagesTests: XCTestCase {
    private let scratch = ScratchDirectory("GuidePages")

    private func script(_ arguments: String..., environment: [String: String] = [:]) throws -> (code: Int32?, errors: String) {
        let child = try ChildProcess(
            path: Fixtures.packageRoot.appendingPathComponent("Scripts/guide").path, arguments, environment: environment)
        let code = child.waitForEnd(seconds: 60)
        return (code, child.errors)
    }

    func testEveryPageAgreesWithTheTests() throws {
        let result = try script("--check")
        XCTAssertEqual(result.code, 0, result.errors)
    }

    func testLinksBetweenPagesLeadSomewhere() throws {
        let root = Fixtures.packageRoot, guide = root.appendingPathComponent("Documentation/guide")
        var pages = try FileManager.default.contentsOfDirectory(at: guide, includingPropertiesForKeys: nil).filter {
            $0.pathExtension == "md"
        }
        pages += ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "Documentation/shared-store.md"].map {
            root.appendingPathComponent($0)
        }
        XCTAssertGreaterThan(pages.count, 14)
        let index = try String(contentsOf: guide.appendingPathComponent("README.md"), encoding: .utf8)
        for page in pages {
            let text = try String(contentsOf: page, encoding: .utf8)
            for part in text.components(separatedBy: "](").dropFirst() {
                let target = part.prefix { $0 != ")" && $0 != "#" }
                if target.isEmpty || target.hasPrefix("http") { continue }
                let url = page.deletingLastPathComponent().appendingPathComponent(String(target))
                XCTAssertTrue(
                    FileManager.default.fileExists(atPath: url.standardizedFileURL.path), "\(page.lastPathComponent): \(target)")
            }
            if page.path.contains("/guide/") && page.lastPathComponent != "README.md" {
                XCTAssertTrue(index.contains("](\(page.lastPathComponent))"), "\(page.lastPathComponent) is not in the index")
            }
        }
    }

    // MARK: The script itself

    private func check(_ tests: String, _ page: String) throws -> (code: Int32?, errors: String) {
        try tests.write(toFile: scratch.file("A.swift"), atomically: true, encoding: .utf8)
        try page.write(toFile: scratch.file("a.md"), atomically: true, encoding: .utf8)
        return try script("--check", environment: ["GUIDE_TESTS": scratch.path, "GUIDE_PAGES": scratch.path])
    }

    private static let tests = "class A {\n    // sample: one\n    let a = 1\n\n        + 2\n    // end\n}\n"
    private static let page = "# A\n\n<!-- sample: one -->\n```swift\nlet a = 1\n\n    + 2\n```\n<!-- end -->\n\nText.\n"

    func testAPageThatAgreesPasses() throws {
        let result = try check(GuidePagesTests.tests, GuidePagesTests.page)
        XCTAssertEqual(result.code, 0, result.errors)
    }

    func testAPageThatDiffersFails() throws {
        let result = try check(GuidePagesTests.tests, GuidePagesTests.page.replacingOccurrences(of: "+ 2", with: "+ 3"))
        XCTAssertEqual(result.code, 1)
        XCTAssertTrue(result.errors.contains("differs from the tests"), result.errors)
    }

    func testAPageIsMendedByWriting() throws {
        _ = try check(GuidePagesTests.tests, "# A\n\n<!-- sample: one -->\n<!-- end -->\n\nText.\n")
        XCTAssertEqual(try script(environment: ["GUIDE_TESTS": scratch.path, "GUIDE_PAGES": scratch.path]).code, 0)
        XCTAssertEqual(try String(contentsOfFile: scratch.file("a.md"), encoding: .utf8), GuidePagesTests.page)
    }

    func testNamesThatOnlyOneSideKnowsFail() throws {
        var result = try check(GuidePagesTests.tests + "// sample: two\nlet b = 2\n// end\n", GuidePagesTests.page)
        XCTAssertEqual(result.code, 1)
        XCTAssertTrue(result.errors.contains("no page shows the sample two"), result.errors)
        result = try check(GuidePagesTests.tests, GuidePagesTests.page + "<!-- sample: two -->\n<!-- end -->\n")
        XCTAssertEqual(result.code, 1)
        XCTAssertTrue(result.errors.contains("no test has a sample named two"), result.errors)
    }

    func testWhatASampleLeavesOpenIsClosed() throws {
        let tests =
            "    // sample: one\n    f { a in\n        if a {\n            g()\n            // end\n            h()\n        }\n    }\n"
        _ = try check(tests, "<!-- sample: one -->\n<!-- end -->\n")
        XCTAssertEqual(try script(environment: ["GUIDE_TESTS": scratch.path, "GUIDE_PAGES": scratch.path]).code, 0)
        let page = try String(contentsOfFile: scratch.file("a.md"), encoding: .utf8)
        XCTAssertEqual(page, "<!-- sample: one -->\n```swift\nf { a in\n    if a {\n        g()\n    }\n}\n```\n<!-- end -->\n")
    }

    func testASampleWithoutEndOrTwiceFails() throws {
        var result = try check("// sample: one\nlet a = 1\n", GuidePagesTests.page)
        XCTAssertNotEqual(result.code, 0)
        XCTAssertTrue(result.errors.contains("the sample one has no end"), result.errors)
        result = try check(GuidePagesTests.tests + GuidePagesTests.tests, GuidePagesTests.page)
        XCTAssertNotEqual(result.code, 0)
        XCTAssertTrue(result.errors.contains("a second sample named one"), result.errors)
    }
}
