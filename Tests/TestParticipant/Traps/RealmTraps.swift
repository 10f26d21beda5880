import Foundation
import RealmSwift
import RealmSwiftTestModels

/// A Realm of the test models in a file.
@MainActor func trapRealm(_ directory: String) throws -> Realm { try Realm(configuration: trapConfiguration(directory)) }

func trapConfiguration(_ directory: String) -> Realm.Configuration {
    Realm.Configuration(
        fileURL: URL(fileURLWithPath: directory + "/a.realm"), objectTypes: [Dog.self, Person.self, Address.self, Country.self])
}

/// Runs `body` on another thread and waits for it.
func onOtherThread(_ body: @escaping () -> Void) {
    struct Carrier: @unchecked Sendable {
        // Sendable: that is the misuse.
        let body: () -> Void
    }
    let carrier = Carrier(body: body)
    let done = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
        carrier.body()
        done.signal()
    }
    done.wait()
}

/// Misuses of `Realm` and its transactions.
@MainActor let realmTrapCases: [String: TrapCase] = [
    "wrong thread: realm": { directory in
        let realm = try trapRealm(directory)
        onOtherThread { _ = realm.objects(Dog.self).count }
    },
    "wrong thread: object": { directory in
        let realm = try trapRealm(directory)
        let dog = try realm.write { realm.create(Dog.self, value: ["name": "Rex"]) }
        onOtherThread { _ = dog.name }
    },
    "forked child: object": { directory in
        let realm = try trapRealm(directory)
        let dog = try realm.write { realm.create(Dog.self, value: ["name": "Rex"]) }
        try ForkedProcess.endLike { _ = dog.name }
    },
    "forked child: write": { directory in
        let realm = try trapRealm(directory)
        try ForkedProcess.endLike { try? realm.write {} }
    },
    "forked child: opens": { directory in
        let realm = try trapRealm(directory)
        try ForkedProcess.endLike { _ = try? trapRealm(directory).isEmpty }
        _ = realm.isEmpty
    },
    "nested write": { directory in
        let realm = try trapRealm(directory)
        try realm.write { realm.beginWrite() }
    },
    "commit without transaction": { directory in try trapRealm(directory).commitWrite() },
    "cancel without transaction": { directory in try trapRealm(directory).cancelWrite() },
    "write outside of a transaction": { directory in
        let realm = try trapRealm(directory)
        let dog = try realm.write { realm.create(Dog.self, value: ["name": "Rex"]) }
        dog.name = "Max"
    },
    "wrong queue": { directory in
        let queue = DispatchQueue(label: "q")
        var realm: Realm?
        try queue.sync { realm = try Realm(configuration: trapConfiguration(directory), queue: queue) }
        _ = realm?.objects(Dog.self).count
    },
    "open off the queue": { directory in
        _ = try Realm(configuration: trapConfiguration(directory), queue: DispatchQueue(label: "q"))
    },
    "resolve twice": { directory in
        let realm = try trapRealm(directory)
        let reference = ThreadSafeReference(to: try realm.write { realm.create(Dog.self) })
        _ = realm.resolve(reference)
        _ = realm.resolve(reference)
    },
    "resolve in another file": { directory in
        let realm = try trapRealm(directory)
        let reference = ThreadSafeReference(to: try realm.write { realm.create(Dog.self) })
        var other = trapConfiguration(directory)
        other.fileURL = URL(fileURLWithPath: directory + "/b.realm")
        _ = try Realm(configuration: other).resolve(reference)
    },
    "reference to unmanaged": { _ in _ = ThreadSafeReference(to: Dog()) },
    "reference to deleted": { directory in
        let realm = try trapRealm(directory)
        let dog = try realm.write { realm.create(Dog.self) }
        try realm.write { realm.delete(dog) }
        _ = ThreadSafeReference(to: dog)
    },
    "resolve in frozen": { directory in
        let realm = try trapRealm(directory)
        let reference = ThreadSafeReference(to: try realm.write { realm.create(Dog.self) })
        _ = realm.freeze().resolve(reference)
    },
    "write to frozen": { directory in try trapRealm(directory).freeze().write {} },
    "write to frozen object": { directory in
        let realm = try trapRealm(directory)
        let dog = try realm.write { realm.create(Dog.self) }.freeze()
        try realm.write { dog.name = "Max" }
    },
    "freeze in write": { directory in
        let realm = try trapRealm(directory)
        try realm.write { _ = realm.freeze() }
    },
    "freeze new object": { directory in
        let realm = try trapRealm(directory)
        try realm.write { _ = realm.create(Dog.self).freeze() }
    },
    "autorefresh of frozen": { directory in try trapRealm(directory).freeze().autorefresh = true },
    "read only write": { directory in
        _ = try trapRealm(directory)
        var configuration = trapConfiguration(directory)
        configuration.fileURL = URL(fileURLWithPath: directory + "/copy.realm")
        try trapRealm(directory).writeCopy(configuration: configuration)
        configuration.readOnly = true
        try Realm(configuration: configuration).write {}
    },
    "read only refresh": { directory in
        var configuration = trapConfiguration(directory)
        configuration.fileURL = URL(fileURLWithPath: directory + "/copy.realm")
        try trapRealm(directory).writeCopy(configuration: configuration)
        configuration.readOnly = true
        try Realm(configuration: configuration).refresh()
    },
    "concurrent queue": { directory in
        let queue = DispatchQueue(label: "many at once", attributes: .concurrent)
        try queue.sync { _ = try Realm(configuration: trapConfiguration(directory), queue: queue) }
    },
    "global queue": { directory in
        let opened = DispatchSemaphore(value: 0)
        DispatchQueue.global().async {
            _ = try? Realm(configuration: trapConfiguration(directory), queue: .global())
            opened.signal()
        }
        opened.wait()
    },
    "read only invalidate": { directory in
        var configuration = trapConfiguration(directory)
        configuration.fileURL = URL(fileURLWithPath: directory + "/copy.realm")
        try trapRealm(directory).writeCopy(configuration: configuration)
        configuration.readOnly = true
        try Realm(configuration: configuration).invalidate()
    },
    "invalidated object": { directory in
        let realm = try trapRealm(directory)
        let dog = try realm.write { realm.create(Dog.self) }
        realm.invalidate()
        _ = dog.name
    },
    "short key": { directory in
        var configuration = trapConfiguration(directory)
        configuration.encryptionKey = Data(count: 63)
    },
    "reserved schema version": { directory in
        var configuration = trapConfiguration(directory)
        configuration.schemaVersion = .max
    },
    "read only and delete": { _ in _ = Realm.Configuration(readOnly: true, deleteRealmIfMigrationNeeded: true) },
    "read only and compact": { _ in _ = Realm.Configuration(readOnly: true, shouldCompactOnLaunch: { _, _ in true }) },
    "empty path": { _ in
        var configuration = Realm.Configuration()
        configuration.inMemoryIdentifier = ""
    },
    "neither path nor identifier": { _ in
        var configuration = Realm.Configuration()
        configuration.fileURL = nil
        _ = try Realm(configuration: configuration)
    },
    "object type": { _ in _ = Realm.Configuration(objectTypes: [ObjectBase.self]) },
    "no properties": { directory in
        _ = try! Realm(
            configuration: Realm.Configuration(
                fileURL: URL(fileURLWithPath: directory + "/a.realm"), objectTypes: [Propertyless.self]))
    },
    "init opens a realm": { directory in
        _ = try Realm(
            configuration: Realm.Configuration(
                fileURL: URL(fileURLWithPath: directory + "/a.realm"), objectTypes: [SelfOpening.self]))
    },
    "migrate open file": { directory in
        let realm = try trapRealm(directory)
        try withExtendedLifetime(realm) { try Realm.performMigration(for: trapConfiguration(directory)) }
    },
    "async write without run loop": { directory in
        let configuration = trapConfiguration(directory)
        let done = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            let realm = try! Realm(configuration: configuration)
            realm.writeAsync {}
            done.signal()
        }
        done.wait()
    },
    "asyncWrite of a thread": { directory in
        let configuration = trapConfiguration(directory)
        let done = DispatchSemaphore(value: 0)
        Task.detached {
            // Bound to the thread, whatever actor it is used on.
            func open() throws -> Realm { try Realm(configuration: configuration) }
            try await OtherActor().write(try open())
            done.signal()
        }
        done.wait()
    },
    "write in completion": { directory in
        let realm = try trapRealm(directory)
        realm.writeAsync({}, onComplete: { _ in realm.beginWrite() })
        RunLoop.main.run(until: Date(timeIntervalSinceNow: 10))
    },
    "open in a migration block": { directory in
        try autoreleasepool { _ = try trapRealm(directory).isEmpty }
        var configuration = trapConfiguration(directory)
        configuration.schemaVersion = 1
        configuration.migrationBlock = { _, _ in
            var again = trapConfiguration(directory)
            again.schemaVersion = 1
            _ = try? Realm(configuration: again)
        }
        _ = try Realm(configuration: configuration)
    },
    "commit in initial data": { directory in
        var configuration = trapConfiguration(directory)
        configuration.initialDataBlock = { realm in try! realm.commitWrite() }
        _ = try Realm(configuration: configuration)
    },
    "too many versions at beginWrite": { directory in
        var configuration = trapConfiguration(directory)
        configuration.maximumNumberOfActiveVersions = 2
        let realm = try Realm(configuration: configuration)
        var frozen: [Realm] = []
        for _ in 0..<5 {
            frozen.append(realm.freeze())
            realm.beginWrite()
            realm.add(Dog())
            try realm.commitWrite()
        }
    },
]

private actor OtherActor {
    func write(_ realm: sending Realm) async throws { try await realm.asyncWrite {} }
}

final class Propertyless: Object {
    override class func shouldIncludeInDefaultSchema() -> Bool { false }
}

final class SelfOpening: Object {
    @Persisted var name = ""
    override init() {
        super.init()
        _ = try? Realm(configuration: Realm.Configuration(inMemoryIdentifier: "x", objectTypes: [SelfOpening.self]))
    }
    override class func shouldIncludeInDefaultSchema() -> Bool { false }
}
