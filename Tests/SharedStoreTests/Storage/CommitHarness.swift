import Foundation
import Glibc
@testable import SharedStore
import SystemCalls
import TestSupport
import XCTest

/// What a tree of nodes should contain.
final class ModelNode {
    enum Element {
        case null
        case number(Int64)
        case child(ModelNode)
    }
    var elements: [Element] = []
    /// The bytes of a node without refs.
    var bytes: [UInt8]?
    init(elements: [Element]) { self.elements = elements }
    init(bytes: [UInt8]) { self.bytes = bytes }
    /// A blob of random bytes.
    static func random(_ count: Int, _ random: inout SplitMix) -> ModelNode {
        ModelNode(bytes: (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next() >> 32) })
    }
    /// A blob of one random byte, again and again.
    static func filled(_ count: Int, _ random: inout SplitMix) -> ModelNode {
        ModelNode(bytes: [UInt8](repeating: UInt8(truncatingIfNeeded: random.next() >> 32), count: count))
    }
    func copy() -> ModelNode {
        if let bytes { return ModelNode(bytes: bytes) }
        return ModelNode(elements: elements.map { if case .child(let c) = $0 { .child(c.copy()) } else { $0 } })
    }
}

/// A piece of a file and what it is.
struct Extent: Equatable {
    var position: Int
    var length: Int
    var isFree: Bool
    var version: UInt64
}

/// Everything in one version: nodes by traversal, free blocks by the lists.
struct Census {
    var extents: [Extent] = []
    var freeBytes: Int { extents.reduce(0) { $0 + ($1.isFree ? $1.length : 0) } }
    var usedBytes: Int { extents.reduce(0) { $0 + ($1.isFree ? 0 : $1.length) } }

    init(_ view: FileView) throws {
        let memory = view.memory
        if view.snapshot.topRef == 0 { return }
        var pending = [view.snapshot.topRef]
        while let ref = pending.popLast() {
            let node = try memory.node(ref)
            extents.append(Extent(position: ref, length: node.byteCount, isFree: false, version: 0))
            if extents.count > 10_000_000 { throw FormatError(ref: ref, "endless") }
            if node.hasRefs {
                for i in 0..<node.count {
                    let v = try node.integer(i)
                    if v != 0 && v & 1 == 0 { pending.append(Int(v)) }
                }
            }
        }
        let top = try memory.node(view.snapshot.topRef)
        guard top.count > 5 else { return }
        let p = try memory.node(try top.requiredRef(3)), l = try memory.node(try top.requiredRef(4))
        let v = try memory.node(try top.requiredRef(5))
        XCTAssertEqual(p.count, l.count)
        XCTAssertEqual(p.count, v.count)
        var end = 0
        for i in 0..<p.count {
            let version = UInt64(try v.integer(i))
            let e = Extent(position: Int(try p.integer(i)), length: Int(try l.integer(i)), isFree: true, version: version)
            XCTAssertTrue(e.position >= end && e.length >= 8 && e.position % 8 == 0 && e.length % 8 == 0, "bad free block \(e)")
            XCTAssertLessThanOrEqual(e.version, view.snapshot.version)
            end = e.position + e.length
            extents.append(e)
        }
        extents.sort { $0.position < $1.position }
    }

    /// All nodes one behind the other.
    func nodeBytes(_ view: FileView) throws -> Data {
        var all = Data(capacity: usedBytes)
        for e in extents where !e.isFree {
            all.append(
                try view.memory.bytes(at: e.position, length: e.length).assumingMemoryBound(to: UInt8.self), count: e.length)
        }
        return all
    }

