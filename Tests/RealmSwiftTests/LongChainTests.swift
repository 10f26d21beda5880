import Foundation
import RealmSwift
import RealmSwiftTestModels
import XCTest

/// Unmanaged objects that lead to one another are added by whoever adds the first of them, however many they are: a thread's
/// stack has an end.
final class LongChainTests: RealmTestCase {
    private static let length = 5000

    func testAChainOfLinksIsAddedWhole() throws {
        let realm = try makeRealm()
        let people = (0..<LongChainTests.length).map { number in
            let person = Person()
            person.name = "\(number)"
            return person
        }
        for (person, next) in zip(people, people.dropFirst()) { person.friend = next }
        people.last?.friend = people.first
        try realm.write { realm.add(people[0]) }
        XCTAssertEqual(realm.objects(Person.self).count, people.count)
        XCTAssertTrue(people.allSatisfy { $0.realm == realm })
        for (person, next) in zip(people, people.dropFirst() + [people[0]]) {
            XCTAssertTrue(person.friend?.isSameObject(as: next) == true)
        }
    }

    /// A network in which each is linked twice, through lists and keys, as it is added and as it is brought up to date.
    func testANetworkOfListsAndKeysIsAddedAndUpdated() throws {
        let realm = try makeRealm()
        let keys = (0..<500).map { _ in ObjectId.generate() }
        func network(_ age: Int) -> [Dog] {
            let dogs = keys.map { key in
                let dog = Dog(name: "dog", age: age)
                dog.id = key
                return dog
            }
            for index in dogs.indices {
                let owner = Person(value: ["age": index])
                owner.dogs.append(objectsIn: [dogs[(index + 1) % dogs.count], dogs[(index * 7 + 3) % dogs.count]])
                dogs[index].owner = owner
            }
            return dogs
        }
        for (age, policy) in [(1, Realm.UpdatePolicy.error), (2, .all), (3, .modified)] {
            let dogs = network(age)
            try realm.write { realm.add(dogs[0], update: policy) }
            XCTAssertEqual(realm.objects(Dog.self).count, dogs.count)
            XCTAssertEqual(realm.objects(Dog.self).where { $0.age == age }.count, dogs.count)
            for (index, dog) in dogs.enumerated() {
                XCTAssertEqual(dog.realm, realm)
                XCTAssertEqual(dog.owner?.age, index)
                XCTAssertEqual(
                    dog.owner.map { Array($0.dogs.map(\.id)) },
                    [keys[(index + 1) % keys.count], keys[(index * 7 + 3) % keys.count]])
            }
        }
    }

    func testAChainInAnotherRealmIsCopiedWhole() throws {
        let source = try makeRealm(), target = try Realm(configuration: configuration(name + " copy"))
        let people = try source.write {
            (0..<2000).map { number in source.create(Person.self, value: ["age": number]) }
        }
        try source.write { for (person, next) in zip(people, people.dropFirst()) { person.friend = next } }
        let first = try target.write { target.create(Person.self, value: people[0]) }
        XCTAssertEqual(target.objects(Person.self).count, people.count)
        var length = 0, next: Person? = first
        while let person = next {
            XCTAssertEqual(person.age, length)
            length += 1
            next = person.friend
        }
        XCTAssertEqual(length, people.count)
    }

    func testDictionariesWithinDictionariesAreCreatedWhole() throws {
        let realm = try makeRealm()
        var value: [String: Any] = ["age": 0]
        for number in 1..<1000 { value = ["age": number, "friend": value, "address": ["country": ["name": "\(number)"]]] }
        let first = try realm.write { realm.create(Person.self, value: value) }
        XCTAssertEqual(realm.objects(Person.self).count, 1000)
        var length = 0, next: Person? = first
        while let person = next {
            length += 1
            XCTAssertEqual(person.age, 1000 - length)
            XCTAssertEqual(person.address?.country?.name, person.age == 0 ? nil : "\(person.age)")
            next = person.friend
        }
        XCTAssertEqual(length, 1000)
    }
}
