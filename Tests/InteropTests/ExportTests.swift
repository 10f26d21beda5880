import Foundation
import SharedStore
import TestSupport
import XCTest

/// The export of every given file says what the program that wrote it says.
class ExportTests: XCTestCase {
    private func given(_ name: String, _ folder: String) throws -> ExactJSON {
        try ExactJSON(parsing: Data(contentsOf: URL(fileURLWithPath: folder + "/" + name + ".json")))
    }

    private func exported(_ file: ImmutableFile, _ style: JSONExporter.Style = .compact) throws -> ExactJSON {
        try ExactJSON(parsing: JSONExporter.text(file.group, style: style))
    }

    func testExportOfEveryFileOfFormat24EqualsTheGivenJSONInOrder() throws {
        let scratch = ScratchDirectory()
        var compared = 0
        for name in try GivenFiles.core14() {
            let file = try GivenFiles.open(name, in: Fixtures.core14, scratch)
            let difference = try exported(file).firstDifference(given(name, Fixtures.core14))
            XCTAssertNil(difference, "\(name): ours and the given value: \(difference ?? "")")
            compared += 1
        }
        XCTAssertEqual(compared, 10)
    }

    func testExportOfEveryOlderFileEqualsTheGivenJSONButForTheOrderInSetsAndDictionaries() throws {
        let (folder, names) = try GivenFiles.older()
        let scratch = ScratchDirectory()
        var compared: [Int: Int] = [:]
        for name in names where FileManager.default.fileExists(atPath: folder + "/\(name).json") {
            let file = try GivenFiles.open(name, in: folder, scratch)
            // The columns that hold sets: their arrays have no common order.
            let sets = Set(
                try file.group.tables().flatMap { table in
                    table.publicColumns.filter { $0.collection == .set }.map { table.name(of: $0) }
                })
            let ours = try exported(file).withSortedArrays(under: sets)
            let difference = try ours.firstDifference(given(name, folder).withSortedArrays(under: sets))
            XCTAssertNil(difference, "\(name): ours and the given value: \(difference ?? "")")
            compared[file.layout.format, default: 0] += 1
        }
        for format in [10, 11, 20, 22, 23] { XCTAssertNotNil(compared[format], "no file of format \(format) was compared") }
    }

    func testAFileOfASyncClientCanBeRead() throws {
        let (folder, _) = try GivenFiles.older()
        let scratch = ScratchDirectory()
        let file = try GivenFiles.open("sync-client-history-refuse", in: folder, scratch)
        XCTAssertEqual(try file.group.historyType(), 3)
        XCTAssertNotNil(try exported(file)["schemaVersion"])
    }

    func testExportOfTheEncryptedFilesEqualsTheGivenJSON() throws {
        let key = try EncryptionKey(Data(contentsOf: URL(fileURLWithPath: Fixtures.core14 + "/encrypted.key")))
        for name in ["encrypted", "compact-copy-encrypted"] {
            let file = try ImmutableFile(path: Fixtures.core14 + "/\(name).realm", key: key)
            let difference = try exported(file).firstDifference(given(name, Fixtures.core14))
            XCTAssertNil(difference, "\(name): ours and the given value: \(difference ?? "")")
        }
    }

    func testExportOfTheFileForQueriesEqualsTheGivenJSON() throws {
        guard let shared = Fixtures.shared else {
            throw XCTSkip("the folder shared/fixtures is not beside the package; nothing was tested")
        }
        let file = try GivenFiles.open("people", in: shared + "/queries", ScratchDirectory())
        let difference = try exported(file).firstDifference(given("people", shared + "/queries"))
        XCTAssertNil(difference, "ours and the given value: \(difference ?? "")")
    }

    func testBothStylesSayTheSame() throws {
        let scratch = ScratchDirectory()
        for name in ["all-types", "relationships", "nested-mixed"] {
            let file = try GivenFiles.open(name, in: Fixtures.core14, scratch)
            XCTAssertNil(try exported(file, .lines).firstDifference(exported(file)))
            XCTAssertFalse(try JSONExporter.text(file.group).contains(10))
            XCTAssertTrue(try JSONExporter.text(file.group, style: .lines).contains(10))
        }
    }

    func testTheTextIsHandedOnInPiecesAndASinkThatFailsEndsTheExport() throws {
        struct Full: Error {}
        let scratch = ScratchDirectory()
        let file = try GivenFiles.open("trees", in: Fixtures.core14, scratch)
        var pieces: [Int] = []
        try JSONExporter.export(file.group) { pieces.append($0.count) }
        XCTAssertGreaterThan(pieces.count, 10)
        XCTAssertLessThan(try XCTUnwrap(pieces.max()), 256 * 1024)
        var calls = 0
        XCTAssertThrowsError(
            try JSONExporter.export(file.group) { _ in
                calls += 1
                if calls == 3 { throw Full() }
            }
        ) { XCTAssertTrue($0 is Full) }
        XCTAssertEqual(calls, 3)
    }
}

/// The same over files that we have encrypted.
final class EncryptedExportTests: ExportTests {
    override func setUp() { GivenFiles.key = TestKeys.test }
    override func tearDown() { GivenFiles.key = TestKeys.usual }

    // A class with a test of its own is found by the test runner, and with it those that it inherits.
    func testTheFilesAreEncrypted() { XCTAssertNotNil(GivenFiles.key) }
}
