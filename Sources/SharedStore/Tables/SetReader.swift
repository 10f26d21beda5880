/// A set as stored: a B+ tree of ascending, distinct elements (file-format-2 5.3).
///
/// In files older than format 24 strings and binaries have another order, and a set of float or double may hold NaN, around which
/// there is no order; there membership is found by a walk.
public struct SetReader {
    /// The elements in stored order.
    public let elements: ListReader
    private let isOrdered: Bool

    init(_ memory: Memory, _ ref: Int, _ column: Column) throws {
        elements = try ListReader(memory, ref, column)
        switch column.type {
        case .string, .binary, .mixed: isOrdered = column.format >= 24
        case .float, .double: isOrdered = false
        default: isOrdered = true
        }
    }

    /// The number of elements.
    public var count: Int { elements.count }

    /// Element `index` in stored order.
    public func value(_ index: Int) throws -> Mixed { try elements.value(index) }

    /// Calls the body with each element, in the order of values.
    public func forEach(_ body: (Mixed) throws -> Void) throws { try elements.forEach(body) }

    /// The position of the element that equals `value` in the sense of file-format-2 6.2 (int 3 equals double 3.0), or nil.
    public func find(_ value: Mixed) throws -> Int? {
        if !isOrdered {
            var position = 0, found: Int?
            try elements.forEach {
                if found == nil && Mixed.compare($0, value) == 0 { found = position }
                position += 1
            }
            return found
        }
        var low = 0, high = count
        while low < high {
            let middle = (low + high) / 2
            if Mixed.compare(try elements.value(middle), value) < 0 { low = middle + 1 } else { high = middle }
        }
        return try low < count && Mixed.compare(elements.value(low), value) == 0 ? low : nil
    }

    /// Whether the value is an element.
    public func contains(_ value: Mixed) throws -> Bool { try find(value) != nil }
}
