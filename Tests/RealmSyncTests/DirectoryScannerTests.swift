import Foundation
import SystemCalls
import TestSupport
import XCTest

@testable import realm_sync

/// What is found in a folder, whatever else lies there.
final class DirectoryScannerTests: XCTestCase {
    private let scratch = ScratchDirectory("Scanner", inMemory: true)
    private var folder: String { scratch.file("app") }

    private func put(_ path: String, _ text: String = "x") throws {
        let path = folder + "/" + path
        try FileManager.default.createDirectory(
            atPath: (path as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
        try Data(text.utf8).write(to: URL(fileURLWithPath: path))
    }

    private func specification(excludes: [String] = []) -> DirectorySpecification {
        var specification = DirectorySpecification(
            name: "app", folder: folder, template: StreamSpecification(name: "app", source: "", target: .file("/out")))
        specification.isRecursive = true
        specification.excludes = excludes
        return specification
    }

    private func look(_ scanner: DirectoryScanner) throws -> (paths: [String], errors: [String]) {
        let found = try scanner.scan()
        return (found.paths.map(\.text).sorted(), found.errors)
    }

    func testAFolderThatCannotBeReadKeepsNothingElseFromBeingFoundAndItsOwnFilesStay() throws {
        for path in ["a.realm", "lost+found/secret.realm", "z/b.realm"] { try put(path) }
        let refused = folder + "/lost+found"
        let isReadable = Flag()
        let changes = DispatchSemaphore(value: 0)
        var quick = specification()
        quick.scanInterval = .milliseconds(20)
        let scanner = try DirectoryScanner(
            quick, outputs: [],
            list: { path in
                if path == refused, !isReadable.value { throw SystemError(call: "opendir", code: EACCES, path: path) }
                return try SystemCalls.names(inDirectory: path)
            }, onChange: { changes.signal() })
        var (paths, errors) = try look(scanner)
        XCTAssertEqual(paths, ["a.realm", "z/b.realm"])
        XCTAssertEqual(errors.count, 1)
        XCTAssertTrue(errors[0].contains("lost+found"), errors[0])
        // What was known of the folder while it could be read stays known.
        isReadable.value = true
        try scanner.start()
        defer { scanner.stop() }
        XCTAssertEqual(changes.wait(timeout: .now() + TestTime.limit(20)), .success)
        XCTAssertEqual(scanner.found.paths?.map(\.text).sorted(), ["a.realm", "lost+found/secret.realm", "z/b.realm"])
        isReadable.value = false
        XCTAssertEqual(changes.wait(timeout: .now() + TestTime.limit(20)), .success)
        XCTAssertEqual(scanner.found.paths?.map(\.text).sorted(), ["a.realm", "lost+found/secret.realm", "z/b.realm"])
        XCTAssertEqual(scanner.found.errors, errors)
        // Who does not want to hear of it leaves it out.
        (paths, errors) = try look(
            try DirectoryScanner(
                specification(excludes: ["lost+found"]), outputs: [],
                list: { path in
                    XCTAssertNotEqual(path, refused)
                    return try SystemCalls.names(inDirectory: path)
                }, onChange: {}))
        XCTAssertEqual(paths, ["a.realm", "z/b.realm"])
        XCTAssertEqual(errors, [])
    }

    func testNamesThatNoStreamCanHaveAreToldAndTheOthersAreFound() throws {
        for path in ["with blank.realm", "größe 漢字.realm", "quote\"'.realm", "-rf.realm", "$(x).realm", "two\nlines.realm"] {
            try put(path)
        }
        // Bytes that are no text.
        XCTAssertEqual(close(open(folder + "/a", O_CREAT | O_WRONLY, 0o600)), 0)
        let odd: [UInt8] = Array((folder + "/bad").utf8) + [0xFF, 0xFE] + Array(".realm".utf8) + [0]
        let renamed = odd.withUnsafeBufferPointer { buffer in
            buffer.withMemoryRebound(to: CChar.self) { $0.baseAddress.map { rename(folder + "/a", $0) } }
        }
        XCTAssertEqual(renamed, 0)
        let (paths, errors) = try look(try DirectoryScanner(specification(), outputs: [], onChange: {}))
        XCTAssertEqual(
            paths, ["$(x).realm", "-rf.realm", "größe 漢字.realm", "quote\"'.realm", "with blank.realm"].sorted())
        XCTAssertEqual(errors.count, 1)
        XCTAssertTrue(errors[0].contains(" and one other") && !errors[0].contains("\n"), errors[0])
        let (_, none) = try look(
            try DirectoryScanner(specification(excludes: ["two*", "bad*"]), outputs: [], onChange: {}))
        XCTAssertEqual(none, [])
    }

    private final class Flag: @unchecked Sendable {
        // Sendable: behind the lock.
        private let lock = NSLock()
        private var stored = false
        var value: Bool {
            get { lock.withLock { stored } }
            set { lock.withLock { stored = newValue } }
        }
    }
}
