/// Objects that an archiver has put and will want again when they are merged: of each level at most three, until the fourth
/// comes.
///
/// Bounded: where they have more bytes the oldest go, and are read from the archive's place instead.
struct RecentObjects {
    let byteCountMax: Int
    private(set) var byteCount = 0
    private var objects: [(name: String, bytes: [UInt8])] = []

    init(byteCountMax: Int) { self.byteCountMax = byteCountMax }

    var count: Int { objects.count }

    subscript(_ name: String) -> [UInt8]? { objects.last { $0.name == name }?.bytes }

    mutating func remember(_ name: String, _ bytes: [UInt8]) {
        forget([name])
        objects.append((name, bytes))
        byteCount += bytes.count
        while byteCount > byteCountMax, let first = objects.first {
            byteCount -= first.bytes.count
            objects.removeFirst()
        }
    }

    /// They are merged: nobody asks for them any more.
    mutating func forget(_ names: [String]) {
        objects.removeAll { object in
            guard names.contains(object.name) else { return false }
            byteCount -= object.bytes.count
            return true
        }
    }
}
