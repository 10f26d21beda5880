import Foundation

/// A directory that lives as long as the test.
public final class ScratchDirectory {
    public let path: String
    /// - Parameter inMemory: on a file system in memory, where there is one.
    public init(_ name: String = #function, inMemory: Bool = false) {
        let safe = name.prefix { $0 != "(" }.filter { $0.isLetter || $0.isNumber }
        let memory = "/dev/shm"
        let root = inMemory && FileManager.default.isWritableFile(atPath: memory) ? memory : NSTemporaryDirectory()
        path = root + "/\(safe)-\(UUID().uuidString.prefix(8))"
        try! FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }
    public func file(_ name: String) -> String { path + "/" + name }
    deinit { try? FileManager.default.removeItem(atPath: path) }
}

/// Where the given files lie: a copy in the package, and the shared folder beside it, which may be absent.
public enum Fixtures {
    /// The folder of the package.
    public static var packageRoot: URL { root }
    static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
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
