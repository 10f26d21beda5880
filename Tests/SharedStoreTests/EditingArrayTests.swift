import TestSupport
import XCTest

@testable import SharedStore

final class EditingArrayTests: XCTestCase {
    private func appended(_ values: [Int64]) throws -> (ScratchArena, Int) {
        let scratch = try ScratchArena()
        var ref = try ArrayEditor.create(scratch.arena)
        for value in values { ref = try ArrayEditor.append(scratch.arena, ref, value) }
        return (scratch, ref)
    }

    /// The worked examples of file-format-1 3.1: header byte 4 and payload.
    func testAppendedIntegersHaveTheBytesOfTheFormat() throws {
        let examples: [([Int64], UInt8, [UInt8])] = [
            ([0, 0, 0], 0x00, []),
            ([0, 0, 0, 1], 0x01, [0x08]),
            ([0, 0, 0, 1, 2], 0x02, [0x40, 0x02]),
            ([0, 0, 0, 1, 2, 15], 0x03, [0x00, 0x10, 0xF2]),
            ([0, 0, 0, 1, 2, 15, 16], 0x04, [0x00, 0x00, 0x00, 0x01, 0x02, 0x0F, 0x10]),
            ([-1], 0x04, [0xFF]),
            ([127, 128], 0x05, [0x7F, 0x00, 0x80, 0x00]),
            ([-32769], 0x06, [0xFF, 0x7F, 0xFF, 0xFF]),
            ([1 << 31], 0x07, [0x00, 0x00, 0x00, 0x80, 0x00, 0x00, 0x00, 0x00]),
        ]
        for (values, flags, payload) in examples {
            let (scratch, ref) = try appended(values)
            XCTAssertEqual(try scratch.flags(ref), flags, "\(values)")
            let bytes = try scratch.payload(ref)
            let usedBits = values.count * ((1 << Int(flags & 7)) >> 1)
            let mask: UInt8 = usedBits % 8 == 0 ? 0xFF : UInt8((1 << (usedBits % 8)) - 1)
            XCTAssertEqual(bytes.dropLast() + bytes.suffix(1).map { $0 & mask }, payload, "\(values)")
            XCTAssertEqual(try scratch.memory.node(ref).count, values.count)
        }
    }

    func testWidthIsTheSmallestThatHoldsTheValue() {
        let signed: [(Int64, Int)] = [
            (0, 0), (1, 1), (2, 2), (3, 2), (4, 3), (15, 3), (16, 4), (127, 4), (128, 5), (-1, 4), (-128, 4), (-129, 5),
            (32767, 5),
            (32768, 6), (-32768, 5), (-32769, 6), (1 << 31 - 1, 6), (1 << 31, 7), (-1 << 31, 6), (-1 << 31 - 1, 7), (.max, 7),
            (.min, 7),
        ]
        for (value, code) in signed { XCTAssertEqual(SignedCoding.widthCode(value), code, "\(value)") }
        let unsigned: [(Int64, Int)] = [
            (0, 4), (255, 4), (256, 5), (65535, 5), (65536, 6), (1 << 32 - 1, 6), (1 << 32, 7), (-1, 7),
        ]
        for (value, code) in unsigned { XCTAssertEqual(UnsignedCoding.widthCode(value), code, "\(value)") }
    }

    func testErasingKeepsTheWidthAndTruncatingToNothingResetsIt() throws {
        var (scratch, ref) = try appended([300])
        ref = try ArrayEditor.erase(scratch.arena, ref, 0)
        XCTAssertEqual(try scratch.nodeBytes(ref), [0x41, 0x41, 0x41, 0x41, 0x05, 0, 0, 0])
        ref = try ArrayEditor.truncate(scratch.arena, ref, to: 0)
        XCTAssertEqual(try scratch.nodeBytes(ref), [0x41, 0x41, 0x41, 0x41, 0x00, 0, 0, 0])
        var keys = try UnsignedArrayEditor.append(scratch.arena, try UnsignedArrayEditor.create(scratch.arena), 70_000)
        keys = try UnsignedArrayEditor.truncate(scratch.arena, keys, to: 0)
        XCTAssertEqual(try scratch.flags(keys), 0x04)
    }