    /// Header, nodes and free blocks cover the file, each byte once; no node crosses a section.
    func checkTiling(_ snapshot: Snapshot, _ line: UInt = #line) -> Bool {
        var end = 24
        for e in extents {
            if e.position != end {
                let what = e.position > end ? "gap" : "overlap"
                XCTFail("version \(snapshot.version): \(what) at \(end), next is \(e)", line: line)
                return false
            }
            end += e.length
            if !e.isFree && e.position >> 26 != (end - 1) >> 26 {
                XCTFail("node at \(e.position) crosses a section", line: line)
                return false
            }
        }
        if end != snapshot.logicalSize {
            XCTFail("version \(snapshot.version) ends at \(end), logical size \(snapshot.logicalSize)", line: line)
            return false
        }
        return true
    }
}

/// A database of plain trees that is committed to by hand: what the session and the tables do around a `Committer`.
final class CommitHarness {
    let file: DatabaseFile
    var committer: Committer
    let work: WorkingMemory
    var newest: Snapshot
    let durability: Durability
    /// Pinned versions with a copy of all their nodes.
    var pins: [(snapshot: Snapshot, view: FileView, census: Census, bytes: Data)] = []
    private var committedPins: [Snapshot] = []
    var roots: [Int: ModelNode] = [:]

    init(file: DatabaseFile, durability: Durability = .unsafe) throws {
        self.file = file
        self.durability = durability
        file.backend.setStoresThroughMap(durability != .full)
        newest = try file.inspect().snapshot
        committer = Committer(file: file)
        work = try WorkingMemory(file: file, base: newest)
    }

    convenience init(path: String, durability: Durability = .unsafe, isPlain: Bool = false) throws {
        let file =
            isPlain
            ? try DatabaseFile.open(path, writable: true, create: true)
            : try TestKeys.openFile(path, writable: true, create: true)
        try file.initialize(durability: durability)
        try self.init(file: file, durability: durability)
    }

    // MARK: Pins

    func pin() throws {
        if pins.contains(where: { $0.snapshot == newest }) { return }
        let view = try file.view(of: newest)
        let census = try Census(view)
        pins.append((newest, view, census, try census.nodeBytes(view)))
    }

    func unpin(_ index: Int) {
        pins.remove(at: index)
    }

    var pinned: PinnedVersions {
        var versions = pins.map { PinnedVersion(snapshot: $0.snapshot, isLive: true) }
        if versions.last?.snapshot != newest { versions.append(PinnedVersion(snapshot: newest, isLive: true)) }
        return PinnedVersions(versions: versions, droppedYoungerEntry: versions.count > 1)
    }

    // MARK: Editing

    var arena: Arena { work.arena }

    func begin() throws { try work.begin(newest) }

    /// A new array of refs in the arena, 64 bits an element.
    func makeRefs(_ values: [Int64], flags: UInt8 = 0x40) throws -> Int {
        let ref = try arena.allocate(8 + 8 * values.count)
        stamp(ref, flags | 7, values.count)
        for (i, v) in values.enumerated() { (arena.address(ref) + 8).storeBytes(of: v, toByteOffset: 8 * i, as: Int64.self) }
        return ref
    }

    func makeBytes(_ bytes: [UInt8]) throws -> Int {
        let ref = try arena.allocate(8 + bytes.count)
        stamp(ref, 0x11, bytes.count)
        bytes.withUnsafeBytes {
            if let p = $0.baseAddress { (arena.address(ref) + 8).copyMemory(from: p, byteCount: bytes.count) }
        }
        return ref
    }

    private func stamp(_ ref: Int, _ flags: UInt8, _ count: Int) {
        (arena.address(ref) + 4).storeBytes(of: (UInt32(flags) << 24 | UInt32(count)).bigEndian, as: UInt32.self)
    }

    func values(_ ref: Int) throws -> [Int64] {
        let node = try arena.memory.node(ref)
        return (0..<node.count).map { node.unchecked($0) }
    }

    func make(_ model: ModelNode) throws -> Int {
        if let bytes = model.bytes { return try makeBytes(bytes) }
        return try makeRefs(
            try model.elements.map {
                switch $0 {
                case .null: 0
                case .number(let n): n << 1 | 1
                case .child(let c): Int64(try make(c))
                }
            })
    }

