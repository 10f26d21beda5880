import Foundation
import SharedStore
import SystemCalls

/// Everything that reads a file, run over one that may be damaged. Nothing in it may trap, hang, or use unbounded memory;
/// and whatever the verifier calls sound must be readable.
struct Exercise {
    struct Failure: Error, CustomStringConvertible {
        let description: String
    }
    /// Set where the sink has got enough.
    private struct Enough: Error {}

    /// An export of more bytes than this is cut.
    static let exportByteCountMax = 32 << 20
    /// Longer than this is a failure. Set before anything is exercised: by tests, which run under sanitizers too.
    nonisolated(unsafe) static var nanosecondsMax: Int64 = 10_000_000_000

    /// What became of a case.
    struct Outcome {
        var report: VerificationReport
        /// Bytes of JSON; nil where the file could not be opened or the export failed.
        var exportedByteCount: Int?
        /// Why not.
        var readError: (any Error)?
        var slowest: (step: String, nanoseconds: Int64)
    }

    /// - Throws: `Failure` where two ways to read a file contradict each other, or one takes too long.
    static func run(_ bytes: [UInt8]) throws -> Outcome {
        // A block of exactly the file's size, so that a sanitizer or a guard page sees the first byte too many.
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 16)
        defer { buffer.deallocate() }
        buffer.copyBytes(from: bytes)
        var slowest = (step: "", nanoseconds: Int64(0))
        func timed<T>(_ step: String, _ body: () throws -> T) rethrows -> T {
            let start = SystemCalls.monotonicNanoseconds()
            defer {
                let elapsed = SystemCalls.monotonicNanoseconds() - start
                if elapsed > slowest.nanoseconds { slowest = (step, elapsed) }
            }
            return try body()
        }
        var outcome = Outcome(report: try timed("verify") { try Verifier.verify(file: buffer) }, slowest: slowest)
        if bytes.isEmpty { return outcome }
        var state = MemoryState(base: buffer.baseAddress!, fileLimit: bytes.count)
        try withUnsafeMutablePointer(to: &state) { state in
            do {
                let memory = Memory(state)
                let group = try timed("open") {
                    let layout = try FileLayout(path: "", memory: memory, fileSize: bytes.count)
                    try layout.requireReadableFormat(path: "")
                    return try Group(memory: memory, topRef: layout.topRef, format: layout.format)
                }
                // Each of these goes its own way through the file: one that fails does not spare the others.
                for (step, read) in readers(memory, group) {
                    do { outcome.exportedByteCount = try timed(step, read) ?? outcome.exportedByteCount } catch {
                        outcome.readError = outcome.readError ?? error
                    }
                }
            } catch let failure as Failure {
                throw failure
            } catch {
                outcome.readError = error
            }
        }
        outcome.slowest = slowest
        if outcome.report.isSound, let error = outcome.readError, !(error is OpenError) {
            throw Failure(description: "sound by the verifier, but not readable: \(error)")
        }
        if slowest.nanoseconds > nanosecondsMax {
            throw Failure(description: "\(slowest.step) took \(slowest.nanoseconds / 1_000_000) ms")
        }
        return outcome
    }

    /// What reads a file that could be opened. The export returns its length, the others nil.
    private static func readers(_ memory: Memory, _ group: Group) -> [(String, () throws -> Int?)] {
        [
            ("export", { try export(group) }),
            (
                "look up",
                {
                    try lookUp(group); return nil
                }
            ),
            (
                "query",
                {
                    try query(group); return nil
                }
            ),
            (
                "history",
                {
                    try readHistory(memory, group); return nil
                }
            ),
        ]
    }

    private static func export(_ group: Group) throws -> Int {
        var count = 0
        do {
            try JSONExporter.export(group) {
                count += $0.count
                if count > exportByteCountMax { throw Enough() }
            }
        } catch is Enough {}
        return count
    }

    /// Queries over some columns of each class. What a query may not ask is no failure of the file.
    private static func query(_ group: Group) throws {
        let schema = try GroupQuerySchema(group)
        for table in try group.classTables() {
            for column in table.publicColumns.prefix(24) {
                let name = table.name(of: column)
                for text in [
                    "\(name) == nil",
                    "\(name) > 3", "\(name) CONTAINS 'a'", "\(name).@count > 1", "TRUEPREDICATE SORT(\(name) DESC) LIMIT(5)",
                ] {
                    do {
                        _ = try Query(text, class: table.className ?? "", schema: schema).run(in: group)
                    } catch is QueryError {}
                }
            }
        }
    }

    private static func readHistory(_ memory: Memory, _ group: Group) throws {
        let history = try HistoryReader(memory: memory, topRef: group.topRef, version: try group.version())
        try history.forEachChangeset(since: history.base) {
            var parser = ChangesetParser($0)
            while try parser.next() != nil {}
        }
    }

    /// Looks for some objects of each table by key and by value, and reads what an export does not show.
    private static func lookUp(_ group: Group) throws {
        var firstError: (any Error)?
        func attempt(_ body: () throws -> Void) throws {
            do { try body() } catch let failure as Failure { throw failure } catch { firstError = firstError ?? error }
        }
        for table in try group.tables() {
            var rows = 0
            var keys: [ObjectKey] = []
            try attempt {
                try table.scanLeaves { leaf in
                    for i in 0..<min(leaf.count, 8) { keys.append(leaf.row(i).key) }
                    rows += 8
                    return rows < 32
                }
            }
            for key in keys {
                try attempt {
                    guard let row = try table.find(key) else { return }
                    for column in table.backlinkColumns { _ = try row.backlinks(column) }
                    for column in table.publicColumns {
                        switch column.key.collectionKind {
                        case nil:
                            let value = try row.value(column)
                            if let index = try SearchIndex(table, column) { _ = try index.find(value) }
                            if case .string(let text) = value, let index = try FullTextIndex(table, column) {
                                for word in FullTextTokenizer.tokens(text).prefix(4) { _ = try index.find(word: word) }
                            }
                        case .set:
                            let set = try row.set(column)
                            if set.count > 0 { _ = try set.find(set.value(set.count / 2)) }
                        case .dictionary:
                            let dictionary = try row.dictionary(column)
                            if dictionary.count > 0, case .string(let name) = try dictionary.key(dictionary.count / 2) {
                                _ = try dictionary.find(name)
                            }
                        case .list:
                            let list = try row.list(column)
                            if list.count > 0 { _ = try list.value(list.count - 1) }
                        }
                    }
                }
            }
        }
        if let firstError { throw firstError }
    }
}
