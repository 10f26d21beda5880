import Glibc

/// What makes a leaf of strings differ from one of binaries (file-format-1 6.1).
protocol BytesLeafKind {
    associatedtype Reader: BytesLeaf
    /// Zero bytes behind each stored value.
    static var terminator: Int { get }
    /// Longest value that is stored as a short string; less than 0 if the leaf has no short form.
    static var shortMax: Int { get }
    /// Longest value that is stored among small blobs.
    static var smallMax: Int { get }
    static var valueMax: Int { get }
}

/// A reader of values that are bytes.
protocol BytesLeaf: Leaf {
    func bytes(_ index: Int) throws -> UnsafeRawBufferPointer?
    func isNull(_ index: Int) throws -> Bool
}
extension StringLeaf: BytesLeaf {}
extension BinaryLeaf: BytesLeaf {}

enum StringKind: BytesLeafKind {
    typealias Reader = StringLeaf
    static var terminator: Int { 1 }
    static var shortMax: Int { 15 }
    static var smallMax: Int { 63 }
    static var valueMax: Int { 0xFFFFEF }
}

enum BinaryKind: BytesLeafKind {
    typealias Reader = BinaryLeaf
    static var terminator: Int { 0 }
    static var shortMax: Int { -1 }
    static var smallMax: Int { 64 }
    static var valueMax: Int { BlobEditor.byteCountMax }
}

/// Binaries of any length: changesets of the history, which are split where they exceed one blob.
enum ChangesetKind: BytesLeafKind {
    typealias Reader = BinaryLeaf
    static var terminator: Int { 0 }
    static var shortMax: Int { -1 }
    static var smallMax: Int { 64 }
    static var valueMax: Int { Int.max }
}

typealias StringLeafEditor = BytesLeafEditor<StringKind>
typealias BinaryLeafEditor = BytesLeafEditor<BinaryKind>
typealias ChangesetLeafEditor = BytesLeafEditor<ChangesetKind>

/// Changes to leaves of strings and binaries, nullable or not, in all their forms (file-format-1 section 6).
///
/// ```
/// short  blocks of up to 64 bytes, see `ShortStringEditor`     small  3 refs: end offsets, one blob, nulls
/// big    refs with context flag: a blob a value, 0 for null
/// ```
/// A value that is too long for the form turns the whole leaf into the form that it needs; nothing turns it back. The
/// bytes handed in must not lie in a leaf that is edited, since that may move.
enum BytesLeafEditor<Kind: BytesLeafKind>: LeafEditor {
    typealias Element = UnsafeRawBufferPointer?

    private enum Form: Int { case short, small, big }

    static func create(_ arena: Arena) throws -> Int {
        Kind.shortMax >= 0 ? try ShortStringEditor.create(arena) : try createSmall(arena)
    }

    static func count(_ arena: Arena, _ ref: Int) throws -> Int {
        let node = try arena.memory.node(ref)
        if try form(node) == .small { return try arena.integerNode(try node.requiredRef(0)).count }
        return node.count
    }

    @inline(__always)
    private static func form(_ node: Node) throws -> Form {
        switch node.flags & 0xF8 {
        case 0x08, 0x28:
            if Kind.shortMax >= 0 { return .short }
        case 0x40: return .small
        case 0x60: return .big
        default: break
        }
        throw wrongForm(node)
    }

    @inline(never)
    private static func wrongForm(_ node: Node) -> FormatError {
        let kind = Kind.terminator == 1 ? "strings" : "binaries"
        return FormatError(ref: node.ref, "leaf of \(kind) has flags 0x\(hexadecimal(UInt64(node.flags), digits: 2))")
    }

    /// The leaf in a form that can hold `value`.
    @inline(__always)
    private static func fitting(_ arena: Arena, _ ref: Int, _ value: Element) throws -> (ref: Int, form: Form) {
        let present = try form(try arena.memory.node(ref))
        let length = value?.count ?? 0
        if length <= Kind.shortMax || (length <= Kind.smallMax && present != .short) || present == .big {
            if length <= Kind.valueMax { return (ref, present) }
        }
        if length > Kind.valueMax { throw LimitError.valueTooLarge(byteCount: length, limit: Kind.valueMax) }
        let wanted: Form = length <= Kind.smallMax ? .small : .big
        return (try convert(arena, ref, to: wanted), wanted)
    }

    // MARK: Elements

    @inline(__always)
    static func set(_ arena: Arena, _ ref: Int, _ index: Int, _ value: Element) throws -> Int {
        let (ref, form) = try fitting(arena, ref, value)
        switch form {
        case .short: return try ShortStringEditor.set(arena, ref, index, value)
        case .small: return try setSmall(arena, ref, index, value)
        case .big: return try setBig(arena, ref, index, value)
        }
    }

