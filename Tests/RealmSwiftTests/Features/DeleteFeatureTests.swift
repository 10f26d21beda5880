import Foundation
import RealmSwift
import RealmSwiftTestModels
import TestSupport
import XCTest

/// Objects leave a Realm.
final class DeleteFeatureTests: RealmTestCase {
    func testF241_F404_anObjectIsDeleted() throws {
        let realm = try makeRealm()
        let dog = Dog(name: "Rex"), same: Dog
        try realm.write { realm.add([dog, Dog(name: "Ada")]) }
        same = realm.objects(Dog.self).filter("name == 'Rex'")[0]
        try realm.write { realm.delete(same) }
        XCTAssertTrue(same.isInvalidated)
        XCTAssertTrue(dog.isInvalidated)
        XCTAssertNil(dog.realm)
        XCTAssertEqual(realm.objects(Dog.self).map(\.name), ["Ada"])
        XCTAssertTrue(dog.description.contains("invalid"))
    }

    func testF242_F244_severalObjectsAreDeleted() throws {
        let realm = try makeRealm()
        let ann = Person()
        try realm.write {
            realm.add(ann)
            for i in 0..<12 { ann.dogs.append(Dog(name: "\(i)", age: i)) }
            ann.pets["a"] = ann.dogs[0]
            ann.pets["b"] = ann.dogs[1]
            realm.delete(ann.pets)
            XCTAssertEqual(realm.objects(Dog.self).count, 10)
            realm.delete(realm.objects(Dog.self).where { $0.age > 9 })
            XCTAssertEqual(realm.objects(Dog.self).count, 8)
            realm.delete([ann.dogs[0], ann.dogs[1]])
            XCTAssertEqual(ann.dogs.count, 6)
            realm.delete(ann.dogs.sorted(byKeyPath: "age").prefix(2))
            XCTAssertEqual(realm.objects(Dog.self).count, 4)
            let list = ann.dogs
            realm.delete(list)
            XCTAssertEqual(list.count, 0)
            realm.add(Dog(name: "x"))
            realm.delete(realm.objects(Dog.self))
        }
        XCTAssertEqual(realm.objects(Dog.self).count, 0)
        XCTAssertEqual(realm.objects(Person.self).count, 1)
    }

    func testF243_anObjectAndWhatItRefersTo() throws {
        let realm = try makeRealm()
        let ann = Person(value: ["dogs": [["name": "a"], ["name": "b"]]]), other = Dog(name: "c")
        try realm.write {
            realm.add(ann)
            realm.add(other)
            realm.delete(ann.dogs)
            realm.delete(ann)
        }
        XCTAssertEqual(realm.objects(Person.self).count, 0)
        XCTAssertEqual(realm.objects(Dog.self).map(\.name), ["c"])
    }

    func testF245_F246_everythingIsDeletedAndTheFileKeepsItsSize() throws {
        let scratch = ScratchDirectory()
        let realm = try makeFileRealm(scratch)
        let ann = Person(value: ["name": "Ann", "address": ["city": "York"]] as [String: Any])
        try realm.write {
            realm.add(ann)
            for i in 0..<1000 { realm.add(Dog(name: "dog \(i)", age: i)) }
        }
        func size() throws -> Int {
            try XCTUnwrap(FileManager.default.attributesOfItem(atPath: scratch.file("test.realm"))[.size] as? Int)
        }
        let before = try size()
        try realm.write { realm.deleteAll() }
        XCTAssertTrue(realm.isEmpty)
        XCTAssertTrue(ann.isInvalidated)
        XCTAssertEqual(realm.dynamicObjects("Address").count, 0)
        XCTAssertGreaterThanOrEqual(try size(), before)
        XCTAssertEqual(realm.schema.objectSchema.count, RealmTestCase.types.count)
    }
}
