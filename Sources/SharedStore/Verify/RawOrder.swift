import Glibc

/// The last value of an ordered sequence.
struct OrderCheck {
    fileprivate var last: RawValue?
}

extension VerificationRun {
    /// Rules 23 and 28: the values of a set, or the keys of a dictionary, ascend strictly, across leaves too.
    func verifyOrder(
        _ leaf: RawLeaf, _ start: Int, _ check: inout OrderCheck, _ ref: Int, code: FindingCode,
        duplicate: FindingCode
    ) throws {
        var isMixed = false
        if case .mixed = leaf.parts { isMixed = true }
        for i in 0..<leaf.count {
            try spend(1)
            let next = value(leaf, i)
            if let last = check.last, let order = RawOrder.compare(last, next, ordersNaN: isMixed), order >= 0 {
                if order == 0 {
                    // One finding a leaf: a damaged count may make millions of equal elements.
                    check.last = value(leaf, leaf.count - 1)
                    return try error(duplicate, ref, "element \(start + i) equals the one before")
                } else if isOlderFormat {
                    // Strings and binaries had another order before format 24 (file-format-2 section 10).
                    try warning(code, ref, "element \(start + i) is below the one before")
                } else {
                    try error(code, ref, "element \(start + i) is below the one before")
                }
            }
            check.last = next
        }
    }
}

/// The order of the database (file-format-2 section 6), over values that lie in the file.
enum RawOrder {
    private static func rank(_ value: RawValue) -> Int? {
        switch value {
        case .null: -1
        case .bool: 0
        case .int, .float, .double, .decimal: 1
        case .string: 2
        case .binary: 3
        case .timestamp: 4
        case .objectId: 5
        case .uuid: 6
        case .typedLink: 7
        case .key: 8
        case .list: 9
        case .set: 10
        case .dictionary: 11
        case .unreadable: nil
        }
    }

    private static func order<T: Comparable>(_ a: T, _ b: T) -> Int { a < b ? -1 : a > b ? 1 : 0 }

    private static func order(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Int {
        if let p = a.baseAddress, let q = b.baseAddress, min(a.count, b.count) > 0 {
            let result = memcmp(p, q, min(a.count, b.count))
            if result != 0 { return result < 0 ? -1 : 1 }
        }
        return order(a.count, b.count)
    }

    /// Below, at or above 0 as `a` is below, equal to or above `b`; nil where the order is not defined: damage, and NaN in
    /// typed sets, which has no place there (file-format-2 6.1).
    static func compare(_ a: RawValue, _ b: RawValue, ordersNaN: Bool = false) -> Int? {
        guard let p = rank(a), let q = rank(b) else { return nil }
        if p != q { return order(p, q) }
        switch (a, b) {
        case (.null, _), (.list, _), (.set, _), (.dictionary, _): return 0
        case (.bool(let x), .bool(let y)): return order(x ? 1 : 0, y ? 1 : 0)
        case (.string(let x), .string(let y)), (.binary(let x), .binary(let y)): return order(x, y)
        case (.timestamp(let s, let n), .timestamp(let t, let m)): return s != t ? order(s, t) : order(n, m)
        case (.objectId(let x), .objectId(let y)): return Int(memcmp(x, y, 12).signum())
        case (.uuid(let x), .uuid(let y)): return Int(memcmp(x, y, 16).signum())
        case (.typedLink(let t, let k), .typedLink(let u, let l)): return t != u ? order(t, u) : order(k, l)
        case (.key(let x), .key(let y)): return order(x, y)
        default: return compareNumbers(a, b, ordersNaN)
        }
    }

    private static func compareNumbers(_ a: RawValue, _ b: RawValue, _ ordersNaN: Bool) -> Int? {
        switch (a, b) {
        case (.int(let x), .int(let y)): return order(x, y)
        case (.float(let x), .float(let y)) where !x.isNaN && !y.isNaN: return order(x, y)
        case (.double(let x), .double(let y)) where !x.isNaN && !y.isNaN: return order(x, y)
        default:
            guard let x = view(a, ordersNaN), let y = view(b, ordersNaN) else { return nil }
            return MixedView.compare(x, y)
        }
    }

    private static func view(_ value: RawValue, _ ordersNaN: Bool) -> MixedView? {
        switch value {
        case .int(let x): .int(x)
        case .float(let x): x.isNaN && !ordersNaN ? nil : .float(x)
        case .double(let x): x.isNaN && !ordersNaN ? nil : .double(x)
        case .decimal(let x): .decimal(x)
        default: nil
        }
    }
}
