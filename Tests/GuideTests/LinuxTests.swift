import Foundation
import RealmSwift
import TestSupport
import XCTest

// sample: linux-init
class Nestbox: Object {
    @Persisted var number: Int
    @Persisted var isClean = true

    override init() {  // on Apple systems: required init(), or override
        super.init()
    }
}
// end

// sample: linux-stream
/// Instead of a Combine publisher: one value after each change.
func names(of birds: Results<Bird>) -> AsyncStream<[String]> {
    AsyncStream { continuation in
        let token = birds.observe { change in
            switch change {
            case .initial(let birds): continuation.yield(birds.map(\.name))
            case .update(let birds, _, _, _): continuation.yield(birds.map(\.name))
            case .error: continuation.finish()
            }
        }
        continuation.onTermination = { _ in token.invalidate() }
    }
}
// end

// sample: linux-key
/// Instead of the Keychain: a file that only its owner can read.
func encryptionKey(in file: URL) throws -> Data {
    if !FileManager.default.fileExists(atPath: file.path) {
        // Whole under a name of its own first, and never in the place of a key that is there: what that one has encrypted would
        // be lost.
        let draft = file.appendingPathExtension(UUID().uuidString)
        let fresh = Data((0..<64).map { _ in UInt8.random(in: 0...255) })
        let isWritten = FileManager.default.createFile(
            atPath: draft.path, contents: fresh, attributes: [.posixPermissions: 0o600])
        guard isWritten else { throw CocoaError(.fileWriteUnknown) }
        try? FileManager.default.linkItem(at: draft, to: file)
        try FileManager.default.removeItem(at: draft)
    }
    let key = try Data(contentsOf: file)
    guard key.count == 64 else { throw CocoaError(.fileReadCorruptFile) }
    return key
}
// end

final class LinuxTests: GuideTestCase {
    private let scratch = ScratchDirectory("Linux")

    override class var types: [ObjectBase.Type] { super.types + [Nestbox.self] }

    func testInitializers() throws {
        let realm = try Realm()
        try realm.write { realm.add(Nestbox(value: ["number": 3])) }
        XCTAssertEqual(realm.objects(Nestbox.self).first?.isClean, true)
    }

    @MainActor
    func testAStream() async throws {
        let realm = try await Realm()
        var seen: [[String]] = []
        // sample: linux-stream-use
        for await list in names(of: realm.objects(Bird.self).sorted(by: \.name)) {
            print(list)
            // end
            seen.append(list)
            if seen.count == 2 { break }
            try await realm.asyncWrite { realm.add([Bird("Wren", wingspan: 0.15), Bird("Crane", wingspan: 2.2)]) }
        }
        XCTAssertEqual(seen, [[], ["Crane", "Wren"]])
    }

    func testAKeyInAFile() throws {
        let file = URL(fileURLWithPath: scratch.file("birds.key"))
        let key = try encryptionKey(in: file)
        XCTAssertEqual(key.count, 64)
        XCTAssertEqual(try encryptionKey(in: file), key)
        XCTAssertEqual(try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? Int, 0o600)
        XCTAssertEqual(try FileManager.default.contentsOfDirectory(atPath: scratch.path), ["birds.key"])
        let cut = URL(fileURLWithPath: scratch.file("cut.key"))
        try key.prefix(63).write(to: cut)
        XCTAssertThrowsError(try encryptionKey(in: cut))
        XCTAssertEqual(try Data(contentsOf: cut), key.prefix(63))
        let configuration = Realm.Configuration(
            fileURL: URL(fileURLWithPath: scratch.file("birds.realm")), encryptionKey: key, objectTypes: [Bird.self])
        XCTAssertTrue(try Realm(configuration: configuration).isEmpty)
    }

    func testLogging() throws {
        let saved = Logger.shared
        defer { Logger.shared = saved }
        // sample: linux-log
        Logger.shared = Logger(level: .warn) { level, message in
            print(level, message)  // for example to the journal of the system
        }
        // end
        XCTAssertEqual(Logger.shared.level, .warn)
    }
}
