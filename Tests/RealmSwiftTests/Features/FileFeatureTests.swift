import Foundation
import RealmSwift
import RealmSwiftTestModels
import Synchronization
import TestSupport
import XCTest

/// Openings and files (feature table, sections O and R).
final class FileFeatureTests: FileTestCase {
    private func exists(_ name: String) -> Bool { FileManager.default.fileExists(atPath: scratch.file(name)) }
    private func size(_ name: String = "a.realm") throws -> Int {
        try XCTUnwrap(FileManager.default.attributesOfItem(atPath: scratch.file(name))[.size] as? Int)
    }

    private let key = Data((0..<64).map { UInt8($0 * 3 & 0xFF) })
    private var keyText: String { key.map { String(format: "%02x", $0) }.joined() }

    private func encryptedConfiguration(_ name: String = "a.realm") -> Realm.Configuration {
        var configuration = fileConfiguration(name)
        configuration.encryptionKey = key
        return configuration
    }

    /// As code for Apple systems makes a key.
    func testF009_F348_aKeyOfRandomBytes() throws {
        var keys: Set<Data> = []
        for _ in 0..<3 {
            var key = Data(count: 64)
            let status = key.withUnsafeMutableBytes { SecRandomCopyBytes(kSecRandomDefault, 64, $0.baseAddress!) }
            XCTAssertEqual(status, errSecSuccess)
            XCTAssertGreaterThan(Set(key).count, 16, "64 bytes, nearly all of them the same")
            keys.insert(key)
        }
        XCTAssertEqual(keys.count, 3)
        var untouched: UInt64 = 7
        XCTAssertNotEqual(SecRandomCopyBytes(kSecRandomDefault, -1, &untouched), errSecSuccess)
        XCTAssertEqual(untouched, 7)
        var configuration = fileConfiguration("random.realm")
        configuration.encryptionKey = keys.first
        try Realm(configuration: configuration).write {}
        configuration.encryptionKey = keys.dropFirst().first
        XCTAssertThrowsError(try Realm(configuration: configuration))
    }

    // MARK: Openings

    func testF325_F370_openingAtAFileURLMakesTheFile() throws {
        let before = Realm.Configuration.defaultConfiguration
        defer { Realm.Configuration.defaultConfiguration = before }
        Realm.Configuration.defaultConfiguration = fileConfiguration("unused")
        XCTAssertFalse(exists("any name.dat"))
        let realm = try Realm(fileURL: url("any name.dat"))
        XCTAssertTrue(exists("any name.dat"))
        XCTAssertEqual(realm.configuration.fileURL, url("any name.dat"))
        XCTAssertFalse(exists("unused"))
    }

    func testF399_everyWayToOpen() throws {
        let before = Realm.Configuration.defaultConfiguration
        defer { Realm.Configuration.defaultConfiguration = before }
        Realm.Configuration.defaultConfiguration = fileConfiguration()
        let realm = try Realm()
        XCTAssertEqual(try Realm(configuration: fileConfiguration()), realm)
        XCTAssertEqual(try Realm(fileURL: url()), realm)
        let queue = DispatchQueue(label: "q")
        try queue.sync {
            let first = try Realm(queue: queue)
            XCTAssertEqual(try Realm(configuration: fileConfiguration(), queue: queue), first)
        }
        XCTAssertEqual(try Realm(configuration: fileConfiguration(), queue: .main), realm)
    }

    func testF327_F328_dataInMemoryIsSharedByNameAndGoesWithTheLastReference() throws {
        let configuration = Realm.Configuration(inMemoryIdentifier: "shared \(name)", objectTypes: RealmTestCase.types)
        do {
            let realm = try Realm(configuration: configuration)
            try realm.write { realm.add(Dog(name: "Rex")) }
            onThread { XCTAssertEqual(try! Realm(configuration: configuration).objects(Dog.self).map(\.name), ["Rex"]) }
            XCTAssertNil(realm.configuration.fileURL)
            XCTAssertEqual(realm.objects(Dog.self).count, 1)
        }
        XCTAssertEqual(try Realm(configuration: configuration).objects(Dog.self).count, 0)
        var encrypted = configuration
        encrypted.inMemoryIdentifier = "encrypted \(name)"
        encrypted.encryptionKey = key
        XCTAssertEqual(realmError(try Realm(configuration: encrypted))?.code, .fail)
    }

