import Foundation
import SharedStore
import TestSupport
import XCTest

/// Opening without a session: what is no realm is refused with the error that says what it is, and no file is ever made.
final class OpenErrorTests: XCTestCase {
    private func write(_ bytes: [UInt8], _ scratch: ScratchDirectory, _ name: String = "x.realm") throws -> String {
        let path = scratch.file(name)
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        return path
    }

    private func error(_ path: String) -> OpenError? {
        do {
            _ = try ImmutableFile(path: path)
            return nil
        } catch { return error as? OpenError }
    }

    private func good(_ name: String = "many-versions") throws -> [UInt8] {
        Array(try Data(contentsOf: URL(fileURLWithPath: Fixtures.core14 + "/\(name).realm")))
    }

    func testEveryWayToBeNoRealmHasItsOwnError() throws {
        let scratch = ScratchDirectory()
        XCTAssertEqual(error(scratch.file("none")), .fileNotFound(path: scratch.file("none")))
        XCTAssertEqual(error(scratch.path), .isDirectory(path: scratch.path))
        var path = try write([], scratch)
        XCTAssertEqual(error(path), .tooSmall(path: path, size: 0, minimum: 24))
        path = try write(Array(repeating: 65, count: 23), scratch)
        XCTAssertEqual(error(path), .tooSmall(path: path, size: 23, minimum: 24))
        path = try write(Array(repeating: 65, count: 33), scratch)
        XCTAssertEqual(error(path), .oddSize(path: path, size: 33))
        path = try write(Array(repeating: 0, count: 4096), scratch)
        XCTAssertEqual(error(path), .notARealm(path: path, content: .zeros))
        path = try write(Array(String(repeating: "plain text\n", count: 80).utf8), scratch)
        XCTAssertEqual(error(path), .notARealm(path: path, content: .text))
        XCTAssertEqual(
            error(Fixtures.core14 + "/encrypted.realm"),
            .notARealm(path: Fixtures.core14 + "/encrypted.realm", content: .encrypted))
        XCTAssertEqual(mkfifo(scratch.file("fifo"), 0o600), 0)
        XCTAssertEqual(error(scratch.file("fifo")), .notARegularFile(path: scratch.file("fifo")))
        let descriptions = [.zeros, .text, .encrypted, .unknown].map { OpenError.notARealm(path: "a", content: $0).description }
        XCTAssertEqual(Set(descriptions).count, 4)
    }

    func testHeaderFaultsAreFoundInTheOrderOfTheSpecification() throws {
        let scratch = ScratchDirectory()
        // Slot 1 is live in this file.
        var bytes = try good()
        XCTAssertEqual(bytes[23] & 1, 1)
        bytes[8] |= 4
        var path = try write(bytes, scratch)
        guard case .damaged(path, let unaligned)? = error(path) else { return XCTFail("unaligned top ref") }
        XCTAssertTrue(unaligned.reason.contains("multiple of 8"))

        bytes = try good()
        bytes[8...15] = [16, 0, 0, 0, 0, 0, 0, 0]
        path = try write(bytes, scratch)
        guard case .damaged(path, let header)? = error(path) else { return XCTFail("top ref in the header") }
        XCTAssertTrue(header.reason.contains("header"))

        bytes = try good()
        bytes[8...15] = [0, 0, 0, 0, 0, 0, 0, 0x80]
        path = try write(bytes, scratch)
        XCTAssertEqual(
            error(path),
            .truncated(
                path: path, size: bytes.count, position: 0x8000_0000_0000_0000,
                what: "the top array of slot 1 (the other slot says \(other(bytes)))"))
        for format in [0, 1, 9, 12, 19, 25, 255] {
            bytes = try good()
            bytes[21] = UInt8(format)
            path = try write(bytes, scratch)
            XCTAssertEqual(error(path), .unsupportedFormat(path: path, format: format))
        }
        // What stands in the other slot does not matter.
        bytes = try good()
        for i in 0..<8 { bytes[i] = 0x33 }
        bytes[20] = 99
        path = try write(bytes, scratch)
        XCTAssertNil(error(path))
    }

