import Foundation
import RealmSwift
import RealmSwiftTestModels
import TestSupport
import XCTest

/// The short programs that documents begin with.
final class OverviewTests: RealmTestCase {
    func testF001_F014_theFirstProgram() throws {
        let scratch = ScratchDirectory()
        do {
            let rex = Dog()
            rex.name = "Rex"
            rex.age = 1
            XCTAssertEqual("name of dog: \(rex.name)", "name of dog: Rex")
            let ann = Person()
            ann.name = "Ann"
            ann.dogs.append(rex)
            let realm = try makeFileRealm(scratch)
            try realm.write {
                realm.add(ann)
            }
        }
        let realm = try makeFileRealm(scratch)
        let puppies = realm.objects(Dog.self).where { $0.age < 2 }
        XCTAssertEqual(puppies.count, 1)
        XCTAssertEqual(puppies.first?.name, "Rex")
        XCTAssertEqual(puppies.first?.fans.first?.name, "Ann")
    }

    func testF009_F028_anEncryptedFileShowsNothing() throws {
        let scratch = ScratchDirectory()
        var generator = SystemRandomNumberGenerator()
        let key = Data((0..<64).map { _ in UInt8.random(in: 0...255, using: &generator) })
        var configuration = fileConfiguration(scratch)
        configuration.encryptionKey = key
        do {
            let realm = try Realm(configuration: configuration)
            try realm.write { realm.add(Dog(name: "Unmistakable")) }
        }
        let bytes = try Data(contentsOf: URL(fileURLWithPath: scratch.file("test.realm")))
        XCTAssertNil(bytes.range(of: Data("Unmistakable".utf8)))
        XCTAssertNil(bytes.range(of: Data("class_Dog".utf8)))
        XCTAssertNil(bytes.range(of: Data("T-DB".utf8)))
        XCTAssertEqual(try Realm(configuration: configuration).objects(Dog.self).first?.name, "Unmistakable")
        configuration.encryptionKey = nil
        XCTAssertThrowsError(try Realm(configuration: configuration))
    }

    func testF011_F022_thePackageOffersTheLibraryAndFetchesNothing() throws {
        let package = try String(contentsOf: Fixtures.packageRoot.appendingPathComponent("Package.swift"), encoding: .utf8)
        XCTAssertTrue(package.contains(".library(name: \"RealmSwift\", targets: [\"RealmSwift\"])"))
        XCTAssertFalse(package.contains(".package("), "a dependency would have to be fetched")
        XCTAssertFalse(package.contains("unsafeFlags"), "packages with unsafe flags cannot be depended upon")
    }

