import Foundation
import RealmSwift
import RealmSwiftTestModels

/// Misuses of change notifications.
@MainActor let observationTrapCases: [String: TrapCase] = [
    "observe: unmanaged object": { _ in _ = Dog().observe { (_: ObjectChange<Dog>) in } },
    "observe: unmanaged list": { _ in _ = List<Int>().observe { _ in } },
    "observe: frozen results": { directory in
        let realm = try trapRealm(directory)
        _ = realm.objects(Dog.self).freeze().observe { _ in }
    },
    "observe: frozen realm": { directory in _ = try trapRealm(directory).freeze().observe { _, _ in } },
    "observe: no run loop": { directory in
        onOtherThread {
            let realm = try! Realm(configuration: trapConfiguration(directory))
            _ = realm.objects(Dog.self).observe { _ in }
        }
    },
    "observe: after a change in a transaction": { directory in
        let realm = try trapRealm(directory)
        try realm.write {
            realm.add(Dog(name: "x"))
            _ = realm.objects(Dog.self).observe { _ in }
        }
    },
    "observe: a token of another session is skipped": { directory in
        let realm = try trapRealm(directory)
        let queue = DispatchQueue(label: "other")
        let token = realm.objects(Dog.self).observe(on: queue) { _ in }
        queue.sync {}
        try realm.write(withoutNotifying: [token]) { realm.add(Dog(name: "x")) }
    },
    "observe: unknown key path": { directory in
        let realm = try trapRealm(directory)
        _ = realm.objects(Person.self).observe(keyPaths: ["dogs.nothing"]) { _ in }
    },
    "observe: key path through a value": { directory in
        let realm = try trapRealm(directory)
        _ = realm.objects(Person.self).observe(keyPaths: ["name.x"]) { _ in }
    },
]
