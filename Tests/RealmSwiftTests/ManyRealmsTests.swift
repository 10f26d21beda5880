import Foundation
import RealmSwift
import RealmSwiftTestModels
import SystemCalls
import TestSupport
import XCTest

/// Programs that open very many Realms, one after the other, for a moment each.
final class ManyRealmsTests: FileTestCase {
    private final class Witness: Sendable {}

    private let types: [ObjectBase.Type] = [Dog.self, Person.self, Address.self, Country.self]

    private var descriptorCount: Int { (try? SystemCalls.names(inDirectory: "/proc/self/fd").count) ?? -1 }
    private var mappingCount: Int {
        ((try? String(contentsOfFile: "/proc/self/maps", encoding: .utf8)) ?? "").split(separator: "\n").count
    }

    private func use(_ configuration: Realm.Configuration) throws {
        let realm = try Realm(configuration: configuration)
        try realm.write { realm.add(Dog(name: "Rex", age: 1)) }
        let token = realm.objects(Dog.self).observe { _ in }
        XCTAssertEqual(realm.freeze().objects(Dog.self).count, 1)
        withExtendedLifetime(token) {}
    }

    /// Others of this process may come and go meanwhile, so some more are no leak; one each would be a hundred.
    func testRealmsThatWereOpenedForAMomentLeaveNothing() throws {
        try use(.init(inMemoryIdentifier: "\(name)-first", objectTypes: types))
        let descriptors = descriptorCount, mappings = mappingCount
        for i in 0..<80 { try use(.init(inMemoryIdentifier: "\(name)-\(i)", objectTypes: types)) }
        for i in 0..<15 { try use(fileConfiguration("\(i).realm", types)) }
        RunLoop.current.run(until: Date().addingTimeInterval(0.01))
        XCTAssertLessThan(descriptorCount, descriptors + 60)
        XCTAssertLessThan(mappingCount, mappings + 60)
        for i in 0..<15 { XCTAssertTrue(try Realm.deleteFiles(for: fileConfiguration("\(i).realm", types))) }
    }

    func testTheBlocksOfAConfigurationAreLetGoOf() throws {
        weak var captured: Witness?
        do {
            let witness = Witness()
            captured = witness
            var configuration = fileConfiguration("a.realm", types)
            configuration.schemaVersion = 1
            configuration.migrationBlock = { _, _ in withExtendedLifetime(witness) {} }
            try use(configuration)
            XCTAssertNotNil(captured)
        }
        // Others that are opened afterwards have what is not open any more dropped.
        for i in 0..<40 { try use(.init(inMemoryIdentifier: "\(name)-\(i)", objectTypes: types)) }
        XCTAssertNil(captured)
        // And the file is found again as it was.
        var configuration = fileConfiguration("a.realm", types)
        configuration.schemaVersion = 1
        XCTAssertEqual(try Realm(configuration: configuration).objects(Dog.self).count, 1)
    }

    func testObjectsListsAndSessionsGoThoughTheyReferToEachOther() throws {
        weak var person: Person?, dogs: List<Dog>?, pets: Map<String, Dog?>?
        do {
            let realm = try Realm(configuration: fileConfiguration())
            let ann = Person(), bo = Person(), rex = Dog(name: "Rex")
            ann.friend = bo
            bo.friend = ann
            rex.owner = ann
            ann.dogs.append(objectsIn: [rex, rex])
            ann.pets["rex"] = rex
            ann.anything = .fromArray([.object(bo), .fromDictionary(["a": .object(ann)])])
            try realm.write { realm.add(ann) }
            XCTAssertEqual(rex.fans.count, 2)
            XCTAssertTrue(bo.friend?.friend?.isSameObject(as: bo) == true)
            XCTAssertEqual(ann.freeze().friend?.friend?.dogs.count, 2)
            for dog in ann.dogs { XCTAssertTrue(dog.owner?.dogs.contains(dog) == true) }
            (person, dogs, pets) = (ann, ann.dogs, ann.pets)
        }
        XCTAssertNil(person)
        XCTAssertNil(dogs)
        XCTAssertNil(pets)
        XCTAssertTrue(try Realm.deleteFiles(for: fileConfiguration()))
    }

    /// Two threads open the same file with classes of their own.
    func testAnObjectIsNotThawedWhereItsClassIsNotKnown() {
        assertTraps("thaw where the class is unknown", "'Dog' is not managed by the Realm that is open here")
    }
}
