import COpenSSL

/// The key that an object has in every file of a synchronised group (file-format-2 4.7 c): made from its primary key.
///
/// In formats before 22 the object's key in the file was usually `hashedLocalKey`; today it names tombstones.
public struct GlobalKey: Hashable, Sendable {
    /// Of a digest the bytes 8 to 15, little-endian; of an integer 0.
    public var high: UInt64
    /// Of a digest the bytes 0 to 7; of an integer its bits.
    public var low: UInt64

    /// The halves as they stand in a collision map.
    public init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// The key for a primary key value: null, int, string, ObjectId or UUID; nil for any other kind.
    public init?(primaryKey value: Mixed) {
        switch value {
        case .null: self.init(high: 1, low: 0)
        case .int(let v): self.init(high: 0, low: UInt64(bitPattern: v))
        case .string(let s):
            var s = s
            self = s.withUTF8 { GlobalKey(digestOf: UnsafeRawBufferPointer($0)) }
        case .objectId(let id):
            self = withUnsafeTemporaryAllocation(byteCount: 12, alignment: 8) {
                id.store(to: $0.baseAddress!)
                return GlobalKey(digestOf: UnsafeRawBufferPointer($0))
            }
        case .uuid(let id): self.init(high: id.high.byteSwapped, low: id.low.byteSwapped)
        default: return nil
        }
    }

    /// SHA-1 of the bytes: the digest's bytes 0..7 are `low`, 8..15 are `high`, both little-endian.
    init(digestOf bytes: UnsafeRawBufferPointer) {
        var digest: (UInt64, UInt64, UInt32) = (0, 0, 0)
        withUnsafeMutableBytes(of: &digest) { out in
            _ = SHA1(
                bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), bytes.count,
                out.baseAddress?.assumingMemoryBound(to: UInt8.self))
        }
        self.init(high: digest.1, low: digest.0)
    }

    /// The key within a file, unless the table's collision map says otherwise.
    public var hashedLocalKey: ObjectKey { ObjectKey(Int64(low & 0x3FFF_FFFF_FFFF_FFFF)) }
}

/// Keys of objects whose hashed keys collide (file-format-2 4.8), for lookup.
///
/// ```
/// refs, 3 slots: [0] low halves  [1] high halves  [2] local keys; sorted by (high, low)
/// ```
struct CollisionMap {
    private let lows: Node
    private let highs: Node
    private let keys: Node

    init(_ memory: Memory, _ ref: Int) throws {
        let map = try memory.refs(ref, "collision map")
        lows = try memory.integers(map.requiredRef(0), "low halves of colliding keys")
        highs = try memory.integers(map.requiredRef(1), "high halves of colliding keys")
        keys = try memory.integers(map.requiredRef(2), "local keys of colliding keys")
        if lows.count != highs.count || lows.count != keys.count {
            throw FormatError(ref: ref, "collision map with \(lows.count), \(highs.count) and \(keys.count) entries")
        }
    }

    /// The local key of `key`, or nil where it has none of its own. The map holds a few entries at most: a plain walk.
    func localKey(_ key: GlobalKey) -> ObjectKey? {
        let high = Int64(bitPattern: key.high), low = Int64(bitPattern: key.low)
        for i in 0..<keys.count where highs.unchecked(i) == high && lows.unchecked(i) == low {
            return ObjectKey(keys.unchecked(i))
        }
        return nil
    }
}

extension Table {
    /// The local key for a global key: from the collision map, else hashed.
    public func localKey(_ key: GlobalKey) throws -> ObjectKey {
        if collisionsRef != 0, let local = try CollisionMap(memory, collisionsRef).localKey(key) { return local }
        return key.hashedLocalKey
    }

    /// The object with the primary key `value`, or nil; nil as well in a table without a primary key.
    ///
    /// Through the index, which every such table has from format 22 on; in older files the object is looked for under its
    /// hashed key, and where it is not there by a walk over the table (file-format-2 section 10).
    public func find(primaryKey value: Mixed) throws -> ObjectRow? {
        guard let column = primaryKeyColumn, !hidesObjects else { return nil }
        if let index = try SearchIndex(self, column) { return try index.firstRow(value) }
        if let global = GlobalKey(primaryKey: value), let row = try find(localKey(global)), try row.equals(column, value) {
            return row
        }
        var found: ObjectRow?
        try scanLeaves { leaf in
            for i in 0..<leaf.count where try leaf.row(i).equals(column, value) {
                found = leaf.row(i)
                return false
            }
            return true
        }
        return found
    }
}

extension ObjectRow {
    /// The scalar column holds `value`; for Mixed in the sense of file-format-2 6.2, where int 3 equals double 3.0.
    func equals(_ column: Column, _ value: Mixed) throws -> Bool {
        switch (column.type, value) {
        case (.int, .int(let v)): return try optionalInt(column) == v
        case (.string, .string(var s)):
            let stored = try stringBytes(column)
            return s.withUTF8 { stored != nil && ValueOrder.compare(stored, UnsafeRawBufferPointer($0)) == 0 }
        case (.mixed, _): return Mixed.compare(try mixed(column), value) == 0
        default: return try self.value(column) == value
        }
    }
}
