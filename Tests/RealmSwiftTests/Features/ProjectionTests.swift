import Foundation
import RealmSwift
import RealmSwiftTestModels
import XCTest

/// Projections of objects: what they show, what they change, how they are found.
final class ProjectionTests: RealmTestCase {
    private func makeFilledRealm() throws -> Realm {
        let realm = try makeRealm()
        try realm.write {
            let bo = Person(value: ["name": "Bo", "age": 40] as [String: Any])
            let ann = Person(
                value: [
                    "name": "Ann", "age": 20, "address": ["city": "York"],
                    "dogs": [["name": "Rex", "age": 1], ["name": "Ada", "age": 2]],
                ] as [String: Any])
            realm.add([bo, ann])
            ann.friend = bo
            ann.dogs[1].owner = bo
        }
        return realm
    }

    func testF030_F072_aProjectionShowsTheValuesOfItsRoot() throws {
        let realm = try makeFilledRealm()
        let ann = try XCTUnwrap(realm.objects(Person.self).filter("name == 'Ann'").first)
        let projection = PersonProjection(projecting: ann)
        XCTAssertEqual(projection.title, ann.name)
        XCTAssertEqual(projection.age, ann.age)
        XCTAssertEqual(projection.shouted, "ANN")
        XCTAssertTrue(projection.rootObject === ann)
        XCTAssertEqual(projection.realm, realm)
        try realm.write { ann.name = "Eve" }
        XCTAssertEqual(projection.title, "Eve")
    }

    func testF073_aPathThroughLinksAndEmbeddedObjects() throws {
        let realm = try makeFilledRealm()
        let people = realm.objects(PersonProjection.self).sorted(byKeyPath: "name")
        XCTAssertEqual(people[0].city, "York")
        XCTAssertNil(people[1].city)
        XCTAssertEqual(people[0].friendName, "Bo")
        XCTAssertNil(people[1].friendName)
    }

    func testF074_aCollectionProjectedToAProperty() throws {
        let realm = try makeFilledRealm()
        let ann = try XCTUnwrap(realm.objects(PersonProjection.self).filter("name == 'Ann'").first)
        XCTAssertEqual(Array(ann.dogNames), ["Rex", "Ada"])
        XCTAssertEqual(ann.dogNames.count, 2)
        XCTAssertEqual(ann.dogNames[1], "Ada")
        XCTAssertEqual(ann.dogNames.first, "Rex")
        XCTAssertEqual(ann.dogNames.index(of: "Ada"), 1)
        XCTAssertNil(ann.dogNames.index(of: "Max"))
        XCTAssertEqual(ann.dogNames.index(matching: NSPredicate(format: "age == 2")), 1)
        XCTAssertEqual(ann.dogOwners.map { $0?.name }, [nil, "Bo"])
        XCTAssertEqual(ann.dogs.count, 2)
        let names = ann.dogNames
        try realm.write { ann.rootObject.dogs[0].name = "Max" }
        XCTAssertEqual(Array(names), ["Max", "Ada"])
        XCTAssertTrue(names.description.contains("[0] Max"))
        let frozen = names.freeze()
        try realm.write { ann.rootObject.dogs.removeAll() }
        XCTAssertEqual(Array(frozen), ["Max", "Ada"])
        XCTAssertTrue(frozen.isFrozen)
        XCTAssertEqual(names.count, 0)
        XCTAssertEqual(frozen.thaw()?.count, 0)
        XCTAssertEqual(Array(ann.rootObject.dogs.projectTo.age), [])
    }