    @inline(__always)
    static func insert(_ arena: Arena, _ ref: Int, _ index: Int, _ value: Element) throws -> Int {
        let (ref, form) = try fitting(arena, ref, value)
        switch form {
        case .short: return try ShortStringEditor.insert(arena, ref, index, value)
        case .small: return try insertSmall(arena, ref, index, value)
        case .big: return try insertBig(arena, ref, index, value)
        }
    }

    static func erase(_ arena: Arena, _ ref: Int, _ index: Int) throws -> Int {
        switch try form(try arena.memory.node(ref)) {
        case .short:
            return try ShortStringEditor.erase(arena, ref, index)
        case .small:
            let ref = try arena.writableRefs(ref)
            let (start, end) = try extent(arena, ref, index)
            try editBlob(arena, ref, at: start, removing: end - start, nil, zeros: 0)
            let offsets = try ArrayEditor.erase(arena, try arena.child(ref, 0), index)
            arena.setElement(ref, 0, try ArrayEditor.add(arena, offsets, from: index, Int64(start - end)))
            arena.setElement(ref, 2, try ArrayEditor.erase(arena, try arena.child(ref, 2), index))
            return ref
        case .big:
            let ref = try arena.writableRefs(ref)
            let count = arena.header(ref).count
            guard UInt(bitPattern: index) < UInt(bitPattern: count) else { throw arena.indexOutside(ref, index, count) }
            if arena.element(ref, index) != 0 { try arena.releaseTree(try arena.child(ref, index)) }
            arena.eraseElements(ref, index..<index + 1)
            return ref
        }
    }

    static func truncate(_ arena: Arena, _ ref: Int, to count: Int) throws -> Int {
        switch try form(try arena.memory.node(ref)) {
        case .short:
            return try ShortStringEditor.truncate(arena, ref, to: count)
        case .small:
            let ref = try arena.writableRefs(ref)
            let size = count == 0 ? 0 : try extent(arena, ref, count - 1).end
            arena.setElement(ref, 0, try ArrayEditor.truncate(arena, try arena.child(ref, 0), to: count))
            arena.setElement(ref, 1, try BlobEditor.truncate(arena, try arena.child(ref, 1), to: size))
            arena.setElement(ref, 2, try ArrayEditor.truncate(arena, try arena.child(ref, 2), to: count))
            return ref
        case .big:
            let ref = try arena.writableRefs(ref)
            let old = arena.header(ref).count
            guard UInt(bitPattern: count) <= UInt(bitPattern: old) else { throw arena.indexOutside(ref, count, old) }
            for index in count..<old where arena.element(ref, index) != 0 { try arena.releaseTree(try arena.child(ref, index)) }
            arena.eraseElements(ref, count..<old)
            return ref
        }
    }

    static func moveTail(_ arena: Arena, from source: Int, at start: Int, to target: Int) throws -> (source: Int, target: Int) {
        let count = try count(arena, source)
        guard UInt(bitPattern: start) <= UInt(bitPattern: count) else { throw arena.indexOutside(source, start, count) }
        if try form(try arena.memory.node(source)) == .big { return try moveBlobs(arena, from: source, at: start, to: target) }
        let reader = try Kind.Reader(arena.memory, source)
        var target = target
        for index in start..<count { target = try append(arena, target, try reader.bytes(index)) }
        return (try truncate(arena, source, to: start), target)
    }

    /// Moves the blobs of a leaf of big blobs as they are, unless all of them are short enough for a smaller form.
    private static func moveBlobs(_ arena: Arena, from source: Int, at start: Int, to target: Int) throws -> (
        source: Int, target: Int
    ) {
        let source = try arena.writableRefs(source)
        let count = arena.header(source).count
        var longest = 0
        for index in start..<count where arena.element(source, index) != 0 {
            let blob = try arena.memory.node(try arena.child(source, index))
            longest = blob.hasRefs ? Int.max : max(longest, blob.count - Kind.terminator)
        }
        var target = target
        if try longest <= Kind.smallMax && form(try arena.memory.node(target)) != .big {
            let reader = try Kind.Reader(arena.memory, source)
            for index in start..<count { target = try append(arena, target, try reader.bytes(index)) }
            return (try truncate(arena, source, to: start), target)
        }
        target = try arena.writableRefs(try convert(arena, target, to: .big), growth: count - start)
        for index in start..<count { arena.insertElement(target, arena.header(target).count, arena.element(source, index)) }
        arena.eraseElements(source, start..<count)
        return (source, target)
    }

