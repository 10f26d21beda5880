import Glibc
import TestSupport
import XCTest

@testable import SharedStore

/// Nodes made of random bytes and of refs to each other, in memory that ends at an unreadable page: whatever a reader is given,
/// it returns values or throws `FormatError`; it never traps, never reads behind the end, and comes to an end.
final class LeavesDamageTests: XCTestCase {
    func testRandomNodesNeverStopAReader() throws {
        let seed: UInt64 = 1_234
        print("seed \(seed)")
        var random = SplitMix(seed: seed)
        var read = 0, refused = 0
        for _ in 0..<150 {
            let image = ByteImage(capacity: 1 << 16)
            var refs: [Int] = []
            for _ in 0..<12 { refs.append(randomNode(image, refs, &random)) }
            // The last node ends with the readable bytes; sometimes in the middle of it.
            let limit = image.limit - (random.next() % 4 == 0 ? 8 * Int(random.next() % 4) : 0)
            let guarded = GuardedCopy(image, limit: limit)
            for ref in refs + [0, 8, 4, image.limit, -8, Int.max & ~7] {
                count(&read, &refused) { try self.readAll(IntLeaf(guarded.memory, ref)) { $0.forEach { _ in } } }
                count(&read, &refused) { try self.readAll(NullableIntLeaf(guarded.memory, ref)) { $0.forEach { _ in } } }
                count(&read, &refused) { try self.readAll(BoolLeaf(guarded.memory, ref)) }
                count(&read, &refused) { try self.readAll(FloatLeaf(guarded.memory, ref)) }
                count(&read, &refused) { try self.readAll(DoubleLeaf(guarded.memory, ref)) }
                count(&read, &refused) { try self.readAll(DecimalLeaf(guarded.memory, ref)) }
                count(&read, &refused) { try self.readAll(TimestampLeaf(guarded.memory, ref)) }
                count(&read, &refused) { try self.readAll(ObjectIdLeaf(guarded.memory, ref)) }
                count(&read, &refused) { try self.readAll(UUIDLeaf(guarded.memory, ref)) }
                count(&read, &refused) {
                    try self.readAll(StringLeaf(guarded.memory, ref)) { leaf in
                        _ = try leaf.firstIndex(of: nil, in: 0..<leaf.count)
                        try ([7, 0] as [UInt8]).withUnsafeBytes { text in _ = try leaf.firstIndex(of: text, in: 0..<leaf.count) }
                    }
                }
                count(&read, &refused) {
                    try self.readAll(BinaryLeaf(guarded.memory, ref)) { for i in 0..<$0.count { _ = try $0.byteCount(i) } }
                }
                count(&read, &refused) { try self.readAll(LinkLeaf(guarded.memory, ref)) }
                count(&read, &refused) { try self.readAll(KeyLeaf(guarded.memory, ref)) }
                count(&read, &refused) { try self.readAll(TypedLinkLeaf(guarded.memory, ref)) }
                count(&read, &refused) { try self.readAll(RefLeaf(guarded.memory, ref)) }
                count(&read, &refused) { try self.readAll(BacklinkLeaf(guarded.memory, ref)) }
                count(&read, &refused) {
                    try self.readAll(MixedLeaf(guarded.memory, ref)) {
                        for i in 0..<$0.count {
                            _ = try? $0.nestedRef(i)
                            _ = try $0.key(i)
                        }
                    }
                }
                count(&read, &refused) {
                    try BPlusTree<IntLeaf>(guarded.memory, ref).forEachLeaf { leaf, _ in leaf.forEach { _ in } }
                }
                count(&read, &refused) {
                    try BPlusTree<StringLeaf>(guarded.memory, ref).forEachLeaf { leaf, _ in try self.readAll(leaf) }
                }
            }
        }
        // Both outcomes occur often, or the nodes are too wild or too tame to show anything.
        XCTAssertGreaterThan(read, 3_000, "\(read) read")
        XCTAssertGreaterThan(refused, 10_000, "\(refused) refused")
    }

    private func readAll<L: Leaf>(_ leaf: L, _ more: (L) throws -> Void = { _ in }) throws {
        for i in 0..<leaf.count {
            // A damaged value does not keep the others from being read.
            do { _ = try leaf.value(i) } catch is FormatError {}
        }
        try more(leaf)
    }

    private func count(_ read: inout Int, _ refused: inout Int, _ body: () throws -> Void) {
        do {
            try body()
            read += 1
        } catch {
            XCTAssert(error is FormatError, "\(error)")
            refused += 1
        }
    }

    private func randomNode(_ image: ByteImage, _ refs: [Int], _ random: inout SplitMix) -> Int {
        func number(_ below: Int) -> Int { Int(random.next() % UInt64(below)) }
        switch number(6) {
        case 0:
            // Refs of nodes that are there, one that is not, numbers: as leaves and inner nodes have them.
            let elements = (0..<(1 + number(6))).map { _ -> Int in
                switch number(5) {
                case 0: 0
                case 1: 2 * number(20) + 1
                case 2: image.limit + 8 * number(3)
                default: refs.isEmpty ? 0 : refs[number(refs.count)]
                }
            }
            return image.refs(elements, flags: [0, 0, 0x20, 0x80][number(4)])
        case 1:
            return image.integers((0..<number(9)).map { _ in Int64(number(60)) })
        case 2:
            return image.blob((0..<number(40)).map { _ in UInt8(number(256)) })
        case 3:
            let flags = UInt8(number(0x20)), count = number(20)
            return image.add(flags: flags, count: count, payload: (0..<number(200)).map { _ in UInt8(number(9)) })
        case 4:
            let elements = (0..<number(5)).map { _ in Int64(bitPattern: random.next()) }
            return image.integers(elements, width: 64, flags: UInt8(number(8)) << 5)
        default:
            let flags = UInt8(number(256)), count = number(1 << (1 + number(12)))
            return image.add(flags: flags, count: count, payload: (0..<number(64)).map { _ in UInt8(number(256)) })
        }
    }
}

/// A copy of an image's bytes whose last byte is the last one before an unreadable page.
private final class GuardedCopy {
    private let region: UnsafeMutableRawPointer
    private let length: Int
    private let state: UnsafeMutablePointer<MemoryState>
    var memory: Memory { Memory(state) }

    init(_ image: ByteImage, limit: Int) {
        let page = Int(sysconf(Int32(_SC_PAGESIZE)))
        let readable = (limit + page - 1) / page * page
        length = readable + page
        guard let region = mmap(nil, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), region != MAP_FAILED
        else {
            fatalError("no memory for a test")
        }
        self.region = region
        let base = region + (readable - limit)
        image.copyBytes(limit, to: base)
        XCTAssertEqual(mprotect(region + readable, page, PROT_NONE), 0)
        state = .allocate(capacity: 1)
        state.initialize(to: MemoryState(base: base, fileLimit: limit))
    }

    deinit {
        state.deallocate()
        munmap(region, length)
    }
}