    func testF330_aFileIsClosedWithTheLastReference() throws {
        let configuration = fileConfiguration()
        do {
            let realm = try Realm(configuration: configuration)
            try realm.write { realm.add(Dog()) }
            XCTAssertEqual(realmError(try Realm.deleteFiles(for: configuration))?.code, .alreadyOpen)
        }
        XCTAssertTrue(try Realm.deleteFiles(for: configuration))
    }

    func testF331_errorsOfOpeningAreThrownAndCaught() throws {
        func open(_ path: String) throws {
            _ = try Realm(
                configuration: Realm.Configuration(
                    fileURL: URL(fileURLWithPath: path), objectTypes: [Country.self, Address.self, Person.self, Dog.self]))
        }
        do { try open(scratch.file("missing/a.realm")) } catch Realm.Error.fileNotFound {} catch { XCTFail("\(error)") }
        try Data("this is no database, only a text of some length".utf8).write(to: url("text"))
        do { try open(scratch.file("text")) } catch let error as Realm.Error where error.code == .invalidDatabase {
            XCTAssertEqual(error.fileURL?.path, scratch.file("text"))
        } catch { XCTFail("\(error)") }
        do { try open(scratch.path) } catch let error as NSError {
            XCTAssertEqual(error.domain, "io.realm")
            XCTAssertEqual(error.code, Realm.Error.fileAccess.rawValue)
        }
        if getuid() != 0 {
            try FileManager.default.createDirectory(
                atPath: scratch.file("closed"), withIntermediateDirectories: true, attributes: [.posixPermissions: 0o500])
            XCTAssertEqual(realmError(try open(scratch.file("closed/a.realm")))?.code, .filePermissionDenied)
        }
    }

    func testF332_F357_aReadOnlyRealmReads() throws {
        makeFile(fileConfiguration(), dogs: 2)
        try FileManager.default.createDirectory(atPath: scratch.file("bundle"), withIntermediateDirectories: true)
        try Realm(configuration: fileConfiguration()).writeCopy(toFile: url("bundle/a.realm"), encryptionKey: TestKeys.usualData)
        var configuration = fileConfiguration("bundle/a.realm")
        configuration.readOnly = true
        try FileManager.default.setAttributes([.posixPermissions: 0o500], ofItemAtPath: scratch.file("bundle"))
        defer { try? FileManager.default.setAttributes([.posixPermissions: 0o700], ofItemAtPath: scratch.file("bundle")) }
        let realm = try Realm(configuration: configuration)
        XCTAssertEqual(realm.objects(Dog.self).count, 2)
        XCTAssertEqual(realm.objects(Person.self).count, 0)
        XCTAssertEqual(try FileManager.default.contentsOfDirectory(atPath: scratch.file("bundle")), ["a.realm"], "no side file")
        nonisolated(unsafe) let frozen = realm.freeze()
        onThread { XCTAssertEqual(frozen.objects(Dog.self).count, 2) }
        var missing = fileConfiguration("missing.realm")
        missing.readOnly = true
        XCTAssertEqual(realmError(try Realm(configuration: missing))?.code, .fileNotFound)
        assertTraps("read only write", "read-only Realms")
    }

    func testF356_aFileThatComesWithTheProgramIsAResourceOfItsPackage() throws {
        let bundled = try XCTUnwrap(Bundle.module.url(forResource: "bundled", withExtension: "realm"))
        let realm = try Realm(
            configuration: Realm.Configuration(fileURL: bundled, readOnly: true, schemaVersion: 1, objectTypes: []))
        XCTAssertEqual(realm.dynamicObjects("Dog").count, 46)
        // To be written it is copied, most easily as a seed.
        var writable = Realm.Configuration(fileURL: url(), schemaVersion: 1, objectTypes: [])
        writable.seedFilePath = bundled
        XCTAssertEqual(try Realm(configuration: writable).dynamicObjects("Person").count, 23)
    }

    func testF333_aModelWhoseInitOpensARealmIsTold() {
        assertTraps("init opens a realm", "must not use Realms")
    }

