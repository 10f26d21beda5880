import TestSupport
import XCTest

@testable import SharedStore

/// Everything that is reachable from a root: arena blocks by capacity, nodes of the file by extent.
struct ReachableNodes {
    var arenaBytes = 0
    var arenaRefs: Set<Int> = []
    var fileExtents: [Int: Int] = [:]

    /// Walks all that the roots own; a node that is reached twice is a failure.
    init(_ memory: Memory, _ arena: Arena, _ roots: [Int], file: StaticString = #filePath, line: UInt = #line) throws {
        var pending = roots.filter { $0 != 0 }
        while let ref = pending.popLast() {
            let node = try memory.node(ref)
            if memory.isInArena(ref) {
                XCTAssertTrue(arenaRefs.insert(ref).inserted, "arena node \(ref) is owned twice", file: file, line: line)
                XCTAssertLessThanOrEqual(8 + node.payloadByteCount, arena.capacity(ref), file: file, line: line)
                arenaBytes += arena.capacity(ref)
            } else {
                XCTAssertNil(
                    fileExtents.updateValue(node.byteCount, forKey: ref), "file node \(ref) is owned twice", file: file,
                    line: line)
            }
            guard node.hasRefs else { continue }
            XCTAssertEqual(node.widthType, 0, file: file, line: line)
            for index in 0..<node.count {
                let element = node.unchecked(index)
                if element != 0 && element & 1 == 0 { pending.append(Int(element)) }
            }
        }
    }
}

/// A tree under edit together with the arena, so that a test can say at any time: nothing leaks.
final class EditedTree {
    private(set) var scratch: ScratchArena
    var root: Int
    private var originalExtents: [Int: Int] = [:]
    var arena: Arena { scratch.arena }
    var memory: Memory { scratch.memory }

    init(_ make: (Arena) throws -> Int) throws {
        scratch = try ScratchArena()
        root = try make(scratch.arena)
    }

    func edit(_ change: (Arena, Int) throws -> Int) throws { root = try change(scratch.arena, root) }

    /// Each arena block is reachable or was given back; each node of the file is reachable or was released, once.
    func assertNothingLeaks(file: StaticString = #filePath, line: UInt = #line) throws {
        let reachable = try ReachableNodes(memory, arena, [root], file: file, line: line)
        XCTAssertEqual(reachable.arenaBytes, arena.liveBytes, "arena blocks in use but not reachable", file: file, line: line)
        var extents = reachable.fileExtents
        for (position, length) in arena.released {
            XCTAssertNil(
                extents.updateValue(length, forKey: position), "released node \(position) is reachable or released twice",
                file: file, line: line)
        }
        XCTAssertEqual(extents, originalExtents, "nodes of the file lost or changed", file: file, line: line)
    }

    /// Turns all nodes into nodes of a file, as a commit does.
    func commit() throws {
        try assertNothingLeaks()
        (scratch, root) = try scratch.committed(root)
        originalExtents = try ReachableNodes(memory, arena, [root]).fileExtents
    }
}

extension XCTestCase {
    /// A generator whose seed stands in the test's output: `EDITING_SEED` or the given one.
    func generator(_ seed: UInt64, _ name: String = #function) -> SplitMix {
        print("\(name): seed \(seed)")
        return SplitMix(seed: seed)
    }
}

/// Checks the rules of a B+ tree (file-format-1 9.1 to 9.3) below a node; returns depth and number of elements.
@discardableResult
func assertTreeShape<L: LeafEditor>(
    _: L.Type, _ arena: Arena, _ ref: Int, isRoot: Bool = true, file: StaticString = #filePath, line: UInt = #line
) throws -> (depth: Int, count: Int) {
    let node = try arena.memory.node(ref)
    guard node.isInner else {
        let count = try L.count(arena, ref)
        if !isRoot { XCTAssertGreaterThan(count, 0, "empty leaf", file: file, line: line) }
        XCTAssertLessThanOrEqual(count, 1000, file: file, line: line)
        return (0, count)
    }
    let children = node.count - 2
    XCTAssertTrue(node.hasRefs && children <= 1000, file: file, line: line)
    XCTAssertGreaterThanOrEqual(children, isRoot ? 2 : 1, file: file, line: line)
    let below = try (1...children).map {
        try assertTreeShape(L.self, arena, try node.requiredRef($0), isRoot: false, file: file, line: line)
    }
    XCTAssertEqual(Set(below.map(\.depth)).count, 1, "leaves at different depths", file: file, line: line)
    let total = below.reduce(0) { $0 + $1.count }
    XCTAssertEqual(try node.tagged(node.count - 1), total, "total", file: file, line: line)
    if node.unchecked(0) & 1 == 1 {
        let each = try node.tagged(0)
        XCTAssertTrue(
            below.dropLast().allSatisfy { $0.count == each } && below.last!.count <= each, "compact form", file: file, line: line)
    } else {
        let offsets = try arena.memory.node(try node.requiredRef(0))
        XCTAssertGreaterThanOrEqual(offsets.flags & 7, 4, file: file, line: line)
        var sum = 0
        let expected = below.dropLast().map { child -> Int in
            sum += child.count
            return sum
        }
        XCTAssertEqual(
            (0..<offsets.count).map { Int(offsets.uncheckedUnsigned($0)) }, expected, "offsets", file: file, line: line)
    }
    return (below[0].depth + 1, total)
}
