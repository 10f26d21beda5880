import Foundation
import SystemCalls

#if DEBUG
// System calls can be intercepted in debug builds only.

/// Records what a program does to the files of one folder, and makes the folders that a power cut may leave of it.
///
/// Model: a file's content is on the disk since its last sync; of what was written since, any part may be, in sectors of 512
/// bytes. A name (made, moved, removed) is on the disk since the last sync of its folder; of later changes any may be. Reads are
/// not seen, nor is what goes through a mapping.
///
/// Faults that it never makes: changed bytes of what was synced, a sync that lies.
public final class FolderPowerCut {
    private enum Operation {
        case create(path: String, file: Int)
        case write(file: Int, offset: Int, bytes: [UInt8])
        case sync(file: Int)
        case rename(from: String, to: String)
        case unlink(String)
        case makeFolder(String)
        case removeFolder(String)
        case syncFolder(String)
        case mark(Int)
    }

    private let root: String
    private var operations: [Operation] = []
    private var openFiles: [String: Int] = [:]
    private var fileCount = 0

    /// `root` must be empty, or absent, when recording begins.
    public init(root: String) { self.root = root }

    public var operationCount: Int { operations.count }

    public func record(_ body: () throws -> Void) rethrows {
        SystemCallInterception.hook = { [self] call in
            guard call.path == root || call.path.hasPrefix(root + "/") else { return nil }
            switch call.name {
            case "open":
                // Only what is made is opened under these names.
                if call.path.hasSuffix(".part"), openFiles[call.path] == nil {
                    openFiles[call.path] = fileCount
                    operations.append(.create(path: call.path, file: fileCount))
                    fileCount += 1
                }
            case "pwrite64":
                if let file = openFiles[call.path] {
                    operations.append(.write(file: file, offset: call.offset, bytes: call.bytes.map { Array($0) } ?? []))
                }
            case "fsync", "fdatasync": operations.append(openFiles[call.path].map { .sync(file: $0) } ?? .syncFolder(call.path))
            case "rename": operations.append(.rename(from: call.source, to: call.path))
            case "unlink": operations.append(.unlink(call.path))
            case "mkdir": if !FileManager.default.fileExists(atPath: call.path) { operations.append(.makeFolder(call.path)) }
            case "rmdir":
                if (try? FileManager.default.contentsOfDirectory(atPath: call.path))?.isEmpty == true {
                    operations.append(.removeFolder(call.path))
                }
            default: break
            }
            return nil
        }
        defer { SystemCallInterception.hook = nil }
        try body()
    }

    /// Notes that everything up to here has been promised under `number`.
    public func mark(_ number: Int) { operations.append(.mark(number)) }

    /// A choice of what a cut leaves of what is not durable.
    private struct Choice {
        var random: SplitMix
        let mode: Int
        /// Mode 0 keeps everything, mode 1 nothing, others throw a coin.
        mutating func keeps() -> Bool { mode == 0 ? true : mode == 1 ? false : random.next() % 2 == 0 }
    }

    /// Calls `check` with folders after prefixes of the operations: every `step`-th, each with `variants` choices of what is
    /// left.
    /// - Returns: the number of folders.
    @discardableResult
    public func forEachFolder(
        step: Int = 1, variants: Int = 3, seed: UInt64, _ check: (_ folder: String, _ promised: Int?, _ cut: Int) throws -> Void
    ) throws -> Int {
        var count = 0
        for cut in stride(from: 0, through: operations.count, by: step) {
            for variant in 0..<variants {
                let folder = root + ".cut"
                try? FileManager.default.removeItem(atPath: folder)
                var choice = Choice(random: SplitMix(seed: seed &+ UInt64(cut * 31 + variant)), mode: variant)
                let promised = try build(folder, cut, &choice)
                try check(folder, promised, cut)
                count += 1
            }
        }
        return count
    }

    private func build(_ folder: String, _ cut: Int, _ choice: inout Choice) throws -> Int? {
        let done = operations[..<cut]
        var promised: Int?
        // Contents.
        var durable: [Int: [UInt8]] = [:], pending: [Int: [(Int, [UInt8])]] = [:]
        func put(_ content: inout [UInt8], _ offset: Int, _ bytes: ArraySlice<UInt8>) {
            if content.count < offset + bytes.count {
                content += [UInt8](repeating: 0, count: offset + bytes.count - content.count)
            }
            content.replaceSubrange(offset..<offset + bytes.count, with: bytes)
        }
        for operation in done {
            switch operation {
            case .write(let file, let offset, let bytes): pending[file, default: []].append((offset, bytes))
            case .sync(let file):
                var content = durable[file] ?? []
                for (offset, bytes) in pending[file] ?? [] { put(&content, offset, bytes[...]) }
                durable[file] = content
                pending[file] = nil
            case .mark(let number): promised = number
            default: break
            }
        }
        for (file, writes) in pending.sorted(by: { $0.key < $1.key }) {
            var content = durable[file] ?? []
            for (offset, bytes) in writes {
                for low in stride(from: 0, to: bytes.count, by: 512) where choice.keeps() {
                    put(&content, offset + low, bytes[low..<min(low + 512, bytes.count)])
                }
            }
            durable[file] = content
        }
        // Names: a change survives if its folder was synced later, or by chance.
        var syncs: [String: Int] = [:]
        for (index, operation) in done.enumerated() { if case .syncFolder(let path) = operation { syncs[path] = index } }
        func survives(_ path: String, _ index: Int) -> Bool {
            (syncs[SystemCalls.parentDirectory(of: path)] ?? -1) > index || choice.keeps()
        }
        var names: [String: Int] = [:], current: [String: Int] = [:]
        var folders: Set<String> = []
        for (index, operation) in done.enumerated() {
            switch operation {
            case .create(let path, let file):
                current[path] = file
                if survives(path, index) { names[path] = file }
            case .rename(let from, let to):
                guard let file = current.removeValue(forKey: from) else { continue }
                current[to] = file
                if survives(from, index) { names[from] = nil }
                if survives(to, index) { names[to] = file }
            case .unlink(let path):
                current[path] = nil
                if survives(path, index) { names[path] = nil }
            case .makeFolder(let path): if survives(path, index) { folders.insert(path) }
            case .removeFolder(let path): if survives(path, index) { folders.remove(path) }
            default: break
            }
        }
        let manager = FileManager.default
        try manager.createDirectory(atPath: folder, withIntermediateDirectories: true)
        func place(_ path: String) -> String { folder + path.dropFirst(root.count) }
        for path in folders.sorted() where path != root {
            // A folder whose own folder was lost is lost too.
            try? manager.createDirectory(atPath: place(path), withIntermediateDirectories: false)
        }
        for (path, file) in names { _ = manager.createFile(atPath: place(path), contents: Data(durable[file] ?? [])) }
        return promised
    }
}
#endif
