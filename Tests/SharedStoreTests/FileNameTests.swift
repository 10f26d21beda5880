import Foundation
import Glibc
import TestSupport
import XCTest

@testable import SharedStore

/// One file is one database, whatever the name it is opened by, and stays as private as it is.
final class FileNameTests: XCTestCase {
    private let scratch = ScratchDirectory("FileNames")
    private var path: String { scratch.file("a.realm") }
    private var link: String { scratch.file("link.realm") }

    override func setUpWithError() throws {
        for name in [path, link] { try? FileManager.default.removeItem(atPath: name) }
        try TestKeys.copy(Fixtures.core14 + "/relationships.realm", to: path)
        XCTAssertEqual(symlink("a.realm", link), 0)
    }

    private func open(_ path: String) throws -> Store {
        var options = StoreOptions()
        options.encryptionKey = TestKeys.usual
        return try Store.open(path, options)
    }

    private func mode() throws -> UInt16 {
        try XCTUnwrap(FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? NSNumber).uint16Value
    }

    private func isLink() -> Bool { (try? FileManager.default.destinationOfSymbolicLink(atPath: link)) == "a.realm" }

    func testAFileAndALinkToItHaveOneSession() throws {
        let one = try open(path), other = try open(link)
        try one.write { try $0.editor.createTable("first").addColumn("n", .int) }
        try other.write { try $0.editor.createTable("second").addColumn("n", .int) }
        XCTAssertEqual(try one.newestVersion(), try other.newestVersion())
        XCTAssertEqual(try one.status()?.participantCount, 2)
        XCTAssertFalse(try one.compact(), "the other has it open")
        for store in [one, other] { try store.close() }
        let names = try FileManager.default.contentsOfDirectory(atPath: scratch.path).filter { $0.hasPrefix("link.realm") }
        XCTAssertEqual(names, ["link.realm"])
        let group = try ImmutableFile(path: path, key: TestKeys.usual).group
        XCTAssertNotNil(try group.table(named: "first"))
        XCTAssertNotNil(try group.table(named: "second"))
    }

    func testALinkToNothingMakesTheFileItStandsForAndAChainOfLinksIsFollowed() throws {
        XCTAssertEqual(symlink(scratch.file("new.realm"), scratch.file("one")), 0)
        XCTAssertEqual(symlink("one", scratch.file("two")), 0)
        try open(scratch.file("two")).close()
        XCTAssertTrue(FileManager.default.fileExists(atPath: scratch.file("new.realm.lock")))
        XCTAssertEqual(symlink("round", scratch.file("round")), 0)
        XCTAssertThrowsError(try open(scratch.file("round")))
    }

    func testCompactionAndChangeOfKeyKeepTheLinkAndTheMode() throws {
        XCTAssertEqual(chmod(path, 0o600), 0)
        let store = try open(link)
        XCTAssertTrue(try store.compact())
        try store.close()
        XCTAssertTrue(isLink())
        XCTAssertEqual(try mode(), 0o600)
        let key = try EncryptionKey((0..<64).map { UInt8($0 * 2) })
        try StoreFiles.changeKey(link, from: TestKeys.usual, to: key)
        XCTAssertTrue(isLink())
        XCTAssertEqual(try mode(), 0o600)
        XCTAssertNotNil(try ImmutableFile(path: path, key: key))
    }

    func testDeletingByALinkDeletesBothNames() throws {
        try open(link).close()
        XCTAssertTrue(try StoreFiles.delete(link))
        XCTAssertFalse(FileManager.default.fileExists(atPath: path))
        XCTAssertFalse(isLink())
    }
}
