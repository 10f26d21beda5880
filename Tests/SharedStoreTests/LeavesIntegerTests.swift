import SharedStore
import TestSupport
import XCTest

/// Integers, nullable integers, bools, links: the worked examples of file-format-1, and damaged forms of them.
final class LeavesIntegerTests: XCTestCase {
    let image = ByteImage()
    var memory: Memory { image.memory }

    func testIntegersOfEveryWidthReadAsInTheWorkedExamples() throws {
        let examples: [(flags: UInt8, payload: [UInt8], values: [Int64])] = [
            (0x00, [], [0, 0, 0]),
            (0x01, [0x08], [0, 0, 0, 1]),
            (0x02, [0x40, 0x02], [0, 0, 0, 1, 2]),
            (0x03, [0x00, 0x10, 0xF2], [0, 0, 0, 1, 2, 15]),
            (0x04, [0, 0, 0, 1, 2, 0x0F, 0x10], [0, 0, 0, 1, 2, 15, 16]),
            (0x04, [0xFF], [-1]),
            (0x05, [0x7F, 0x00, 0x80, 0x00], [127, 128]),
            (0x06, [0xFF, 0x7F, 0xFF, 0xFF], [-32769]),
            (0x07, [0, 0, 0, 0x80, 0, 0, 0, 0], [1 << 31]),
            (0x07, [0, 0, 0, 0, 0, 0, 0, 0x80], [.min]),
        ]
        for example in examples {
            let leaf = try IntLeaf(memory, image.add(flags: example.flags, count: example.values.count, payload: example.payload))
            XCTAssertEqual(try all(leaf), example.values)
            for i in 0..<leaf.count { XCTAssertEqual(leaf.unchecked(i), example.values[i]) }
        }
    }

    func testIndexesOutsideOfALeafThrow() throws {
        let leaf = try IntLeaf(memory, image.integers([1, 2, 3]))
        for index in [-1, 3, Int.max, Int.min] { XCTAssertThrowsFormatError(try leaf.value(index)) }
        let nullable = try NullableIntLeaf(memory, image.integers([3, 2, 3]))
        XCTAssertThrowsFormatError(try nullable.value(2))
    }

    func testLeavesOfAnotherKindAreRefused() throws {
        let image = image
        let blob = image.blob([1, 2, 3]), refs = image.refs([blob]), inner = image.add(flags: 0x87, count: 0)
        for ref in [blob, refs, inner] {
            XCTAssertThrowsFormatError(try IntLeaf(memory, ref))
            XCTAssertThrowsFormatError(try NullableIntLeaf(memory, ref))
            XCTAssertThrowsFormatError(try BoolLeaf(memory, ref))
            XCTAssertThrowsFormatError(try LinkLeaf(memory, ref))
            XCTAssertThrowsFormatError(try KeyLeaf(memory, ref))
            XCTAssertThrowsFormatError(try TypedLinkLeaf(memory, ref))
        }
        XCTAssertThrowsFormatError(try RefLeaf(memory, blob))
        XCTAssertThrowsFormatError(try BacklinkLeaf(memory, image.integers([1])))
    }

    func testPayloadBeyondTheEndOfTheFileIsRefused() throws {
        let ref = image.add(flags: 0x07, count: 4, payload: [UInt8](repeating: 1, count: 32))
        XCTAssertEqual(try IntLeaf(memory, ref).count, 4)
        image.truncate(to: ref + 32)
        XCTAssertThrowsFormatError(try IntLeaf(memory, ref))
    }

    func testNullableIntegersReadAsInTheWorkedExamples() throws {
        let examples: [(flags: UInt8, count: Int, payload: [UInt8], values: [Int64?])] = [
            (0x00, 1, [], []),
            (0x00, 2, [], [nil]),
            (0x01, 3, [0x03], [nil, 0]),
            (0x02, 4, [0x4F], [nil, 0, 1]),
            (0x03, 5, [0xFF, 0x10, 0x03], [nil, 0, 1, 3]),
            (0x04, 8, [0x7F, 0x7F, 0x00, 0x01, 0x03, 0x7F, 0x07, 0x0F], [nil, 0, 1, 3, nil, 7, 15]),
            (0x05, 3, [0xFF, 0x7F, 0xFF, 0x7F, 0x7F, 0x00], [nil, 127]),
            // A sentinel that is no upper bound: any value will do.
            (0x04, 3, [0x05, 0x05, 0x7F], [nil, 127]),
        ]
        for example in examples {
            let leaf = try NullableIntLeaf(
                memory, image.add(flags: example.flags, count: example.count, payload: example.payload))
            XCTAssertEqual(try all(leaf), example.values)
        }
        XCTAssertThrowsFormatError(try NullableIntLeaf(memory, image.integers([])))
    }

    func testBoolsReadAsInTheWorkedExample() throws {
        XCTAssertEqual(try all(BoolLeaf(memory, image.add(flags: 0x02, count: 4, payload: [0x74]))), [false, true, nil, true])
        XCTAssertEqual(try all(BoolLeaf(memory, image.integers([2, 0, 3]))), [true, false, nil])
    }

