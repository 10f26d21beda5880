import Foundation
import Glibc
import TestSupport
import XCTest

/// The command under circumstances that its user did not choose.
final class OddCircumstanceTests: XCTestCase {
    private let scratch = ScratchDirectory("OddCircumstances")
    private var path: String { scratch.file("a.realm") }

    override func setUpWithError() throws {
        try? FileManager.default.removeItem(atPath: path)
        try FileManager.default.copyItem(atPath: Fixtures.core14 + "/relationships.realm", toPath: path)
    }

    private func shell(_ line: String, _ arguments: String...) throws -> (code: Int32?, output: String, errors: String) {
        let child = try ChildProcess(
            path: "/bin/sh", ["-c", line, "sh", ChildProcess.products.appendingPathComponent("realm-sync").path] + arguments)
        let code = child.waitForEnd(seconds: 60)
        return (code, child.output, child.errors)
    }

    func testClosedStandardDescriptorsAreNeverTakenByAFile() throws {
        for closed in [">&-", "<&- >&-", "2>&-", "<&- >&- 2>&-"] {
            for command in ["status", "export", "schema"] {
                XCTAssertEqual(try shell("exec \"$1\" \"$2\" \"$3\" \(closed)", command, path).code, 0, "\(command) \(closed)")
            }
        }
        XCTAssertEqual(try shell("exec \"$1\" compact \"$2\" <&- >&- 2>&-", path).code, 0)
        XCTAssertEqual(try RealmSync("verify", path).exitCode, 0)
        XCTAssertEqual(try shell("exec \"$1\" import - \"$2\" <&-", scratch.file("x.realm")).code, 65)
    }

    func testAFileThatIsCutWhileItIsReadEndsTheCommandWithOneLine() throws {
        let big = scratch.file("big.realm")
        try FileManager.default.copyItem(atPath: Fixtures.core14 + "/big.realm", toPath: big)
        // The reader of the pipe reads nothing until the file is cut.
        let (code, _, errors) = try shell(
            "{ \"$1\" export \"$2\" --immutable; echo \"code $?\" >&2; } | { sleep 1; : > \"$2\"; cat >/dev/null; }", big)
        XCTAssertEqual(code, 0)
        XCTAssertTrue(errors.contains("code 74") || errors.contains("code 65"), errors)
        XCTAssertTrue(errors.contains("realm-sync: "), errors)
    }

    func testCompactionLeavesOlderFormatsEmptyFilesAndMirrorsAsTheyAre() throws {
        let empty = scratch.file("empty.realm")
        XCTAssertTrue(FileManager.default.createFile(atPath: empty, contents: nil))
        let refused = try RealmSync("compact", empty)
        XCTAssertEqual(refused.exitCode, 65, refused.errors)
        XCTAssertEqual(try Data(contentsOf: URL(fileURLWithPath: empty)), Data())
        let mirror = scratch.file("m.realm"), key = scratch.file("key")
        XCTAssertEqual(try RealmSync("mirror", "--once", path, mirror).exitCode, 0)
        XCTAssertEqual(try RealmSync("keygen", key).exitCode, 0)
        XCTAssertEqual(try RealmSync("compact", mirror).exitCode, 77)
        XCTAssertEqual(try RealmSync("encrypt", mirror, "--key-file", key).exitCode, 77)
        XCTAssertEqual(try RealmSync("mirror", "--once", path, mirror).exitCode, 0)
    }

    func testAnOlderFormatIsMirroredOnceAndNotCompacted() throws {
        let folder = try present(Fixtures.older)
        for name in try FileManager.default.contentsOfDirectory(atPath: folder).filter({ $0.hasSuffix(".realm") }).sorted() {
            let source = scratch.file(name), mirror = scratch.file("mirror-\(name)")
            try FileManager.default.copyItem(atPath: folder + "/" + name, toPath: source)
            let result = try RealmSync("mirror", "--once", source, mirror)
            XCTAssertEqual(result.exitCode, 0, "\(name): \(result.errors)")
            XCTAssertEqual(try RealmSync("export", mirror).output, try RealmSync("export", source).output, name)
        }
        let first = try XCTUnwrap(
            FileManager.default.contentsOfDirectory(atPath: folder).filter { $0.hasPrefix("upgrade_") && $0.hasSuffix(".realm") }
                .sorted().first)
        let before = try Data(contentsOf: URL(fileURLWithPath: scratch.file(first)))
        let refused = try RealmSync("compact", scratch.file(first))
        XCTAssertEqual(refused.exitCode, 65)
        XCTAssertTrue(refused.errors.contains("realm-sync upgrade"), refused.errors)
        XCTAssertEqual(try Data(contentsOf: URL(fileURLWithPath: scratch.file(first))), before)
    }

    private func present(_ folder: String?) throws -> String {
        guard let folder else { throw XCTSkip("the shared fixtures are not here") }
        return folder
    }

    func testMirroringOnceToAMachineWithoutAServerEnds() throws {
        let secret = scratch.file("secret")
        try Data("name:00112233445566778899aabbccddeeff\n".utf8).write(to: URL(fileURLWithPath: secret))
        XCTAssertEqual(chmod(secret, 0o600), 0)
        let port = freePort()
        for (source, destination) in [
            (path, "realm://127.0.0.1:\(port)/x"), ("realm://127.0.0.1:\(port)/x", scratch.file("pull.realm")),
        ] {
            let result = try RealmSync("mirror", "--once", source, destination, "--psk-file", secret)
            XCTAssertEqual(result.exitCode, 75, result.errors)
            XCTAssertTrue(result.errors.contains("cannot be reached"), result.errors)
        }
    }

    /// A port that nobody listens at: one that was just given out and is held by nobody.
    private func freePort() -> UInt16 {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        return withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                XCTAssertEqual(bind(descriptor, $0, length), 0)
                XCTAssertEqual(getsockname(descriptor, $0, &length), 0)
            }
            return UInt16(bigEndian: $0.pointee.sin_port)
        }
    }

    func testAUserWhoMayNotJoinALiveSessionGetsNoMirrorOfIt() throws {
        try XCTSkipUnless(geteuid() == 0, "only the superuser can become somebody else")
        let peer = try TestProcess()
        XCTAssertTrue(peer.ask("open \(path) create=0").hasPrefix("ok"))
        XCTAssertEqual(chmod(path + ".lock", 0o600), 0)
        let folder = scratch.file("theirs")
        XCTAssertEqual(mkdir(folder, 0o777), 0)
        XCTAssertEqual(chmod(folder, 0o777), 0)
        let nobody = "exec setpriv --reuid=65534 --regid=65534 --clear-groups \"$1\""
        try XCTSkipUnless(try shell("\(nobody) --version").code == 0, "the program lies where others may not run it")
        let result = try shell("\(nobody) mirror --once \"$2\" \"$3\"", path, folder + "/m.realm")
        XCTAssertEqual(result.code, 77, result.errors)
        XCTAssertFalse(FileManager.default.fileExists(atPath: folder + "/m.realm"))
        let status = try shell("\(nobody) status \"$2\"", path)
        XCTAssertTrue(status.output.contains("could not be joined"), status.output + status.errors)
    }
}
