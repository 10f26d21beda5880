import Foundation
import RealmSwiftTestModels
import struct SharedStore.Timestamp
import TestSupport
import XCTest

@testable import RealmSwift

/// Collections of unmanaged objects, and the value types of the library.
final class CollectionValueTests: XCTestCase {
    func testF425_anUnmanagedListBehavesLikeAnArray() {
        let list = List<Int>()
        list.append(1)
        list.append(objectsIn: [2, 3, 4])
        list.insert(0, at: 0)
        XCTAssertEqual(Array(list), [0, 1, 2, 3, 4])
        list.move(from: 0, to: 4)
        XCTAssertEqual(Array(list), [1, 2, 3, 4, 0])
        list.swapAt(0, 4)
        list.replace(index: 1, object: 9)
        XCTAssertEqual(Array(list), [0, 9, 3, 4, 1])
        list.remove(at: 1)
        list.removeFirst()
        list.removeLast(2)
        XCTAssertEqual(Array(list), [3])
        list.insert(contentsOf: [7, 8], at: 0)
        list.removeSubrange(1..<2)
        XCTAssertEqual(Array(list), [7, 3])
        list.replaceSubrange(0..<1, with: [1, 2])
        XCTAssertEqual(Array(list), [1, 2, 3])
        list[0] = 5
        XCTAssertEqual(list.first, 5)
        XCTAssertEqual(list.last, 3)
        list.removeAll()
        XCTAssertTrue(list.isEmpty)
    }

    func testF426_movesByIndexSetAreThoseOfAnArrayWithItemsTakenOut() {
        var random = SplitMix(seed: 426)
        for count in 0..<8 {
            for mask in 0..<(1 << count) {
                let offsets = IndexSet((0..<count).filter { mask >> $0 & 1 != 0 })
                let destination = Int.random(in: 0...count, using: &random)
                let list = List<Int>()
                list.append(objectsIn: 0..<count)
                list.move(fromOffsets: offsets, toOffset: destination)
                let kept = (0..<count).filter { !offsets.contains($0) }
                let expected = kept.filter { $0 < destination } + Array(offsets) + kept.filter { $0 >= destination }
                XCTAssertEqual(Array(list), expected, "offsets \(Array(offsets)) destination \(destination)")
                list.remove(atOffsets: offsets)
                XCTAssertEqual(list.count, count - offsets.count)
            }
        }
    }

    func testACollectionThatIsGoneIsDescribed() throws {
        let realm = try Realm(configuration: .init(inMemoryIdentifier: name, objectTypes: RealmTestCase.types))
        let person = Person(value: ["name": "Ann", "tags": ["a"], "dogs": [["name": "Rex"]]] as [String: Any])
        try realm.write { realm.add(person) }
        let dogs = person.dogs, tags = person.tags, pets = person.pets, filtered = person.dogs.filter("age >= 0")
        try realm.write { realm.delete(person) }
        XCTAssertTrue(dogs.isInvalidated && tags.isInvalidated && pets.isInvalidated)
        for text in ["\(dogs)", "\(tags)", "\(pets)", "\(AnyRealmCollection(dogs))"] {
            XCTAssertTrue(text.contains("invalid collection"), text)
        }
        XCTAssertTrue("\(filtered)".hasPrefix("Results<Dog>"))
        XCTAssertTrue("\(person)".contains("invalid object"))
    }

    func testKeysOfAMapFromOutsideAreCheckedWithoutATrap() {
        for key in ["a.b", "$a"] {
            XCTAssertThrowsError(try JSONDecoder().decode(Map<String, Int>.self, from: Data("{\"\(key)\": 1}".utf8))) { error in
                guard case DecodingError.dataCorrupted(let context) = error else { return XCTFail("\(error)") }
                XCTAssertTrue(context.debugDescription.contains(key), context.debugDescription)
            }
        }
    }

    func testAssigningAListCopiesItsElements() {
        let first = AllTypes(), second = AllTypes()
        first.ints.append(objectsIn: [1, 2])
        second.ints = first.ints
        first.ints.append(3)
        XCTAssertEqual(Array(second.ints), [1, 2])
        first.ints = first.ints
        XCTAssertEqual(Array(first.ints), [1, 2, 3])
        XCTAssertNotEqual(first.ints, second.ints)
    }

    func testF430_setsCombine() {
        func make(_ values: [Int]) -> MutableSet<Int> {
            let set = MutableSet<Int>()
            set.insert(objectsIn: values)
            return set
        }
        let set = make([1, 2, 3, 2])
        XCTAssertEqual(set.count, 3)
        XCTAssertTrue(set.contains(2))
        XCTAssertTrue(make([1, 2]).isSubset(of: set))
        XCTAssertFalse(make([1, 4]).isSubset(of: set))
        XCTAssertTrue(set.intersects(make([3, 9])))
        XCTAssertFalse(set.intersects(make([9])))
        set.formUnion(make([4, 1]))
        XCTAssertEqual(Set(set), [1, 2, 3, 4])
        set.formIntersection(make([2, 3, 9]))
        XCTAssertEqual(Set(set), [2, 3])
        set.subtract(make([2]))
        XCTAssertEqual(Set(set), [3])
        set.remove(77)
        set.remove(3)
        XCTAssertEqual(set.count, 0)
    }

