import Foundation
import RealmSwift
import TestSupport
import XCTest

final class FilesTests: GuideTestCase {
    private let scratch = ScratchDirectory("Files")
    private var folder: URL { URL(fileURLWithPath: scratch.path) }

    override func setUp() {
        super.setUp()
        Realm.Configuration.defaultConfiguration = Realm.Configuration(objectTypes: [Bird.self])
    }

    private func makeFile(_ name: String, _ count: Int = 1, key: Data? = nil) throws -> URL {
        let url = folder.appendingPathComponent(name)
        try autoreleasepool {
            let realm = try Realm(configuration: Realm.Configuration(fileURL: url, encryptionKey: key, objectTypes: [Bird.self]))
            try realm.write { for number in 0..<count { realm.add(Bird("Bird \(number)", wingspan: 1)) } }
        }
        return url
    }

    func testAConfiguration() throws {
        let folder = folder
        // sample: files-configuration
        var configuration = Realm.Configuration.defaultConfiguration
        configuration.fileURL = folder.appendingPathComponent("birds.realm")
        configuration.schemaVersion = 3
        let realm = try Realm(configuration: configuration)
        print(realm.configuration.fileURL?.path ?? "in memory")
        // end
        XCTAssertEqual(realm.configuration.fileURL?.lastPathComponent, "birds.realm")
        XCTAssertTrue(Realm.fileExists(for: configuration))
    }

    func testTheDefaultFolder() {
        let configuration = Realm.Configuration()
        XCTAssertEqual(configuration.fileURL?.lastPathComponent, "default.realm")
        XCTAssertTrue(configuration.fileURL?.path.contains(ProcessInfo.processInfo.processName) ?? false)
    }

    func testInMemory() throws {
        // sample: files-memory
        var configuration = Realm.Configuration.defaultConfiguration
        configuration.inMemoryIdentifier = "scratchpad"
        let realm = try Realm(configuration: configuration)
        // end
        XCTAssertNil(realm.configuration.fileURL)
    }

    func testReadOnly() throws {
        let url = try makeFile("fixed.realm")
        // sample: files-read-only
        var configuration = Realm.Configuration.defaultConfiguration
        configuration.fileURL = url
        configuration.readOnly = true
        let realm = try Realm(configuration: configuration)
        print(realm.objects(Bird.self).count)
        // end
        XCTAssertEqual(realm.objects(Bird.self).count, 1)
    }

    func testASeed() throws {
        let seed = try makeFile("seed.realm"), folder = folder
        // sample: files-seed
        var configuration = Realm.Configuration.defaultConfiguration
        configuration.fileURL = folder.appendingPathComponent("birds.realm")
        configuration.seedFilePath = seed  // copied where there is no file yet
        let realm = try Realm(configuration: configuration)
        // end
        XCTAssertEqual(realm.objects(Bird.self).count, 1)
        try realm.write { realm.deleteAll() }
        XCTAssertEqual(
            try Realm(configuration: Realm.Configuration(fileURL: seed, objectTypes: [Bird.self])).objects(Bird.self).count, 1)
    }

    func testCompaction() throws {
        let url = try makeFile("grown.realm", 4000)
        try autoreleasepool {
            let realm = try Realm(configuration: Realm.Configuration(fileURL: url, objectTypes: [Bird.self]))
            try realm.write { realm.deleteAll() }
        }
        func size() throws -> Int { try XCTUnwrap(FileManager.default.attributesOfItem(atPath: url.path)[.size] as? Int) }
        let before = try size()
        // sample: files-compact
        var configuration = Realm.Configuration.defaultConfiguration
        configuration.fileURL = url
        configuration.shouldCompactOnLaunch = { totalBytes, usedBytes in
            totalBytes > 100_000 && usedBytes < totalBytes / 2
        }
        let realm = try Realm(configuration: configuration)
        // end
        XCTAssertTrue(realm.isEmpty)
        XCTAssertLessThan(try size(), before)
    }

    func testEncryption() throws {
        let folder = folder
        // sample: files-encryption
        let key = Data((0..<64).map { _ in UInt8.random(in: 0...255) })  // keep it: the file is lost without it
        var configuration = Realm.Configuration.defaultConfiguration
        configuration.fileURL = folder.appendingPathComponent("secret.realm")
        configuration.encryptionKey = key
        let realm = try Realm(configuration: configuration)
        // end
        try realm.write { realm.add(Bird("Unmistakable", wingspan: 1)) }
        let bytes = try Data(contentsOf: folder.appendingPathComponent("secret.realm"))
        XCTAssertNil(bytes.range(of: Data("Unmistakable".utf8)))
    }

    func testCopies() throws {
        let source = try makeFile("birds.realm", 3), folder = folder
        let realm = try Realm(configuration: Realm.Configuration(fileURL: source, objectTypes: [Bird.self]))
        // sample: files-copy
        try realm.writeCopy(toFile: folder.appendingPathComponent("copy.realm"))

        let key = Data(repeating: 7, count: 64)
        try realm.writeCopy(toFile: folder.appendingPathComponent("encrypted.realm"), encryptionKey: key)
        // end
        let copy = try Realm(
            configuration: Realm.Configuration(fileURL: folder.appendingPathComponent("copy.realm"), objectTypes: [Bird.self]))
        XCTAssertEqual(copy.objects(Bird.self).count, 3)
        XCTAssertThrowsError(
            try Realm(
                configuration: Realm.Configuration(
                    fileURL: folder.appendingPathComponent("encrypted.realm"), objectTypes: [Bird.self])))
    }

    func testDeletion() throws {
        let url = try makeFile("old.realm")
        // sample: files-delete
        let configuration = Realm.Configuration(fileURL: url)
        let wasThere = try Realm.deleteFiles(for: configuration)
        // end
        XCTAssertTrue(wasThere)
        XCTAssertFalse(FileManager.default.fileExists(atPath: url.path))
    }

    func testErrors() {
        let folder = folder
        // sample: files-errors
        do {
            let realm = try Realm(fileURL: folder.appendingPathComponent("missing/birds.realm"))
            print(realm.isEmpty)
        } catch Realm.Error.fileNotFound {
            print("the folder is missing")
        } catch let error as Realm.Error {
            print(error.code, error.fileURL?.path ?? "")
        } catch {
            print(error)
        }
        // end
        XCTAssertThrowsError(try Realm(fileURL: folder.appendingPathComponent("missing/birds.realm"))) { error in
            XCTAssertEqual((error as? Realm.Error)?.code, .fileNotFound)
        }
    }

    func testManyVersions() throws {
        let url = try makeFile("birds.realm")
        // sample: files-versions
        var configuration = Realm.Configuration.defaultConfiguration
        configuration.fileURL = url
        configuration.maximumNumberOfActiveVersions = 16
        // end
        let realm = try Realm(configuration: configuration)
        var kept: [Results<Bird>] = []
        for number in 0..<12 {
            kept.append(realm.objects(Bird.self).freeze())
            try realm.write { realm.add(Bird("More \(number)", wingspan: 1)) }
        }
        XCTAssertEqual(kept.map(\.count), Array(1...12))
        XCTAssertThrowsError(
            try {
                for number in 0..<12 {
                    kept.append(realm.objects(Bird.self).freeze())
                    try realm.write { realm.add(Bird("Too many \(number)", wingspan: 1)) }
                }
            }())
    }
}