    func testF187_projectionsAreFoundSortedAndDivided() throws {
        let realm = try makeFilledRealm()
        let all = realm.objects(PersonProjection.self)
        XCTAssertEqual(all.count, 2)
        XCTAssertEqual(all.filter("age > 30").map(\.title), ["Bo"])
        XCTAssertEqual(all.sorted(byKeyPath: "age", ascending: false).map(\.title), ["Bo", "Ann"])
        XCTAssertEqual(all.sorted(by: [SortDescriptor(keyPath: "name")]).map(\.title), ["Ann", "Bo"])
        XCTAssertEqual(all.distinct(by: ["name"]).count, 2)
        XCTAssertEqual(all.max(ofProperty: "age") as Int?, 40)
        XCTAssertEqual(all.sum(ofProperty: "age") as Int, 60)
        let bo = try XCTUnwrap(all.filter("name == 'Bo'").first)
        XCTAssertEqual(all.index(of: bo).map { all[$0].title }, "Bo")
        XCTAssertEqual(all.index(matching: NSPredicate(format: "name == 'Bo'")).map { all[$0].title }, "Bo")
        XCTAssertEqual(all.sectioned(by: \.title).allKeys, ["Ann", "Bo"])
        XCTAssertEqual(all.sectioned(by: \.age, ascending: false).allKeys, [40, 20])
        XCTAssertEqual(
            all.sectioned(by: { $0.age > 30 }, sortDescriptors: [SortDescriptor(keyPath: "age")]).allKeys, [false, true])
        XCTAssertEqual(PersonProjection.className(), "Person")
        XCTAssertEqual(_name(for: \PersonProjection.title), "name")
        XCTAssertEqual(_name(for: \PersonProjection.city), "address.city")
        XCTAssertEqual(_name(for: \PersonProjection.dogNames), "dogs.name")
    }

    func testF238_settingAProjectedPropertyChangesTheRoot() throws {
        let realm = try makeFilledRealm()
        let bo = try XCTUnwrap(realm.objects(PersonProjection.self).filter("name == 'Bo'").first)
        try realm.write {
            bo.title = "Bob"
            bo.age += 1
        }
        XCTAssertEqual(realm.objects(Person.self).filter("name == 'Bob'").first?.age, 41)
        try realm.write { realm.delete(bo.rootObject) }
        XCTAssertTrue(bo.isInvalidated)
        XCTAssertNil(bo.realm)
    }

    func testF389_aProjectionOfAnUnmanagedObject() {
        let person = Person(value: ["name": "Ann", "address": ["city": "York"], "dogs": [["name": "Rex"]]] as [String: Any])
        let projection = PersonProjection(projecting: person)
        XCTAssertEqual(projection.title, "Ann")
        XCTAssertEqual(projection.city, "York")
        XCTAssertEqual(Array(projection.dogNames), ["Rex"])
        projection.title = "Eve"
        XCTAssertEqual(person.name, "Eve")
        XCTAssertNil(projection.realm)
        XCTAssertFalse(projection.isFrozen)
        XCTAssertEqual(AddressProjection(projecting: Address(value: ["city": "Rome"])).city, "Rome")
    }

    func testProjectionsAreEqualWhereTheirRootsAre() throws {
        let realm = try makeFilledRealm()
        let dog = realm.objects(Dog.self)[0], same = realm.objects(Dog.self)[0]
        XCTAssertEqual(DogProjection(projecting: dog), DogProjection(projecting: same))
        XCTAssertEqual(Set([DogProjection(projecting: dog), DogProjection(projecting: same)]).count, 1)
        XCTAssertNotEqual(DogProjection(projecting: dog), DogProjection(projecting: realm.objects(Dog.self)[1]))
        XCTAssertTrue(
            DogProjection(projecting: dog).description.contains("years(\\.age) = 1;"), DogProjection(projecting: dog).description)
    }

    func testAFrozenProjectionKeepsItsValues() throws {
        let realm = try makeFilledRealm()
        let bo = try XCTUnwrap(realm.objects(PersonProjection.self).filter("name == 'Bo'").first)
        let frozen = bo.freeze(), results = realm.objects(PersonProjection.self).freeze()
        try realm.write { bo.age = 1 }
        XCTAssertTrue(frozen.isFrozen)
        XCTAssertEqual(frozen.age, 40)
        XCTAssertEqual(frozen.thaw()?.age, 1)
        XCTAssertEqual(results.sum(ofProperty: "age") as Int, 60)
    }
}
