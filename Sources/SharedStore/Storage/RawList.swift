/// A growable list of plain values that keeps its memory: for loops that run once a commit and may not allocate.
///
/// Indexes are trusted (checked by assertions only). The list is a handle: copies share the elements. Its owner calls `free`.
struct RawList<Element: BitwiseCopyable>: @unchecked Sendable {
    // Sendable: a list belongs to the object that owns it, whose rules hold.
    private struct Header {
        var base: UnsafeMutablePointer<Element>
        var count: Int
        var capacity: Int
    }
    private let header: UnsafeMutablePointer<Header>

    init(capacity: Int = 16) {
        header = .allocate(capacity: 1)
        header.initialize(to: Header(base: .allocate(capacity: capacity), count: 0, capacity: capacity))
    }

    func free() {
        header.pointee.base.deallocate()
        header.deallocate()
    }

    @inline(__always) var count: Int { header.pointee.count }
    @inline(__always) var isEmpty: Bool { header.pointee.count == 0 }
    @inline(__always) var base: UnsafeMutablePointer<Element> { header.pointee.base }

    @inline(__always) subscript(_ index: Int) -> Element {
        get {
            assert(index >= 0 && index < header.pointee.count)
            return header.pointee.base[index]
        }
        nonmutating set {
            assert(index >= 0 && index < header.pointee.count)
            header.pointee.base[index] = newValue
        }
    }

    @inline(__always) func append(_ element: Element) {
        if header.pointee.count == header.pointee.capacity { grow(header.pointee.count + 1) }
        header.pointee.base[header.pointee.count] = element
        header.pointee.count &+= 1
    }

    @inline(__always) func popLast() -> Element? {
        if header.pointee.count == 0 { return nil }
        header.pointee.count &-= 1
        return header.pointee.base[header.pointee.count]
    }

    @inline(__always) func removeAll() { header.pointee.count = 0 }

    /// Sets the number of elements; new ones have no defined value.
    func resize(_ count: Int) {
        if count > header.pointee.capacity { grow(count) }
        header.pointee.count = count
    }

    func insert(_ element: Element, at index: Int) {
        assert(index >= 0 && index <= header.pointee.count)
        if header.pointee.count == header.pointee.capacity { grow(header.pointee.count + 1) }
        let p = header.pointee.base + index
        (p + 1).update(from: p, count: header.pointee.count - index)
        p.pointee = element
        header.pointee.count &+= 1
    }

    func remove(at index: Int) {
        assert(index >= 0 && index < header.pointee.count)
        header.pointee.count &-= 1
        let p = header.pointee.base + index
        p.update(from: p + 1, count: header.pointee.count - index)
    }

    /// Removes the first `count` elements.
    func removeFirst(_ count: Int) {
        assert(count >= 0 && count <= header.pointee.count)
        header.pointee.count &-= count
        header.pointee.base.update(from: header.pointee.base + count, count: header.pointee.count)
    }

    /// Exchanges the elements with those of `other`.
    func swap(with other: RawList<Element>) {
        let mine = header.pointee
        header.pointee = other.header.pointee
        other.header.pointee = mine
    }

    var buffer: UnsafeMutableBufferPointer<Element> { UnsafeMutableBufferPointer(start: base, count: count) }

    func sort(by areInOrder: (Element, Element) -> Bool) {
        var elements = buffer
        elements.sort(by: areInOrder)
    }

    @inline(never) private func grow(_ count: Int) {
        let capacity = max(count, 2 * header.pointee.capacity)
        let base = UnsafeMutablePointer<Element>.allocate(capacity: capacity)
        base.update(from: header.pointee.base, count: header.pointee.count)
        header.pointee.base.deallocate()
        header.pointee.base = base
        header.pointee.capacity = capacity
    }
}

extension RawList<Int> {
    /// Sorts what is most often in order already.
    func sortAscending() {
        for i in 1..<Swift.max(count, 1) where base[i - 1] > base[i] { return sort { $0 < $1 } }
    }
}
