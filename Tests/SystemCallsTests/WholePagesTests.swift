import Glibc
import SystemCalls
import XCTest

final class WholePagesTests: XCTestCase {
    /// On a machine of larger pages, what lies beside the range keeps its content.
    func testOnlyWholePagesOfTheMachineAreGivenBack() {
        XCTAssertEqual(SystemCalls.wholePages(0x10000..<0x13000, pageSize: 0x1000), 0x10000..<0x13000)
        XCTAssertEqual(SystemCalls.wholePages(0x10000..<0x13000, pageSize: 0x4000), 0x10000..<0x10000)
        XCTAssertEqual(SystemCalls.wholePages(0x11000..<0x19000, pageSize: 0x4000), 0x14000..<0x18000)
        XCTAssertEqual(SystemCalls.wholePages(0x11000..<0x30000, pageSize: 0x10000), 0x20000..<0x30000)
        XCTAssertTrue(SystemCalls.wholePages(0x11000..<0x1F000, pageSize: 0x10000).isEmpty)
    }

    func testWhatIsGivenBackReadsAsZerosAndTheRestStays() throws {
        let page = SystemCalls.pageSize, count = 4 * page
        let memory = try SystemCalls.map(length: count, protection: PROT_READ | PROT_WRITE, flags: MAP_PRIVATE | MAP_ANONYMOUS)
        defer { SystemCalls.unmap(memory, length: count) }
        memset(memory, 7, count)
        SystemCalls.discard(memory + page / 2, length: 2 * page)
        for i in 0..<4 {
            XCTAssertEqual(memory.load(fromByteOffset: i * page + page / 4, as: UInt8.self), i == 1 ? 0 : 7, "page \(i)")
        }
    }
}