    func testOpeningsWithDifferentOptionsContradict() throws {
        let realm = try Realm(configuration: fileConfiguration())
        var other = fileConfiguration()
        other.readOnly = true
        XCTAssertEqual(realmError(try Realm(configuration: other))?.code, .alreadyOpen)
        XCTAssertEqual(realmError(try Realm(configuration: encryptedConfiguration()))?.code, .alreadyOpen)
        other = fileConfiguration()
        other.schemaVersion = 3
        XCTAssertEqual(realmError(try Realm(configuration: other))?.code, .alreadyOpen)
        let message =
            realmError(
                try Realm(configuration: fileConfiguration("a.realm", [Country.self, Address.self, Person.self, Dog.self])))?
            .localizedDescription ?? ""
        XCTAssertTrue(message.contains("different schema"), message)
        withExtendedLifetime(realm) {}
    }

    func testF336_sideFilesWhileARealmIsOpen() throws {
        let realm = try Realm(configuration: fileConfiguration())
        for name in ["a.realm.lock", "a.realm.note", "a.realm.management"] { XCTAssertTrue(exists(name), name) }
        withExtendedLifetime(realm) {}
    }

    func testF337_thePathOfARealm() throws {
        XCTAssertEqual(try Realm(configuration: fileConfiguration()).configuration.fileURL?.path, scratch.file("a.realm"))
    }

    func testF338_aFileIsCompleteInItself() throws {
        makeFile(fileConfiguration(), dogs: 3)
        try FileManager.default.createDirectory(atPath: scratch.file("elsewhere"), withIntermediateDirectories: true)
        try FileManager.default.copyItem(atPath: scratch.file("a.realm"), toPath: scratch.file("elsewhere/b.realm"))
        XCTAssertEqual(try Realm(configuration: fileConfiguration("elsewhere/b.realm")).objects(Dog.self).count, 3)
    }

    func testF340_processesShareAFile() throws {
        let realm = try Realm(
            configuration: fileConfiguration("shared.realm", [Dog.self, Person.self, Address.self, Country.self]))
        try realm.write { realm.add(Dog(name: "Ada")) }
        XCTAssertEqual(try runRealmCommand(["add", scratch.file("shared.realm"), "Bo"]), "2")
        XCTAssertTrue(spin { realm.objects(Dog.self).count == 2 }, "another process's commit wakes this one")
        try realm.write { realm.add(Dog(name: "Cy")) }
        XCTAssertEqual(try runRealmCommand(["names", scratch.file("shared.realm")]), "Ada Bo Cy")
    }

    func testF346_F401_whatARealmTellsOfItself() throws {
        let realm = try Realm(configuration: fileConfiguration())
        XCTAssertTrue(realm.isEmpty)
        XCTAssertFalse(realm.isInWriteTransaction || realm.isFrozen)
        XCTAssertEqual(realm.configuration, fileConfiguration())
        XCTAssertEqual(realm.schema["Dog"]?.primaryKeyProperty?.name, "id")
        try realm.write {
            XCTAssertTrue(realm.isInWriteTransaction)
            realm.add(Dog())
            XCTAssertFalse(realm.isEmpty)
        }
        XCTAssertFalse(realm.isEmpty)
        XCTAssertTrue(realm.freeze().isFrozen)
    }

    func testAConfigurationDescribesItselfAndCompares() throws {
        var configuration = encryptedConfiguration()
        XCTAssertEqual(configuration, encryptedConfiguration())
        for part in [
            "Realm.Configuration {\n", "\tfileURL = file://", "\tinMemoryIdentifier = (null);\n", "\treadOnly = false;\n",
            "\tschemaVersion = 0;\n",
        ] {
            XCTAssertTrue(configuration.description.contains(part), configuration.description)
        }
        XCTAssertFalse(configuration.description.contains(keyText), "no key in logs")
        configuration.schemaVersion = 2
        XCTAssertNotEqual(configuration, encryptedConfiguration())
        configuration.inMemoryIdentifier = "x"
        XCTAssertNil(configuration.fileURL)
        configuration.fileURL = url()
        XCTAssertNil(configuration.inMemoryIdentifier)
        configuration.inMemoryIdentifier = "x"
        configuration.seedFilePath = url("seed")
        XCTAssertNil(configuration.inMemoryIdentifier)
        XCTAssertTrue(try XCTUnwrap(fileConfiguration("a.realm", [Dog.self]).objectTypes)[0] == Dog.self)
        assertTraps("reserved schema version", "schema version")
        assertTraps("read only and delete", "readOnly")
        assertTraps("read only and compact", "readOnly")
        assertTraps("empty path", "must not be empty")
        assertTraps("neither path nor identifier", "file URL or an in-memory identifier")
        assertTraps("object type", "object type")
    }

