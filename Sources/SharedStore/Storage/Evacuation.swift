/// Emptying the tail of a file after mass deletion, a little in every commit (file-format-3 section 3).
///
/// ```
/// slot 11 of the top array:  absent or 0   idle
///                            tagged L      to begin with limit L in the next commit
///                            ref           integers [L, backoff, progress...]
/// ```
/// `L` is the position below which everything shall lie (0: given up), `backoff` the number of commits to wait, `progress`
/// the path of array indices at which the scan goes on; its first element is a slot of the top array.
///
/// A node beyond the limit moves by being copied into the arena as if it had been changed; the commit then places it below
/// the limit, since what lies beyond is not given out. So the crash argument is that of any commit.
struct Evacuation {
    var limit = 0
    var backoff = 0
    var progress: [Int] = []
    /// The ref of the array that holds this state in the base version, 0 for none.
    private(set) var arrayRef = 0
    var isActive: Bool { limit > 0 || backoff > 0 }

    static let minimalFileSize = 1 << 20
    static let minimalLimit = 1 << 16
    static let backoffAfterFailure = 10
    static let backoffAfterScan = 1000
    private static let depthMax = 1024

    /// Idle.
    init() {}

    /// Reads the state from slot 11, and steps it on by one commit.
    init(_ memory: Memory, slot value: Int64, listRef: Int) throws {
        if value == 0 { return }
        if value & 1 != 0 {
            limit = Evacuation.validLimit(Int64(bitPattern: UInt64(bitPattern: value) >> 1))
            return
        }
        arrayRef = Int(value)
        let array = try memory.node(arrayRef)
        if array.hasRefs || array.widthType != 0 || array.count < 2 || array.count > 2 + Evacuation.depthMax {
            throw FormatError(ref: arrayRef, "evacuation state with flags \(array.flags) and \(array.count) elements")
        }
        limit = Evacuation.validLimit(array.unchecked(0))
        backoff = Int(min(max(array.unchecked(1), 0), Int64(Evacuation.backoffAfterScan)))
        if backoff > 0 {
            backoff -= 1
        } else {
            for i in 2..<array.count { progress.append(Int(max(array.unchecked(i), 0))) }
        }
        // Lists beyond the limit: somebody allocates there in spite of it.
        if limit > 0 && listRef > limit { giveUp() }
    }

    /// A limit as blocks may be split at it, whatever stands in the file; 0 stays 0.
    private static func validLimit(_ value: Int64) -> Int {
        value <= 0 ? 0 : max(Int(value) & ~7, FileHeader.byteCount)
    }

    mutating func giveUp() {
        limit = 0
        backoff = Evacuation.backoffAfterFailure
        progress = []
    }

    /// The elements to be stored; empty for an idle state.
    mutating func state() -> [Int64] {
        if !isActive { return [] }
        if backoff == 0 && progress.isEmpty { backoff = Evacuation.backoffAfterScan }
        return [Int64(limit), Int64(backoff)] + progress.map(Int64.init)
    }

    /// The limit to begin with, or nil where the file is not worth it: more than two thirds of it must be free (3.2).
    static func newLimit(_ logicalSize: Int, freeBytes: Int, pageSize: Int) -> Int? {
        let used = logicalSize - freeBytes
        if logicalSize < minimalFileSize || freeBytes <= 2 * used { return nil }
        return max(minimalLimit, roundUp(used + used / 2, pageSize))
    }

    // MARK: Scan

    private struct Frame {
        var ref: Int
        /// The ref that the parent holds.
        var known: Int
        var index: Int
    }

    /// Copies nodes beyond the limit into the arena, as far as `work` reaches: bytes moved and elements looked at.
    /// `roots` are the slots 0, 1 and 8 of the top array, which are replaced where their trees moved.
    mutating func scan(_ arena: Arena, work: Int, root: (Int) -> Int, setRoot: (Int, Int) -> Void) throws {
        if limit == 0 || backoff > 0 { return }
        var work = work
        let path = progress
        progress = []
        for slot in [TopSlot.names, TopSlot.tables, TopSlot.history] {
            if let first = path.first, slot < first { continue }
            let ref = root(slot)
            if ref == 0 { continue }
            let resume = path.first == slot ? Array(path.dropFirst()) : []
            var rest: [Int]?
            let moved = try scanTree(arena, ref, resume, &work, &rest)
            if moved != ref { setRoot(slot, moved) }
            if let rest {
                progress = [slot] + rest
                return
            }
        }
    }