    private func other(_ bytes: [UInt8]) -> UInt64 { bytes.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) } }

    func testAFileCutAtAnyPageIsRefusedAndTheErrorSaysBothSizes() throws {
        let scratch = ScratchDirectory()
        let bytes = try good()
        for size in stride(from: 4096, to: bytes.count, by: 4096) {
            let path = try write(Array(bytes[..<size]), scratch)
            let found = try XCTUnwrap(error(path), "cut to \(size)")
            XCTAssertTrue(found.description.contains(String(size)), found.description)
        }
        let streaming = try good("compact-copy")
        for size in [40, 48, 4096, streaming.count - 8] {
            let path = try write(Array(streaming[..<size]), scratch)
            XCTAssertEqual(
                error(path),
                .truncated(path: path, size: size, position: UInt64(size - 8), what: "the footer of the streaming form"))
        }
        let path = try write(Array(streaming[..<32]), scratch)
        XCTAssertEqual(error(path), .tooSmall(path: path, size: 32, minimum: 40))
    }

    func testWrongKeyNoKeyKeyOnAPlainFileAndCutFileAreFourErrors() throws {
        let scratch = ScratchDirectory()
        let good = try EncryptionKey(Data(contentsOf: URL(fileURLWithPath: Fixtures.core14 + "/encrypted.key")))
        let wrong = try EncryptionKey(Array(repeating: 7, count: 64))
        let encrypted = Fixtures.core14 + "/encrypted.realm", plain = Fixtures.core14 + "/all-types.realm"
        func found(_ path: String, _ key: EncryptionKey?) -> OpenError? {
            do {
                _ = try ImmutableFile(path: path, key: key)
                return nil
            } catch { return error as? OpenError }
        }
        XCTAssertNil(found(encrypted, good))
        XCTAssertEqual(found(encrypted, nil), .notARealm(path: encrypted, content: .encrypted))
        XCTAssertEqual(found(plain, good), .notEncrypted(path: plain))
        guard case .decryptionFailed(encrypted, 0, let wrongReason)? = found(encrypted, wrong) else {
            return XCTFail("\(String(describing: found(encrypted, wrong)))")
        }
        // Only the half that encrypts differs: every checksum fits.
        let half = try EncryptionKey(Array(repeating: 7, count: 32) + good.withBytes { Array($0[32...]) })
        guard case .decryptionFailed(encrypted, 0, let halfReason)? = found(encrypted, half) else {
            return XCTFail("\(String(describing: found(encrypted, half)))")
        }
        XCTAssertNotEqual(wrongReason, halfReason)
        let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: encrypted)))
        let cut = try write(Array(bytes[..<(bytes.count / 2 & ~4095)]), scratch)
        switch found(cut, good) {
        case .truncated?, .decryptionFailed?, .damaged?: break
        case let other: XCTFail("\(String(describing: other))")
        }
    }

    func testAFileWithoutContentHasNoTables() throws {
        let scratch = ScratchDirectory()
        var bytes = [UInt8](repeating: 0, count: 4096)
        bytes[16...19] = [0x54, 0x2D, 0x44, 0x42]
        let file = try ImmutableFile(path: write(bytes, scratch))
        XCTAssertEqual(file.group.tableCount, 0)
        XCTAssertEqual(try file.group.version(), 1)
        XCTAssertEqual(file.layout.topRef, 0)
    }

    func testOpeningLeavesNothingBesideTheFile() throws {
        // Encrypting leaves something.
        GivenFiles.key = nil
        defer { GivenFiles.key = TestKeys.usual }
        let scratch = ScratchDirectory()
        for name in try GivenFiles.core14() { _ = try GivenFiles.open(name, in: Fixtures.core14, scratch) }
        XCTAssertEqual(try GivenFiles.names(scratch.path), try GivenFiles.core14())
        XCTAssertEqual(try FileManager.default.contentsOfDirectory(atPath: scratch.path).count, try GivenFiles.core14().count)
    }

    func testAFileInAReadOnlyFolderCanBeRead() throws {
        let scratch = ScratchDirectory()
        let path = try write(try good(), scratch)
        chmod(path, 0o400)
        chmod(scratch.path, 0o500)
        defer { chmod(scratch.path, 0o700) }
        XCTAssertGreaterThan(try ImmutableFile(path: path).group.tableCount, 0)
        guard geteuid() != 0 else { return }
        chmod(path, 0)
        XCTAssertEqual(error(path), .permissionDenied(path: path, call: "open"))
    }
}