    func testF431_mapsHoldValuesByKey() throws {
        let map = Map<String, Int>()
        map["a"] = 1
        map.updateValue(2, forKey: "b")
        XCTAssertEqual(map["a"], 1)
        XCTAssertEqual(Set(map.keys), ["a", "b"])
        XCTAssertEqual(Set(map.values), [1, 2])
        XCTAssertTrue(map.contains { $0 == "b" && $1 == 2 })
        map.merge([("a", 10), ("c", 3)]) { $0 + $1 }
        XCTAssertEqual(map["a"], 11)
        XCTAssertEqual(map.count, 3)
        map["c"] = nil
        map.removeObject(for: "b")
        XCTAssertEqual(map.asKeyValueSequence().map { "\($0.key)=\($0.value)" }, ["a=11"])
        XCTAssertEqual(Array(map).map(\.key), ["a"])
        let encoded = try JSONEncoder().encode(map)
        XCTAssertEqual(String(decoding: encoded, as: UTF8.self), #"{"a":11}"#)
        XCTAssertEqual(try JSONDecoder().decode(Map<String, Int>.self, from: encoded)["a"], 11)
        let optional = Map<String, String?>()
        optional["x"] = .some(nil)
        XCTAssertEqual(optional.count, 1)
        XCTAssertEqual(optional["x"], .some(nil))
        optional["x"] = nil
        XCTAssertEqual(optional.count, 0)
    }

    func testF435_operatorsOfKeyPaths() {
        let person = Person()
        for (name, age) in [("a", 1), ("b", 5), ("b", 3)] { person.dogs.append(Dog(name: name, age: age)) }
        XCTAssertEqual(person.dogs.value(forKeyPath: "@min.age") as? Int, 1)
        XCTAssertEqual(person.dogs.value(forKeyPath: "@max.age") as? Int, 5)
        XCTAssertEqual(person.dogs.value(forKeyPath: "@sum.age") as? Int, 9)
        XCTAssertEqual(person.dogs.value(forKeyPath: "@avg.age") as? Double, 3)
        XCTAssertEqual(person.dogs.value(forKeyPath: "@count") as? Int, 3)
        XCTAssertEqual(person.dogs.value(forKeyPath: "@unionOfObjects.name") as? [String], ["a", "b", "b"])
        XCTAssertEqual(person.dogs.value(forKeyPath: "@distinctUnionOfObjects.name") as? [String], ["a", "b"])
    }

    func testF096_datesKeepTheirFractionToTheNanosecond() {
        var random = SplitMix(seed: 96)
        for interval in [0, 0.5, -0.5, 0.999_999_999_9, -978_307_200.25, 1e9 + 0.123_456_7, -1e11, 6e10] {
            let date = Date(timeIntervalSinceReferenceDate: interval)
            XCTAssertEqual(Date(Timestamp(date)).timeIntervalSinceReferenceDate, interval, accuracy: 1e-9)
        }
        for _ in 0..<1000 {
            let date = Date(timeIntervalSinceReferenceDate: .random(in: -1e9...1e9, using: &random))
            let stamp = Timestamp(date)
            XCTAssertTrue(stamp.seconds == 0 || stamp.nanoseconds == 0 || (stamp.seconds < 0) == (stamp.nanoseconds < 0))
            // Near its zero, 2001, a Date has digits below the nanosecond.
            if abs(date.timeIntervalSinceReferenceDate) > 1e7 { XCTAssertEqual(Date(stamp), date) }
        }
        XCTAssertEqual(Date(Timestamp(.distantFuture)), .distantFuture)
        XCTAssertEqual(Date(Timestamp(.distantPast)), .distantPast)
    }

    func testF097_decimals() throws {
        let a: Decimal128 = 1.5, b: Decimal128 = "2.25"
        XCTAssertEqual((a + b).stringValue, "3.75")
        XCTAssertEqual((a * b).stringValue, "3.375")
        XCTAssertTrue(a < b)
        XCTAssertEqual(Decimal128(value: 5), 5)
        XCTAssertEqual(try Decimal128(string: "1.0"), try Decimal128(string: "1.00"))
        XCTAssertEqual(try Decimal128(string: "1.0").hashValue, try Decimal128(string: "1.00").hashValue)
        XCTAssertThrowsError(try Decimal128(string: "x"))
        XCTAssertFalse(Decimal128.min < Decimal128.min)
        XCTAssertTrue(Decimal128.min < Decimal128.max)
        let nan = try Decimal128(string: "NaN")
        XCTAssertTrue(nan.isNaN)
        XCTAssertFalse(nan == nan)
        XCTAssertEqual(a.magnitude, (-a).magnitude)
        XCTAssertEqual(try JSONDecoder().decode([Decimal128].self, from: JSONEncoder().encode([a, b])), [a, b])
        XCTAssertEqual(try JSONDecoder().decode([Decimal128].self, from: Data("[7, 1.5]".utf8)), [7, 1.5])
    }

    func testF098_objectIds() throws {
        let id = try ObjectId(string: "507f1f77bcf86cd799439011")
        XCTAssertEqual(id.stringValue, "507f1f77bcf86cd799439011")
        XCTAssertEqual(id.timestamp.timeIntervalSince1970, 0x507f1f77)
        XCTAssertThrowsError(try ObjectId(string: "507f"))
        let ids = (0..<1000).map { _ in ObjectId.generate() }
        XCTAssertEqual(Set(ids).count, 1000)
        XCTAssertTrue(ObjectId("000000000000000000000001") < ObjectId("0100000000000000000000ff"))
        XCTAssertEqual(try JSONDecoder().decode([ObjectId].self, from: JSONEncoder().encode([id])), [id])
        XCTAssertEqual(ids[0].timestamp.timeIntervalSinceNow, 0, accuracy: 60)
    }
}
