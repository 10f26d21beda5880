import Foundation
import SharedStore
import TestSupport
import XCTest

/// The files that other software wrote, as tests see them: a name, the path of a private copy, and the JSON beside it.
enum GivenFiles {
    /// Names of the unencrypted files of format 24.
    static func core14() throws -> [String] {
        try names(Fixtures.core14).filter { !$0.contains("encrypted") }
    }

    /// Folder and names of the files of older formats; skips the test where the shared folder is absent.
    static func older() throws -> (folder: String, names: [String]) {
        guard let folder = Fixtures.older else {
            throw XCTSkip(
                "the folder shared/fixtures with the files of older formats is not beside the package; nothing was tested")
        }
        return (folder, try names(folder))
    }

    /// Files without JSON are those that must be refused for local opening; they can be read all the same.
    static func names(_ folder: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.hasSuffix(".realm") }.map {
            String($0.dropLast(6))
        }.sorted()
    }

    /// Files are read encrypted with this key; nil: as they are.
    nonisolated(unsafe) static var key = TestKeys.usual

    /// Copies the file into `scratch`, encrypts the copy if there is a key, and opens it.
    static func open(_ name: String, in folder: String, _ scratch: ScratchDirectory) throws -> ImmutableFile {
        let copy = scratch.file(name + ".realm")
        try FileManager.default.copyItem(atPath: folder + "/" + name + ".realm", toPath: copy)
        if let key { try StoreFiles.changeKey(copy, from: nil, to: key) }
        return try ImmutableFile(path: copy, key: key)
    }
}
