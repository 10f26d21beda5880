import TestSupport
import XCTest

@testable import SharedStore

/// The loops over packed integers against one look at each element, for every width, count and kind of range.
final class QueryKernelTests: XCTestCase {
    /// A node of `count` elements of the given width code, in memory of its own.
    private func withNode(_ widthCode: UInt8, _ values: [Int64], _ body: (Node) throws -> Void) rethrows {
        let width = (1 << Int(widthCode)) >> 1
        let payload = (values.count * width + 7) / 8
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 8 + payload, alignment: 8)
        defer { memory.deallocate() }
        memory.initializeMemory(as: UInt8.self, repeating: 0)
        memory[4] = widthCode
        for (i, shift) in [(5, 16), (6, 8), (7, 0)] { memory[i] = UInt8(truncatingIfNeeded: values.count >> shift) }
        for (i, value) in values.enumerated() {
            for bit in 0..<width where value >> Int64(bit) & 1 != 0 {
                memory[8 + (i * width + bit) / 8] |= 1 << UInt8((i * width + bit) % 8)
            }
        }
        try body(Node(ref: 24, header: UnsafeRawPointer(memory.baseAddress!)))
    }

    private func limits(_ widthCode: UInt8) -> (Int64, Int64) {
        switch widthCode {
        case 0: (0, 0)
        case 1: (0, 1)
        case 2: (0, 3)
        case 3: (0, 15)
        case 4: (-128, 127)
        case 5: (-32768, 32767)
        case 6: (Int64(Int32.min), Int64(Int32.max))
        default: (.min, .max)
        }
    }

    func testRowsCountsAndSumsAgreeWithALookAtEachElement() {
        let seed: UInt64 = 7
        print("seed \(seed)")
        var random = SplitMix(seed: seed)
        for widthCode: UInt8 in 0...7 {
            let (least, greatest) = limits(widthCode)
            for count in [0, 1, 2, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 127, 128, 200, 255, 256] {
                let values = (0..<count).map { _ in
                    random.next() % 4 == 0
                        ? (random.next() % 2 == 0 ? least : greatest) : Int64.random(in: least...greatest, using: &random)
                }
                withNode(widthCode, values) { node in
                    XCTAssertEqual((0..<count).map { node.unchecked($0) }, values)
                    XCTAssertEqual(ScanKernels.sum(node), values.reduce(0, &+), "width \(widthCode), \(count) values")
                    var ranges: [(Int64, Int64)] = [
                        (.min, .max), (least, greatest), (.min, -1), (0, 0), (1, .max), (greatest, .max), (.min, least), (5, 4),
                    ]
                    for _ in 0..<6 {
                        let a = Int64.random(in: least...greatest, using: &random),
                            b = Int64.random(in: least...greatest, using: &random)
                        ranges.append((min(a, b), max(a, b)))
                        ranges.append((a, a))
                    }
                    for (low, high) in ranges {
                        let wanted = values.indices.filter { values[$0] >= low && values[$0] <= high }
                        XCTAssertEqual(
                            ScanKernels.count(node, in: low, high), wanted.count,
                            "width \(widthCode), \(count) values in \(low)...\(high)")
                        for first in [0, 1] where first <= count {
                            var found: [Int] = []
                            ScanKernels.rows(node, first: first, count: count - first, in: low, high).forEach { found.append($0) }
                            XCTAssertEqual(
                                found, wanted.map { $0 - first }.filter { $0 >= 0 },
                                "width \(widthCode), \(count) values from \(first) in \(low)...\(high)")
                        }
                    }
                }
            }
        }
    }

    func testCountAndSumOfLongLeaves() {
        var random = SplitMix(seed: 11)
        for widthCode: UInt8 in 4...7 {
            let (least, greatest) = limits(widthCode)
            let values = (0..<70_000).map { i in
                i % 3 == 0 ? greatest : i % 3 == 1 ? least : Int64.random(in: least...greatest, using: &random)
            }
            withNode(widthCode, values) { node in
                XCTAssertEqual(ScanKernels.sum(node), values.reduce(0, &+))
                XCTAssertEqual(ScanKernels.count(node, in: least, least), values.filter { $0 == least }.count)
                XCTAssertEqual(ScanKernels.count(node, in: greatest, .max), values.filter { $0 == greatest }.count)
            }
        }
    }

    func testExtremesAgreeWithALookAtEachElement() {
        var random = SplitMix(seed: 12)
        for widthCode: UInt8 in 0...7 {
            let (least, greatest) = limits(widthCode)
            for count in [1, 2, 3, 4, 5, 7, 8, 9, 63, 64, 65, 255, 256] {
                let values = (0..<count).map { _ in Int64.random(in: least...greatest, using: &random) }
                withNode(widthCode, values) { node in
                    let found = ScanKernels.extremes(node)
                    XCTAssertEqual(found.least, values.min(), "width \(widthCode), \(count) values")
                    XCTAssertEqual(found.greatest, values.max(), "width \(widthCode), \(count) values")
                }
            }
        }
    }

    func testFractionsAreComparedAsNumbers() {
        var random = SplitMix(seed: 13)
        let special: [Double] = [0, -0.0, .nan, .infinity, -.infinity, 1.5, -1.5, Double(bitPattern: DoubleLeaf.nullPattern)]
        let operations: [(QuerySyntax.Operator, (Double, Double) -> Bool)] = [
            (.equal, { $0 == $1 }), (.notEqual, { $0 != $1 }), (.less, { $0 < $1 }), (.lessOrEqual, { $0 <= $1 }),
            (.greater, { $0 > $1 }), (.greaterOrEqual, { $0 >= $1 }),
        ]
        for count in [0, 1, 3, 4, 5, 63, 64, 65, 127, 128, 200, 255, 256] {
            let values = (0..<count).map { _ in
                random.next() % 3 == 0 ? special[Int(random.next() % 8)] : Double(random.next() % 9) / 2
            }
            let singles = values.map { Float($0) }
            values.withUnsafeBytes { bytes in
                let p = bytes.baseAddress ?? UnsafeRawPointer(bitPattern: 8)!
                for isLeast in [true, false] {
                    // Of those that are equal the first one, whose zero may have a sign.
                    var wanted: Double?
                    for v in values where !v.isNaN {
                        if wanted.map({ isLeast ? v < $0 : v > $0 }) ?? true { wanted = v }
                    }
                    let found = ScanKernels.extreme(p, count, isLeast: isLeast)
                    XCTAssertEqual(found?.bitPattern, wanted?.bitPattern, "\(values)")
                }
            }
            for (operation, holds) in operations {
                for constant in special + [2] {
                    let wanted = values.indices.filter { holds(values[$0], constant) }
                    var found: [Int] = [], foundSingles: [Int] = []
                    values.withUnsafeBytes {
                        ScanKernels.rows($0.baseAddress ?? UnsafeRawPointer(bitPattern: 8)!, count, operation, constant)
                            .forEach { found.append($0) }
                    }
                    singles.withUnsafeBytes {
                        ScanKernels.rows($0.baseAddress ?? UnsafeRawPointer(bitPattern: 8)!, count, operation, Float(constant))
                            .forEach { foundSingles.append($0) }
                    }
                    XCTAssertEqual(found, wanted, "\(operation) \(constant): \(values)")
                    XCTAssertEqual(foundSingles, wanted, "\(operation) \(constant): \(singles)")
                }
            }
        }
    }

    func testRowMaskHoldsTheFirstRows() {
        for count in [0, 1, 63, 64, 65, 128, 192, 193, 255, 256] {
            var rows: [Int] = []
            RowMask(count: count).forEach { rows.append($0) }
            XCTAssertEqual(rows, Array(0..<count))
            XCTAssertEqual(RowMask(count: count).count, count)
        }
    }
}
