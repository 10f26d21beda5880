import TestSupport
import XCTest

/// The short form of a long life of a service; `Scripts/soak` is the long one.
final class SoakTests: XCTestCase {
    func testManyMirrorsAreEqualAfterRestartsKillsAndAFullDisk() throws {
        let scratch = ScratchDirectory(inMemory: true)
        let soak = try ChildProcess(
            product: "Soak", ["--commits", "1500", "--mirrors", "6", "--rounds", "0", "--seed", "7", "--directory", scratch.path])
        XCTAssertEqual(soak.waitForEnd(seconds: 400), 0, soak.output + soak.errors)
        XCTAssertTrue(soak.output.contains("compared and verified: "), soak.output)
    }
}
