import Foundation
import RealmSwift
import SharedStore
import TestSupport
import XCTest

/// `Examples/SeedBuilder`, as a build job runs it.
final class SeedBuilderTests: XCTestCase {
    private let scratch = ScratchDirectory("SeedBuilder")

    @discardableResult
    private func run(_ arguments: String..., code: Int32 = 0, file: StaticString = #filePath, line: UInt = #line) throws -> String
    {
        let child = try ChildProcess(product: "SeedBuilder", arguments)
        XCTAssertEqual(child.waitForEnd(seconds: 30), code, child.errors, file: file, line: line)
        return code == 0 ? child.output : child.errors
    }

    private var phrases: String { Fixtures.packageRoot.appendingPathComponent("Examples/SeedBuilder/phrases.json").path }

    func testASeedIsBuiltAndOpenedReadOnly() throws {
        let folder = scratch.file("app")
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let path = folder + "/phrases.realm"
        let line = try run(phrases, path, "--schema-version", "3")
        XCTAssertTrue(line.hasPrefix("\(path): 2 topics, 3 phrases, "), line)
        XCTAssertTrue(line.hasSuffix(" bytes, sound\n"), line)
        XCTAssertEqual(try FileManager.default.contentsOfDirectory(atPath: folder), ["phrases.realm"], "nothing but the seed")

        let report = try Verifier.verify(try ImmutableFile(path: path))
        XCTAssertTrue(report.isSound, "\(report.findings)")
        XCTAssertEqual(report.freeByteCount, 0, "compact")
        XCTAssertEqual(try schemaVersionOfReadOnlyFile(path), 3)

        // As the app opens it, in a folder where it may not write.
        XCTAssertEqual(chmod(folder, 0o555), 0)
        defer { chmod(folder, 0o755) }
        let realm = try Realm(
            configuration: Realm.Configuration(
                fileURL: URL(fileURLWithPath: path), readOnly: true, schemaVersion: 3,
                objectTypes: [AppTopic.Topic.self, AppTopic.Phrase.self]))
        XCTAssertEqual(realm.object(ofType: AppTopic.Phrase.self, forPrimaryKey: 1)?.texts["de"], "Guten Morgen")
        XCTAssertEqual(realm.object(ofType: AppTopic.Phrase.self, forPrimaryKey: 2)?.topics.count, 2)
        XCTAssertEqual(realm.object(ofType: AppTopic.Topic.self, forPrimaryKey: "At the station")?.phrases.map(\.id), [3, 2])
    }

    private func schemaVersionOfReadOnlyFile(_ path: String) throws -> Int64 {
        let file = try ImmutableFile(path: path)
        return try withExtendedLifetime(file) { try file.group.schema().version }
    }

    func testASeedIsInstalledAndWrittenTo() throws {
        let path = scratch.file("phrases.realm")
        try run(phrases, path)
        let configuration = Realm.Configuration(
            fileURL: URL(fileURLWithPath: scratch.file("live.realm")), objectTypes: [AppTopic.Topic.self, AppTopic.Phrase.self],
            seedFilePath: URL(fileURLWithPath: path))
        let realm = try Realm(configuration: configuration)
        try realm.write { realm.create(AppTopic.Phrase.self, value: ["id": 9, "texts": ["en": "Thank you"]] as [String: Any]) }
        XCTAssertEqual(realm.objects(AppTopic.Phrase.self).count, 4)
    }

    func testAMissingAndABadInputAreToldInALine() throws {
        let missing = try run(scratch.file("none.json"), scratch.file("a.realm"), code: 1)
        XCTAssertEqual(missing, "SeedBuilder: \(scratch.file("none.json")): no such file, or it may not be read\n")
        let bad = scratch.file("bad-topic.json")
        try #"[{"name": 1, "phrases": []}]"#.write(toFile: bad, atomically: true, encoding: .utf8)
        let text = try run(bad, scratch.file("a.realm"), code: 1)
        XCTAssertTrue(text.hasPrefix("SeedBuilder: \(bad): at [0].name: "), text)
        XCTAssertEqual(text.filter { $0 == "\n" }.count, 1, text)
    }

    func testABadInputLeavesTheOldSeed() throws {
        let path = scratch.file("phrases.realm"), input = scratch.file("bad.json")
        try run(phrases, path)
        let before = try Data(contentsOf: URL(fileURLWithPath: path))
        try #"[{"name": "A", "phrases": []}, {"name": "A", "phrases": []}]"#.write(
            toFile: input, atomically: true, encoding: .utf8)
        XCTAssertEqual(try run(input, path, code: 1), "SeedBuilder: the topic 'A' occurs twice\n")
        try "[{]".write(toFile: input, atomically: true, encoding: .utf8)
        XCTAssertTrue(try run(input, path, code: 1).hasPrefix("SeedBuilder: "))
        XCTAssertEqual(try Data(contentsOf: URL(fileURLWithPath: path)), before)
        XCTAssertFalse(FileManager.default.fileExists(atPath: path + ".partial"))
    }
}

/// The app's classes: of the same names as the builder's, in a program of its own.
private enum AppTopic {
    final class Topic: Object {
        @Persisted(primaryKey: true) var name: String
        @Persisted var phrases: List<Phrase>
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }

    final class Phrase: Object {
        @Persisted(primaryKey: true) var id: Int
        @Persisted var texts: Map<String, String>
        @Persisted(originProperty: "phrases") var topics: LinkingObjects<Topic>
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }
}
