import Foundation
import SystemCalls

#if DEBUG
// System calls can be intercepted in debug builds only.

/// Records what a program does to the files of one directory, names included, and makes the directories that a power cut may
/// leave.
///
/// Model: a file's bytes and size are durable with the sync of the file, names with the sync of the directory. What was done
/// since is there in any subset, writes even in part (sectors of 512 bytes); of the changes of names, which a file system keeps
/// in order, any beginning. A renaming is there whole or not at all. Writes through a mapping are not seen: record durable
/// sessions only.
///
/// Faults that it never makes: changed bytes of what was synced, a torn write of less than a sector, a sync that lies.
public final class PowerCutDirectory {
    private enum Operation {
        case write(file: Int, offset: Int, bytes: [UInt8])
        /// `cuts` where bytes behind the size go.
        case resize(file: Int, Int, cuts: Bool)
        case sync(file: Int)
        case create(String, file: Int)
        case rename(String, String)
        case unlink(String)
        case syncNames
        /// What was promised up to here.
        case mark(Int)
    }

    private let path: String
    private var operations: [Operation] = []
    private var initialContents: [[UInt8]] = []
    private var initialNames: [String: Int] = [:]
    /// The names as the running program sees them.
    private var names: [String: Int] = [:]
    private let ignores: (String) -> Bool

    /// - Parameter ignores: names that are left out, such as those of side files, which a session makes anew.
    public init(_ path: String, ignores: @escaping (String) -> Bool = { $0.hasSuffix(".lock") || $0.hasSuffix(".note") }) throws {
        self.path = path
        self.ignores = ignores
        for name in try FileManager.default.contentsOfDirectory(atPath: path).sorted() where !ignores(name) {
            var isDirectory: ObjCBool = false
            guard FileManager.default.fileExists(atPath: path + "/" + name, isDirectory: &isDirectory), !isDirectory.boolValue
            else { continue }
            initialNames[name] = initialContents.count
            initialContents.append([UInt8](try Data(contentsOf: URL(fileURLWithPath: path + "/" + name))))
        }
        names = initialNames
    }

    private var fileCount: Int { initialContents.count }

    private func name(_ path: String) -> String? {
        guard path.hasPrefix(self.path + "/") else { return nil }
        let name = String(path.dropFirst(self.path.utf8.count + 1))
        return name.contains("/") || ignores(name) ? nil : name
    }

    /// The file behind a name; one that is not there yet is just being made.
    private func file(_ name: String) -> Int {
        if let file = names[name] { return file }
        let file = initialContents.count
        initialContents.append([])
        names[name] = file
        operations.append(.create(name, file: file))
        return file
    }

    /// Runs `body` and records its calls, those of this thread.
    public func record<R>(_ body: () throws -> R) rethrows -> R {
        let thread = pthread_self()
        SystemCallInterception.hook = { [self] call in
            guard pthread_equal(pthread_self(), thread) != 0 else { return nil }
            note(call)
            return nil
        }
        defer { SystemCallInterception.hook = nil }
        return try body()
    }

    private func note(_ call: InterceptedCall) {
        if call.name == "fsync" && call.path == path { return operations.append(.syncNames) }
        guard let name = name(call.path) else { return }
        switch call.name {
        case "pwrite64":
            operations.append(.write(file: file(name), offset: call.offset, bytes: call.bytes.map { Array($0) } ?? []))
        case "ftruncate", "fallocate": operations.append(.resize(file: file(name), call.offset, cuts: call.name == "ftruncate"))
        case "fdatasync", "fsync": operations.append(.sync(file: file(name)))
        case "rename":
            guard let old = self.name(call.source), let file = names.removeValue(forKey: old) else { return }
            names[name] = file
            operations.append(.rename(old, name))
        case "unlink":
            if names.removeValue(forKey: name) != nil { operations.append(.unlink(name)) }
        default: break
        }
    }

    /// Notes that everything up to here has been promised under `number`.
    public func mark(_ number: Int) { operations.append(.mark(number)) }