    func testTheInitialDataComesWithTheFile() throws {
        var configuration = fileConfiguration()
        let calls = Mutex(0)
        configuration.initialDataBlock = { realm in
            calls.withLock { $0 += 1 }
            realm.add(Dog(name: "first"))
        }
        for _ in 0..<2 {
            onThread { [configuration] in
                XCTAssertEqual(try! Realm(configuration: configuration).objects(Dog.self).map(\.name), ["first"])
            }
        }
        XCTAssertEqual(calls.withLock { $0 }, 1)
        let plain = try Realm(configuration: configuration)
        XCTAssertEqual(plain.objects(Dog.self).count, 1)
        assertTraps("commit in initial data", "must not commit")
    }

    // MARK: asyncOpen

    func testF400_asyncOpenDeliversOnTheCallbackQueue() throws {
        let configuration = fileConfiguration()
        makeFile(configuration)
        let queue = DispatchQueue(label: "q")
        let done = DispatchSemaphore(value: 0)
        Realm.asyncOpen(configuration: configuration, callbackQueue: queue) { result in
            dispatchPrecondition(condition: .onQueue(queue))
            XCTAssertEqual(try? result.get().objects(Dog.self).count, 1)
            done.signal()
        }
        XCTAssertEqual(done.wait(timeout: .now() + TestTime.limit(10)), .success)
        var isCalled = false
        Realm.asyncOpen(configuration: configuration) { result in
            XCTAssertTrue(Thread.isMainThread)
            XCTAssertEqual(try? result.get().objects(Dog.self).count, 1)
            isCalled = true
        }
        XCTAssertTrue(spin { isCalled })
        var error: Error?
        Realm.asyncOpen(configuration: fileConfiguration("missing/a.realm")) { result in
            if case .failure(let failure) = result { error = failure }
        }
        XCTAssertTrue(spin { error != nil })
        XCTAssertEqual((error as? Realm.Error)?.code, .fileNotFound)
        XCTAssertTrue((error as? Realm.Error)?.code == .fileNotFound)
        XCTAssertTrue((error as? Realm.Error)?.code != .alreadyOpen)
        let none: Realm.Error? = nil
        XCTAssertFalse(none?.code == .fileNotFound)
        XCTAssertTrue(none?.code != .fileNotFound)
    }

    func testACancelledAsyncOpenDoesNotCallBack() throws {
        var isCalled = false
        let task = Realm.asyncOpen(configuration: fileConfiguration()) { _ in isCalled = true }
        task.cancel()
        XCTAssertFalse(spin(seconds: 0.1) { isCalled })
    }

    // MARK: Deleting

    func testF341_F411_deletingAFileKeepsItsLockFile() throws {
        makeFile(fileConfiguration())
        XCTAssertTrue(Realm.fileExists(for: fileConfiguration()))
        XCTAssertTrue(try Realm.deleteFiles(for: fileConfiguration()))
        XCTAssertFalse(Realm.fileExists(for: fileConfiguration()))
        for name in ["a.realm", "a.realm.note", "a.realm.management"] { XCTAssertFalse(exists(name), name) }
        XCTAssertTrue(exists("a.realm.lock"))
        XCTAssertFalse(try Realm.deleteFiles(for: fileConfiguration()))
        XCTAssertTrue(try Realm(configuration: fileConfiguration()).isEmpty)
    }

