import Foundation
import Glibc
import TestSupport
import XCTest

@testable import SharedStore

/// What becomes of an encrypted file that somebody damaged: an error that says so, or a version that was committed. Never other
/// data.
///
/// No tag covers the counters, but they are told from damaged ones: the first one is 1, and each follows the one before. What the
/// format cannot notice is left out: both counters changed to others that follow each other.
///
/// With REALM_TEST_EXHAUSTIVE in the environment every bit is flipped; else every bit of the metadata in use and a sample of the
/// pages.
final class EncryptedDamageTests: XCTestCase {
    private static let keyBytes = (0..<64).map { UInt8(truncatingIfNeeded: 11 * $0 + 3) }
    private var scratch: ScratchDirectory!
    private var key: EncryptionKey!
    private var path: String { scratch.file("damaged.realm") }
    /// The good file after each commit, and what each exports.
    private var states: [[UInt8]] = []
    private var exports: [[UInt8]] = []
    private var good: [UInt8] { states.last ?? [] }

    override func setUpWithError() throws {
        scratch = ScratchDirectory("EncryptedDamage")
        key = try EncryptionKey(Self.keyBytes)
        states = []
        exports = []
        let source = scratch.file("good.realm")
        var options = StoreOptions()
        options.encryptionKey = key
        let store = try Store.open(source, options)
        for round in 0..<4 {
            try store.write {
                let group = $0.editor
                if round == 0 {
                    let table = try group.createTable("class_Thing")
                    try table.addPrimaryKeyColumn("id", .int)
                    try table.addColumn("text", .string)
                    try table.addColumn("others", .link, .list, target: table.table.key)
                }
                let table = try group.editor(named: "class_Thing")
                for i in 0..<12 {
                    let (key, _) = try table.createObject(primaryKey: .int(Int64(round * 8 + i)))
                    try table.set("text", of: key, to: .string(String(repeating: "text \(i) of round \(round). ", count: 4)))
                    try table.listInsert(table.identity(table.column(named: "others"), of: key), 0, .link(table.table.key, key))
                }
            }
            let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: source)))
            states.append(bytes)
            exports.append(try JSONExporter.text(ImmutableFile(path: source, key: key).group))
        }
        try store.close()
        XCTAssertEqual(Set(exports).count, 4)
    }

    override func tearDown() { (scratch, key) = (nil, nil) }

    private enum Outcome: Equatable {
        case version(Int)
        case error(String)
        case wrongData
    }

    private func write(_ bytes: [UInt8]) throws {
        // In place: a new file for each try would take most of the time.
        let descriptor = Glibc.open(path, O_RDWR | O_CREAT | O_TRUNC, 0o600)
        defer { Glibc.close(descriptor) }
        XCTAssertEqual(Glibc.write(descriptor, bytes, bytes.count), bytes.count)
    }

    /// Changes some bytes of the damaged file in place.
    private func patch(_ position: Int, _ byte: UInt8) {
        let descriptor = Glibc.open(path, O_RDWR)
        defer { Glibc.close(descriptor) }
        var byte = byte
        XCTAssertEqual(pwrite(descriptor, &byte, 1, position), 1)
    }

    private func outcome() throws -> Outcome {
        do {
            let file = try ImmutableFile(path: path, key: key)
            let text = try JSONExporter.text(file.group)
            return exports.lastIndex(of: text).map(Outcome.version) ?? .wrongData
        } catch {
            XCTAssertTrue(error is OpenError || error is DecryptionError || error is FormatError, "\(error)")
            XCTAssertTrue("\(error)".contains(error is FormatError ? "" : path), "\(error)")
            return .error("\(error)")
        }
    }

    private func outcome(_ bytes: [UInt8]) throws -> Outcome {
        try write(bytes)
        return try outcome()
    }

    private var pageCount: Int { PageGeometry.plainSize(fileSize: good.count) / 4096 }

    // MARK: Bits

    func testAFlippedBitAnywhereIsNoticedOrDoesNotMatter() throws {
        XCTAssertEqual(try outcome(good), .version(3))
        XCTAssertLessThan(pageCount, 30, "the file should be small")
        let isExhaustive = getenv("REALM_TEST_EXHAUSTIVE") != nil
        var seen: [String: Int] = [:]
        func flip(_ position: Int, _ bit: Int) throws {
            patch(position, good[position] ^ 1 << bit)
            let found = try outcome()
            patch(position, good[position])
            switch found {
            case .version(3): seen["unharmed", default: 0] += 1
            case .error: seen["error", default: 0] += 1
            case .version(let version): XCTFail("bit \(bit) of byte \(position): version \(version)")
            case .wrongData: XCTFail("bit \(bit) of byte \(position): data that was never there")
            }
        }
        for page in 0..<pageCount {
            let entry = PageGeometry.entryPosition(page: page)
            // The counters bit by bit, the tags by one bit of each byte.
            for byte in 0..<64 {
                for bit in isExhaustive || byte % 36 < 4 ? Array(0..<8) : [byte % 8] { try flip(entry + byte, bit) }
            }
            let data = PageGeometry.filePosition(page << 12)
            for byte in stride(from: 0, to: min(4096, good.count - data), by: isExhaustive ? 1 : 97) {
                for bit in isExhaustive ? Array(0..<8) : [byte % 8] { try flip(data + byte, bit) }
            }
        }
        XCTAssertGreaterThan(seen["error"] ?? 0, 100, "\(seen)")
    }

    // MARK: Pages

    private func replacing(_ parts: [(Int, ArraySlice<UInt8>)]) -> [UInt8] {
        var bytes = good
        for (position, part) in parts where position + part.count <= bytes.count {
            bytes.replaceSubrange(position..<position + part.count, with: part)
        }
        return bytes
    }

    private func data(_ page: Int, of state: [UInt8]) -> ArraySlice<UInt8> {
        let at = PageGeometry.filePosition(page << 12)
        return at + 4096 <= state.count ? state[at..<at + 4096] : []
    }

    private func entry(_ page: Int, of state: [UInt8]) -> ArraySlice<UInt8> {
        let at = PageGeometry.entryPosition(page: page)
        return at + 64 <= state.count ? state[at..<at + 64] : []
    }

    func testSwappedPagesAreNoticedWithAndWithoutTheirEntries() throws {
        for a in 0..<pageCount {
            for b in 0..<a {
                let pages = [
                    (PageGeometry.filePosition(a << 12), data(b, of: good)),
                    (PageGeometry.filePosition(b << 12), data(a, of: good)),
                ]
                let entries = [
                    (PageGeometry.entryPosition(page: a), entry(b, of: good)),
                    (PageGeometry.entryPosition(page: b), entry(a, of: good)),
                ]
                for parts in [pages, entries, pages + entries] {
                    let found = try outcome(replacing(parts))
                    if found == .version(3) { continue }  // neither page is in use
                    guard case .error = found else {
                        XCTFail("pages \(a) and \(b): \(found)")
                        continue
                    }
                }
            }
        }
    }

    func testAPageRolledBackIsNoticedOrGivesAnOlderVersion() throws {
        var older = 0
        for (age, state) in states.dropLast().enumerated() {
            for page in 0..<pageCount where !data(page, of: state).isEmpty {
                let place = PageGeometry.filePosition(page << 12)
                // The data alone: two states back no seal of the entry fits it any more.
                for parts in [
                    [(place, data(page, of: state))],
                    [(place, data(page, of: state)), (PageGeometry.entryPosition(page: page), entry(page, of: state))],
                ] {
                    switch try outcome(replacing(parts)) {
                    case .version(3), .error: break
                    case .version: older += 1
                    case .wrongData: XCTFail("page \(page) of state \(age)")
                    }
                }
            }
        }
        // The header's page with its entry: the version that it shows was not overwritten by the next commit.
        let header = [
            (PageGeometry.filePosition(0), data(0, of: states[2])),
            (PageGeometry.entryPosition(page: 0), entry(0, of: states[2])),
        ]
        if case .wrongData = try outcome(replacing(header)) { XCTFail("the header rolled back by one commit") }
        print("older versions shown: \(older)")
    }

    func testATruncatedFileIsNoticed() throws {
        for count in Array(stride(from: 0, to: good.count, by: 4096)) + [1, 23, 24, 4097, 8191, good.count - 1, good.count - 8] {
            switch try outcome(Array(good[..<count])) {
            case .version(3) where count + 4096 >= good.count: break
            case .error: break
            case let found: XCTFail("\(count) of \(good.count) bytes: \(found)")
            }
        }
    }

    // MARK: In a session

    /// Who opens a damaged file for writing, and writes, ends with an error or with a version that was committed: damage is never
    /// sealed.
    func testWritingToADamagedFileNeverMakesWrongDataOfIt() throws {
        var damaged: [(String, [UInt8])] = []
        for page in 0..<pageCount {
            let place = PageGeometry.filePosition(page << 12), entry = PageGeometry.entryPosition(page: page)
            for offset in [0, 2048, 4095] where place + offset < good.count {
                damaged.append(("bit of page \(page) at \(offset)", replacing([(place + offset, [good[place + offset] ^ 16])])))
            }
            for offset in [0, 5, 36] {
                damaged.append(("bit of entry \(page) at \(offset)", replacing([(entry + offset, [good[entry + offset] ^ 2])])))
            }
            damaged.append(("page \(page) of zeros", replacing([(place, ArraySlice([UInt8](repeating: 0, count: 4096)))])))
            damaged.append(("entry \(page) of zeros", replacing([(entry, ArraySlice([UInt8](repeating: 0, count: 64)))])))
            damaged.append(("page \(page) rolled back", replacing([(place, data(page, of: states[1]))])))
            damaged.append(("page \(page) swapped", replacing([(place, data((page + 1) % pageCount, of: good))])))
            damaged.append(("cut at page \(page)", Array(good[..<min(place, good.count)])))
        }
        var options = StoreOptions()
        options.encryptionKey = key
        options.durability = .unsafe
        var ends: [String: Int] = [:]
        for (name, bytes) in damaged {
            try write(bytes)
            do {
                let store = try Store.open(path, options)
                defer { try? store.close(force: true) }
                let before = try store.look { try JSONExporter.text($0.group) }
                XCTAssertTrue(exports.contains(before), "\(name): read in a session")
                for id in [1000, 1001] as [Int64] {
                    try store.write { transaction in
                        let table = try transaction.editor.editor(named: "class_Thing")
                        let (object, _) = try table.createObject(primaryKey: .int(id))
                        try table.set("text", of: object, to: .string("not for long"))
                        try table.deleteObject(object)
                    }
                }
                ends["written", default: 0] += 1
            } catch {
                XCTAssertTrue(
                    error is OpenError || error is DecryptionError || error is FormatError || error is SessionError,
                    "\(name): \(error)")
                ends["error", default: 0] += 1
            }
            switch try outcome() {
            case .version, .error: break
            case .wrongData: XCTFail("\(name): data that was never there")
            }
        }
        XCTAssertGreaterThan(ends["written"] ?? 0, 0, "\(ends)")
        XCTAssertGreaterThan(ends["error"] ?? 0, 10, "\(ends)")
    }

    // MARK: The document alone

    /// Decrypts by what the document says and a general library, without anything of ours.
    private static let script = """
        import sys, hmac, hashlib, subprocess
        path, key, target = sys.argv[1], bytes.fromhex(sys.argv[2]), sys.argv[3]
        try:
            from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
            def decrypt(iv, data):
                d = Cipher(algorithms.AES(key[:32]), modes.CBC(iv)).decryptor()
                return d.update(data) + d.finalize()
        except ImportError:
            def decrypt(iv, data):
                return subprocess.run(['openssl', 'enc', '-d', '-aes-256-cbc', '-nopad', '-K', key[:32].hex(), '-iv', iv.hex()],
                                      input=data, stdout=subprocess.PIPE, check=True).stdout
        f, plain, i = open(path, 'rb').read(), b'', 0
        while True:
            at = 4096 * i + (i // 64 + 1) * 4096
            page = f[at:at + 4096]
            if len(page) < 4096: break
            entry = f[(i // 64) * 266240 + (i % 64) * 64:][:64]
            tag, content = hmac.new(key[32:], page, hashlib.sha224).digest(), bytes(4096)
            for seal in (entry[:32], entry[32:]):
                if seal[:4] != bytes(4) and seal[4:] == tag:
                    content = decrypt(seal[:4] + (4096 * i).to_bytes(8, 'little') + bytes(4), page)
                    break
            else:
                if entry[:4] != bytes(4) and page != bytes(4096): sys.exit('page %d does not authenticate' % i)
            plain += content
            i += 1
        open(target, 'wb').write(plain)
        """

    private func decryptByScript(_ path: String, _ keyBytes: [UInt8], _ target: String) throws {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["python3", "-c", Self.script, path, keyBytes.map { String(format: "%02x", $0) }.joined(), target]
        let errors = Pipe()
        process.standardError = errors
        try process.run()
        let text = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        process.waitUntilExit()
        if process.terminationStatus == 127 { throw XCTSkip("no python3 here; the independent decryption was not tested") }
        if text.contains("No such file or directory: 'openssl'") {
            throw XCTSkip("neither the module cryptography nor openssl is here")
        }
        XCTAssertEqual(process.terminationStatus, 0, text)
    }

    func testAScriptWrittenFromTheDocumentDecryptsWhatWeEncrypt() throws {
        let plain = scratch.file("plain.realm")
        try write(good)
        try decryptByScript(path, Self.keyBytes, plain)
        XCTAssertEqual(try JSONExporter.text(ImmutableFile(path: plain).group), exports.last)
        XCTAssertTrue(try Verifier.verify(ImmutableFile(path: plain)).isSound)

        // A copy that was encrypted as a whole, of more than one block of 64 pages.
        let big = scratch.file("big.realm"), bigPlain = scratch.file("big-plain.realm")
        try FileManager.default.copyItem(atPath: Fixtures.core14 + "/big.realm", toPath: big)
        let expected = try JSONExporter.text(ImmutableFile(path: big).group)
        try StoreFiles.changeKey(big, from: nil, to: key)
        XCTAssertEqual(try JSONExporter.text(ImmutableFile(path: big, key: key).group), expected)
        try decryptByScript(big, Self.keyBytes, bigPlain)
        XCTAssertEqual(try JSONExporter.text(ImmutableFile(path: bigPlain).group), expected)
        let size = try XCTUnwrap(FileManager.default.attributesOfItem(atPath: big)[.size] as? Int)
        let plainSize = try XCTUnwrap(FileManager.default.attributesOfItem(atPath: bigPlain)[.size] as? Int)
        XCTAssertGreaterThan(plainSize, 64 * 4096)
        XCTAssertEqual(plainSize % 4096, 0, "the footer ends a page")
        XCTAssertEqual(size, PageGeometry.filePosition(plainSize - 4096) + 4096)
        let tail = try Data(contentsOf: URL(fileURLWithPath: bigPlain)).suffix(8)
        XCTAssertEqual(Array(tail), [0xC8, 0x26, 0xE5, 0x37, 0x52, 0x12, 0x34, 0x30])
    }

    func testTheScriptDecryptsTheGivenFileToo() throws {
        let keyBytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: Fixtures.core14 + "/encrypted.key")))
        let plain = scratch.file("given.realm")
        try decryptByScript(Fixtures.core14 + "/encrypted.realm", keyBytes, plain)
        let ours = try JSONExporter.text(
            ImmutableFile(path: Fixtures.core14 + "/encrypted.realm", key: EncryptionKey(keyBytes)).group)
        XCTAssertEqual(try JSONExporter.text(ImmutableFile(path: plain).group), ours)
    }
}
