import Foundation
import RealmSwift
import RealmSwiftTestModels
import Synchronization
import TestSupport
import XCTest

@globalActor
private actor BackgroundActor {
    static let shared = BackgroundActor()
}

/// An actor as an application writes it.
private actor DogKeeper {
    var realm: Realm!

    init(_ configuration: Realm.Configuration) async throws {
        realm = try await Realm(configuration: configuration, actor: self)
    }

    var count: Int { realm.objects(Dog.self).count }

    @discardableResult
    func add(_ name: String) async throws -> ObjectId {
        try await realm.asyncWrite {
            realm.create(Dog.self, value: ["name": name])
        }.id
    }

    func name(_ id: ObjectId) -> String? { realm.object(ofType: Dog.self, forPrimaryKey: id)?.name }

    func names() -> [String] { realm.objects(Dog.self).map(\.name).sorted() }

    func addSynchronously(_ name: String) throws { try realm.write { realm.add(Dog(name: name)) } }

    /// Begins before and commits after a suspension.
    func addSlowly(_ name: String) async throws {
        realm.beginWrite()
        realm.add(Dog(name: name))
        for _ in 0..<5 { try await Task.sleep(nanoseconds: 1_000_000) }
        try realm.commitWrite()
    }

    func reference(_ id: ObjectId) -> ThreadSafeReference<Dog>? {
        realm.object(ofType: Dog.self, forPrimaryKey: id).map { ThreadSafeReference(to: $0) }
    }

    func rename(_ reference: ThreadSafeReference<Dog>, _ name: String) async throws {
        try await realm.asyncWrite { realm.resolve(reference)?.name = name }
    }

    func refresh() async -> Bool { await realm.asyncRefresh() }
    func setAutorefresh(_ value: Bool) { realm.autorefresh = value }

    /// A session of the actor, opened from within.
    func opensTheSameSession(_ configuration: Realm.Configuration) async throws -> Bool {
        let other = try await Realm.open(configuration: configuration)
        return other == realm
    }

    func failingWrite() async throws {
        struct Failure: Error {}
        try await realm.asyncWrite {
            realm.add(Dog(name: "undone"))
            throw Failure()
        }
    }

    func close() { realm = nil }
}

/// A function that is isolated to the caller's actor works on its Realm synchronously.
private func countDogs(_ keeper: isolated DogKeeper) -> Int { keeper.realm.objects(Dog.self).count }

private func waitFor(_ semaphore: DispatchSemaphore) async {
    await withCheckedContinuation { continuation in
        DispatchQueue.global().async {
            semaphore.wait()
            continuation.resume()
        }
    }
}

/// Realms with asynchronous functions and actors (feature table, section N).
final class ActorFeatureTests: FileTestCase {
    @MainActor
    func testF308_F309_F313_theMainActorMaySuspendAndGoOn() async throws {
        let realm = try await Realm(configuration: fileConfiguration())
        let dogs = realm.objects(Dog.self)
        try realm.write { realm.add(Dog(name: "Ada")) }
        try await Task.sleep(nanoseconds: 2_000_000)
        XCTAssertEqual(dogs.first?.name, "Ada")
        try await realm.asyncWrite { realm.add(Dog(name: "Bo")) }
        await Task.yield()
        XCTAssertEqual(dogs.count, 2)
        let again = try await Realm(configuration: fileConfiguration(), actor: MainActor.shared)
        XCTAssertEqual(again, realm)
        let opened = try await Realm.open(configuration: fileConfiguration())
        XCTAssertEqual(opened, realm)
    }

    @MainActor
    func testF310_F319_asyncWriteReturnsWhatTheBlockReturnsWhenItIsOnTheDisk() async throws {
        let configuration = fileConfiguration()
        let realm = try await Realm(configuration: configuration)
        let dog = try await realm.asyncWrite { realm.create(Dog.self, value: ["name": "Ada"]) }
        XCTAssertEqual(dog.name, "Ada")
        XCTAssertFalse(realm.isInWriteTransaction)
        XCTAssertEqual(try runRealmCommand(["names", scratch.file("a.realm")]), "Ada")
    }

