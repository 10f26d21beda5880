import SharedStore
import TestSupport
import XCTest

/// Strings and binaries in all variants: the worked examples of file-format-1 section 6, and damaged forms of them.
final class LeavesStringTests: XCTestCase {
    let image = ByteImage()
    var memory: Memory { image.memory }

    func testShortStringsReadAsInTheWorkedExamples() throws {
        XCTAssertEqual(try strings(0x08, 2, []), [nil, nil])
        XCTAssertEqual(try strings(0x09, 3, [1, 1, 0]), [nil, nil, ""])
        XCTAssertEqual(try strings(0x0A, 4, [0, 2, 0, 2, 0, 1, 0x61, 0]), [nil, nil, "", "a"])
        XCTAssertEqual(
            try strings(0x0B, 5, [0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0, 3, 0x61, 0, 0, 2, 0x61, 0x62, 0x63, 0]),
            [nil, nil, "", "a", "abc"])
        XCTAssertEqual(try strings(0x0D, 1, Array("123456789012345".utf8) + [0]), ["123456789012345"])
    }

    func testShortStringsOfEveryBlockSize() throws {
        for (code, width) in [1, 2, 4, 8, 16, 32, 64].enumerated() {
            var payload: [UInt8] = []
            for length in 0..<width {
                payload +=
                    [UInt8](repeating: 0x78, count: length) + [UInt8](repeating: 0, count: width - 1 - length) + [
                        UInt8(width - 1 - length)
                    ]
            }
            payload += [UInt8](repeating: 0, count: width - 1) + [UInt8(width)]
            let expected = (0..<width).map { String(repeating: "x", count: $0) as String? } + [nil]
            XCTAssertEqual(try strings(0x08 | UInt8(code + 1), width + 1, payload), expected)
        }
    }

    func testAShortStringThatClaimsMoreZerosThanItsBlockHasThrows() throws {
        let leaf = try StringLeaf(memory, image.add(flags: 0x0B, count: 2, payload: [0, 0, 0, 5, 0x61, 0, 0, 2]))
        XCTAssertThrowsFormatError(try leaf.value(0))
        XCTAssertThrowsFormatError(try leaf.bytes(0))
        XCTAssertEqual(try leaf.value(1), "a")
        XCTAssertThrowsFormatError(try leaf.value(2))
    }

    func testSmallBlobsReadAsInTheWorkedExample() throws {
        let texts = ["", "", "", "a", "abc", "12345678", "123456789012345", "1234567890123456"]
        let blob: [UInt8] = texts.flatMap { text -> [UInt8] in Array(text.utf8) + [0] }
        XCTAssertEqual(blob.count, 51)
        let leaf = try StringLeaf(
            memory,
            image.smallBlobs(
                offsets: [0x01, 0x02, 0x03, 0x05, 0x09, 0x12, 0x22, 0x33], blob: blob, nulls: [1, 1, 0, 0, 0, 0, 0, 0]))
        XCTAssertEqual(try all(leaf), [nil, nil] + texts.dropFirst(2).map { $0 as String? })
        XCTAssertEqual(try leaf.isNull(1), true)
        XCTAssertEqual(try leaf.isNull(2), false)
        let empty = image.refs([image.add(flags: 0, count: 0), image.add(flags: 0x10, count: 0), image.add(flags: 1, count: 0)])
        XCTAssertEqual(try StringLeaf(memory, empty).count, 0)
        XCTAssertEqual(try BinaryLeaf(memory, empty).count, 0)
    }

    func testDamagedSmallBlobsThrow() throws {
        XCTAssertThrowsFormatError(
            try StringLeaf(memory, image.smallBlobs(offsets: [1, 2], blob: [0, 0], nulls: [0])), "counts differ")
        let offsets = image.integers([1]), blob = image.blob([0]), nulls = image.integers([0])
        for parts in [
            [offsets, blob], [offsets, blob, nulls, nulls], [offsets, blob, 0], [0, blob, nulls], [offsets, nulls, nulls],
            [blob, blob, nulls],
        ] {
            XCTAssertThrowsFormatError(try StringLeaf(memory, image.refs(parts)))
            XCTAssertThrowsFormatError(try BinaryLeaf(memory, image.refs(parts)))
        }
        let decreasing = image.smallBlobs(offsets: [2, 1, 4], blob: [1, 0, 2, 0], nulls: [0, 0, 0])
        XCTAssertThrowsFormatError(try StringLeaf(memory, decreasing).value(1))
        XCTAssertThrowsFormatError(try BinaryLeaf(memory, decreasing).value(1))
        XCTAssertEqual(try BinaryLeaf(memory, decreasing).value(2), [0, 2, 0])
        let beyond = image.smallBlobs(offsets: [2, 5], blob: [1, 0, 2, 0], nulls: [0, 0])
        XCTAssertThrowsFormatError(try StringLeaf(memory, beyond).value(1))
        XCTAssertThrowsFormatError(try BinaryLeaf(memory, beyond).value(1))
        let negative = image.smallBlobs(offsets: [-3, 2], blob: [1, 0, 2, 0], nulls: [0, 0])
        XCTAssertThrowsFormatError(try StringLeaf(memory, negative).value(0))
        XCTAssertThrowsFormatError(try StringLeaf(memory, negative).value(1))
        let extreme = image.smallBlobs(offsets: [.min, .max], blob: [1, 0], nulls: [0, 0])
        XCTAssertThrowsFormatError(try BinaryLeaf(memory, extreme).value(0))
        XCTAssertThrowsFormatError(try BinaryLeaf(memory, extreme).value(1))
        let unterminated = try StringLeaf(memory, image.smallBlobs(offsets: [0, 2], blob: [1, 0], nulls: [0, 0]))
        XCTAssertThrowsFormatError(try unterminated.value(0), "a string has at least its terminating zero")
    }