    func testF342_aFileThatAnotherProcessHasOpenIsNotDeleted() throws {
        let process = try ChildProcess(product: "TestParticipant", ["realm", "hold", scratch.file("a.realm")])
        XCTAssertEqual(process.readLine(), "open")
        XCTAssertEqual(realmError(try Realm.deleteFiles(for: fileConfiguration()))?.code, .alreadyOpen)
        XCTAssertTrue(exists("a.realm"))
        process.send("end")
        XCTAssertEqual(process.waitForEnd(), 0)
        XCTAssertTrue(try Realm.deleteFiles(for: fileConfiguration()))
    }

    func testF344_fileExists() throws {
        XCTAssertFalse(Realm.fileExists(for: fileConfiguration()))
        makeFile(fileConfiguration())
        XCTAssertTrue(Realm.fileExists(for: fileConfiguration()))
        XCTAssertFalse(Realm.fileExists(for: Realm.Configuration(inMemoryIdentifier: "x")))
    }

    func testF345_theSchemaVersionOfAFile() throws {
        XCTAssertEqual(realmError(try schemaVersionAtURL(url()))?.code, .fileNotFound)
        XCTAssertFalse(exists("a.realm"))
        var configuration = fileConfiguration()
        configuration.schemaVersion = 7
        makeFile(configuration)
        XCTAssertEqual(try schemaVersionAtURL(url(), encryptionKey: TestKeys.usualData), 7)
        let realm = try Realm(configuration: configuration)
        XCTAssertEqual(try schemaVersionAtURL(url(), encryptionKey: TestKeys.usualData), 7, "while it is open")
        withExtendedLifetime(realm) {}
        var encrypted = encryptedConfiguration("e.realm")
        encrypted.schemaVersion = 3
        makeFile(encrypted)
        XCTAssertEqual(try schemaVersionAtURL(url("e.realm"), encryptionKey: key), 3)
        XCTAssertEqual(realmError(try schemaVersionAtURL(url("e.realm")))?.code, .invalidDatabase)
    }

    // MARK: Encryption

    func testF347_F348_anEncryptedFileNeedsItsKey() throws {
        makeFile(encryptedConfiguration())
        XCTAssertEqual(try Realm(configuration: encryptedConfiguration()).objects(Dog.self).count, 1)
        XCTAssertEqual(realmError(try Realm(configuration: fileConfiguration()))?.code, .invalidDatabase)
        var wrong = fileConfiguration()
        wrong.encryptionKey = Data(count: 64)
        let error = realmError(try Realm(configuration: wrong))
        XCTAssertEqual(error?.code, .invalidDatabase)
        // The message says so too, and names the file once.
        let message = error?.localizedDescription ?? ""
        XCTAssertTrue(message.contains("invalid database"), message)
        XCTAssertEqual(message.components(separatedBy: scratch.file("a.realm")).count, 2, message)
        makeFile(fileConfiguration("plain.realm"))
        XCTAssertEqual(realmError(try Realm(configuration: encryptedConfiguration("plain.realm")))?.code, .invalidDatabase)
        let text = try Data(contentsOf: url())
        XCTAssertNil(text.range(of: Data("T-DB".utf8)))
        XCTAssertNil(text.range(of: Data("class_Dog".utf8)))
        assertTraps("short key", "64 bytes")
    }

    func testF351_anEncryptedFileIsSharedByProcesses() throws {
        var configuration = fileConfiguration("a.realm", [Dog.self, Person.self, Address.self, Country.self])
        configuration.encryptionKey = key
        let realm = try Realm(configuration: configuration)
        try realm.write { realm.add(Dog(name: "Ada")) }
        XCTAssertEqual(try runRealmCommand(["add", scratch.file("a.realm"), "Bo", keyText]), "2")
        XCTAssertTrue(spin { realm.objects(Dog.self).count == 2 })
    }

    func testF352_encryptionIsSwitchedOffForDebugging() throws {
        _ = try runRealmCommand(
            ["add", scratch.file("a.realm"), "Ada", keyText], environment: ["REALM_DISABLE_ENCRYPTION": "YES"])
        XCTAssertEqual(try Data(contentsOf: url())[16..<20], Data("T-DB".utf8))
        // Without a key: where tests have one anyway, that is switched off again.
        let plain = TestKeys.usual == nil ? [:] : ["REALM_DISABLE_ENCRYPTION": "YES"]
        XCTAssertEqual(try runRealmCommand(["names", scratch.file("a.realm")], environment: plain), "Ada")
    }