    func testF311_tasksOfAGroupEachHaveTheirOwnRealm() async throws {
        let configuration = fileConfiguration()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<8 {
                group.addTask {
                    func work() throws {
                        let realm = try Realm(configuration: configuration)
                        try realm.write { realm.add(Dog(name: "\(number)")) }
                    }
                    try work()
                }
            }
            try await group.waitForAll()
        }
        let keeper = try await DogKeeper(configuration)
        let count = await keeper.count
        XCTAssertEqual(count, 8)
        await keeper.close()
    }

    func testF312_F314_F315_F317_anActorHoldsARealm() async throws {
        let configuration = fileConfiguration()
        let keeper = try await DogKeeper(configuration)
        let id = try await keeper.add("Ada")
        let name = await keeper.name(id)
        XCTAssertEqual(name, "Ada")
        let isSame = try await keeper.opensTheSameSession(configuration)
        XCTAssertTrue(isSame)
        try await keeper.addSynchronously("Bo")
        try await keeper.addSlowly("Cy")
        let names = await keeper.names()
        XCTAssertEqual(names, ["Ada", "Bo", "Cy"])
        await keeper.close()
    }

    func testF316_isolatedFunctionsUseTheRealmSynchronously() async throws {
        let keeper = try await DogKeeper(fileConfiguration())
        try await keeper.add("Ada")
        let count = await countDogs(keeper)
        XCTAssertEqual(count, 1)
        await keeper.close()
    }

    func testF318_aGlobalActorHasARealm() async throws {
        let configuration = fileConfiguration()
        let count = try await GlobalActorUser.add(configuration)
        XCTAssertEqual(count, 1)
        let onMain = try await MainActorUser.count(configuration)
        XCTAssertEqual(onMain, 1)
    }

    @BackgroundActor
    private enum GlobalActorUser {
        static func add(_ configuration: Realm.Configuration) async throws -> Int {
            let realm = try await Realm(configuration: configuration, actor: BackgroundActor.shared)
            try await realm.asyncWrite { realm.add(Dog(name: "Ada")) }
            return realm.objects(Dog.self).count
        }
    }

    @MainActor
    private enum MainActorUser {
        static func count(_ configuration: Realm.Configuration) async throws -> Int {
            try await Realm(configuration: configuration, actor: MainActor.shared).objects(Dog.self).count
        }

        static func names(_ configuration: Realm.Configuration) async throws -> [String] {
            try await Realm(configuration: configuration, downloadBeforeOpen: .always).objects(Dog.self).map(\.name)
        }
    }

    func testF319_anErrorInTheBlockUndoesTheTransaction() async throws {
        let keeper = try await DogKeeper(fileConfiguration())
        do {
            try await keeper.failingWrite()
            XCTFail("nothing was thrown")
        } catch {}
        let count = await keeper.count
        XCTAssertEqual(count, 0)
        try await keeper.add("Ada")
        await keeper.close()
    }

    func testF319_manyTasksWriteThroughOneActor() async throws {
        let keeper = try await DogKeeper(fileConfiguration())
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<40 {
                group.addTask {
                    switch number % 4 {
                    case 0: try await keeper.addSynchronously("\(number)")
                    default: try await keeper.add("\(number)")
                    }
                }
            }
            try await group.waitForAll()
        }
        let count = await keeper.count
        XCTAssertEqual(count, 40)
        await keeper.close()
    }

    func testF320_asyncRefreshGoesToTheNewestVersion() async throws {
        let configuration = fileConfiguration()
        let keeper = try await DogKeeper(configuration)
        await keeper.setAutorefresh(false)
        onThread { addDog(configuration) }
        let before = await keeper.count
        XCTAssertEqual(before, 0)
        let moved = await keeper.refresh()
        XCTAssertTrue(moved)
        let after = await keeper.count
        XCTAssertEqual(after, 1)
        let again = await keeper.refresh()
        XCTAssertFalse(again)
        await keeper.close()
        assertTraps("asyncWrite of a thread", "main actor or actor-isolated Realms")
    }

    func testF321_aReferenceCrossesActors() async throws {
        let configuration = fileConfiguration()
        let one = try await DogKeeper(configuration), other = try await DogKeeper(configuration)
        let id = try await one.add("Ada")
        let found = await one.reference(id)
        try await other.rename(XCTUnwrap(found), "Renamed")
        _ = await one.refresh()
        let name = await one.name(id)
        XCTAssertEqual(name, "Renamed")
        await one.close()
        await other.close()
    }

    func testF322_aKeyCrossesActors() async throws {
        let configuration = fileConfiguration()
        let one = try await DogKeeper(configuration), other = try await DogKeeper(configuration)
        let id = try await one.add("Ada")
        _ = await other.refresh()
        let name = await other.name(id)
        XCTAssertEqual(name, "Ada")
        await one.close()
        await other.close()
    }

    private struct DogValue: Sendable, Equatable {
        let name: String
        let age: Int
        init(_ dog: Dog) { (name, age) = (dog.name, dog.age) }
    }

    @MainActor
    func testF323_aCopyOfTheValuesCrossesActors() async throws {
        let realm = try await Realm(configuration: fileConfiguration())
        let value = try await realm.asyncWrite { DogValue(realm.create(Dog.self, value: ["name": "Ada", "age": 3])) }
        let seen = await Task.detached { value }.value
        XCTAssertEqual(seen.name, "Ada")
        XCTAssertEqual(seen.age, 3)
    }

    @MainActor
    func testF324_aCancelledTaskGivesUpItsTurn() async throws {
        let configuration = fileConfiguration()
        let realm = try await Realm(configuration: configuration)
        // Somebody else writes, for as long as we like.
        let begun = DispatchSemaphore(value: 0), end = DispatchSemaphore(value: 0), ended = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            let realm = try! Realm(configuration: configuration)
            try! realm.write {
                begun.signal()
                end.wait()
            }
            ended.signal()
        }
        await waitFor(begun)
        let task = Task { @MainActor in
            try await realm.asyncWrite { realm.add(Dog(name: "must not be")) }
        }
        for _ in 0..<10 { await Task.yield() }
        XCTAssertTrue(realm.isPerformingAsynchronousWriteOperations)
        task.cancel()
        do {
            try await task.value
            XCTFail("nothing was thrown")
        } catch { XCTAssertTrue(error is CancellationError, "\(error)") }
        end.signal()
        await waitFor(ended)
        try await realm.asyncWrite { realm.add(Dog(name: "Ada")) }
        XCTAssertEqual(realm.objects(Dog.self).map(\.name), ["Ada"])
        // A task that is cancelled already does not even wait.
        let cancelled = Task { @MainActor in
            withUnsafeCurrentTask { $0?.cancel() }
            try await realm.asyncWrite {}
        }
        let result = await cancelled.result
        XCTAssertThrowsError(try result.get()) { XCTAssertTrue($0 is CancellationError) }
        let opening = Task { @MainActor in
            withUnsafeCurrentTask { $0?.cancel() }
            _ = try await Realm(configuration: configuration)
        }
        let opened = await opening.result
        XCTAssertThrowsError(try opened.get()) { XCTAssertTrue($0 is CancellationError) }
    }

    func testF329_openingInTheBackgroundPreparesTheFile() async throws {
        var configuration = fileConfiguration()
        makeFile(configuration, dogs: 2)
        configuration.schemaVersion = 1
        configuration.migrationBlock = { migration, _ in
            XCTAssertFalse(Thread.isMainThread)
            migration.enumerateObjects(ofType: "Dog") { _, new in new?["name"] = "migrated" }
        }
        let result = try await MainActorUser.names(configuration)
        XCTAssertEqual(result, ["migrated", "migrated"])
    }
}
