import Foundation
import Synchronization

/// A directory that lives as long as the test that holds it, and at most as long as the process that made it: XCTest keeps the
/// instances of its test cases to the end, so what they still hold then is removed when the process exits.
public final class ScratchDirectory {
    public let path: String
    /// - Parameter inMemory: on a file system in memory, where there is one.
    public init(_ name: String = #function, inMemory: Bool = false) {
        let safe = name.prefix { $0 != "(" }.filter { $0.isLetter || $0.isNumber }
        let memory = "/dev/shm"
        let root = inMemory && FileManager.default.isWritableFile(atPath: memory) ? memory : NSTemporaryDirectory()
        path = root + "/\(safe)-\(UUID().uuidString.prefix(8))"
        try! FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
        LivingDirectories.shared.add(path)
    }
    public func file(_ name: String) -> String { path + "/" + name }
    deinit { LivingDirectories.shared.remove(path) }
}

/// The directories of this process that are still there, removed when it exits.
private final class LivingDirectories: Sendable {
    static let shared = LivingDirectories()
    private let paths = Mutex<Set<String>>([])
    private let owner = getpid()

    private init() {
        atexit { LivingDirectories.shared.removeAll() }
    }

    func add(_ path: String) {
        paths.withLock { _ = $0.insert(path) }
    }
    func remove(_ path: String) {
        paths.withLock { _ = $0.remove(path) }
        try? FileManager.default.removeItem(atPath: path)
    }
    /// A child that was forked without a new program ends with the same handlers, and leaves everything to its parent.
    private func removeAll() {
        guard getpid() == owner else { return }
        for path in paths.withLock({ $0 }) { try? FileManager.default.removeItem(atPath: path) }
    }
}

/// Where the given files lie: a copy in the package, and the shared folder beside it, which may be absent.
public enum Fixtures {
    /// The folder of the package.
    public static var packageRoot: URL { root }
    static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()
    /// Files of format 24, copied into the package.
    public static let core14 = root.appendingPathComponent("Tests/Fixtures/core14").path
    /// The shared folder beside the package or beside one of the folders above it, or nil where there is none.
    public static let shared: String? = {
        var folder = root
        while folder.path != "/" {
            folder.deleteLastPathComponent()
            let candidate = folder.appendingPathComponent("shared/fixtures").path
            if FileManager.default.fileExists(atPath: candidate) { return candidate }
        }
        return nil
    }()
    /// Files of older formats, or nil where the shared folder is absent.
    public static let older: String? = shared.map { $0 + "/older" }
}