    /// Scans one tree; `rest` is the path of the node at which the work ran out, nil when the tree is done.
    private func scanTree(_ arena: Arena, _ root: Int, _ resume: [Int], _ work: inout Int, _ rest: inout [Int]?) throws -> Int {
        var stack: [Frame] = []
        if work < 0 {
            rest = resume
            return root
        }
        stack.append(try visit(arena, root, &work, resume.first ?? 0))
        var onPath = !resume.isEmpty
        while true {
            var frame = stack[stack.count - 1]
            let node = try arena.memory.node(frame.ref)
            var child = 0
            if node.hasRefs && rest == nil {
                while frame.index < node.count {
                    let v = node.unchecked(frame.index)
                    if v & 1 == 0 && v > 0 {
                        child = Int(v)
                        break
                    }
                    frame.index += 1
                    onPath = false
                }
            }
            stack[stack.count - 1] = frame
            if child != 0 {
                if work < 0 {
                    rest = stack.map(\.index)
                } else if stack.count > Evacuation.depthMax {
                    throw FormatError(ref: root, "a tree is more than \(Evacuation.depthMax) levels deep")
                } else {
                    let depth = stack.count
                    let start = onPath && depth < resume.count ? resume[depth] : 0
                    if depth >= resume.count { onPath = false }
                    stack.append(try visit(arena, child, &work, start))
                    continue
                }
            }
            stack.removeLast()
            guard var parent = stack.popLast() else { return frame.ref }
            if frame.ref != frame.known { parent.ref = try Evacuation.setChild(arena, parent.ref, parent.index, frame.ref) }
            parent.index += rest == nil ? 1 : 0
            onPath = false
            stack.append(parent)
        }
    }

    private func visit(_ arena: Arena, _ ref: Int, _ work: inout Int, _ start: Int) throws -> Frame {
        let node = try arena.memory.node(ref)
        var result = ref
        if !arena.memory.isInArena(ref) && ref + node.byteCount > limit {
            result = node.hasRefs ? try Evacuation.copyWide(arena, node) : try arena.makeWritable(ref)
            work -= node.byteCount
        }
        if node.hasRefs { work -= node.count }
        return Frame(ref: result, known: ref, index: start)
    }

    /// A copy of an array of refs in the arena, 64 bits an element, so that any child can be replaced.
    private static func copyWide(_ arena: Arena, _ node: Node) throws -> Int {
        if node.widthType != 0 { throw FormatError(ref: node.ref, "node with refs has width type \(node.widthType)") }
        let isFileNode = !arena.memory.isInArena(node.ref), fileLimit = Int64(arena.memory.state.pointee.fileLimit)
        let copy = try arena.allocate(8 + 8 * node.count)
        let p = arena.address(copy)
        p.storeBytes(of: (node.flags & 0xE0) | 7, toByteOffset: 4, as: UInt8.self)
        p.storeBytes(of: UInt8(truncatingIfNeeded: node.count >> 16), toByteOffset: 5, as: UInt8.self)
        p.storeBytes(of: UInt16(truncatingIfNeeded: node.count).bigEndian, toByteOffset: 6, as: UInt16.self)
        for i in 0..<node.count {
            let v = node.unchecked(i)
            if isFileNode && v & 1 == 0 && (v < 0 || v >= fileLimit) {
                throw FormatError(ref: node.ref, "element \(i) is \(v), outside the file")
            }
            (p + 8).storeBytes(of: v, toByteOffset: 8 * i, as: Int64.self)
        }
        try arena.release(node.ref)
        return copy
    }

    /// Replaces a child; the result is the parent's ref, another one where the parent had to be copied or widened.
    private static func setChild(_ arena: Arena, _ parent: Int, _ index: Int, _ child: Int) throws -> Int {
        let node = try arena.memory.node(parent)
        let wide = arena.memory.isInArena(parent) && node.flags & 7 == 7 ? parent : try copyWide(arena, node)
        (arena.address(wide) + 8).storeBytes(of: Int64(child), toByteOffset: 8 * index, as: Int64.self)
        return wide
    }
}
