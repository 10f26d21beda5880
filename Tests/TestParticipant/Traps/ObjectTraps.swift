import Foundation
import RealmSwift
import RealmSwiftTestModels

// Misuses of objects and their collections.

private let types: [ObjectBase.Type] = [
    Dog.self, Person.self, Address.self, Country.self, AllTypes.self, Mapped.self, PointModel.self, Renamed.self, Base.self,
    Derived.self, Owner.self, Holder.self,
]

@MainActor func modelRealm(_ directory: String, _ name: String = "models") throws -> Realm {
    try Realm(configuration: Realm.Configuration(fileURL: URL(fileURLWithPath: directory + "/\(name).realm"), objectTypes: types))
}

/// A Realm with a person that has something of everything.
@MainActor func filledRealm(_ directory: String) throws -> (Realm, Person) {
    let realm = try modelRealm(directory)
    let person = Person(
        value: [
            "name": "Ann", "age": 3, "dogs": [["name": "Rex", "age": 1], ["name": "Ada", "age": 2]], "address": ["city": "York"],
            "tags": ["t"],
            "pets": ["p": ["name": "Kit"]],
        ] as [String: Any])
    try realm.write { realm.add(person) }
    return (realm, person)
}

@MainActor let objectTrapCases: [String: TrapCase] = [
    // No misuse, but an end that is as sudden.
    "killed in a transaction": { directory in
        let realm = try modelRealm(directory)
        try realm.write { realm.add(Dog(name: "Rex", age: 1)) }
        realm.beginWrite()
        realm.objects(Dog.self)[0].age = 2
        for i in 0..<1000 { realm.add(Dog(name: "dog \(i)")) }
        kill(getpid(), SIGKILL)
    },
    "key taken": { directory in
        let (realm, person) = try filledRealm(directory)
        let dog = Dog(name: "Max")
        dog.id = person.dogs[0].id
        try realm.write { realm.add(dog) }
    },
    "key taken, by create": { directory in
        let realm = try modelRealm(directory)
        try realm.write {
            realm.create(Owner.self, value: ["id": 7])
            realm.create(Owner.self, value: ["id": 7])
        }
    },
    "key changed": { directory in
        let (realm, person) = try filledRealm(directory)
        try realm.write { person.dogs[0].id = .generate() }
    },
    "integer key changed": { directory in
        let realm = try modelRealm(directory)
        try realm.write { realm.create(Owner.self, value: ["id": 7]).id = 7 }
    },
    "key changed by name": { directory in
        let (realm, person) = try filledRealm(directory)
        try realm.write { person.dogs[0]["id"] = ObjectId.generate() }
    },
    "subclass in a list of its base": { directory in
        let realm = try modelRealm(directory)
        try realm.write { realm.create(Holder.self).bases.append(Derived(value: ["title": "d"])) }
    },
    "subclass in a list of its base, managed": { directory in
        let realm = try modelRealm(directory)
        try realm.write {
            let derived = realm.create(Derived.self, value: ["title": "d"])
            realm.create(Holder.self).bases.append(derived)
        }
    },
    "deleted: read": { directory in
        let (realm, person) = try filledRealm(directory)
        try realm.write { realm.delete(person) }
        _ = person.name
    },
    "deleted: write": { directory in
        let (realm, person) = try filledRealm(directory)
        try realm.write {
            realm.delete(person)
            person.name = "x"
        }
    },
    "deleted: by name": { directory in
        let (realm, person) = try filledRealm(directory)
        try realm.write { realm.delete(person) }
        _ = person["name"]
    },
    "deleted: add": { directory in
        let (realm, person) = try filledRealm(directory)
        try realm.write {
            realm.delete(person)
            realm.add(person)
        }
    },
    "deleted: delete": { directory in
        let (realm, person) = try filledRealm(directory)
        try realm.write {
            realm.delete(person)
            realm.delete(person)
        }
    },
    "deleted: list": { directory in
        let (realm, person) = try filledRealm(directory)
        let dogs = person.dogs
        try realm.write { realm.delete(person) }
        _ = dogs.count
    },
    "invalidated: object": { directory in
        let (realm, person) = try filledRealm(directory)
        realm.invalidate()
        _ = person.name
    },
    "create from a deleted object": { directory in
        let (realm, person) = try filledRealm(directory)
        let dog = person.dogs[0]
        try realm.write { realm.delete(dog) }
        try realm.write { _ = realm.create(Dog.self, value: dog, update: .modified) }
    },
    "thaw where the class is unknown": { directory in
        let url = URL(fileURLWithPath: directory + "/classes.realm")
        let here = try Realm(
            configuration: Realm.Configuration(
                fileURL: url, objectTypes: [Owner.self, Dog.self, Person.self, Address.self, Country.self]))
        try here.write { here.add(Dog(name: "Rex")) }
        nonisolated(unsafe) let frozen = here.objects(Dog.self)[0].freeze()
        let thread = Thread {
            let there = try! Realm(configuration: Realm.Configuration(fileURL: url, objectTypes: [Renamed.self]))
            withExtendedLifetime(there) { _ = frozen.thaw() }
        }
        thread.start()
        while !thread.isFinished { usleep(1000) }
    },
    "number that is too large": { _ in _ = AllTypes(value: ["int": UInt64.max]) },
    "decimal for a double": { _ in _ = AllTypes(value: ["double": Decimal128(1.5)]) },
    "other Realm: delete": { directory in
        let (_, person) = try filledRealm(directory)
        let other = try modelRealm(directory, "other")
        try other.write { other.delete(person) }
    },
    "other Realm: add": { directory in
        let (_, person) = try filledRealm(directory)
        let other = try modelRealm(directory, "other")
        try other.write { other.add(person) }
    },
    "other Realm: link": { directory in
        let (_, person) = try filledRealm(directory)
        let other = try modelRealm(directory, "other")
        try other.write { other.create(Person.self).friend = person }
    },
    "other Realm: append": { directory in
        let (_, person) = try filledRealm(directory)
        let other = try modelRealm(directory, "other")
        try other.write { other.create(Person.self).dogs.append(person.dogs[0]) }
    },
    "append of a frozen object": { directory in
        let (realm, person) = try filledRealm(directory)
        let frozen = person.dogs[0].freeze()
        try realm.write { person.dogs.append(frozen) }
    },
    "delete of an unmanaged object": { directory in
        let realm = try modelRealm(directory)
        try realm.write { realm.delete(Dog()) }
    },
    "add outside of a transaction": { directory in try modelRealm(directory).add(Dog()) },
    "class that is not in the schema": { directory in _ = try modelRealm(directory).objects(Hidden.self) },
    "add of a class that is not in the schema": { directory in
        let realm = try modelRealm(directory)
        try realm.write { realm.add(Hidden()) }
    },
    "name that is no class": { directory in _ = try modelRealm(directory).dynamicObjects("Nothing") },
    "name that is no property": { directory in
        let (_, person) = try filledRealm(directory)
        _ = person["nothing"]
    },
    "name that is no property, unmanaged": { _ in Dog()["nothing"] = 1 },
    "name that is no property, dynamic": { directory in
        let (realm, _) = try filledRealm(directory)
        _ = realm.dynamicObjects("Person")[0].nothing
    },
    "nil for a required property": { directory in
        let (realm, person) = try filledRealm(directory)
        try realm.write { person["name"] = nil }
    },
    "null for a required property in a dictionary": { _ in _ = Dog(value: ["name": NSNull()]) },
    "value of a wrong type": { directory in
        let realm = try modelRealm(directory)
        try realm.write { realm.create(Dog.self, value: ["age": "three"]) }
    },
    "more values than properties": { _ in _ = Dog(value: [ObjectId(), "a", 1, NSNull(), 5, 6] as [Any]) },
    "policy without a key": { directory in
        let realm = try modelRealm(directory)
        try realm.write { realm.add(Person(), update: .modified) }
    },
    "lookup in a class without a key": { directory in
        _ = try modelRealm(directory).dynamicObject(ofType: "Person", forPrimaryKey: 1)
    },
    "lookup by a key of another type": { directory in _ = try modelRealm(directory).object(ofType: Owner.self, forPrimaryKey: "x")
    },
    "embedded object twice": { directory in
        let (realm, person) = try filledRealm(directory)
        try realm.write { realm.create(Person.self).address = person.address }
    },
    "embedded object created by itself": { directory in
        let realm = try modelRealm(directory)
        try realm.write { realm.dynamicCreate("Address", value: ["city": "York"]) }
    },
    "freeze of an unmanaged object": { _ in _ = Dog().freeze() },
    "freeze within a transaction": { directory in
        let realm = try modelRealm(directory)
        realm.beginWrite()
        _ = realm.create(Person.self).freeze()
    },
    "write to a frozen object": { directory in
        let (realm, person) = try filledRealm(directory)
        let frozen = person.freeze()
        try realm.write { frozen.name = "x" }
    },
    "write to a frozen Realm": { directory in try modelRealm(directory).freeze().beginWrite() },
    "write to a read-only Realm": { directory in
        try autoreleasepool { _ = try modelRealm(directory) }
        let configuration = Realm.Configuration(
            fileURL: URL(fileURLWithPath: directory + "/models.realm"), readOnly: true, objectTypes: types)
        try Realm(configuration: configuration).beginWrite()
    },
    "text too long": { directory in
        let (realm, person) = try filledRealm(directory)
        try realm.write { person.name = String(repeating: "x", count: 0xFF_FFF8 - 8) }
    },
    "data too long": { directory in
        let realm = try modelRealm(directory)
        try realm.write { realm.create(AllTypes.self).data = Data(count: 0xFF_FFF8 - 7) }
    },
    "raw value without a case": { directory in
        let realm = try modelRealm(directory)
        let holder = try realm.write { realm.create(Holder.self) }
        try realm.write { realm.dynamicObjects("Holder")[0]["size"] = "gigantic" }
        _ = holder.size
    },
    "mapped value that cannot be made": { directory in
        let realm = try modelRealm(directory)
        let holder = try realm.write { realm.create(Holder.self) }
        try realm.write { realm.dynamicObjects("Holder")[0]["percent"] = 101 }
        _ = holder.percent
    },
    "literal that is no decimal": { _ in
        let value: Decimal128 = "x"
        print(value)
    },
    "literal that is no object id": { _ in _ = ObjectId("x") },
    "number for a decimal": { _ in _ = Decimal128(value: [1]) },
]
