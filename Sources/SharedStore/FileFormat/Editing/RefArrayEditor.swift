/// Arrays of refs and tagged integers as they are edited: in the arena, with 64 bits an element.
///
/// Once an array was made writable with room for what is to come, storing an element neither fails nor moves it.
extension Arena {
    /// An array of refs with `count` empty elements and room for `growth` more.
    func makeRefs(flags: UInt8 = 0x40, count: Int, growth: Int = 0) throws -> Int {
        let ref = try makeNode(flags: flags & 0xE0 | 7, count: count, payloadByteCount: (count + growth) * 8)
        for index in 0..<count { setElement(ref, index, 0) }
        return ref
    }

    /// The array of refs as it can be changed, with 64 bits an element and room for `growth` more.
    @inline(__always)
    func writableRefs(_ ref: Int, growth: Int = 0) throws -> Int {
        if memory.isInArena(ref) {
            let (flags, count) = header(ref)
            if flags & 0x5F == 0x47 && (growth == 0 || 8 &+ (count &+ growth) &* 8 <= capacity(ref)) { return ref }
        }
        return try makeWritableRefs(ref, growth: growth)
    }

    @inline(never)
    private func makeWritableRefs(_ ref: Int, growth: Int) throws -> Int {
        let ref = try ArrayEditor.writable(self, ref, growth: growth, code: 7)
        if header(ref).flags & 0x40 == 0 { throw FormatError(ref: ref, "node is not an array of refs") }
        return ref
    }

    /// Element `index` of an array that was made with `writableRefs`; the index is trusted.
    @inline(__always)
    func element(_ ref: Int, _ index: Int) -> Int64 {
        assert(UInt(bitPattern: index) < UInt(bitPattern: header(ref).count))
        return address(ref).load(fromByteOffset: 8 &+ index &* 8, as: Int64.self)
    }

    @inline(__always)
    func setElement(_ ref: Int, _ index: Int, _ value: Int64) {
        assert(UInt(bitPattern: index) < UInt(bitPattern: header(ref).count))
        address(ref).storeBytes(of: value, toByteOffset: 8 &+ index &* 8, as: Int64.self)
    }

    @inline(__always)
    func setElement(_ ref: Int, _ index: Int, _ value: Int) { setElement(ref, index, Int64(value)) }

    /// Element `index` as the ref of a child that must be there.
    @inline(__always)
    func child(_ ref: Int, _ index: Int) throws -> Int {
        guard UInt(bitPattern: index) < UInt(bitPattern: header(ref).count) else {
            throw indexOutside(ref, index, header(ref).count)
        }
        let value = element(ref, index)
        if value & 1 != 0 || value <= 0 { throw noChild(ref, index, value) }
        return Int(value)
    }

    @inline(never)
    private func noChild(_ ref: Int, _ index: Int, _ value: Int64) -> FormatError {
        FormatError(ref: ref, "element \(index) is \(value), not the ref of a node")
    }

    /// Inserts an element; there is room for it.
    @inline(__always)
    func insertElement(_ ref: Int, _ index: Int, _ value: Int64) {
        let (flags, count) = header(ref)
        assert(index <= count && 16 + count * 8 <= capacity(ref))
        let place = payload(ref) + index &* 8
        if index != count { (place + 8).copyMemory(from: place, byteCount: (count &- index) &* 8) }
        place.storeBytes(of: value, as: Int64.self)
        setHeader(ref, flags: flags, count: count &+ 1)
    }

    /// Removes elements `range`.
    func eraseElements(_ ref: Int, _ range: Range<Int>) {
        let (flags, count) = header(ref)
        assert(range.lowerBound >= 0 && range.upperBound <= count)
        let place = payload(ref) + range.lowerBound &* 8
        place.copyMemory(from: place + range.count &* 8, byteCount: (count &- range.upperBound) &* 8)
        setHeader(ref, flags: flags, count: count &- range.count)
    }

    @inline(__always) static func tag(_ value: Int) -> Int64 { Int64(truncatingIfNeeded: value) &<< 1 | 1 }
    @inline(__always) static func untag(_ element: Int64) -> Int { Int(truncatingIfNeeded: UInt64(bitPattern: element) &>> 1) }
}
