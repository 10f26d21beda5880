import Glibc
import SharedStore
import SystemCalls

/// Every kind of operation by itself, one line each: a name, a tab, seconds. For comparisons, by a program, with other versions
/// of this package and with other databases; `run` does one group of operations, most of them on the file that the group `make`
/// leaves.
enum Operations {
    static func run(_ group: String, _ directory: String, count: Int) throws {
        let work = OperationsWork(directory: directory, count: count)
        switch group {
        case "bulk": try work.bulk()
        case "make": try work.make()
        case "open": try work.open()
        case "lookup": try work.lookUp()
        case "scan": try work.scan()
        case "query": try work.query()
        case "sort": try work.sort()
        case "aggregate": try work.aggregate()
        case "list": try work.lists()
        case "change": try work.change()
        case "commit": try work.commit()
        case "notify": try work.observe()
        case "enc": try work.encryption()
        case "copy": try work.copy()
        default: print("no group of operations is called \(group)")
        }
    }
}

/// What a group of operations works with.
struct OperationsWork {
    let directory: String
    let count: Int

    func file(_ name: String) -> String { directory + "/" + name }

    /// A text of a thousand ones, of fifty thousand ones, and an int of no order.
    static func name(_ i: Int) -> String { names[i % 1000] }
    static func code(_ i: Int) -> String { codes[i &* 7919 % 50_000] }
    private static let names = (0..<1000).map { "name \($0)" }, codes = (0..<50_000).map { "code \($0)" }
    static func value(_ i: Int) -> Int64 {
        var x = UInt64(i) &* 0x9E37_79B9_7F4A_7C15
        x ^= x >> 29
        x = x &* 0xBF58_476D_1CE4_E5B9
        return Int64(x >> 33)
    }

    /// Numbers below `limit` in no order that can be foretold.
    struct Jumps {
        let limit: Int64
        var key: Int64 = 1
        init(_ limit: Int) { self.limit = Int64(limit) }
        mutating func next() -> Int64 {
            key = (key &* 48_271) % limit
            return key
        }
    }

    func line(_ name: String, _ value: Double) {
        let micro = Int((value * 1e9).rounded())
        var digits = String(micro % 1_000_000_000)
        while digits.utf8.count < 9 { digits = "0" + digits }
        print("\(name)\t\(micro / 1_000_000_000).\(digits)")
        fflush(nil)
    }

    /// The median of some rounds.
    func timed(_ name: String, _ rounds: Int = 1, _ body: () throws -> Void) rethrows { line(name, try median(rounds, body)) }

    func size(_ name: String, _ path: String) throws {
        line(name, Double(try SystemCalls.status(path: path).size) / 1e6)
    }

    func remove(_ path: String) {
        for suffix in ["", ".lock", ".note"] { try? SystemCalls.unlink(path + suffix) }
        for name in (try? SystemCalls.names(inDirectory: path + ".management")) ?? [] {
            try? SystemCalls.unlink(path + ".management/" + name)
        }
        try? SystemCalls.removeDirectory(path + ".management")
    }

    func open(_ path: String, _ durability: Durability = .unsafe, key: EncryptionKey? = nil) throws -> Store {
        var options = StoreOptions()
        options.durability = durability
        options.encryptionKey = key
        return try Store.open(path, options)
    }

    /// A copy of the file that `make` left, to be changed.
    func copyOfMain(_ name: String) throws -> String {
        let path = file(name)
        remove(path)
        let from = try SystemCalls.open(file("main.realm"), O_RDONLY)
        defer { SystemCalls.close(from) }
        let to = try SystemCalls.open(path, O_RDWR | O_CREAT | O_EXCL)
        defer { SystemCalls.close(to) }
        var buffer = [UInt8](repeating: 0, count: 1 << 20)
        var offset = 0, size = Int(try SystemCalls.status(path: file("main.realm")).size)
        while size > 0 {
            let part = min(size, buffer.count)
            try buffer.withUnsafeMutableBytes { bytes in
                let piece = UnsafeMutableRawBufferPointer(rebasing: bytes[..<part])
                _ = try SystemCalls.read(from, into: piece, at: offset)
                try SystemCalls.write(to, UnsafeRawBufferPointer(piece), at: offset)
            }
            offset += part
            size -= part
        }
        return path
    }

    /// A table of a version, and its columns by name.
    struct Subject {
        let table: Table
        init(_ group: Group, _ name: String) throws {
            guard let table = try group.table(ofClass: name) else {
                fatalError("the file has no class \(name); run the group `make`")
            }
            self.table = table
        }
        subscript(_ name: String) -> Column {
            guard let column = table.column(named: name) else { fatalError("the class has no property \(name)") }
            return column
        }
    }
}