    func testBigBlobs() throws {
        let long = String(repeating: "ä", count: 50)
        let leaf = try StringLeaf(
            memory, image.refs([0, image.blob(Array(long.utf8) + [0]), image.blob([0]), image.blob([])], flags: 0x20))
        XCTAssertNil(try leaf.value(0))
        XCTAssertEqual(try leaf.value(1), long)
        XCTAssertEqual(try leaf.value(2), "")
        XCTAssertThrowsFormatError(try leaf.value(3), "a string has at least its terminating zero")
        XCTAssertEqual(try (0..<3).map(leaf.isNull), [true, false, false])
        let binary = try BinaryLeaf(memory, image.refs([0, image.blob([]), image.blob([1, 2, 3])], flags: 0x20))
        XCTAssertEqual(try all(binary), [nil, [], [1, 2, 3]])
        XCTAssertEqual(try (0..<3).map(binary.byteCount), [0, 0, 3])
        for child in [5, 4, 1 << 40, image.integers([1, 2]), image.refs([0, 0])] {
            let damaged = image.refs([child], flags: 0x20)
            XCTAssertThrowsFormatError(try StringLeaf(memory, damaged).value(0))
            XCTAssertThrowsFormatError(try BinaryLeaf(memory, damaged).value(0))
        }
    }

    func testSplitBlobsAreReadInParts() throws {
        let split = image.refs([image.blob([1, 2]), image.blob([]), image.blob([3])], flags: 0x20)
        let leaf = try BinaryLeaf(memory, image.refs([split, 0], flags: 0x20))
        XCTAssertEqual(try leaf.value(0), [1, 2, 3])
        XCTAssertEqual(try leaf.byteCount(0), 3)
        var parts: [[UInt8]] = []
        try leaf.withChunks(0) { parts.append([UInt8]($0)) }
        XCTAssertEqual(parts, [[1, 2], [], [3]])
        try leaf.withChunks(1) { _ in XCTFail("null has no parts") }
        XCTAssertThrowsFormatError(try leaf.bytes(0), "no single buffer holds it")
        let text = image.refs([image.blob(Array("in two ".utf8)), image.blob(Array("parts".utf8))], flags: 0x20)
        XCTAssertEqual(try StringLeaf(memory, image.refs([text], flags: 0x20)).value(0), "in two parts")
    }

    func testDamagedSplitBlobsThrow() throws {
        let blob = image.blob([UInt8](repeating: 7, count: 1000))
        let nested = image.refs([image.refs([blob], flags: 0x20)], flags: 0x20)
        let missing = image.refs([blob, 0], flags: 0x20)
        // One part named over and over: more bytes than the file has.
        let repeated = image.refs([Int](repeating: blob, count: 1000), flags: 0x20)
        for split in [nested, missing, repeated] {
            let leaf = try BinaryLeaf(memory, image.refs([split], flags: 0x20))
            XCTAssertThrowsFormatError(try leaf.value(0))
            XCTAssertThrowsFormatError(try leaf.byteCount(0))
        }
    }

    func testBinariesHaveNoTerminator() throws {
        let leaf = try BinaryLeaf(memory, image.smallBlobs(offsets: [2, 2, 2, 3], blob: [9, 0, 8], nulls: [0, 1, 0, 0]))
        XCTAssertEqual(try all(leaf), [[9, 0], nil, [], [8]])
        XCTAssertThrowsFormatError(try BinaryLeaf(memory, image.add(flags: 0x0A, count: 1, payload: [0, 1])), "short strings")
    }

