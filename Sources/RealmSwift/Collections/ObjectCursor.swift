internal import SharedStore

/// Goes through objects of one table: all of them, leaf by leaf, or those with given keys.
///
/// Nothing is written down when all objects are gone through. The session knows of the cursor, and tells it before objects of the
/// table may come or go and before it goes to another version; only then it notes the keys that are left (`writeDownKeys`).
/// Belongs to the place of its session; that of a frozen session to whoever iterates.
final class ObjectCursor: _Cursor {
    private let type: SessionType
    private let session: Session
    /// The class of the application is not to be used.
    private let isDynamic: Bool
    @exclusivity(unchecked) private var block: UnsafeMutablePointer<TableBlock>
    /// A leaf of the table, and the stamp of the block for which it is there.
    @exclusivity(unchecked) private var leaf: ClusterLeaf?
    @exclusivity(unchecked) private var stamp: UInt64 = 0
    /// Of the leaf: less this, keys are numbers of rows; negative where keys are stored one by one.
    @exclusivity(unchecked) private var keyOffset: Int64 = -1
    @exclusivity(unchecked) private var cluster: Node?
    /// All objects of the table: the next row of the leaf, and the number of its rows; the key handed out last; how many objects
    /// the leaves behind this one have.
    @exclusivity(unchecked) private var row = 0
    @exclusivity(unchecked) private var rowCount = 0
    @exclusivity(unchecked) private var lastKey = ObjectKey.null
    @exclusivity(unchecked) private var remaining = 0
    /// Given objects: their keys, the next one, and the leaf in which the last one was found.
    @exclusivity(unchecked) private var keys: [ObjectKey]?
    @exclusivity(unchecked) private var nextKey = 0
    @exclusivity(unchecked) private var lastLeaf = 0
    @exclusivity(unchecked) private var spares = SpareAccessors()
    @exclusivity(unchecked) private var isRegistered = false

    /// - Parameter keys: nil: all objects of the table.
    init(_ type: SessionType, _ keys: [ObjectKey]?, isDynamic: Bool) {
        self.type = type
        session = type.session
        self.isDynamic = isDynamic
        self.keys = keys
        block = type.block
        super.init(isOverObjects: true)
        if keys != nil { return }
        remaining = session.isClosed ? 0 : type.table()?.objectCount ?? 0
        if remaining > 0 && !session.isFrozen {
            session.cursors.append(Unmanaged.passUnretained(self))
            isRegistered = true
        }
    }

    deinit {
        if isRegistered { session.cursors.removeAll { $0.toOpaque() == Unmanaged.passUnretained(self).toOpaque() } }
    }

    @inline(__always)
    func next() -> ObjectBase? {
        if row < rowCount && !block.pointee.needsCheck(stamp) && keyOffset >= 0, let cluster,
            let object = type.spareAccessor(&spares)
        {
            let key = keyOffset &+ Int64(row)
            object.objectKey = key
            object.cluster = cluster
            object.rowIndex = row
            object.stamp = stamp
            lastKey = ObjectKey(key)
            row &+= 1
            return object
        }
        return nextSlowly()
    }

    /// The object in `row` of the leaf, which is then behind us.
    @inline(__always)
    private func accessor(_ found: ObjectRow) -> ObjectBase {
        row &+= 1
        lastKey = found.key
        return isDynamic ? type.makeDynamicAccessor(found.key) : type.accessor(found, &spares)
    }

    @inline(never)
    private func nextSlowly() -> ObjectBase? {
        session.checkConfinement()
        if let keys { return next(of: keys) }
        if remaining == 0 && row >= rowCount { return nil }
        return reading {
            if stamp != block.pointee.stamp || row >= rowCount {
                // Its rows moved, or there are no more of them. No object came or went, so that the place is told by the key.
                remaining += rowCount - row
                row = 0
                rowCount = 0
                let next = lastKey.isNull ? ObjectKey(0) : ObjectKey(lastKey.rawValue &+ 1)
                guard remaining > 0, let table = type.table(), let (found, start) = try table.seek(next) else {
                    remaining = 0
                    return nil
                }
                if found.key(start).rawValue < next.rawValue || found.count - start > remaining {
                    throw FormatError(
                        ref: found.node.ref, "cluster leaf with more objects than the tree says, or in another order")
                }
                remaining -= found.count - start
                leaf = found
                cluster = found.node
                keyOffset = found.isGeneral || isDynamic ? -1 : found.key(0).rawValue
                row = start
                rowCount = found.count
                stamp = block.pointee.stamp
            }
            return leaf.map { accessor($0.row(row)) }
        }
    }

    private func next(of keys: [ObjectKey]) -> ObjectBase? {
        if nextKey >= keys.count { return nil }
        let key = keys[nextKey]
        nextKey &+= 1
        block = type.block
        if isDynamic { return type.makeDynamicAccessor(key) }
        if session.isClosed { return type.accessor(key, &spares) }
        if stamp != block.pointee.stamp { leaf = nil }
        if let leaf, let found = leaf.row(of: key, guess: row) {
            row = found
            return accessor(leaf.row(found))
        }
        return reading {
            // A leaf is worth a closer look once two objects one after the other were in it.
            leaf = nil
            guard let found = try type.table()?.find(key) else { return type.accessor(key, &spares) }
            stamp = block.pointee.stamp
            if found.cluster.ref == lastLeaf { leaf = try type.table()?.seek(key)?.leaf }
            lastLeaf = found.cluster.ref
            row = found.index
            return accessor(found)
        }
    }

    /// From now on it goes by the keys of what is left. Called while the table still is as it was.
    func writeDownKeys() {
        isRegistered = false
        var keys: [ObjectKey] = []
        let left = remaining + rowCount - row
        reading {
            guard left > 0, let table = type.table() else { return }
            keys.reserveCapacity(left)
            var next = lastKey.isNull ? ObjectKey(0) : ObjectKey(lastKey.rawValue &+ 1)
            while keys.count < left, let (leaf, start) = try table.seek(next) {
                for row in start..<leaf.count { keys.append(leaf.key(row)) }
                next = ObjectKey(leaf.key(leaf.count - 1).rawValue &+ 1)
            }
        }
        self.keys = keys
        leaf = nil
        keyOffset = -1
        row = 0
        rowCount = 0
    }
}