    /// The top array with one root replaced; the old array is released.
    func replaceRoots(_ new: [Int: Int]) throws -> Int {
        let old = newest.topRef
        var top: [Int64] = old == 0 ? [0, 0, 24 << 1 | 1] : try values(old)
        while top.count < 11 { top.append(0) }
        top[7] = 5; top[9] = 3; top[10] = 1
        for (slot, ref) in new { top[slot] = Int64(ref) }
        if old != 0 { try arena.release(old) }
        return try makeRefs(top)
    }

    func root(_ slot: Int) throws -> Int { newest.topRef == 0 ? 0 : try arena.memory.node(newest.topRef).optionalRef(slot) }

    // MARK: Commit

    @discardableResult
    func commit(top: Int) throws -> Snapshot {
        committedPins = pins.map(\.snapshot)
        do {
            newest = try committer.commit(base: newest, arena: arena, topRef: top, pinned: pinned, durability: durability)
        } catch {
            work.end()
            throw error
        }
        work.end()
        return newest
    }

    /// Replaces whole trees by what the model says.
    func commitModel(_ slots: [Int]) throws {
        try begin()
        var new: [Int: Int] = [:]
        for slot in slots {
            let old = try root(slot)
            if old != 0 { try arena.releaseTree(old) }
            if let model = roots[slot] { new[slot] = try make(model) } else { new[slot] = 0 }
        }
        try commit(top: try replaceRoots(new))
    }

    // MARK: Checks

    @discardableResult
    func check(_ line: UInt = #line) throws -> Census {
        let view = try file.view(of: newest)
        let census = try Census(view)
        XCTAssertTrue(census.checkTiling(newest, line), line: line)
        for e in census.extents where !e.isFree {
            let checksum = try view.memory.bytes(at: e.position, length: 4).loadUnaligned(as: UInt32.self)
            XCTAssertEqual(checksum, 0x4141_4141, line: line)
        }
        for pin in pins {
            XCTAssertEqual(
                try Census(pin.view).nodeBytes(pin.view), pin.bytes, "bytes of version \(pin.snapshot.version) changed",
                line: line)
            // Nothing of a pinned version is free for those who know only its number.
            checkNothingIsLockedInVain(census, line)
            var i = 0
            for e in census.extents where e.isFree && e.version <= pin.snapshot.version {
                let theirs = pin.census.extents
                while i < theirs.count && theirs[i].position + theirs[i].length <= e.position { i += 1 }
                var k = i
                while k < theirs.count && theirs[k].position < e.position + e.length {
                    XCTAssertTrue(theirs[k].isFree, "\(e) is free, version \(pin.snapshot.version) uses \(theirs[k])", line: line)
                    k += 1
                }
            }
        }
        if durability != .memoryOnly {
            XCTAssertEqual(try file.inspect().snapshot, newest, line: line)
        }
        XCTAssertGreaterThanOrEqual(try file.backend.size(), newest.logicalSize, line: line)
        return census
    }

    /// What is locked, but for what the last commit released, is used by a version that was pinned when it was made.
    private func checkNothingIsLockedInVain(_ census: Census, _ line: UInt) {
        guard committedPins == pins.map(\.snapshot) else { return }
        var used = IndexSet()
        for pin in pins {
            for e in pin.census.extents where !e.isFree { used.insert(integersIn: e.position / 8..<(e.position + e.length) / 8) }
        }
        let oldest = pins.first?.snapshot.version ?? newest.version
        for e in census.extents where e.isFree && e.version > oldest && e.version < newest.version {
            let isUsed = used.contains(integersIn: e.position / 8..<(e.position + e.length) / 8)
            XCTAssertTrue(isUsed, "\(e) is locked, but nobody uses all of it", line: line)
        }
    }

    func checkModel(_ line: UInt = #line) throws {
        let view = try file.view(of: newest)
        for (slot, model) in roots {
            let ref = try view.memory.node(newest.topRef).requiredRef(slot)
            try compare(model, ref, view.memory, line)
        }
    }

