import Foundation
internal import CShims
internal import SharedStore

// The quick ways to read a cell: what `@Persisted` calls. One branch tells whether the row is where it was, one whether the column is of the
// kind that is expected; everything else is found out in a function of its own.

extension ObjectBase {
    /// - Parameter read: one call into the engine; the column in `slot` is of the given kind.
    @inline(__always)
    fileprivate final func value<Value>(_ slot: Int, _ kind: CellKind, _ read: (Memory, Node, Int, Int) throws -> Value) -> Value {
        if let block, !block.pointee.needsCheck(stamp), block.pointee.kinds[slot] == kind, let memory = block.pointee.memory, let cluster {
            do { return try read(memory, cluster, slot, rowIndex) } catch { unreadable(error) }
        }
        let row = rowOfKind(slot, kind)
        do { return try read(row.memory, row.cluster, slot, row.index) } catch { unreadable(error) }
    }

    /// The row, where it has to be looked for. Stops the process where the column is of another kind.
    @inline(never)
    fileprivate final func rowOfKind(_ slot: Int, _ kind: CellKind) -> ObjectRow {
        let (row, column) = place(slot)
        if CellKind(column) != kind {
            misuse("The property '\(schemaName).\(managedType?.properties.first { $0.slot == slot }?.name ?? "#\(slot)")' is of another type in the Realm file now.")
        }
        return row
    }

    /// Columns of texts that are kept as positions in a list of values are read by way of their `Column`.
    @inline(__always)
    fileprivate final func text(_ slot: Int, _ kind: CellKind) -> String? {
        if let block, !block.pointee.needsCheck(stamp), block.pointee.kinds[slot] == kind, let memory = block.pointee.memory, let cluster {
            do { return try CellReading.string(memory, cluster, slot, rowIndex) } catch { unreadable(error) }
        }
        let (row, column) = place(slot)
        return reading { try row.string(column) }
    }
}

@inline(never)
public func _getInt(_ object: ObjectBase, _ slot: Int) -> Int { Int(truncatingIfNeeded: object.value(slot, .int, CellReading.int)) }

@inline(never)
public func _getBool(_ object: ObjectBase, _ slot: Int) -> Bool { object.value(slot, .bool, CellReading.bool) ?? false }

@inline(never)
public func _getFloat(_ object: ObjectBase, _ slot: Int) -> Float { object.value(slot, .float, CellReading.float) ?? 0 }

@inline(never)
public func _getDouble(_ object: ObjectBase, _ slot: Int) -> Double { object.value(slot, .double, CellReading.double) ?? 0 }

@inline(never)
public func _getString(_ object: ObjectBase, _ slot: Int) -> String { object.text(slot, .string) ?? "" }

@inline(never)
public func _getDate(_ object: ObjectBase, _ slot: Int) -> Date {
    object.value(slot, .timestamp, CellReading.timestamp).map { Date($0) } ?? Date(timeIntervalSince1970: 0)
}

@inline(never)
public func _getOptionalInt(_ object: ObjectBase, _ slot: Int) -> Int? {
    object.value(slot, .optionalInt, CellReading.optionalInt).map { Int(truncatingIfNeeded: $0) }
}

@inline(never)
public func _getOptionalBool(_ object: ObjectBase, _ slot: Int) -> Bool? { object.value(slot, .optionalBool, CellReading.bool) }

@inline(never)
public func _getOptionalFloat(_ object: ObjectBase, _ slot: Int) -> Float? { object.value(slot, .optionalFloat, CellReading.float) }

@inline(never)
public func _getOptionalDouble(_ object: ObjectBase, _ slot: Int) -> Double? { object.value(slot, .optionalDouble, CellReading.double) }

@inline(never)
public func _getOptionalString(_ object: ObjectBase, _ slot: Int) -> String? { object.text(slot, .optionalString) }

@inline(never)
public func _getOptionalDate(_ object: ObjectBase, _ slot: Int) -> Date? {
    object.value(slot, .optionalTimestamp, CellReading.timestamp).map { Date($0) }
}

/// The object that a link leads to; nil where there is none.
@inline(never)
public func _getLinked(_ object: ObjectBase, _ slot: Int, _ wanted: ObjectBase.Type) -> ObjectBase? {
    let key = object.value(slot, .link, CellReading.link)
    guard key.rawValue >= 0, let session = object.session, let block = object.block, let column = block.pointee.columns[slot] else { return nil }
    guard let target = session.object(column.oppositeTable, key, as: wanted), target.isInstance(of: wanted) else {
        misuse("The link in '\(object.schemaName)' does not lead to a '\(wanted)'")
    }
    return target
}
