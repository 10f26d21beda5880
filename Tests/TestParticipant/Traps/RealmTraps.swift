import Foundation
import RealmSwift
import RealmSwiftTestModels

/// A Realm of the test models in a file.
@MainActor func trapRealm(_ directory: String) throws -> Realm { try Realm(configuration: trapConfiguration(directory)) }

func trapConfiguration(_ directory: String) -> Realm.Configuration {
    Realm.Configuration(fileURL: URL(fileURLWithPath: directory + "/a.realm"), objectTypes: [Dog.self, Person.self, Address.self, Country.self])
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
]