    /// Copies the last value over value `index` and removes the last one.
    static func moveLastOver(_ arena: Arena, _ ref: Int, _ index: Int) throws -> Int {
        let last = try count(arena, ref) - 1
        guard index >= 0, index <= last else { throw arena.indexOutside(ref, index, last + 1) }
        if index == last { return try erase(arena, ref, index) }
        if try form(try arena.memory.node(ref)) == .big {
            let ref = try arena.writableRefs(ref)
            if arena.element(ref, index) != 0 { try arena.releaseTree(try arena.child(ref, index)) }
            arena.setElement(ref, index, arena.element(ref, last))
            arena.eraseElements(ref, last..<last + 1)
            return ref
        }
        // A copy, since storing moves the bytes of the leaf.
        let copy = try Kind.Reader(arena.memory, ref).bytes(last).map { [UInt8]($0) }
        let ref = try erase(arena, ref, last)
        if let copy { return try copy.withUnsafeBytes { try set(arena, ref, index, $0) } }
        return try set(arena, ref, index, nil)
    }

    // MARK: Forms

    private static func createSmall(_ arena: Arena) throws -> Int {
        let ref = try arena.makeRefs(count: 3)
        arena.setElement(ref, 0, try ArrayEditor.create(arena))
        arena.setElement(ref, 1, try BlobEditor.create(arena))
        let nulls = try ArrayEditor.create(arena)
        arena.setHeader(nulls, flags: 0x01, count: 0)
        arena.setElement(ref, 2, nulls)
        return ref
    }

    /// Adds all values to a fresh leaf of another form.
    @inline(never)
    private static func convert(_ arena: Arena, _ ref: Int, to form: Form) throws -> Int {
        if try self.form(try arena.memory.node(ref)).rawValue >= form.rawValue { return ref }
        let reader = try Kind.Reader(arena.memory, ref)
        let count = reader.count
        if form == .small {
            var new = try createSmall(arena)
            for index in 0..<count { new = try insertSmall(arena, new, index, try reader.bytes(index)) }
            try arena.releaseTree(ref)
            return new
        }
        let new = try arena.makeRefs(flags: 0x60, count: count, growth: 1)
        for index in 0..<count {
            guard let bytes = try reader.bytes(index) else { continue }
            arena.setElement(new, index, try BlobEditor.create(arena, bytes, zeros: Kind.terminator))
        }
        try arena.releaseTree(ref)
        return new
    }

    // MARK: Small blobs

    /// Where value `index` lies in the blob. The leaf was made writable.
    @inline(__always)
    private static func extent(_ arena: Arena, _ ref: Int, _ index: Int) throws -> (start: Int, end: Int) {
        let offsets = try arena.integerNode(try smallChild(arena, ref, 0))
        guard UInt(bitPattern: index) < UInt(bitPattern: offsets.count) else {
            throw arena.indexOutside(ref, index, offsets.count)
        }
        let start = index == 0 ? 0 : offsets.unchecked(index &- 1)
        let end = offsets.unchecked(index)
        if start < 0 || end < start || end > Int64(BlobEditor.byteCountMax) { throw badOffsets(ref, index) }
        return (Int(start), Int(end))
    }

    @inline(never)
    private static func badOffsets(_ ref: Int, _ index: Int) -> FormatError {
        FormatError(ref: ref, "offsets of small blobs do not ascend at \(index)")
    }

    /// A child of a leaf of small blobs that was made writable.
    @inline(__always)
    private static func smallChild(_ arena: Arena, _ ref: Int, _ index: Int) throws -> Int {
        if arena.header(ref).count != 3 { throw FormatError(ref: ref, "leaf of small blobs has not three elements") }
        return try arena.child(ref, index)
    }

    @inline(__always)
    private static func editBlob(_ arena: Arena, _ ref: Int, at position: Int, removing: Int, _ value: Element, zeros: Int) throws
    {
        let old = try smallChild(arena, ref, 1)
        let bytes = value ?? UnsafeRawBufferPointer(start: nil, count: 0)
        let new = try BlobEditor.splice(arena, old, at: position, removing: removing, bytes, zeros: zeros)
        if new != old { arena.setElement(ref, 1, new) }
    }

    private static func setSmall(_ arena: Arena, _ ref: Int, _ index: Int, _ value: Element) throws -> Int {
        let ref = try arena.writableRefs(ref)
        let (start, end) = try extent(arena, ref, index)
        try editBlob(arena, ref, at: start, removing: end - start, value, zeros: Kind.terminator)
        let stored = (value?.count ?? 0) + Kind.terminator
        arena.setElement(ref, 0, try ArrayEditor.add(arena, try arena.child(ref, 0), from: index, Int64(stored - (end - start))))
        arena.setElement(ref, 2, try ArrayEditor.set(arena, try arena.child(ref, 2), index, value == nil ? 1 : 0))
        return ref
    }