    func testUnsignedArraysUseAllBitsOfAByte() throws {
        let scratch = try ScratchArena()
        var ref = try UnsignedArrayEditor.create(scratch.arena)
        for value in [0, 250, 255] { ref = try UnsignedArrayEditor.append(scratch.arena, ref, Int64(value)) }
        XCTAssertEqual(try scratch.nodeBytes(ref).prefix(11), [0x41, 0x41, 0x41, 0x41, 0x04, 0, 0, 3, 0, 250, 255])
        ref = try UnsignedArrayEditor.append(scratch.arena, ref, 256)
        XCTAssertEqual(try scratch.payload(ref), [0, 0, 250, 0, 255, 0, 0, 1])
    }

    func testSetInTheArenaStaysInPlaceAndInTheFileMakesACopy() throws {
        let (scratch, ref) = try appended([1, 2, 3, 100])
        XCTAssertEqual(try ArrayEditor.set(scratch.arena, ref, 2, 99), ref)
        let (next, fileRef) = try scratch.committed(ref)
        let before = try next.nodeBytes(fileRef)
        let copy = try ArrayEditor.set(next.arena, fileRef, 0, -5)
        XCTAssertTrue(next.memory.isInArena(copy))
        XCTAssertEqual(try next.nodeBytes(fileRef), before, "the file is never changed")
        XCTAssertEqual(next.arena.released.map(\.position), [fileRef])
        XCTAssertEqual(next.arena.released.map(\.length), [16])
        XCTAssertEqual(try (0..<4).map { try ArrayEditor.get(next.arena, copy, $0) }, [-5, 2, 99, 100])
    }

    func testAnIndexOutsideTheArrayThrows() throws {
        let (scratch, ref) = try appended([1, 2, 3])
        XCTAssertThrowsError(try ArrayEditor.set(scratch.arena, ref, 3, 0)) { XCTAssertTrue($0 is FormatError) }
        XCTAssertThrowsError(try ArrayEditor.set(scratch.arena, ref, -1, 0))
        XCTAssertThrowsError(try ArrayEditor.insert(scratch.arena, ref, 4, 0))
        XCTAssertThrowsError(try ArrayEditor.erase(scratch.arena, ref, 3))
        XCTAssertThrowsError(try ArrayEditor.truncate(scratch.arena, ref, to: 4))
        XCTAssertThrowsError(try ArrayEditor.get(scratch.arena, ref, 3))
    }

    func testANodeOfAnotherWidthTypeIsRefused() throws {
        let scratch = try ScratchArena()
        let blob = try scratch.arena.makeNode(flags: 0x17, count: 100, payloadByteCount: 100)
        for operation in [
            { try ArrayEditor.set(scratch.arena, blob, 99, 1) }, { try ArrayEditor.erase(scratch.arena, blob, 0) },
            { try ArrayEditor.insert(scratch.arena, blob, 0, 1) }, { Int(try ArrayEditor.get(scratch.arena, blob, 99)) },
        ] {
            XCTAssertThrowsError(try operation()) { XCTAssertTrue($0 is FormatError) }
        }
    }

    func testARefOfADamagedFileIntoTheArenaIsRefused() throws {
        // An array in the file whose element 0 looks like a ref of the arena.
        var file = [UInt8](repeating: 0, count: 24) + [0x41, 0x41, 0x41, 0x41, 0x47, 0, 0, 1] + [UInt8](repeating: 0, count: 8)
        file.replaceSubrange(32..<40, with: withUnsafeBytes(of: Int64(4096)) { Array($0) })
        let scratch = try ScratchArena(file: file)
        let victim = try ArrayEditor.create(scratch.arena, count: 3, value: 7)
        XCTAssertEqual(victim, 4096)
        XCTAssertThrowsError(try scratch.arena.writableRefs(24)) { XCTAssertTrue($0 is FormatError) }
        XCTAssertThrowsError(try scratch.arena.releaseTree(24)) { XCTAssertTrue($0 is FormatError) }
        XCTAssertThrowsError(try scratch.arena.makeWritable(24)) { XCTAssertTrue($0 is FormatError) }
        XCTAssertEqual(try ArrayEditor.get(scratch.arena, victim, 2), 7)
    }

