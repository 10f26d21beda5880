import Glibc
import SharedStore
import SystemCalls

/// Memory as long as a version of a file, of which only what is stored takes room: where steps are put together.
final class SparseImage {
    private let base: UnsafeMutableRawPointer
    private let byteCount: Int
    private let state: UnsafeMutablePointer<MemoryState>

    /// - Throws: `SystemError` where the address space has no room for it.
    init(byteCount: Int) throws {
        let page = SystemCalls.pageSize
        self.byteCount = max(page, (byteCount + page - 1) / page * page)
        base = try SystemCalls.map(
            length: self.byteCount, protection: PROT_READ | PROT_WRITE, flags: MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)
        state = .allocate(capacity: 1)
        state.initialize(to: MemoryState(base: base, fileLimit: self.byteCount))
    }

    deinit {
        SystemCalls.unmap(base, length: byteCount)
        state.deallocate()
    }

    /// All of it; what was not stored reads as zeros.
    var memory: Memory { Memory(state) }

    /// Puts a segment's bytes to their places; false where they do not fit.
    func store(_ segment: Segment) -> Bool {
        guard segment.ranges.last.map({ $0.upperBound <= byteCount }) ?? true else { return false }
        segment.payload.withUnsafeBytes { source in
            guard let start = source.baseAddress else { return }
            var at = 0
            for range in segment.ranges {
                (base + range.lowerBound).copyMemory(from: start + at, byteCount: range.count)
                at += range.count
            }
        }
        return true
    }
}

/// Ranges as sets of bytes.
enum RangeSet {
    /// Ascending and not touching.
    static func union(_ ranges: [Range<Int>]) -> [Range<Int>] {
        var out: [Range<Int>] = []
        for range in ranges.sorted(by: { $0.lowerBound < $1.lowerBound }) where !range.isEmpty {
            if let last = out.last, last.upperBound >= range.lowerBound {
                out[out.count - 1] = last.lowerBound..<max(last.upperBound, range.upperBound)
            } else {
                out.append(range)
            }
        }
        return out
    }

    /// Of two sets, both ascending and not overlapping.
    static func intersection(_ a: [Range<Int>], _ b: [Range<Int>]) -> [Range<Int>] {
        var out: [Range<Int>] = []
        var i = 0, j = 0
        while i < a.count && j < b.count {
            let low = max(a[i].lowerBound, b[j].lowerBound), high = min(a[i].upperBound, b[j].upperBound)
            if low < high {
                if let last = out.last, last.upperBound == low {
                    out[out.count - 1] = last.lowerBound..<high
                } else {
                    out.append(low..<high)
                }
            }
            if a[i].upperBound < b[j].upperBound { i += 1 } else { j += 1 }
        }
        return out
    }

    static func byteCount(_ ranges: [Range<Int>]) -> Int { ranges.reduce(0) { $0 + $1.count } }

    /// Pieces of at most `limit` bytes in all, a multiple of 8; at least one, which may be empty.
    static func pieces(_ ranges: [Range<Int>], limit: Int) -> [[Range<Int>]] {
        var out: [[Range<Int>]] = []
        var piece: [Range<Int>] = []
        var room = limit
        for range in ranges {
            var low = range.lowerBound
            while low < range.upperBound {
                let count = min(room, range.upperBound - low)
                piece.append(low..<low + count)
                low += count
                room -= count
                if room == 0 {
                    out.append(piece)
                    piece = []
                    room = limit
                }
            }
        }
        if !piece.isEmpty || out.isEmpty { out.append(piece) }
        return out
    }
}