    func testInvalidUTF8IsRepairedAndZeroBytesAreKept() throws {
        let damaged: [UInt8] = [0x61, 0xFF, 0x62]
        let long: [UInt8] = [UInt8](repeating: 0x61, count: 100) + [0xC3]
        let leaf = try StringLeaf(memory, image.add(flags: 0x0B, count: 1, payload: damaged + [0]))
        XCTAssertEqual(try leaf.value(0), "a\u{FFFD}b")
        XCTAssertEqual(try leaf.bytes(0).map { [UInt8]($0) }, damaged)
        let big = try StringLeaf(memory, image.refs([image.blob(long + [0])], flags: 0x20))
        XCTAssertEqual(try big.value(0), String(repeating: "a", count: 100) + "\u{FFFD}")
        let zeros = try StringLeaf(memory, image.smallBlobs(offsets: [4], blob: [0x61, 0, 0x62, 0], nulls: [0]))
        XCTAssertEqual(try zeros.value(0), "a\0b")
    }

    func testEnumeratedStringsReadThroughTheirKeyList() throws {
        let keys = try StringLeaf(memory, image.add(flags: 0x0A, count: 3, payload: [0x62, 0, 0, 2, 0x61, 0]))
        let leaf = try EnumStringLeaf(memory, image.integers([2, 0, 1, 2, 3, -1]), keys: keys)
        XCTAssertEqual(try (0..<4).map(leaf.value), ["a", "b", nil, "a"])
        XCTAssertEqual(try leaf.keyIndex(3), 2)
        XCTAssertThrowsFormatError(try leaf.value(4), "no such key")
        XCTAssertThrowsFormatError(try leaf.value(5), "no such key")
        XCTAssertThrowsFormatError(try leaf.value(6))
        XCTAssertThrowsFormatError(try StringLeaf(memory, leaf.node.ref), "indexes are no strings")
    }

    func testSearchFindsWhatSingleValuesAre() throws {
        let seed: UInt64 = 9
        print("seed \(seed)")
        var random = SplitMix(seed: seed)
        for width in [0, 1, 2, 4, 8, 16, 32, 64, -1, -2] {
            // Few letters and lengths, so that equal values are frequent; -1 stands for small and -2 for big blobs.
            let values = (0..<100).map { _ -> String? in
                let length = Int(random.next() % UInt64(width < 0 ? 20 : max(1, width)))
                return width == 0 || random.next() % 5 == 0
                    ? nil : String(repeating: random.next() % 2 == 0 ? "a" : "b", count: length)
            }
            let leaf = try StringLeaf(memory, layStrings(values, width: width))
            XCTAssertEqual(try all(leaf), values)
            for text in values + ["", "abab", String(repeating: "a", count: 70)] {
                let lower = Int(random.next() % 50), range = lower..<(lower + Int(random.next() % 50))
                var text = text
                let found =
                    try text == nil
                    ? leaf.firstIndex(of: nil, in: range)
                    : text!.withUTF8 { try leaf.firstIndex(of: UnsafeRawBufferPointer($0), in: range) }
                XCTAssertEqual(found, range.first { values[$0] == text }, "\(text ?? "null") in \(range), width \(width)")
            }
        }
    }

    private func layStrings(_ values: [String?], width: Int) -> Int {
        if width == -2 { return image.refs(values.map { $0.map { image.blob(Array($0.utf8) + [0]) } ?? 0 }, flags: 0x20) }
        if width == -1 {
            let stored = values.map { Array(($0 ?? "").utf8) + [0] as [UInt8] }
            var end: Int64 = 0
            let offsets = stored.map { bytes -> Int64 in
                end += Int64(bytes.count)
                return end
            }
            return image.smallBlobs(offsets: offsets, blob: Array(stored.joined()), nulls: values.map { $0 == nil ? 1 : 0 })
        }
        let blocks = values.map { value -> [UInt8] in
            let bytes = Array((value ?? "").utf8), zeros = value == nil ? width : width - 1 - bytes.count
            return width == 0 ? [] : bytes + [UInt8](repeating: 0, count: width - 1 - bytes.count) + [UInt8(zeros)]
        }
        return image.add(
            flags: 0x08 | (width == 0 ? 0 : UInt8(width.trailingZeroBitCount + 1)), count: values.count,
            payload: Array(blocks.joined()))
    }

    func testNodesOfAnotherKindAreRefused() throws {
        for ref in [image.integers([1]), image.blob([0]), image.add(flags: 0xC0, count: 3), image.add(flags: 0xE0, count: 3)] {
            XCTAssertThrowsFormatError(try StringLeaf(memory, ref))
            XCTAssertThrowsFormatError(try BinaryLeaf(memory, ref))
        }
    }

    private func strings(_ flags: UInt8, _ count: Int, _ payload: [UInt8]) throws -> [String?] {
        try all(StringLeaf(memory, image.add(flags: flags, count: count, payload: payload)))
    }
}
