import Foundation
internal import CShims
internal import SharedStore

// The quick ways to read a cell: what `@Persisted` calls. Where the leaf was read before, by whatever object of the class, three
// comparisons tell that it still is the right one (the row did not move, the leaf belongs to it, the column is of the expected
// kind); everything else is found out in functions of their own.

extension ObjectBase {
    /// - Parameter kind: of the column in `slot`.
    @inline(__always)
    fileprivate final func value<L: KeptLeaf>(_ slot: Int, _ kind: CellKind, _ type: L.Type) -> L.Element {
        if let leaf = knownLeaf(slot, type) { return reading { try leaf.value(rowIndex) } }
        return unknownValue(slot, kind, type)
    }

    @inline(__always)
    private final func knownLeaf<L: KeptLeaf>(_ slot: Int, _ type: L.Type) -> L? {
        guard let block, !block.pointee.needsCheck(stamp) else { return nil }
        return block.pointee.leaves[slot, stamp, cluster, type]
    }

    @inline(never)
    private final func unknownValue<L: KeptLeaf>(_ slot: Int, _ kind: CellKind, _ type: L.Type) -> L.Element {
        if let block, !block.pointee.needsCheck(stamp), block.pointee.kinds[slot] == kind, let memory = block.pointee.memory,
            let cluster
        {
            return reading {
                let leaf = try L.open(memory, cluster, slot)
                if block.pointee.keepsLeaves { block.pointee.leaves.keep(leaf, slot, stamp, cluster) }
                return try leaf.value(rowIndex)
            }
        }
        let row = rowOfKind(slot, kind)
        return reading { try L.open(row.memory, row.cluster, slot).value(row.index) }
    }

    /// The row, where it has to be looked for. Stops the process where the column is of another kind.
    @inline(never)
    private final func rowOfKind(_ slot: Int, _ kind: CellKind) -> ObjectRow {
        let (row, column) = place(slot)
        if CellKind(column) != kind {
            misuse(
                "The property '\(schemaName).\(managedType?.properties.first { $0.slot == slot }?.name ?? "#\(slot)")' is of another type in the Realm file now."
            )
        }
        return row
    }

    /// Columns of texts that are kept as positions in a list of values are read by way of their `Column`.
    @inline(__always)
    fileprivate final func text(_ slot: Int, _ kind: CellKind) -> String? {
        if let leaf = knownLeaf(slot, StringLeaf.self) { return reading { try leaf.value(rowIndex) } }
        return unknownText(slot, kind)
    }

    @inline(never)
    private final func unknownText(_ slot: Int, _ kind: CellKind) -> String? {
        if let block, !block.pointee.needsCheck(stamp), block.pointee.kinds[slot] == kind {
            return unknownValue(slot, kind, StringLeaf.self)
        }
        let (row, column) = place(slot)
        return reading { try row.string(column) }
    }
}

@inline(never)
public func _getInt(_ object: ObjectBase, _ slot: Int) -> Int { Int(truncatingIfNeeded: object.value(slot, .int, IntLeaf.self)) }

@inline(never)
public func _getBool(_ object: ObjectBase, _ slot: Int) -> Bool { object.value(slot, .bool, BoolLeaf.self) ?? false }

@inline(never)
public func _getFloat(_ object: ObjectBase, _ slot: Int) -> Float { object.value(slot, .float, FloatLeaf.self) ?? 0 }

@inline(never)
public func _getDouble(_ object: ObjectBase, _ slot: Int) -> Double { object.value(slot, .double, DoubleLeaf.self) ?? 0 }

@inline(never)
public func _getString(_ object: ObjectBase, _ slot: Int) -> String { object.text(slot, .string) ?? "" }

@inline(never)
public func _getDate(_ object: ObjectBase, _ slot: Int) -> Date {
    object.value(slot, .timestamp, TimestampLeaf.self).map { Date($0) } ?? Date(timeIntervalSince1970: 0)
}

@inline(never)
public func _getOptionalInt(_ object: ObjectBase, _ slot: Int) -> Int? {
    object.value(slot, .optionalInt, NullableIntLeaf.self).map { Int(truncatingIfNeeded: $0) }
}

@inline(never)
public func _getOptionalBool(_ object: ObjectBase, _ slot: Int) -> Bool? { object.value(slot, .optionalBool, BoolLeaf.self) }

@inline(never)
public func _getOptionalFloat(_ object: ObjectBase, _ slot: Int) -> Float? { object.value(slot, .optionalFloat, FloatLeaf.self) }

@inline(never)
public func _getOptionalDouble(_ object: ObjectBase, _ slot: Int) -> Double? {
    object.value(slot, .optionalDouble, DoubleLeaf.self)
}

@inline(never)
public func _getOptionalString(_ object: ObjectBase, _ slot: Int) -> String? { object.text(slot, .optionalString) }

@inline(never)
public func _getOptionalDate(_ object: ObjectBase, _ slot: Int) -> Date? {
    object.value(slot, .optionalTimestamp, TimestampLeaf.self).map { Date($0) }
}

/// The object that a link leads to; nil where there is none.
@inline(never)
public func _getLinked(_ object: ObjectBase, _ slot: Int, _ wanted: ObjectBase.Type) -> ObjectBase? {
    let key = object.value(slot, .link, LinkLeaf.self)
    guard key.rawValue >= 0, let session = object.session, let block = object.block, let column = block.pointee.columns[slot]
    else { return nil }
    guard let target = session.object(column.oppositeTable, key, as: wanted), target.isInstance(of: wanted) else {
        misuse("The link in '\(object.schemaName)' does not lead to a '\(wanted)'")
    }
    return target
}
