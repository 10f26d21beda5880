import Foundation
import SharedStore
import TestSupport
import XCTest

/// Files that other software wrote keep every rule: the verifier and the documents agree with the world.
final class VerifierFixtureTests: XCTestCase {
    private func plainFiles() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: Fixtures.core14)
            .filter { $0.hasSuffix(".realm") && !$0.contains("encrypted") }.sorted()
    }

    func testFilesOfTheCurrentFormatHaveNoErrors() throws {
        let names = try plainFiles()
        XCTAssertGreaterThan(names.count, 8)
        for name in names {
            let report = try DamagedFile(Fixtures.core14 + "/" + name).verify()
            XCTAssertTrue(report.isSound, "\(name): \(report.findings)")
            XCTAssertEqual(report.leakedByteCount, 0, name)
            XCTAssertGreaterThan(report.nodeCount, 10, name)
        }
    }

    func testFilesOfOlderFormatsHaveNoErrors() throws {
        guard let older = Fixtures.older else { throw XCTSkip("the folder of older files is absent") }
        for name in try FileManager.default.contentsOfDirectory(atPath: older).filter({ $0.hasSuffix(".realm") }).sorted() {
            let report = try DamagedFile(older + "/" + name).verify()
            XCTAssertTrue(report.isSound, "\(name): \(report.findings)")
        }
    }

    func testEncryptedFilesHaveNoErrors() throws {
        let key = try EncryptionKey.read(file: Fixtures.core14 + "/encrypted.key", allowReadableByOthers: true)
        for name in ["encrypted", "compact-copy-encrypted"] {
            let report = try Verifier.verify(ImmutableFile(path: Fixtures.core14 + "/\(name).realm", key: key))
            XCTAssertTrue(report.isSound, "\(name): \(report.findings)")
            XCTAssertEqual(report.leakedByteCount, 0, name)
            XCTAssertGreaterThan(report.objectCount, 5, name)
        }
    }

    func testADamagedPageOfAnEncryptedFileIsAFinding() throws {
        let key = try EncryptionKey.read(file: Fixtures.core14 + "/encrypted.key", allowReadableByOthers: true)
        let scratch = ScratchDirectory()
        let path = scratch.file("damaged.realm")
        var bytes = try Data(contentsOf: URL(fileURLWithPath: Fixtures.core14 + "/encrypted.realm"))
        // One bit of the third page of ciphertext.
        bytes[4096 + 2 * 4096 + 100] ^= 1
        try bytes.write(to: URL(fileURLWithPath: path))
        let report = try Verifier.verify(ImmutableFile(path: path, key: key))
        XCTAssertTrue(report.errorCodes.contains(.nodeUnreadable), "\(report.findings)")
    }

    func testCountsAreThoseOfTheReaders() throws {
        let names = try plainFiles()
        for name in names {
            let file = try ImmutableFile(path: Fixtures.core14 + "/" + name)
            let report = try Verifier.verify(file)
            let tables = try file.group.tables()
            XCTAssertEqual(report.tableCount, tables.count, name)
            XCTAssertEqual(report.objectCount, tables.reduce(0) { $0 + $1.objectCount }, name)
            var links = 0
            for table in tables {
                for column in table.backlinkColumns {
                    try table.forEachObject { links += try $0.backlinkCount(column) }
                }
            }
            XCTAssertEqual(report.linkCount, links, name)
        }
    }

    func testOldOrderOfStringsIsAWarningInOlderFormats() throws {
        guard let older = Fixtures.older else { throw XCTSkip("the folder of older files is absent") }
        let report = try DamagedFile(older + "/upgrade_1000_23.realm").verify()
        XCTAssertTrue(report.codes.isSuperset(of: [.indexListOrder, .setOrder, .treeNodeCount]))
        XCTAssertEqual(report.errorCount, 0)
    }

    func testAFileThatWasNeverCommittedToIsSound() throws {
        let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: 4096, alignment: 16)
        defer { bytes.deallocate() }
        bytes.initializeMemory(as: UInt8.self, repeating: 0)
        FileHeader().store(to: bytes.baseAddress!)
        let report = try Verifier.verify(file: bytes)
        XCTAssertTrue(report.isSound, "\(report.findings)")
        XCTAssertEqual(report.nodeCount, 0)
    }

    func testAnEmptyFileIsAFinding() throws {
        XCTAssertEqual(try Verifier.verify(file: UnsafeMutableRawBufferPointer(start: nil, count: 0)).errorCodes, [.headerSize])
    }
}
