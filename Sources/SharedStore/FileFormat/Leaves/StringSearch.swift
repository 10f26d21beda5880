import Glibc

// Search of a string in a leaf without looking at each value by itself: short strings are compared block by block as they are
// stored, small blobs by their lengths first.

extension StringLeaf {
    /// The first index in `range` whose value is `text` (UTF-8, nil for null), nil if there is none. Traps on a range outside of
    /// `0..<count`; throws `FormatError` on a damaged value before the first match, as far as it is noticed.
    public func firstIndex(of text: UnsafeRawBufferPointer?, in range: Range<Int>) throws -> Int? {
        precondition(range.lowerBound >= 0 && range.upperBound <= count, "range of values outside of the leaf")
        switch variant {
        case .short:
            guard let text else { return firstShortNull(range) }
            return text.count < node.width ? firstShort(text, range) : nil
        case .small:
            guard let text else { return range.first(where: small.isNull) }
            return try firstSmall(text, range)
        case .big:
            return try range.first { index in
                guard let bytes = try bytes(index) else { return text == nil }
                return text.map { ValueOrder.equal($0, bytes) } ?? false
            }
        }
    }

    private func firstShortNull(_ range: Range<Int>) -> Int? {
        let width = node.width
        if width == 0 { return range.first }
        let last = node.payload + (width &- 1)
        return range.first { Int(last.load(fromByteOffset: $0 &* width, as: UInt8.self)) == width }
    }

    /// The text is shorter than a block.
    private func firstShort(_ text: UnsafeRawBufferPointer, _ range: Range<Int>) -> Int? {
        let width = node.width, p = node.payload
        // The block that the text is stored as, in eight words.
        var block = (UInt64(0), UInt64(0), UInt64(0), UInt64(0), UInt64(0), UInt64(0), UInt64(0), UInt64(0))
        return withUnsafeMutableBytes(of: &block) { block in
            block.copyMemory(from: text)
            block[width &- 1] = UInt8(truncatingIfNeeded: width &- 1 &- text.count)
            let q = UnsafeRawPointer(block.baseAddress ?? UnsafeMutableRawPointer(mutating: p))
            var i = range.lowerBound
            let end = range.upperBound
            switch width {
            case 1:
                let x = q.load(as: UInt8.self)
                while i < end, p.load(fromByteOffset: i, as: UInt8.self) != x { i &+= 1 }
            case 2:
                let x = q.load(as: UInt16.self)
                while i < end, p.loadUnaligned(fromByteOffset: i &* 2, as: UInt16.self) != x { i &+= 1 }
            case 4:
                let x = q.load(as: UInt32.self)
                while i < end, p.loadUnaligned(fromByteOffset: i &* 4, as: UInt32.self) != x { i &+= 1 }
            case 8:
                let x = q.load(as: UInt64.self)
                while i < end, p.loadUnaligned(fromByteOffset: i &* 8, as: UInt64.self) != x { i &+= 1 }
            default:
                // The last words differ most often: they hold the length.
                let x = q.loadUnaligned(fromByteOffset: width &- 8, as: UInt64.self)
                while i < end {
                    let at = i &* width
                    let last = p.loadUnaligned(fromByteOffset: at &+ width &- 8, as: UInt64.self)
                    if last == x && memcmp(p + at, q, width) == 0 { break }
                    i &+= 1
                }
            }
            return i < end ? i : nil
        }
    }

    private func firstSmall(_ text: UnsafeRawBufferPointer, _ range: Range<Int>) throws -> Int? {
        if range.isEmpty { return nil }
        let length = Int64(text.count) &+ 1
        var start = small.offsets.span(range.lowerBound).start
        for i in range {
            let end = small.offsets[i]
            if end &- start == length && !small.isNull(i), let stored = try bytes(i), ValueOrder.equal(stored, text) { return i }
            start = end
        }
        return nil
    }
}
