import Foundation
import RealmSwift
import XCTest

final class CollectionsTests: GuideTestCase {
    private func makeWatcher(_ realm: Realm) throws -> Watcher {
        try realm.write {
            realm.create(
                Watcher.self,
                value: ["name": "Ida", "sightings": [["number": 1], ["number": 2], ["number": 3]]] as [String: Any])
        }
    }

    func testResults() throws {
        let realm = try Realm()
        // sample: collections-results
        let all = realm.objects(Bird.self)  // nothing is read yet
        let large = all.where { $0.wingspan > 1 }
        try realm.write {
            realm.add([Bird("Crane", wingspan: 2.2), Bird("Wren", wingspan: 0.15)])
        }
        print(large.count)  // 1
        // end
        XCTAssertEqual(large.count, 1)

        // sample: collections-snapshot
        try realm.write {
            for bird in large {  // goes over what matched at its start
                bird.wingspan /= 10
            }
        }
        print(large.count)  // 0
        let names = Array(all.map(\.name))  // an array of strings: a copy
        // end
        XCTAssertEqual(large.count, 0)
        XCTAssertEqual(names.sorted(), ["Crane", "Wren"])
    }

    func testLists() throws {
        let realm = try Realm()
        let ida = try makeWatcher(realm)
        // sample: collections-list
        let sightings = ida.sightings
        try realm.write {
            sightings.append(Sighting(value: ["number": 4]))
            sightings.insert(Sighting(value: ["number": 0]), at: 0)
            sightings.move(from: 0, to: 4)
            sightings.swapAt(0, 1)
            sightings.remove(at: 2)  // leaves the list; is not deleted
        }
        print(sightings.map(\.number))
        let many = sightings.where { $0.number >= 2 }  // a list can be queried too
        // end
        XCTAssertEqual(sightings.map(\.number), [2, 1, 4, 0])
        XCTAssertEqual(many.count, 2)
        XCTAssertEqual(realm.objects(Sighting.self).count, 5)
    }

    func testSets() throws {
        let realm = try Realm()
        let ida = try makeWatcher(realm)
        // sample: collections-set
        let tom = Watcher(value: ["name": "Tom"])
        try realm.write {
            ida.friends.insert(tom)
            ida.friends.insert(tom)  // changes nothing
        }
        print(ida.friends.count, ida.friends.contains(tom))  // 1 true
        // end
        XCTAssertEqual(ida.friends.count, 1)
        XCTAssertTrue(ida.friends.contains(tom))
    }

    func testMaps() throws {
        let realm = try Realm()
        let ida = try makeWatcher(realm)
        // sample: collections-map
        try realm.write {
            ida.favourites["song"] = Bird("Blackbird", wingspan: 0.36)
            ida.favourites["flight"] = Bird("Swift", wingspan: 0.42)
            ida.favourites["call"] = .some(nil)  // the key is there, without a bird
            ida.favourites["call"] = nil  // the key is gone
        }
        for (key, bird) in ida.favourites.asKeyValueSequence() {
            print(key, bird?.name ?? "none")
        }
        // end
        XCTAssertEqual(Set(ida.favourites.keys), ["song", "flight"])
    }

    func testValuesOfEveryType() throws {
        let realm = try Realm()
        // sample: collections-any
        let journal = Journal(value: ["title": "2026"])
        journal.pages = .fromDictionary([
            "april": .string("cold"),
            "may": .fromArray([.int(3), .date(Date()), .none]),
        ])
        try realm.write {
            realm.add(journal)
            journal.pages.dictionaryValue?["june"] = .double(21.5)
        }
        switch journal.pages {
        case .dictionary(let months): print(months.count)
        case .string(let text): print(text)
        default: print("something else")
        }
        // end
        XCTAssertEqual(journal.pages.dictionaryValue?.count, 3)
        XCTAssertEqual(journal.pages.dictionaryValue?["may"]?.listValue?[0].intValue, 3)
    }

    func testSections() throws {
        let realm = try Realm()
        try realm.write {
            realm.add([
                Bird("Wren", wingspan: 0.15), Bird("Crane", wingspan: 2.2), Bird("Common swift", wingspan: 0.42),
                Bird("Whooper swan", wingspan: 2.2),
            ])
        }
        // sample: collections-sections
        let birds = realm.objects(Bird.self).sectioned(by: { String($0.name.prefix(1)) }, sortDescriptors: ["name"])
        for section in birds {
            print(section.key, section.map(\.name))
        }
        print(birds[0][0].name)  // Common swift
        // end
        XCTAssertEqual(birds.allKeys, ["C", "W"])
        XCTAssertEqual(birds[1].map(\.name), ["Whooper swan", "Wren"])

        // sample: collections-sections-property
        let byMigration = realm.objects(Bird.self).sectioned(by: \.isMigratory)
        // end
        XCTAssertEqual(byMigration.allKeys, [false])
    }

    func testUnmanagedCollections() {
        // sample: collections-unmanaged
        let watcher = Watcher()
        watcher.sightings.append(Sighting(value: ["number": 7]))  // in memory only
        print(watcher.sightings.first?.number ?? 0)
        // end
        XCTAssertEqual(watcher.sightings.count, 1)
    }

    func testErasedCollections() throws {
        let realm = try Realm()
        let ida = try makeWatcher(realm)
        // sample: collections-any-collection
        func total(_ sightings: AnyRealmCollection<Sighting>) -> Int {
            sightings.sum(of: \.number)
        }
        let one = total(AnyRealmCollection(ida.sightings))
        let other = total(AnyRealmCollection(realm.objects(Sighting.self)))
        // end
        XCTAssertEqual(one, 6)
        XCTAssertEqual(other, 6)
    }
}
