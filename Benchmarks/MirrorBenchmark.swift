import Glibc
import Replication
import SharedStore
import SystemCalls

/// One object changed per commit in a large file: what a mirror ships, and how far behind the replica is.
enum MirrorBenchmark {
    static func run(_ place: Workplace, count: Int) throws {
        let source = place.file("source.realm"), replica = place.file("replica.realm")
        printTitle("A mirror of \(count) objects with strings of 1 KB, one object changed per commit")
        let store = try Store.open(source, ReadBenchmarks.options(.full))
        let text = String(repeating: "x", count: 1000)
        var made = 0
        while made < count {
            try store.write { transaction in
                let editor = transaction.editor
                let items: TableEditor
                if try editor.group.table(ofClass: "Item") == nil {
                    items = try editor.createTable("class_Item")
                    try items.addColumn("age", .int)
                    try items.addColumn("text", .string)
                } else {
                    items = try editor.editor(named: "class_Item")
                }
                let column = try items.column(named: "text")
                for i in 0..<min(100_000, count - made) {
                    try items.set(column, of: items.createObject(), to: .string("\(made + i) " + text))
                }
            }
            made += min(100_000, count - made)
        }
        let size = try SystemCalls.status(path: source).size
        let image = try seconds { _ = try Mirror.once(source: source, destination: replica) }
        printLine("first image", Double(size) / image, "B/s", "\(short(Double(size)))B")

        try contentDifference(store, replica, place)

        // What a step costs, piece by piece.
        let keys = try firstKeys(store, 1000)
        func change(_ i: Int) throws {
            try store.write { transaction in
                let items = try transaction.editor.editor(named: "class_Item")
                try items.setInt(items.column(named: "age"), of: keys[i % keys.count], to: Int64(i))
            }
        }
        let compressor = Compressor()
        var differences: [Double] = [], sizes: [Double] = [], plain: [Double] = []
        var older = try store.beginRead()
        var olderFree = try FreeExtents(memory: older.memory, snapshot: older.snapshot)
        for i in 0..<300 {
            try change(i)
            let newer = try store.beginRead()
            let begin = SystemCalls.monotonicNanoseconds()
            let newerFree = try FreeExtents(memory: newer.memory, snapshot: newer.snapshot)
            let ranges = olderFree.difference(to: newerFree)
            differences.append(Double(SystemCalls.monotonicNanoseconds() - begin) / 1e9)
            var payload: [UInt8] = []
            for range in ranges {
                payload.append(
                    contentsOf: UnsafeRawBufferPointer(
                        start: try newer.memory.bytes(at: range.lowerBound, length: range.count), count: range.count))
            }
            var head = SegmentHead()
            head.parent = older.snapshot
            head.this = newer.snapshot
            let segment = Segment(head: head, ranges: ranges, payload: payload)
            let encoded = try segment.encoded(compressor: compressor, prefix: (.listsPrefix, try lists(older)))
            sizes.append(Double(encoded.count))
            plain.append(Double(payload.count))
            older.end()
            older = newer
            olderFree = newerFree
        }
        older.end()
        printLine("difference by free lists, median", median(of: differences), "s")
        printLine("bytes of a step, plain, median", median(of: plain), "B")
        printLine("bytes of a step as it travels, median", median(of: sizes), "B")

        // From the end of a commit here to the version there.
        let live = place.file("live-replica.realm")
        let follower = try MirrorThread(source: source, destination: live)
        for _ in 0..<10_000 where (try? SystemCalls.status(path: live)) == nil { usleep(2000) }
        var options = ReadBenchmarks.options(.full)
        options.access = .readOnly
        let watching = try Store.open(live, options)
        let start = try store.newestVersion()
        for _ in 0..<5000 where try watching.newestVersion() < start { usleep(2000) }
        var lags: [Double] = []
        for i in 0..<300 {
            // Lone commits: those that follow each other closely gather.
            usleep(25_000)
            try change(i)
            let begin = SystemCalls.monotonicNanoseconds()
            let version = try store.newestVersion()
            while try watching.newestVersion() < version {
                if SystemCalls.monotonicNanoseconds() - begin > 5_000_000_000 { return print("  the mirror does not follow") }
            }
            lags.append(Double(SystemCalls.monotonicNanoseconds() - begin) / 1e9)
        }
        follower.stop()
        printLine("behind after a commit, median", median(of: lags), "s")
        printLine("the same, 95th percentile", lags.sorted()[lags.count * 95 / 100], "s")
        try watching.close()
        try store.close()
    }