    func testLinksReadAsInTheWorkedExamples() throws {
        let links = try LinkLeaf(memory, image.add(flags: 0x04, count: 4, payload: [0x00, 0x01, 0x06, 0xFF]))
        XCTAssertEqual(try all(links).map(\.rawValue), [-1, 0, 5, -2])
        let keys = try KeyLeaf(memory, image.add(flags: 0x04, count: 3, payload: [0x00, 0x05, 0xFE]))
        XCTAssertEqual(try all(keys).map(\.rawValue), [0, 5, -2])
        let typed = try TypedLinkLeaf(memory, image.add(flags: 0x03, count: 6, payload: [0x00, 0x11, 0xA8]))
        XCTAssertEqual(try all(typed), [nil, TypedLink(TableKey(0), ObjectKey(0)), TypedLink(TableKey(7), ObjectKey(9))])
        XCTAssertThrowsFormatError(try TypedLinkLeaf(memory, image.integers([1, 2, 3])))
    }

    func testRefLeavesGiveRefsAndRefuseNumbers() throws {
        let child = image.integers([1])
        let leaf = try RefLeaf(memory, image.refs([0, child, 2 * 5 + 1]))
        XCTAssertEqual(try leaf.value(0), 0)
        XCTAssertEqual(try leaf.value(1), child)
        XCTAssertThrowsFormatError(try leaf.value(2))
    }

    func testBacklinksAreOneTaggedKeyOrATree() throws {
        let tree = image.integers([4, 4, 1000])
        let leaf = try BacklinkLeaf(memory, image.refs([0, 2 * 77 + 1, tree]))
        XCTAssertEqual(try all(leaf).map { $0.map(\.rawValue) }, [[], [77], [4, 4, 1000]])
        XCTAssertEqual(try (0..<3).map(leaf.keyCount), [0, 1, 3])
        XCTAssertThrowsFormatError(try leaf.keys(3))
        let damaged = try BacklinkLeaf(memory, image.refs([4]))
        XCTAssertThrowsFormatError(try damaged.keys(0), "a ref that is no multiple of 8")
    }

    func testScansAgreeWithSingleValuesAtEveryWidthAndRange() throws {
        let seed: UInt64 = 3
        print("seed \(seed)")
        var random = SplitMix(seed: seed)
        for width in [0, 1, 2, 4, 8, 16, 32, 64] {
            for count in [0, 1, 7, 8, 63, 64, 65, 130] {
                let values = (0..<count).map { _ -> Int64 in
                    let bits = Int64(bitPattern: random.next())
                    return width == 0 ? 0 : width < 8 ? bits & (1 << Int64(width) - 1) : bits >> Int64(64 - width)
                }
                let leaf = try IntLeaf(memory, image.integers(values, width: width))
                var seen: [Int64] = []
                leaf.forEach { seen.append($0) }
                XCTAssertEqual(seen, values)
                XCTAssertEqual(leaf.wrappingSum(), values.reduce(0, &+))
                let copy = [Int64](unsafeUninitializedCapacity: count) { buffer, initialized in
                    leaf.copy(into: buffer)
                    initialized = count
                }
                XCTAssertEqual(copy, values)
                for _ in 0..<4 where count > 0 {
                    let from = Int(random.next() % UInt64(count)), to = from + Int(random.next() % UInt64(count - from + 1))
                    seen = []
                    leaf.forEach(in: from..<to) { seen.append($0) }
                    XCTAssertEqual(seen, Array(values[from..<to]))
                }
                guard count > 0 else { continue }
                let nullable = try NullableIntLeaf(memory, leaf.node.ref)
                var optional: [Int64?] = []
                nullable.forEach { optional.append($0) }
                XCTAssertEqual(optional, try all(nullable))
                let elements = [Int64](unsafeUninitializedCapacity: count) { buffer, initialized in
                    nullable.copyElements(into: buffer)
                    initialized = count - 1
                }
                XCTAssertEqual(elements, Array(values.dropFirst()))
            }
        }
    }

    func testScansOfKeys() throws {
        var seen: [Int64] = []
        try KeyLeaf(memory, image.integers([0, 5, -2])).forEach { seen.append($0.rawValue) }
        try LinkLeaf(memory, image.integers([0, 5, -2])).forEach { seen.append($0.rawValue) }
        XCTAssertEqual(seen, [0, 5, -2, -1, 4, -3])
    }
}

/// The values of a leaf in order.
func all<L: Leaf>(_ leaf: L) throws -> [L.Element] { try (0..<leaf.count).map(leaf.value) }

func XCTAssertThrowsFormatError<T>(
    _ expression: @autoclosure () throws -> T, _ message: String = "", file: StaticString = #filePath, line: UInt = #line
) {
    XCTAssertThrowsError(try expression(), message, file: file, line: line) {
        XCTAssert($0 is FormatError, "\($0) is no FormatError. \(message)", file: file, line: line)
    }
}