    /// Calls `check` with the files that a cut may leave, by name, after each beginning of what was done.
    ///
    /// - Parameters:
    ///   - subsets: how many choices of what is not durable are tried at each place, besides all of it and none of it.
    ///   - pairs: the files are encrypted ones. A page of data is never there without its entry, if that was written before it
    ///     (file-format-3 8.4), and none is torn; of a write of several pages or entries any may be there.
    ///   - stride: only every so manyeth place.
    /// - Returns: the number of images; of those that are the same after the same promise only the first is checked.
    @discardableResult
    public func forEachImage(
        subsets: Int = 3, seed: UInt64 = 1, pairs: Bool = false, stride: Int = 1,
        _ check: (_ files: [String: [UInt8]], _ promised: Int?) throws -> Void
    ) rethrows -> Int {
        var random = SplitMix(seed: seed)
        let operations = pairs ? operations.flatMap(Self.units) : operations
        var contents = initialContents.map { $0 }
        var durableNames = initialNames
        var pending: [Operation] = []
        var pendingNames: [Operation] = []
        var promised: Int?
        var count = 0
        var seen: Set<Int> = []
        for index in 0...operations.count {
            if index % stride == 0 || index == operations.count {
                for choice in 0..<(pending.isEmpty && pendingNames.isEmpty ? 1 : 2 + subsets) {
                    var files = contents
                    /// Of the metadata written last: by file and sector, whether it is there.
                    var metadata: [[Int]: Bool] = [:]
                    for operation in pending {
                        var isThere = choice == 0 || choice > 1 && random.next() % 8 < (choice % 2 == 0 ? 4 : 7)
                        var tears = choice > 1 && !pairs && random.next() % 4 == 0
                        if pairs, case .write(let file, let offset, _) = operation {
                            if EncryptedWrites.isMetadata(offset) {
                                metadata[[file, offset / Self.sector]] = isThere
                            } else if metadata[[file, EncryptedWrites.entry(offset) / Self.sector]] == false {
                                isThere = false
                            }
                        }
                        if case .resize = operation { tears = false }
                        if isThere { Self.apply(operation, &files) { tears && random.next() % 3 == 0 } }
                    }
                    var present = durableNames
                    let kept =
                        choice == 0 ? pendingNames.count : choice == 1 ? 0 : Int(random.next() % UInt64(pendingNames.count + 1))
                    for operation in pendingNames.prefix(kept) { Self.apply(operation, &present) }
                    count += 1
                    if seen.insert(Self.digest(present, files, promised)).inserted {
                        try check(present.mapValues { files[$0] }, promised)
                    }
                }
            }
            if index == operations.count { break }
            switch operations[index] {
            case .sync(let synced):
                var left: [Operation] = []
                for operation in pending {
                    switch operation {
                    case .write(let file, _, _) where file == synced, .resize(let file, _, _) where file == synced:
                        Self.apply(operation, &contents) { false }
                    default: left.append(operation)
                    }
                }
                pending = left
            case .syncNames:
                for operation in pendingNames { Self.apply(operation, &durableNames) }
                pendingNames = []
            case .mark(let number): promised = number
            case .write, .resize: pending.append(operations[index])
            case .create, .rename, .unlink: pendingNames.append(operations[index])
            }
        }
        return count
    }

    /// Tells images apart; equal for two different ones as good as never.
    private static func digest(_ present: [String: Int], _ files: [[UInt8]], _ promised: Int?) -> Int {
        var hasher = Hasher()
        hasher.combine(promised)
        for (name, file) in present.sorted(by: { $0.key < $1.key }) {
            hasher.combine(name)
            hasher.combine(files[file].count)
            files[file].withUnsafeBytes { hasher.combine(bytes: $0) }
        }
        return hasher.finalize()
    }

    private static let sector = 512

    private static func units(_ operation: Operation) -> [Operation] {
        guard case .write(let file, let offset, let bytes) = operation else { return [operation] }
        return EncryptedWrites.units(offset, bytes).map { .write(file: file, offset: $0.offset, bytes: $0.bytes) }
    }

    private static func apply(_ operation: Operation, _ files: inout [[UInt8]], isLost: () -> Bool) {
        switch operation {
        case .resize(let file, let size, let cuts):
            let present = files[file].count
            if size > present { files[file].append(contentsOf: repeatElement(0, count: size - present)) }
            if cuts && size < present { files[file].removeSubrange(size...) }
        case .write(let file, let offset, let bytes):
            if offset + bytes.count > files[file].count {
                files[file].append(contentsOf: repeatElement(0, count: offset + bytes.count - files[file].count))
            }
            files[file].withUnsafeMutableBytes { target in
                bytes.withUnsafeBytes { source in
                    var position = offset
                    while position < offset + source.count {
                        let end = min((position / sector + 1) * sector, offset + source.count)
                        if !isLost() {
                            let part = UnsafeRawBufferPointer(rebasing: source[(position - offset)..<(end - offset)])
                            UnsafeMutableRawBufferPointer(rebasing: target[position..<end]).copyMemory(from: part)
                        }
                        position = end
                    }
                }
            }
        default: break
        }
    }

    private static func apply(_ operation: Operation, _ names: inout [String: Int]) {
        switch operation {
        case .create(let name, let file): names[name] = file
        case .rename(let old, let new): names[new] = names.removeValue(forKey: old)
        case .unlink(let name): names[name] = nil
        default: break
        }
    }
}
#endif