    private static func insertSmall(_ arena: Arena, _ ref: Int, _ index: Int, _ value: Element) throws -> Int {
        let ref = try arena.writableRefs(ref)
        let start = index == 0 ? 0 : try extent(arena, ref, index &- 1).end
        try editBlob(arena, ref, at: start, removing: 0, value, zeros: Kind.terminator)
        let stored = (value?.count ?? 0) + Kind.terminator
        let offsets = try ArrayEditor.insert(arena, try arena.child(ref, 0), index, Int64(start + stored))
        arena.setElement(ref, 0, try ArrayEditor.add(arena, offsets, from: index + 1, Int64(stored)))
        arena.setElement(ref, 2, try ArrayEditor.insert(arena, try arena.child(ref, 2), index, value == nil ? 1 : 0))
        return ref
    }

    // MARK: Big blobs

    private static func makeBlob(_ arena: Arena, _ bytes: UnsafeRawBufferPointer) throws -> Int {
        if bytes.count > BlobEditor.byteCountMax - Kind.terminator { return try BlobEditor.createSplit(arena, bytes) }
        return try BlobEditor.create(arena, bytes, zeros: Kind.terminator)
    }

    private static func setBig(_ arena: Arena, _ ref: Int, _ index: Int, _ value: Element) throws -> Int {
        let ref = try arena.writableRefs(ref)
        let count = arena.header(ref).count
        guard UInt(bitPattern: index) < UInt(bitPattern: count) else { throw arena.indexOutside(ref, index, count) }
        let old = arena.element(ref, index) == 0 ? 0 : try arena.child(ref, index)
        switch (value, old) {
        case (nil, 0): break
        case (nil, _):
            try arena.releaseTree(old)
            arena.setElement(ref, index, 0)
        case (let value?, 0):
            arena.setElement(ref, index, try makeBlob(arena, value))
        case (let value?, _):
            if value.count > BlobEditor.byteCountMax - Kind.terminator {
                arena.setElement(ref, index, try makeBlob(arena, value))
                try arena.releaseTree(old)
            } else {
                arena.setElement(ref, index, try BlobEditor.replace(arena, old, value, zeros: Kind.terminator))
            }
        }
        return ref
    }

    private static func insertBig(_ arena: Arena, _ ref: Int, _ index: Int, _ value: Element) throws -> Int {
        let ref = try arena.writableRefs(ref, growth: 1)
        let count = arena.header(ref).count
        guard UInt(bitPattern: index) <= UInt(bitPattern: count) else { throw arena.indexOutside(ref, index, count) }
        arena.insertElement(ref, index, value == nil ? 0 : Int64(try makeBlob(arena, value.unsafelyUnwrapped)))
        return ref
    }
}

/// Hands the UTF-8 bytes of a string to `body`.
@inline(__always)
func withBytes<Result>(of string: String?, _ body: (UnsafeRawBufferPointer?) throws -> Result) rethrows -> Result {
    guard var string else { return try body(nil) }
    return try string.withUTF8 { try body(UnsafeRawBufferPointer($0)) }
}

/// Hands the bytes to `body`.
@inline(__always)
func withBytes<Result>(of bytes: [UInt8]?, _ body: (UnsafeRawBufferPointer?) throws -> Result) rethrows -> Result {
    guard let bytes else { return try body(nil) }
    return try bytes.withUnsafeBytes { try body($0) }
}

extension BytesLeafEditor where Kind == StringKind {
    static func set(_ arena: Arena, _ ref: Int, _ index: Int, _ value: String?) throws -> Int {
        try withBytes(of: value) { try set(arena, ref, index, $0) }
    }
    static func insert(_ arena: Arena, _ ref: Int, _ index: Int, _ value: String?) throws -> Int {
        try withBytes(of: value) { try insert(arena, ref, index, $0) }
    }
}

extension BPlusTreeEditor where L == StringLeafEditor {
    static func set(_ arena: Arena, _ root: Int, _ index: Int, _ value: String?) throws -> Int {
        try withBytes(of: value) { try set(arena, root, index, $0) }
    }
    static func insert(_ arena: Arena, _ root: Int, _ index: Int, _ value: String?) throws -> Int {
        try withBytes(of: value) { try insert(arena, root, index, $0) }
    }
    static func append(_ arena: Arena, _ root: Int, _ value: String?) throws -> Int {
        try withBytes(of: value) { try append(arena, root, $0) }
    }
}