    /// A program that is compiled here and linked to the library as a shared object has its own models found.
    func testF012_F045_F390_aProgramUsesTheDynamicLibraryAndHasItsModelsFound() throws {
        let scratch = ScratchDirectory(), products = ClientCompiler.products
        XCTAssertTrue(FileManager.default.fileExists(atPath: products + "/libRealmSwiftDynamic.so"))
        let program = #"""
            import RealmSwift
            class Cat: Object {
                @Persisted(primaryKey: true) var id: Int
                @Persisted var name = ""
            }
            let realm = try Realm(configuration: Realm.Configuration(inMemoryIdentifier: "cats"))
            try realm.write { _ = realm.create(Cat.self, value: ["id": 1, "name": "Tom"]) }
            print(realm.objects(Cat.self).where { $0.name == "Tom" }.count, realm.schema.objectSchema.map(\.className))
            """#
        try ClientCompiler.compile(
            program, scratch,
            ClientCompiler.sanitizing + [
                "-o", scratch.file("cats"), "-L", products, "-lRealmSwiftDynamic", "-Xlinker", "-rpath", "-Xlinker", products,
            ])
        let cats = try ChildProcess(path: scratch.file("cats"), [])
        XCTAssertEqual(cats.waitForEnd(), 0, cats.errors)
        XCTAssertEqual(cats.output, "1 [\"Cat\"]\n")
    }

    func testF023_theSimpleSample() throws {
        let realm = try makeRealm()
        let dogs = realm.objects(Dog.self)
        XCTAssertEqual(dogs.count, 0)
        try realm.write {
            realm.add(Dog(name: "Rex", age: 10))
            realm.create(Dog.self, value: ["name": "Ada", "age": 4] as [String: Any])
        }
        XCTAssertEqual(dogs.count, 2)
        XCTAssertEqual(realm.objects(Dog.self).filter("name BEGINSWITH %@ AND age > 5", "R").count, 1)
        let person = Person(value: ["name": "Tim", "dogs": [dogs[0]]] as [String: Any])
        try realm.write { realm.add(person) }
        XCTAssertEqual(realm.objects(Person.self).filter("ANY dogs.name == 'Rex'").first?.name, "Tim")
    }

    func testF029_theSampleOfBacklinks() throws {
        let realm = try makeRealm()
        try realm.write {
            realm.create(Person.self, value: ["name": "John", "dogs": [["name": "Fido"]]] as [String: Any])
            realm.create(Person.self, value: ["name": "Mary", "dogs": [["name": "Rex"]]] as [String: Any])
        }
        let owners = realm.objects(Dog.self).sorted(byKeyPath: "name").map { dog in
            "\(dog.name): \(Array(dog.fans.map(\.name)).joined())"
        }
        XCTAssertEqual(Array(owners), ["Fido: John", "Rex: Mary"])
    }

    func testF034_F391_anObjectPrintsItsValues() throws {
        let realm = try makeRealm()
        let dog = try realm.write { realm.create(Dog.self, value: ["name": "Rex", "age": 3] as [String: Any]) }
        XCTAssertTrue("\(dog)".contains("\tname = Rex;\n\tage = 3;\n"))
        XCTAssertEqual(String(reflecting: dog), "\(dog)")
    }

    func testF007_F326_theDefaultConfigurationIsUsed() throws {
        let before = Realm.Configuration.defaultConfiguration
        defer { Realm.Configuration.defaultConfiguration = before }
        Realm.Configuration.defaultConfiguration = configuration()
        let realm = try Realm()
        try realm.write { realm.add(Dog(name: "Rex")) }
        XCTAssertEqual(try makeRealm().objects(Dog.self).count, 1)
        XCTAssertEqual(Realm.Configuration.defaultConfiguration.inMemoryIdentifier, configuration().inMemoryIdentifier)
        XCTAssertEqual(Realm.Configuration.defaultConfiguration.fileURL, configuration().fileURL)
    }

    func testF335_theDefaultFolderFollowsTheEnvironment() throws {
        let before = ["XDG_DATA_HOME", "HOME"].map { ($0, ProcessInfo.processInfo.environment[$0]) }
        defer { for (name, value) in before { if let value { setenv(name, value, 1) } else { unsetenv(name) } } }
        func folder() throws -> String { try XCTUnwrap(Realm.Configuration().fileURL).deletingLastPathComponent().path }
        let program = ProcessInfo.processInfo.processName
        setenv("HOME", "/tmp/a-home", 1)
        setenv("XDG_DATA_HOME", "/tmp/a-data-home", 1)
        XCTAssertEqual(try folder(), "/tmp/a-data-home/\(program)")
        setenv("XDG_DATA_HOME", "not/absolute", 1)
        XCTAssertEqual(try folder(), "/tmp/a-home/.local/share/\(program)")
        unsetenv("XDG_DATA_HOME")
        XCTAssertEqual(try folder(), "/tmp/a-home/.local/share/\(program)")
    }

    func testF038_F335_theDefaultFile() throws {
        let scratch = ScratchDirectory()
        let before = ProcessInfo.processInfo.environment["XDG_DATA_HOME"]
        setenv("XDG_DATA_HOME", scratch.path, 1)
        defer { if let before { setenv("XDG_DATA_HOME", before, 1) } else { unsetenv("XDG_DATA_HOME") } }
        var configuration = Realm.Configuration()
        let url = try XCTUnwrap(configuration.fileURL)
        XCTAssertTrue(url.path.hasPrefix(scratch.path + "/"))
        XCTAssertEqual(url.lastPathComponent, "default.realm")
        configuration.objectTypes = RealmTestCase.types
        let realm = try Realm(configuration: configuration)
        try realm.write { realm.add(Dog(name: "Rex")) }
        XCTAssertTrue(FileManager.default.fileExists(atPath: url.path))
    }

    func testF010_dataOutlivesTheSession() throws {
        let scratch = ScratchDirectory()
        try autoreleasepool {
            let realm = try makeFileRealm(scratch)
            try realm.write { realm.add(Dog(name: "Rex")) }
        }
        // Another process reads it.
        var arguments = ["query", scratch.file("test.realm"), "Dog", "name == 'Rex'"]
        if let key = TestKeys.usual {
            try key.write(toNewFile: scratch.file("key"))
            arguments += ["--key-file", scratch.file("key")]
        }
        let reader = try ChildProcess(product: "realm-sync", arguments)
        XCTAssertEqual(reader.waitForEnd(), 0)
        XCTAssertTrue(reader.output.contains("Rex"), reader.output + reader.errors)
    }

    func testF032_aFileOfJSONIsImported() throws {
        let scratch = ScratchDirectory()
        let url = URL(fileURLWithPath: scratch.file("persons.json"))
        try Data(#"[{"name": "Ann", "age": 3, "dogs": [{"name": "Rex"}]}, {"name": "Bo", "age": 4}]"#.utf8).write(to: url)
        let realm = try makeRealm()
        let list = try XCTUnwrap(try JSONSerialization.jsonObject(with: Data(contentsOf: url)) as? [[String: Any]])
        try realm.write {
            for entry in list { realm.create(Person.self, value: entry) }
        }
        XCTAssertEqual(realm.objects(Person.self).count, 2)
        XCTAssertEqual(realm.objects(Person.self).filter("name == 'Ann'").first?.dogs.first?.name, "Rex")
    }

    func testF019_asynchronousFunctionsUseRealms() async throws {
        let count = try await DogCounter.count(configuration())
        XCTAssertEqual(count, 1)
    }
}

@MainActor
private enum DogCounter {
    static func count(_ configuration: Realm.Configuration) async throws -> Int {
        let realm = try await Realm(configuration: configuration)
        try realm.write { realm.add(Dog(name: "Rex")) }
        await Task.yield()
        return realm.objects(Dog.self).count
    }
}
