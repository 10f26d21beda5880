import XCTest

@testable import RealmSwift

/// Facts of the Swift runtime that make loops quick. Where one does not hold everything works, but slower, which nobody would
/// notice.
final class RuntimeFactTests: XCTestCase {
    func testReferencesAreCountedAsExpected() {
        XCTAssertNotEqual(ModelRuntime.soleReferenceWord, 0)
        XCTAssertNotEqual(ModelRuntime.referenceStep, 0)
        XCTAssertTrue(ModelRuntime.canCopyInstances)
    }
}