    func testF353_aPageThatWasTamperedWithIsFound() throws {
        makeFile(encryptedConfiguration(), dogs: 100)
        let handle = try FileHandle(forUpdating: url())
        // Within the first page of content, behind the page of checksums.
        try handle.seek(toOffset: 4096 + 100)
        try handle.write(contentsOf: Data([0x55]))
        try handle.close()
        XCTAssertEqual(realmError(try Realm(configuration: encryptedConfiguration()))?.code, .invalidDatabase)
    }

    // MARK: Copies and seeds

    func testF355_F362_aCopyIsCompactedAndOpens() throws {
        let realm = try Realm(configuration: fileConfiguration())
        for _ in 0..<5 {
            try realm.write { for number in 0..<500 { realm.add(Dog(name: "Dog \(number)")) } }
            try realm.write { realm.deleteAll() }
        }
        try realm.write { realm.add(Dog(name: "Rex")) }
        try realm.writeCopy(toFile: url("copy.realm"), encryptionKey: TestKeys.usualData)
        XCTAssertLessThan(try size("copy.realm"), try size() / 2)
        XCTAssertEqual(try Realm(configuration: fileConfiguration("copy.realm")).objects(Dog.self).map(\.name), ["Rex"])
        XCTAssertEqual(realmError(try realm.writeCopy(toFile: url("copy.realm")))?.code, .fileExists)
        XCTAssertEqual(realmError(try realm.writeCopy(toFile: url("missing/copy.realm")))?.code, .fileNotFound)
        try realm.freeze().writeCopy(toFile: url("frozen.realm"), encryptionKey: TestKeys.usualData)
        XCTAssertEqual(try Realm(configuration: fileConfiguration("frozen.realm")).objects(Dog.self).count, 1)
    }

    func testF363_aCopyHasTheKeyThatItWasGiven() throws {
        makeFile(fileConfiguration())
        let realm = try Realm(configuration: fileConfiguration())
        try realm.writeCopy(configuration: encryptedConfiguration("copy.realm"))
        XCTAssertEqual(try Realm(configuration: encryptedConfiguration("copy.realm")).objects(Dog.self).count, 1)
        try Realm(configuration: encryptedConfiguration("copy.realm")).writeCopy(
            toFile: url("plain.realm"), encryptionKey: TestKeys.usualData)
        XCTAssertEqual(try Realm(configuration: fileConfiguration("plain.realm")).objects(Dog.self).count, 1)
        try realm.writeCopy(toFile: url("again.realm"), encryptionKey: Data(repeating: 1, count: 64))
        XCTAssertEqual(realmError(try Realm(configuration: encryptedConfiguration("again.realm")))?.code, .invalidDatabase)
    }

    func testF364_aCopyWithinATransactionHasItsChanges() throws {
        let realm = try Realm(configuration: fileConfiguration())
        try realm.write { realm.add(Dog(name: "Rex")) }
        try realm.write {
            realm.add(Dog(name: "Ada"))
            realm.objects(Dog.self).where { $0.name == "Rex" }.first?.age = 9
            try realm.writeCopy(toFile: url("copy.realm"), encryptionKey: TestKeys.usualData)
            realm.cancelWrite()
        }
        let copy = try Realm(configuration: fileConfiguration("copy.realm"))
        XCTAssertEqual(copy.objects(Dog.self).sorted(byKeyPath: "name").map(\.age), [0, 9])
        XCTAssertEqual(realm.objects(Dog.self).count, 1)
    }