    /// The pin was lost: what differs between the replica and the source is found by hashes of blocks, after one object of a
    /// hundred was changed, in one stretch and then all over the file.
    private static func contentDifference(_ store: Store, _ replica: String, _ place: Workplace) throws {
        let old = try ImmutableFile(path: replica)
        let snapshot = try {
            let reading = try store.beginRead()
            defer { reading.end() }
            return reading.snapshot
        }()
        var known: BlockHashes?
        let hashing = try seconds {
            known = try BlockHashes(
                memory: old.memory, snapshot: snapshot, extents: FreeExtents(memory: old.memory, snapshot: snapshot))
        }
        guard let known else { return }
        printLine("hashes of the replica", Double(old.fileSize) / hashing, "B/s")
        let keys = try firstKeys(store, Int.max)
        for (name, chosen) in [
            ("in one stretch", Array(keys.prefix(keys.count / 100))),
            ("all over the file", keys.indices.filter { $0 % 100 == 50 }.map { keys[$0] }),
        ] {
            try store.write { transaction in
                let items = try transaction.editor.editor(named: "class_Item")
                let column = try items.column(named: "text")
                for key in chosen {
                    try items.set(column, of: key, to: .string("changed " + String(repeating: "y", count: 1000)))
                }
            }
            let reading = try store.beginRead()
            var ranges: [Range<Int>] = []
            let time = try seconds {
                ranges = try ContentDifference.ranges(
                    memory: reading.memory, snapshot: reading.snapshot,
                    extents: FreeExtents(memory: reading.memory, snapshot: reading.snapshot),
                    against: known
                ).ranges
            }
            let bytes = ranges.reduce(0) { $0 + $1.count }
            printLine("1 % changed \(name): found in", time, "s", "\(short(Double(bytes)))B differ")
            let fresh = place.file("resynchronised.realm")
            let making = try seconds {
                try ContentDifference.makeFile(fresh, from: replica, snapshot: reading.snapshot, ranges: ranges) { range in
                    UnsafeRawBufferPointer(
                        start: try reading.memory.bytes(at: range.lowerBound, length: range.count), count: range.count)
                }
            }
            printLine("  a new replica made of the old one", making, "s", "copied, synced")
            try SystemCalls.unlink(fresh)
            reading.end()
        }
    }

    private static func median(of values: [Double]) -> Double { values.sorted()[values.count / 2] }

    private static func firstKeys(_ store: Store, _ count: Int) throws -> [ObjectKey] {
        let reading = try store.beginRead()
        defer { reading.end() }
        guard let table = try reading.group.table(ofClass: "Item") else { return [] }
        var keys: [ObjectKey] = []
        try table.scanLeaves { leaf in
            for i in 0..<leaf.count { keys.append(leaf.key(i)) }
            return keys.count < count
        }
        return keys
    }

    /// The parent's lists and top, as they lie there: what a step is compressed against.
    private static func lists(_ transaction: ReadTransaction) throws -> [UInt8] {
        let memory = transaction.memory
        let top = try memory.node(transaction.snapshot.topRef)
        var bytes: [UInt8] = []
        for ref in [
            try top.requiredRef(TopSlot.freePositions), try top.requiredRef(TopSlot.freeLengths),
            try top.requiredRef(TopSlot.freeVersions), top.ref,
        ] {
            let n = try memory.node(ref).byteCount
            bytes.append(contentsOf: UnsafeRawBufferPointer(start: try memory.bytes(at: ref, length: n), count: n))
        }
        return bytes
    }
}

/// A follower on a thread of its own.
private final class MirrorThread: @unchecked Sendable {
    // Sendable: `stopping` is a word that one thread sets and the other looks at.
    private var stopping = false
    private let done = UnsafeMutablePointer<pthread_t>.allocate(capacity: 1)

    init(source: String, destination: String) throws {
        let context = Unmanaged.passRetained(
            Box { [self] in
                do {
                    let follower = MirrorFollower(source: source, destination: destination) { [self] descriptors, milliseconds in
                        if stopping { return .stop }
                        var polled = descriptors.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
                        poll(&polled, UInt(polled.count), min(milliseconds < 0 ? 50 : milliseconds, 50))
                        return stopping ? .stop : nil
                    }
                    try follower.run()
                } catch {
                    print("  mirror: \(error)")
                    fflush(nil)
                }
            })
        pthread_create(
            done, nil,
            { argument in
                Unmanaged<Box>.fromOpaque(argument!).takeRetainedValue().body()
                return nil
            }, context.toOpaque())
    }

    private final class Box {
        let body: () -> Void
        init(_ body: @escaping () -> Void) { self.body = body }
    }

    func stop() {
        stopping = true
        pthread_join(done.pointee, nil)
    }
}