    private func compare(_ model: ModelNode, _ ref: Int, _ memory: Memory, _ line: UInt) throws {
        let node = try memory.node(ref)
        if let bytes = model.bytes {
            XCTAssertEqual([UInt8](UnsafeRawBufferPointer(start: node.payload, count: node.count)), bytes, line: line)
            return
        }
        XCTAssertEqual(node.count, model.elements.count, line: line)
        var extent = NodePacking.Extent()
        for i in 0..<node.count { extent.include(node.unchecked(i)) }
        XCTAssertEqual(Int(node.flags & 7), extent.widthCode, "array of refs is wider than needed", line: line)
        for (i, element) in model.elements.enumerated() {
            switch element {
            case .null: XCTAssertEqual(node.unchecked(i), 0, line: line)
            case .number(let n): XCTAssertEqual(node.unchecked(i), n << 1 | 1, line: line)
            case .child(let c): try compare(c, try node.requiredRef(i), memory, line)
            }
        }
    }

    // MARK: Random work

    func randomModel(_ depth: Int, _ random: inout SplitMix, maxBytes: Int = 300) -> ModelNode {
        if depth == 0 || Int.random(in: 0..<5, using: &random) == 0 {
            return .random(Int.random(in: 0...maxBytes, using: &random), &random)
        }
        return ModelNode(
            elements: (0..<Int.random(in: 0...6, using: &random)).map { _ in
                switch Int.random(in: 0..<4, using: &random) {
                case 0: .null
                case 1: .number(Int64.random(in: -5...(1 << Int64.random(in: 0...50, using: &random)), using: &random))
                default: .child(randomModel(depth - 1, &random, maxBytes: maxBytes))
                }
            })
    }

    /// Changes something at random in model and tree, by copy-on-write along one path; returns the new ref.
    func mutate(_ model: ModelNode, _ ref: Int, _ random: inout SplitMix, maxBytes: Int = 300) throws -> (ModelNode, Int) {
        let children = model.elements.indices.filter { if case .child = model.elements[$0] { true } else { false } }
        if model.bytes != nil || children.isEmpty || Int.random(in: 0..<6, using: &random) == 0 {
            let new = randomModel(2, &random, maxBytes: maxBytes)
            try arena.releaseTree(ref)
            return (new, try make(new))
        }
        let index = children[Int.random(in: 0..<children.count, using: &random)]
        guard case .child(let child) = model.elements[index] else { return (model, ref) }
        var elements = try values(ref)
        let (newChild, newRef) = try mutate(child, Int(elements[index]), &random, maxBytes: maxBytes)
        elements[index] = Int64(newRef)
        let copy = ModelNode(elements: model.elements)
        copy.elements[index] = .child(newChild)
        switch Int.random(in: 0..<8, using: &random) {
        case 0 where elements.count < 40:
            let extra = randomModel(1, &random, maxBytes: maxBytes)
            elements.append(Int64(try make(extra)))
            copy.elements.append(.child(extra))
        case 1:
            let last = elements.removeLast()
            if last != 0 && last & 1 == 0 { try arena.releaseTree(Int(last)) }
            copy.elements.removeLast()
        default: break
        }
        try arena.release(ref)
        return (copy, try makeRefs(elements))
    }

    func randomCommit(_ random: inout SplitMix, maxBytes: Int = 300) throws {
        try begin()
        var new: [Int: Int] = [:]
        for slot in [0, 1, 8] where roots[slot] == nil || Int.random(in: 0..<3, using: &random) > 0 {
            if let model = roots[slot] {
                let (changed, ref) = try mutate(model, try root(slot), &random, maxBytes: maxBytes)
                roots[slot] = changed
                new[slot] = ref
            } else {
                let model = randomModel(4, &random, maxBytes: maxBytes)
                roots[slot] = model
                new[slot] = try make(model)
            }
        }
        try commit(top: try replaceRoots(new))
    }
}