    func testF358_aSeedIsCopiedOnce() throws {
        makeFile(fileConfiguration("seed.realm"), dogs: 2)
        var configuration = fileConfiguration()
        configuration.seedFilePath = url("seed.realm")
        makeFile(configuration)
        XCTAssertEqual(try Realm(configuration: configuration).objects(Dog.self).count, 3, "the existing file wins")
        XCTAssertEqual(try Realm(configuration: fileConfiguration("seed.realm")).objects(Dog.self).count, 2)
        configuration = fileConfiguration("b.realm")
        configuration.seedFilePath = url("missing.realm")
        XCTAssertEqual(realmError(try Realm(configuration: configuration))?.code, .fileNotFound)
        XCTAssertFalse(exists("b.realm"))
        configuration = fileConfiguration("c.realm")
        configuration.seedFilePath = url("seed.realm")
        configuration.readOnly = true
        XCTAssertEqual(try Realm(configuration: configuration).objects(Dog.self).count, 2, "a read-only opening too")
        var opened = false
        configuration = fileConfiguration("d.realm")
        configuration.seedFilePath = url("seed.realm")
        Realm.asyncOpen(configuration: configuration) { opened = (try? $0.get().objects(Dog.self).count) == 2 }
        XCTAssertTrue(spin { opened }, "and one in the background")
    }

    /// One that was copied would stay, also when the next version of the program brings a better one.
    func testASeedThatCannotBeOpenedIsNamedAndNotCopied() throws {
        makeFile(fileConfiguration("seed.realm"), dogs: 2)
        let sound = try Data(contentsOf: url("seed.realm"))
        var configuration = fileConfiguration()
        configuration.seedFilePath = url("seed.realm")
        for damaged in [Data(), Data("a text".utf8), sound.prefix(20), Data(count: sound.count)] {
            try damaged.write(to: url("seed.realm"))
            let error = realmError(try Realm(configuration: configuration))
            XCTAssertEqual(error?.code, .invalidDatabase)
            XCTAssertTrue(error?.localizedDescription.contains(url("seed.realm").path) == true, "\(error as Any)")
            XCTAssertFalse(exists("a.realm"))
        }
        try sound.write(to: url("seed.realm"))
        configuration.encryptionKey = Data(repeating: 77, count: 64)
        XCTAssertEqual(realmError(try Realm(configuration: configuration))?.code, .invalidDatabase)
        XCTAssertFalse(exists("a.realm"))
        configuration = fileConfiguration()
        configuration.seedFilePath = url("seed.realm")
        XCTAssertEqual(try Realm(configuration: configuration).objects(Dog.self).count, 2)
    }

    // MARK: Space

    func testF359_spaceIsUsedAgain() throws {
        let realm = try Realm(configuration: fileConfiguration())
        let dog = try realm.write { realm.create(Dog.self) }
        var sizes: [Int] = []
        for number in 0..<200 {
            try realm.write { dog.name = String(repeating: "\(number % 10)", count: 20_000) }
            sizes.append(try size())
        }
        XCTAssertEqual(sizes[199], sizes[50], "after the beginning nothing grows")
    }

    func testF360_F361_F367_compactionOnLaunch() throws {
        let configuration = fileConfiguration()
        onThread {
            let realm = try! Realm(configuration: configuration)
            try! realm.write { for number in 0..<3000 { realm.add(Dog(name: "Dog with a long name \(number)")) } }
            try! realm.write { realm.delete(realm.objects(Dog.self).where { $0.name != "Dog with a long name 7" }) }
            try! realm.write { realm.add(Dog(name: "Rex")) }
        }
        let before = try size()
        let calls = Mutex<[[Int]]>([])
        var compacting = configuration
        compacting.shouldCompactOnLaunch = { total, used in
            calls.withLock { $0.append([total, used]) }
            // The usual condition: large enough, and less than half used.
            return total > 10_000 && Double(used) / Double(total) < 0.5
        }
        do {
            let realm = try Realm(configuration: compacting)
            XCTAssertEqual(realm.objects(Dog.self).count, 2)
            XCTAssertEqual(try Realm(configuration: compacting), realm, "the second opening does not ask")
            try realm.write { realm.add(Dog(name: "after")) }
        }
        XCTAssertEqual(calls.withLock { $0.count }, 1)
        // Of an encrypted file it is the content that is asked about, without its pages of tags.
        if TestKeys.usual == nil { XCTAssertEqual(calls.withLock { $0[0][0] }, before) }
        XCTAssertLessThan(calls.withLock { $0[0][1] }, before / 2)
        XCTAssertLessThan(try size(), before / 2)
        // In the background, and while another process has the file open: then silently not.
        let process = try ChildProcess(product: "TestParticipant", ["realm", "hold", scratch.file("b.realm")])
        XCTAssertEqual(process.readLine(), "open")
        var always = fileConfiguration("b.realm", [Dog.self, Person.self, Address.self, Country.self])
        always.shouldCompactOnLaunch = { _, _ in true }
        var isOpen = false
        Realm.asyncOpen(configuration: always) { isOpen = (try? $0.get().isEmpty) == true }
        XCTAssertTrue(spin { isOpen })
        process.send("end")
        XCTAssertEqual(process.waitForEnd(), 0)
        isOpen = false
        Realm.asyncOpen(configuration: always) { isOpen = (try? $0.get().isEmpty) == true }
        XCTAssertTrue(spin { isOpen })
    }

