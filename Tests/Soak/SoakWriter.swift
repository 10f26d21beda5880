import Foundation
import Glibc
import SharedStore
import SystemCalls

/// A process that commits, told what to do line by line:
///
/// ```
/// run FILE COUNT PAUSE             commits; a pause of so many microseconds after each
/// pace TIME PAUSE SYNCED FILE      commits for so many milliseconds, with syncs or without, each timed
/// grow FILE BYTES                  one commit that makes the file so much larger
/// shrink FILE                      one that gives the space back
/// lag FILE COPY COUNT PAUSE LIMIT  synced commits, each followed by looking at the copy until it shows it, at most for so many milliseconds
/// version FILE
/// ```
/// Each answer is a line: `ok ...` with what was asked for, or `error ...`.
enum SoakWriter {
    static let objectCount = 500

    static func run() throws -> Int32 {
        var files: [String: SoakFile] = [:]
        func file(_ path: Substring, synced: Bool = false) throws -> SoakFile {
            if let file = files[String(path)], file.isSynced == synced { return file }
            let file = try SoakFile(String(path), isSynced: synced)
            files[String(path)] = file
            return file
        }
        while let line = readLine() {
            let words = line.split(separator: " ")
            do {
                switch words.first {
                case "run":
                    guard words.count == 4, let count = Int(words[2]), let pause = UInt32(words[3]) else { return 64 }
                    let begin = SystemCalls.monotonicNanoseconds()
                    let times = try file(words[1]).commit(count, pause: pause)
                    say("ok \(SystemCalls.monotonicNanoseconds() - begin) \(times.joined)")
                case "pace":
                    guard words.count == 5, let milliseconds = Int64(words[1]), let pause = UInt32(words[2]) else { return 64 }
                    let file = try file(words[4], synced: words[3] == "1")
                    say("ok \(try file.commit(.max, pause: pause, until: milliseconds).joined)")
                case "grow":
                    guard words.count == 3, let count = Int(words[2]) else { return 64 }
                    try file(words[1]).grow(by: count)
                    say("ok")
                case "shrink":
                    try file(words[1]).shrink()
                    say("ok")
                case "lag":
                    guard words.count == 6, let count = Int(words[3]), let pause = UInt32(words[4]), let limit = Int64(words[5])
                    else { return 64 }
                    let file = try file(words[1], synced: true)
                    let (times, missed, unreadable) = try file.lag(
                        of: String(words[2]), count: count, pause: pause, limit: limit * 1_000_000)
                    say("ok \(missed) \(unreadable) \(times.joined)")
                case "version": say("ok \(try file(words[1]).version())")
                default: say("error unknown command")
                }
            } catch { say("error \(error)") }
        }
        return 0
    }
}

extension [Int64] {
    var joined: String { map { String($0) }.joined(separator: " ") }
}

/// A file of some hundred objects, one of which is changed by each commit.
final class SoakFile {
    let isSynced: Bool
    private let store: Store
    private var keys: [ObjectKey] = []
    private var turn = 0

    init(_ path: String, isSynced: Bool) throws {
        self.isSynced = isSynced
        var options = StoreOptions()
        options.durability = isSynced ? .full : .unsafe
        options.waitLimit = .seconds(60)
        store = try Store.open(path, options)
        try store.write { transaction in
            let editor = transaction.editor
            let items: TableEditor
            if try editor.group.table(ofClass: "Item") == nil {
                items = try editor.createTable("class_Item")
                try items.addColumn("number", .int)
                try items.addColumn("text", .string)
                for _ in 0..<SoakWriter.objectCount { _ = try items.createObject() }
            } else {
                items = try editor.editor(named: "class_Item")
            }
            try items.table.scanLeaves { leaf in
                for i in 0..<leaf.count { keys.append(leaf.key(i)) }
                return true
            }
        }
        turn = Int(truncatingIfNeeded: try version())
    }

    /// How long after a commit a copy shows it, in nanoseconds; how often it did not in time, and how often it could not be read.
    func lag(of copy: String, count: Int, pause: UInt32, limit: Int64) throws -> (times: [Int64], missed: Int, unreadable: Int) {
        var times: [Int64] = [], missed = 0, unreadable = 0
        for _ in 0..<count {
            _ = try commit(1, pause: 0)
            let key = keys[turn * 7919 % keys.count], begin = SystemCalls.monotonicNanoseconds()
            var isSeen = false
            while !isSeen, SystemCalls.monotonicNanoseconds() - begin < limit {
                do { isSeen = try number(of: key, in: copy) == turn } catch let error as OpenError {
                    // Not there at this moment, or not to be read.
                    if case .fileNotFound = error {} else { unreadable += 1 }
                } catch { unreadable += 1 }
                if !isSeen { usleep(500) }
            }
            if isSeen { times.append(SystemCalls.monotonicNanoseconds() - begin) } else { missed += 1 }
            usleep(pause)
        }
        return (times, missed, unreadable)
    }

    private func number(of key: ObjectKey, in copy: String) throws -> Int? {
        let file = try ImmutableFile(path: copy)
        defer { withExtendedLifetime(file) {} }
        guard let table = try file.group.table(ofClass: "Item"), let column = table.column(named: "number"),
            let row = try table.find(key)
        else { return nil }
        return Int(try row.int(column))
    }

    func grow(by count: Int) throws {
        try store.write { transaction in
            let table: TableEditor
            if try transaction.editor.group.table(ofClass: "Ballast") == nil {
                table = try transaction.editor.createTable("class_Ballast")
                try table.addColumn("text", .string)
            } else {
                table = try transaction.editor.editor(named: "class_Ballast")
            }
            let text = String(repeating: "y", count: 100_000)
            for _ in 0..<(count + 99_999) / 100_000 { try table.set("text", of: table.createObject(), to: .string(text)) }
        }
    }

    func shrink() throws {
        try store.write { transaction in
            try transaction.editor.editor(named: "class_Ballast").deleteAllObjects()
        }
    }

    func version() throws -> UInt64 { try store.newestVersion() }

    /// Commits, and returns how long each commit took, in nanoseconds.
    ///
    /// - Parameter milliseconds: the time after which it ends before all are made.
    func commit(_ count: Int, pause: UInt32, until milliseconds: Int64 = .max) throws -> [Int64] {
        var times: [Int64] = []
        times.reserveCapacity(min(count, 100_000))
        let start = SystemCalls.monotonicNanoseconds()
        while times.count < count {
            if milliseconds < .max, SystemCalls.monotonicNanoseconds() - start > milliseconds * 1_000_000 { break }
            turn += 1
            // Short and long texts by turns, so that space is freed and used again.
            let key = keys[turn * 7919 % keys.count]
            let text = String(repeating: "x", count: turn * 31 % 200)
            let begin = SystemCalls.monotonicNanoseconds()
            try store.write { transaction in
                let items = try transaction.editor.editor(named: "class_Item")
                try items.setInt(items.column(named: "number"), of: key, to: Int64(turn))
                try items.set(items.column(named: "text"), of: key, to: .string(text))
            }
            times.append(SystemCalls.monotonicNanoseconds() - begin)
            if pause > 0 { usleep(pause) }
        }
        return times
    }
}
