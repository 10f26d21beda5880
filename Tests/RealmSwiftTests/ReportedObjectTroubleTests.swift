import Foundation
import RealmSwift
import RealmSwiftTestModels
import TestSupport
import XCTest

@MainActor private func countOnMain(_ configuration: Realm.Configuration, _ behaviour: Realm.OpenBehavior) async throws -> Int {
    let realm = try await Realm(configuration: configuration, downloadBeforeOpen: behaviour)
    return realm.objects(Dog.self).count
}

/// Troubles that users of such libraries report, tried on the object API. See Documentation/reported-troubles.md.
final class ReportedObjectTroubleTests: FileTestCase {
    private actor Opener {
        func count(_ configuration: Realm.Configuration) async throws -> Int {
            let realm = try await Realm(configuration: configuration, actor: self, downloadBeforeOpen: .once)
            return realm.objects(Dog.self).count
        }

        func countByOpening(_ configuration: Realm.Configuration) async throws -> Int {
            let realm = try await Realm.open(configuration: configuration)
            return realm.objects(Dog.self).count
        }
    }

    func testASeedIsHonouredByEveryOpeningThatIsAwaited() async throws {
        makeFile(fileConfiguration("seed.realm"), dogs: 2)
        func seeded(_ name: String) -> Realm.Configuration {
            var configuration = fileConfiguration(name)
            configuration.seedFilePath = url("seed.realm")
            return configuration
        }
        let opener = Opener()
        let counts = [
            try await countOnMain(seeded("a.realm"), .never), try await countOnMain(seeded("b.realm"), .always),
            try await countOnMain(seeded("c.realm"), .once),
            try await opener.count(seeded("d.realm")), try await opener.countByOpening(seeded("e.realm")),
        ]
        XCTAssertEqual(counts, [2, 2, 2, 2, 2])
    }

    func testWhereTheDefaultFileCannotBeMadeTheErrorNamesTheWholePath() throws {
        // Nobody can make a folder there, not even the superuser.
        let environment = ["HOME": "/proc", "XDG_DATA_HOME": ""]
        let process = try ChildProcess(
            path: ChildProcess.products.appendingPathComponent("TestParticipant").path, ["realm", "default", "-"],
            environment: environment, workingDirectory: "/")
        XCTAssertEqual(process.waitForEnd(), 0, process.errors)
        XCTAssertTrue(process.output.hasPrefix("error "), process.output)
        XCTAssertTrue(process.output.contains("'/proc/.local/share/TestParticipant/default.realm'"), process.output)
    }

    func testTwoThreadsOpenAndCloseOneFileAgainAndAgain() throws {
        let configuration = fileConfiguration()
        makeFile(configuration)
        DispatchQueue.concurrentPerform(iterations: 2) { _ in
            for _ in 0..<150 {
                autoreleasepool {
                    let realm = try! Realm(configuration: configuration)
                    XCTAssertEqual(realm.objects(Dog.self).count, 1)
                }
            }
        }
        XCTAssertTrue(try Realm.deleteFiles(for: configuration))
    }

    func testAProcessThatExitsWhileThreadsWriteAndObserveEndsQuietly() throws {
        for round in 0..<3 {
            let process = try ChildProcess(product: "TestParticipant", ["realm", "exit-busy", scratch.file("busy.realm")])
            XCTAssertEqual(process.waitForEnd(), 0, "round \(round): \(process.errors)")
        }
        let realm = try Realm(
            configuration: Realm.Configuration(
                fileURL: url("busy.realm"), encryptionKey: TestKeys.usualData, objectTypes: RealmTestCase.types))
        XCTAssertGreaterThan(realm.objects(Dog.self).count, 0)
    }

    func testAFileThatWasCompactedAtLaunchIsNeitherMigratedNorMadeAnew() throws {
        var configuration = fileConfiguration()
        configuration.schemaVersion = 4
        makeFile(configuration, dogs: 3)
        configuration.shouldCompactOnLaunch = { _, _ in true }
        makeFile(configuration, dogs: 1)
        configuration.shouldCompactOnLaunch = nil
        configuration.migrationBlock = { _, _ in XCTFail("migrated") }
        makeFile(configuration, dogs: 1)
        configuration.migrationBlock = nil
        configuration.deleteRealmIfMigrationNeeded = true
        XCTAssertEqual(try Realm(configuration: configuration).objects(Dog.self).count, 5)
    }

    func testAFrozenVersionDoesNotMakeTheFileGrowWithEveryCommit() throws {
        let realm = try Realm(configuration: fileConfiguration()), object = AllTypes(value: ["key": "x"])
        func fill(_ byte: UInt8) throws { try realm.write { object.data = Data(repeating: byte, count: 200_000) } }
        try realm.write { realm.add(object) }
        try fill(1)
        let frozen = object.freeze()
        for round in 2..<42 { try fill(UInt8(round)) }
        XCTAssertEqual(frozen.data.first, 1)
        let size = try XCTUnwrap(FileManager.default.attributesOfItem(atPath: url().path)[.size] as? Int)
        XCTAssertLessThan(size, 2_000_000, "8 MB were written beside the frozen version")
    }

    private enum Earlier {
        final class Owner: Object {
            @Persisted(primaryKey: true) var id: Int
            @Persisted var name: String
        }
    }

    private func openEarlier() throws -> (Realm, Earlier.Owner) {
        let realm = try Realm(
            configuration: Realm.Configuration(
                fileURL: url(), encryptionKey: TestKeys.usualData, objectTypes: [Earlier.Owner.self]))
        return (realm, try realm.write { realm.create(Earlier.Owner.self, value: [1, "Ann"] as [Any]) })
    }

    func testAProgramGoesOnReadingWhenAnotherOneHasTakenItsPropertiesFromTheFile() throws {
        let (realm, owner) = try openEarlier()
        let found = realm.objects(Earlier.Owner.self).filter("name == 'Ann'")
        var callCount = 0
        let token = found.observe { _ in callCount += 1 }
        XCTAssertTrue(spin { callCount == 1 })
        XCTAssertEqual(try runRealmCommand(["migrate", url().path, "others"]), "1")
        XCTAssertFalse(realm.refresh())
        XCTAssertEqual(owner.name, "Ann")
        XCTAssertEqual(found.count, 1)
        XCTAssertThrowsError(try realm.write { owner.name = "Bo" }) { error in
            XCTAssertEqual((error as? Realm.Error)?.code, .schemaMismatch)
            XCTAssertTrue("\(error)".contains("'Owner.name'") && "\(error)".contains("schema version 1"), "\(error)")
        }
        var failure: (any Error)?
        realm.writeAsync({ XCTFail("written") }, onComplete: { failure = $0 })
        XCTAssertTrue(spin { failure != nil })
        XCTAssertFalse(realm.isInWriteTransaction)
        XCTAssertEqual(owner.name, "Ann")
        XCTAssertEqual(callCount, 1)
        withExtendedLifetime(token) {}
    }

    func testAProgramGoesOnWhenAnotherOneHasAddedProperties() throws {
        let (realm, owner) = try openEarlier()
        XCTAssertEqual(try runRealmCommand(["migrate", url().path, "more"]), "1")
        XCTAssertTrue(realm.refresh())
        try realm.write {
            owner.name = "Bo"
            realm.create(Earlier.Owner.self, value: [2, "Cy"] as [Any])
        }
        XCTAssertEqual(realm.objects(Earlier.Owner.self).sorted(byKeyPath: "id").map(\.name), ["Bo", "Cy"])
        XCTAssertEqual(realm.dynamicObjects("Owner").filter("score == 0").count, 2)
    }
}
