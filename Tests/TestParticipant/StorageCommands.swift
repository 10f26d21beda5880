import Glibc
import SharedStore
import SystemCalls

/// The commands of `TestParticipant storage`:
///
///     commit PATH DURABILITY COUNT STEP   makes COUNT commits on the file, which it creates where it is missing, and prints
///                                         each version; kills itself before the STEP-th operation on the file (0: never)
///
///     fill PATH MEGABYTES                 makes a file of so many objects of some 100 KB, and deletes every eighth
///
/// Every version that `commit` makes is whole: slot 0 of the top holds its number, slot 1 ten blobs of one byte value each.
func runStorageCommand(_ arguments: [String]) throws -> Int32 {
    if arguments.count == 3, arguments[0] == "fill", let megabytes = Int(arguments[2]) {
        try fill(arguments[1], megabytes)
        return 0
    }
    guard arguments.count == 5, arguments[0] == "commit", let count = Int(arguments[3]), let step = Int(arguments[4]) else {
        return 64
    }
    let durability: Durability
    switch arguments[2] {
    case "full": durability = .full
    case "unsafe": durability = .unsafe
    default: return 64
    }
    let backend = KillingBackend(try PlainFile.open(arguments[1], writable: true, create: true), step: step)
    backend.setStoresThroughMap(durability != .full)
    let file = try DatabaseFile(backend: backend)
    if try backend.size() == 0 { try file.initialize(durability: durability) }
    var base = try file.inspect().snapshot
    let work = try WorkingMemory(file: file, base: base)
    let committer = Committer(file: file)
    for _ in 0..<count {
        try work.begin(base)
        let top = try editOnce(work.arena, base)
        let pinned = PinnedVersions(versions: [PinnedVersion(snapshot: base, isLive: true)], droppedYoungerEntry: false)
        base = try committer.commit(base: base, arena: work.arena, topRef: top, pinned: pinned, durability: durability)
        work.end()
        let line = "\(base.version)\n"
        _ = line.withCString { write(1, $0, strlen($0)) }
    }
    return 0
}

private func fill(_ path: String, _ megabytes: Int) throws {
    var options = StoreOptions()
    options.durability = .unsafe
    let store = try Store.open(path, options)
    try store.write { transaction in
        let table = try transaction.editor.createTable("class_Item")
        try table.addColumn("number", .int)
        try table.addColumn("data", .binary, .nullable)
    }
    var left = megabytes << 20, number: Int64 = 0
    while left > 0 {
        try store.write { transaction in
            let table = try transaction.editor.editor(named: "class_Item")
            var room = min(left, 32 << 20)
            left -= room
            while room > 0 {
                let length = 50_000 + Int(number &* 7919 % 100_000), key = try table.createObject()
                try table.set("number", of: key, to: .int(number))
                try table.set("data", of: key, to: .binary([UInt8](repeating: UInt8(truncatingIfNeeded: number), count: length)))
                number += 1
                room -= length
            }
        }
    }
    try store.write { transaction in
        let table = try transaction.editor.editor(named: "class_Item")
        var index = table.table.objectCount - 1
        while index >= 0 {
            if let row = try table.table.object(at: index) { try table.deleteObject(row.key) }
            index -= 8
        }
    }
    try store.close()
}

/// Three blobs and the number of the version are replaced.
private func editOnce(_ arena: Arena, _ base: Snapshot) throws -> Int {
    let next = base.version + 1
    func node(_ flags: UInt8, _ count: Int, _ byteCount: Int) throws -> (Int, UnsafeMutableRawPointer) {
        let ref = try arena.allocate(8 + byteCount)
        (arena.address(ref) + 4).storeBytes(of: (UInt32(flags) << 24 | UInt32(count)).bigEndian, as: UInt32.self)
        return (ref, arena.address(ref) + 8)
    }
    func refs(_ values: [Int64], _ flags: UInt8 = 0x47) throws -> Int {
        let (ref, p) = try node(flags, values.count, 8 * values.count)
        for (i, v) in values.enumerated() { p.storeBytes(of: v, toByteOffset: 8 * i, as: Int64.self) }
        return ref
    }
    func blob(_ seed: UInt64) throws -> Int64 {
        let length = 50 + Int(seed &* 2_654_435_761 % 700)
        let (ref, p) = try node(0x11, length, length)
        memset(p, Int32(truncatingIfNeeded: seed & 0xFF), length)
        return Int64(ref)
    }
    var slots: [Int64] = []
    if base.topRef == 0 {
        for i in 0..<10 { slots.append(try blob(UInt64(i))) }
    } else {
        let top = try arena.memory.node(base.topRef)
        try arena.release(try top.requiredRef(0))
        let old = try arena.memory.node(try top.requiredRef(1))
        for i in 0..<old.count {
            let v = try old.integer(i)
            if i % 10 == Int(next) % 10 || i % 10 == Int(next / 3) % 10 {
                try arena.release(Int(v))
                slots.append(try blob(next &+ UInt64(i)))
            } else {
                slots.append(v)
            }
        }
        try arena.release(old.ref)
        try arena.release(top.ref)
    }
    let lists: [Int64]
    if base.topRef == 0 {
        lists = []
    } else {
        let top = try arena.memory.node(base.topRef)
        lists = [Int64(top.unchecked(3)), Int64(top.unchecked(4)), Int64(top.unchecked(5)), 0]
    }
    return try refs([Int64(try refs([Int64(next)], 7)), Int64(try refs(slots)), 49] + lists)
}

/// Passes everything on to a real file, but kills the process before the step-th change of it.
private final class KillingBackend: FileBackend, @unchecked Sendable {
    // Sendable: used by one thread.
    private let file: PlainFile
    private var left: Int

    init(_ file: PlainFile, step: Int) {
        self.file = file
        left = step
        super.init(path: file.path)
    }

    private func pass() {
        left -= 1
        if left == 0 { kill(getpid(), SIGKILL) }
    }

    override func size() throws -> Int { try file.size() }
    override func read(into buffer: UnsafeMutableRawBufferPointer, at position: Int) throws -> Int {
        try file.read(into: buffer, at: position)
    }
    override func write(_ bytes: UnsafeRawBufferPointer, at position: Int) throws {
        pass()
        // A store through a mapping can be cut anywhere: half of it is made, then there is another chance to die. A header is
        // written to a new file by one call.
        if bytes.count > FileHeader.byteCount {
            let half = bytes.count / 2 & ~7
            try file.write(UnsafeRawBufferPointer(rebasing: bytes[..<half]), at: position)
            pass()
            try file.write(UnsafeRawBufferPointer(rebasing: bytes[half...]), at: position + half)
        } else {
            try file.write(bytes, at: position)
        }
    }
    override func preallocate(to size: Int) throws {
        pass()
        try file.preallocate(to: size)
    }
    override func syncData() throws {
        pass()
        try file.syncData()
    }
    override func map(at address: UnsafeMutableRawPointer, length: Int) throws -> PageSource? {
        try file.map(at: address, length: length)
    }
    override func setStoresThroughMap(_ on: Bool) { file.setStoresThroughMap(on) }
}