    private func randomValue(_ random: inout SplitMix, bits: ClosedRange<Int>) -> Int64 {
        let width = Int.random(in: bits, using: &random)
        if width == 0 { return 0 }
        return Int64(truncatingIfNeeded: random.next()) >> Int64(64 - width)
    }

    private func randomOperations<Coding: IntegerCoding>(_: Coding.Type, seed: UInt64, isUnsigned: Bool) throws {
        typealias Editor = IntegerArrayEditor<Coding>
        var random = generator(seed)
        for round in 0..<60 {
            let bits = Int.random(in: 1...64, using: &random)
            let tree = try EditedTree { try Editor.create($0) }
            var model: [Int64] = []
            func value() -> Int64 {
                let v = randomValue(&random, bits: 0...bits)
                return isUnsigned || bits < 8
                    ? Int64(bitPattern: UInt64(bitPattern: v) & (bits == 64 ? .max : (1 << UInt64(bits)) - 1)) : v
            }
            for _ in 0..<150 {
                let v = value()
                switch Int.random(in: 0..<12, using: &random) {
                case 0...4:
                    let i = Int.random(in: 0...model.count, using: &random)
                    model.insert(v, at: i)
                    try tree.edit { try Editor.insert($0, $1, i, v) }
                case 5:
                    model.append(v)
                    try tree.edit { try Editor.append($0, $1, v) }
                case 6, 7:
                    guard let i = model.indices.randomElement(using: &random) else { continue }
                    model[i] = v
                    try tree.edit { try Editor.set($0, $1, i, v) }
                case 8, 9:
                    guard let i = model.indices.randomElement(using: &random) else { continue }
                    model.remove(at: i)
                    try tree.edit { try Editor.erase($0, $1, i) }
                case 10:
                    let start = Int.random(in: 0...model.count, using: &random)
                    let other = try Editor.create(tree.arena, count: 2, value: 9)
                    let (source, target) = try Editor.moveTail(tree.arena, from: tree.root, at: start, to: other)
                    XCTAssertEqual(
                        try ReachableNodes(tree.memory, tree.arena, [source, target]).arenaBytes, tree.arena.liveBytes)
                    let (emptied, whole) = try Editor.moveTail(tree.arena, from: target, at: 2, to: source)
                    try tree.arena.release(emptied)
                    tree.root = whole
                default:
                    if Bool.random(using: &random) {
                        try tree.commit()
                    } else if model.allSatisfy({ (0..<1 << 40).contains($0) }) {
                        let start = Int.random(in: 0...model.count, using: &random)
                        for i in start..<model.count { model[i] += 1000 }
                        try tree.edit { try Editor.add($0, $1, from: start, 1000) }
                    }
                }
                let node = try tree.memory.node(tree.root)
                XCTAssertEqual(
                    (0..<node.count).map { Coding.load(node.payload, Int(node.flags & 7), $0) }, model, "round \(round)")
                XCTAssertGreaterThanOrEqual(Int(node.flags & 7), model.map(Coding.widthCode).max() ?? 0)
            }
            try tree.assertNothingLeaks()
        }
    }

    func testRandomChangesOfSignedArraysMatchASwiftArray() throws {
        try randomOperations(SignedCoding.self, seed: 11, isUnsigned: false)
    }

    func testRandomChangesOfUnsignedArraysMatchASwiftArray() throws {
        try randomOperations(UnsignedCoding.self, seed: 12, isUnsigned: true)
    }
}
