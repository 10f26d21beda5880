import Glibc
import Replication
import SharedStore
import SystemCalls

/// What many small commits make of a large file: its size, its free blocks, and the pages that a commit touches.
enum SpaceBenchmark {
    static func run(_ place: Workplace, count: Int, commits: Int) throws {
        for (title, isEncrypted, isPinned, change) in [
            ("any int, of the same width", false, false, Change.sameWidth),
            ("any int, of the same width, encrypted", true, false, .sameWidth),
            ("any int, wider and wider", false, false, .wider),
            ("any int, wider and wider, encrypted", true, false, .wider),
            ("any int, beside a version that is held", false, true, .wider),
            ("ten neighbours, encrypted", true, false, .neighbours),
            ("strings of other lengths", false, false, .strings),
            ("objects come and go", false, false, .objects),
        ] {
            printTitle("Space: \(commits) small commits in a file of \(count) objects, \(title)")
            let path = place.file("space.realm")
            var options = ReadBenchmarks.options()
            options.encryptionKey = isEncrypted ? try EncryptionKey.generate() : nil
            let store = try Store.open(path, options)
            try WriteBenchmarks.fill(store, count)
            let held = isPinned ? try store.beginRead() : nil
            let file = store.participant?.file.backend as? EncryptedFile
            var random = UInt64(1)
            for part in 0...10 {
                let before = file?.writtenPageCount ?? 0
                var times: [Double] = []
                for i in 0..<(part == 0 ? 200 : commits / 10) {
                    let begin = SystemCalls.monotonicNanoseconds()
                    try change.run(store, &random, part * commits / 10 + i, count)
                    times.append(Double(SystemCalls.monotonicNanoseconds() - begin) / 1e9)
                }
                times.sort()
                let pages = Double((file?.writtenPageCount ?? 0) - before) / Double(times.count)
                try describe(store, times[times.count / 2], file == nil ? 0 : pages, change, &random, count)
            }
            held?.end()
            try store.close()
            try SystemCalls.unlink(path)
        }
    }

    enum Change {
        case sameWidth, wider, neighbours, strings, objects

        func run(_ store: Store, _ random: inout UInt64, _ round: Int, _ count: Int) throws {
            random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            let key = Int64(random >> 33) % Int64(count - 10)
            let transaction = try store.beginWrite()
            let items = try transaction.editor.editor(named: "class_Item")
            switch self {
            case .sameWidth: try items.setInt(items.column(named: "age"), of: ObjectKey(key), to: Int64(random >> 40 % 100))
            case .wider: try items.setInt(items.column(named: "age"), of: ObjectKey(key), to: Int64(round))
            case .neighbours:
                let age = try items.column(named: "age")
                for i in 0..<10 { try items.setInt(age, of: ObjectKey(key + Int64(i)), to: Int64(round)) }
            case .strings:
                let text = String(repeating: "x", count: Int(random >> 40 % 40))
                try items.set(items.column(named: "name"), of: ObjectKey(key), to: .string(text))
            case .objects:
                if let old = try items.table.find(primaryKey: .int(key)) {
                    try items.deleteObject(old.key)
                } else {
                    _ = try items.createObject(primaryKey: .int(key))
                }
            }
            try transaction.commit()
        }
    }

    /// Goes on for some commits, and looks at what each of them wrote.
    private static func describe(
        _ store: Store, _ seconds: Double, _ encrypted: Double, _ change: Change, _ random: inout UInt64, _ count: Int
    ) throws {
        var older = try store.beginRead()
        var olderFree = try FreeExtents(memory: older.memory, snapshot: older.snapshot)
        var pages = 0, bytes = 0
        for _ in 0..<20 {
            try change.run(store, &random, 100, count)
            let newer = try store.beginRead()
            let newerFree = try FreeExtents(memory: newer.memory, snapshot: newer.snapshot)
            var last = -1
            for range in olderFree.difference(to: newerFree) {
                bytes += range.count
                for page in range.lowerBound >> 12...(range.upperBound - 1) >> 12 where page > last {
                    pages += 1
                    last = page
                }
            }
            older.end()
            older = newer
            olderFree = newerFree
        }
        let blocks = try older.memory.node(older.memory.node(older.snapshot.topRef).requiredRef(TopSlot.freePositions)).count
        let size = Double(older.snapshot.logicalSize)
        older.end()
        printLine(
            "\(blocks) free blocks, \(short(size))B", seconds, "s a commit",
            "\(Double(pages) / 20) pages, \(bytes / 20) bytes new\(encrypted > 0 ? "; \(short(encrypted))pages encrypted" : "")")
    }
}
