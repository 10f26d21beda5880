import Foundation
import RealmSwift
import SharedStore
import TestSupport
import XCTest

/// The programs in `Examples/`, as processes.
final class ExampleTests: XCTestCase {
    private let scratch = ScratchDirectory("Examples")

    @discardableResult
    private func run(_ product: String, _ arguments: String..., code: Int32 = 0, file: StaticString = #filePath, line: UInt = #line) throws -> String {
        let child = try ChildProcess(product: product, arguments)
        XCTAssertEqual(child.waitForEnd(seconds: 30), code, child.errors, file: file, line: line)
        return code == 0 ? child.output : child.errors
    }

    func testTheTaskListInOneTerminal() throws {
        let path = scratch.file("tasks.realm")
        XCTAssertEqual(try run("TaskList", path, "add", "Feed the cat"), "added 1\n")
        XCTAssertEqual(try run("TaskList", path, "add", "Water", "the", "plants"), "added 2\n")
        XCTAssertEqual(try run("TaskList", path, "done", "1"), "done: Feed the cat\n")
        XCTAssertEqual(try run("TaskList", path, "list"), "1 [x] Feed the cat\n2 [ ] Water the plants\n")
        XCTAssertEqual(try run("TaskList", path, "remove", "1"), "removed: Feed the cat\n")
        XCTAssertEqual(try run("TaskList", path, "list"), "1 [ ] Water the plants\n")
    }

    func testTheTaskListSaysWhatIsWrong() throws {
        let path = scratch.file("tasks.realm")
        XCTAssertEqual(try run("TaskList", path, "done", "7", code: 1), "TaskList: there is no task 7: the list has 0\n")
        XCTAssertTrue(try run("TaskList", path, "sing", code: 64).hasPrefix("usage: TaskList FILE add TITLE\n"))
        XCTAssertTrue(try run("TaskList", path, "done", "first", code: 64).contains("'first' is no number"))
    }

    func testASecondTerminalSeesEachChangeWithItsPlace() throws {
        let path = scratch.file("tasks.realm")
        try run("TaskList", path, "add", "Feed the cat")
        try run("TaskList", path, "add", "Water the plants")
        let watcher = try ChildProcess(product: "TaskList", [path, "watch"])
        func expect(_ line: String, at where_: UInt = #line) { XCTAssertEqual(watcher.readLine(seconds: 20), line, watcher.errors, line: where_) }
        expect("2 tasks")
        expect("1 [ ] Feed the cat")
        expect("2 [ ] Water the plants")
        try run("TaskList", path, "add", "Write to Ida")
        expect("+ 3 [ ] Write to Ida")
        try run("TaskList", path, "done", "2")
        expect("~ 2 [x] Water the plants")
        try run("TaskList", path, "remove", "1")
        expect("- 1 [ ] Feed the cat")
        try run("TaskList", path, "done", "2")
        expect("~ 2 [x] Write to Ida")
        watcher.signal(SIGTERM)
        XCTAssertEqual(watcher.waitForEnd(), -SIGTERM)
        XCTAssertEqual(try run("TaskList", path, "list"), "1 [x] Water the plants\n2 [x] Write to Ida\n")
    }

    // MARK: Seed

    private var phrases: String { Fixtures.packageRoot.appendingPathComponent("Examples/SeedBuilder/phrases.json").path }

    func testASeedIsBuiltAndOpenedReadOnly() throws {
        let folder = scratch.file("app")
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        let path = folder + "/phrases.realm"
        let line = try run("SeedBuilder", phrases, path, "--schema-version", "3")
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
        let realm = try Realm(configuration: Realm.Configuration(fileURL: URL(fileURLWithPath: path), readOnly: true, schemaVersion: 3, objectTypes: [AppTopic.Topic.self, AppTopic.Phrase.self]))
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
        try run("SeedBuilder", phrases, path)
        let configuration = Realm.Configuration(fileURL: URL(fileURLWithPath: scratch.file("live.realm")), objectTypes: [AppTopic.Topic.self, AppTopic.Phrase.self],
                                                seedFilePath: URL(fileURLWithPath: path))
        let realm = try Realm(configuration: configuration)
        try realm.write { realm.create(AppTopic.Phrase.self, value: ["id": 9, "texts": ["en": "Thank you"]] as [String: Any]) }
        XCTAssertEqual(realm.objects(AppTopic.Phrase.self).count, 4)
    }

    func testABadInputLeavesTheOldSeed() throws {
        let path = scratch.file("phrases.realm"), input = scratch.file("bad.json")
        try run("SeedBuilder", phrases, path)
        let before = try Data(contentsOf: URL(fileURLWithPath: path))
        try #"[{"name": "A", "phrases": []}, {"name": "A", "phrases": []}]"#.write(toFile: input, atomically: true, encoding: .utf8)
        XCTAssertEqual(try run("SeedBuilder", input, path, code: 1), "SeedBuilder: the topic 'A' occurs twice\n")
        try "[{]".write(toFile: input, atomically: true, encoding: .utf8)
        XCTAssertTrue(try run("SeedBuilder", input, path, code: 1).hasPrefix("SeedBuilder: "))
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