    func testF365_F366_aHeldVersionCostsSpaceUntilItIsReleased() throws {
        let realm = try Realm(configuration: fileConfiguration())
        let dog = try realm.write { realm.create(Dog.self) }
        var frozen: [Realm] = []
        /// Twenty commits of 100,000 bytes each.
        func grow(keeping: Bool) throws -> Int {
            let before = try size()
            for number in 0..<20 {
                if keeping { frozen.append(realm.freeze()) }
                try realm.write { dog.name = String(repeating: "\(number % 10)", count: 100_000) }
            }
            return try size() - before
        }
        _ = try autoreleasepool { try grow(keeping: false) }
        XCTAssertGreaterThan(try grow(keeping: true), 1_000_000)
        XCTAssertEqual(frozen.last?.objects(Dog.self).first?.name.count, 100_000)
        frozen = []
        XCTAssertEqual(try grow(keeping: false), 0)
        realm.invalidate()
        XCTAssertEqual(realm.objects(Dog.self).count, 1)
    }

    func testF369_moreVersionsThanAllowedPreventWriting() throws {
        var configuration = fileConfiguration()
        configuration.maximumNumberOfActiveVersions = 3
        let realm = try Realm(configuration: configuration)
        var frozen: [Realm] = []
        var error: Error?
        for _ in 0..<6 where error == nil {
            frozen.append(realm.freeze())
            do { try realm.write { realm.add(Dog()) } } catch let failure { error = failure }
        }
        XCTAssertTrue("\(try XCTUnwrap(error))".contains("versions"), "\(String(describing: error))")
        XCTAssertFalse(realm.isInWriteTransaction)
        frozen = []
        try realm.write { realm.add(Dog()) }
        assertTraps("too many versions at beginWrite", "versions")
    }

    // MARK: Tests with Realms

    func testF387_aTestHasARealmInMemoryOfItsOwn() throws {
        let before = Realm.Configuration.defaultConfiguration
        defer { Realm.Configuration.defaultConfiguration = before }
        Realm.Configuration.defaultConfiguration = Realm.Configuration(inMemoryIdentifier: name, objectTypes: RealmTestCase.types)
        let realm = try Realm()
        XCTAssertTrue(realm.isEmpty)
        try realm.write { realm.add(Dog()) }
        XCTAssertEqual(try Realm().objects(Dog.self).count, 1)
        XCTAssertTrue(
            try Realm(configuration: Realm.Configuration(inMemoryIdentifier: name + "2", objectTypes: RealmTestCase.types))
                .isEmpty)
    }

    /// What an application would have, with the Realm given to it.
    private func renameAll(in realm: Realm, to name: String) throws {
        try realm.write { realm.objects(Dog.self).setValue(name, forKey: "name") }
    }

    func testF388_aRealmIsInjected() throws {
        let realm = try Realm(configuration: Realm.Configuration(inMemoryIdentifier: name, objectTypes: RealmTestCase.types))
        try realm.write { realm.add([Dog(name: "a"), Dog(name: "b")]) }
        try renameAll(in: realm, to: "c")
        XCTAssertEqual(realm.objects(Dog.self).map(\.name), ["c", "c"])
    }

    func testF390_aModelIsFoundOnce() throws {
        let realm = try Realm(configuration: fileConfiguration())
        XCTAssertEqual(realm.schema.objectSchema.filter { $0.className == "Dog" }.count, 1)
    }

    func testF393_aModelWithoutPropertiesIsTold() {
        assertTraps("no properties", "No properties are defined for 'Propertyless'")
    }
}
