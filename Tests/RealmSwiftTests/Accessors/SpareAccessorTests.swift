import Foundation
import RealmSwift
import Synchronization
import TestSupport
import XCTest

/// Accessors that are used again must never be seen to change by anybody.
final class SpareAccessorTests: AccessorTestCase {
    func testObjectsThatAreKeptStayWhatTheyAre() throws {
        let realm = try realmWithParts(700)
        var kept: [(Int, Part)] = []
        for (position, part) in realm.objects(Part.self).enumerated() {
            XCTAssertEqual(part.id, position)
            if position % 7 == 0 { kept.append((position, part)) }
        }
        XCTAssertEqual(kept.count, 100)
        for (position, part) in kept { XCTAssertTrue(part.id == position && part.isItself) }
    }

    func testWhatNobodyKeepsIsUsedAgain() throws {
        let realm = try realmWithParts(300)
        let results = realm.objects(Part.self)
        var places: Set<ObjectIdentifier> = []
        for part in results { places.insert(ObjectIdentifier(part)) }
        XCTAssertLessThanOrEqual(places.count, 2)
        for i in 0..<300 { places.insert(ObjectIdentifier(results[i])) }
        for i in 0..<300 { places.insert(ObjectIdentifier(try XCTUnwrap(realm.object(ofType: Part.self, forPrimaryKey: i)))) }
        XCTAssertLessThanOrEqual(places.count, 6)
    }

    func testAWeakReferenceNeverSeesAnotherObject() throws {
        let realm = try realmWithParts(40)
        weak var last: Part?
        var lastId = -1
        for part in realm.objects(Part.self) {
            if let last { XCTAssertEqual(last.id, lastId) }
            last = part
            lastId = part.id
        }
        let results = realm.objects(Part.self)
        for i in 0..<40 {
            if let last { XCTAssertEqual(last.id, lastId) }
            let part = results[i]
            last = part
            lastId = part.id
        }
    }

    func testAnUnownedReferenceNeverSeesAnotherObject() throws {
        final class Holder {
            unowned let part: Part
            init(_ part: Part) { self.part = part }
        }
        let realm = try realmWithParts(40)
        var holder: Holder?
        var lastId = -1
        for part in realm.objects(Part.self) {
            // The iteration keeps the object that it handed out last.
            if let holder { XCTAssertEqual(holder.part.id, lastId) }
            holder = Holder(part)
            lastId = part.id
        }
        XCTAssertEqual(lastId, 39)
    }

    func testSubscriptsAndLookupsHandOutSeveralAtATime() throws {
        let realm = try realmWithParts(600)
        let results = realm.objects(Part.self)
        var generator = SplitMix(seed: 11)
        for _ in 0..<500 {
            let keys = (0..<3).map { _ in Int.random(in: 0..<600, using: &generator) }
            let a = results[keys[0]], b = results[keys[1]], c = results[keys[2]]
            XCTAssertEqual([a.id, b.id, c.id], keys)
            XCTAssertTrue(a.isItself && b.isItself && c.isItself)
            let found = keys.map { realm.object(ofType: Part.self, forPrimaryKey: $0) }
            XCTAssertEqual(found.map { $0?.id }, keys)
        }
        XCTAssertNil(realm.object(ofType: Part.self, forPrimaryKey: 600))
    }

    func testFilteredSortedAndListedObjects() throws {
        let realm = try realmWithParts(600)
        let sorted = realm.objects(Part.self).where { $0.id >= 100 }.sorted(byKeyPath: "id", ascending: false)
        XCTAssertEqual(sorted.map(\.id), Array((100..<600).reversed()))
        var expected = 599
        for part in sorted {
            XCTAssertTrue(part.id == expected && part.isItself)
            expected -= 1
        }
        let whole = try XCTUnwrap(realm.object(ofType: Part.self, forPrimaryKey: 0))
        try realm.write {
            for i in stride(from: 1, to: 600, by: 5) {
                whole.pieces.append(try XCTUnwrap(realm.object(ofType: Part.self, forPrimaryKey: i)))
            }
            whole.numbers.append(objectsIn: 0..<2500)
        }
        let pieces = whole.pieces
        XCTAssertEqual(whole.id, 0)
        for (i, piece) in pieces.enumerated() { XCTAssertEqual(piece.id, 1 + 5 * i) }
        for i in pieces.indices {
            let a = pieces[i], b = pieces[pieces.count - 1 - i]
            XCTAssertEqual([a.id, b.id], [1 + 5 * i, 1 + 5 * (pieces.count - 1 - i)])
        }
        XCTAssertEqual(whole.numbers.enumerated().filter { $0 != $1 }.count, 0)
        for i in stride(from: 0, to: 2500, by: 99) { XCTAssertEqual(whole.numbers[i], i) }
    }

    func testCollectionsOfAReusedAccessorAreThoseOfTheirOwner() throws {
        let realm = try realmWithParts(20)
        let parts = realm.objects(Part.self)
        try realm.write { for part in parts { part.numbers.append(objectsIn: repeatElement(part.id, count: part.id)) } }
        var lists: [List<Int>] = []
        for part in parts { lists.append(part.numbers) }
        for (id, list) in lists.enumerated() {
            XCTAssertEqual(list.count, id)
            XCTAssertTrue(list.allSatisfy { $0 == id })
        }
    }

    func testAClassWithItsOwnStoredPropertiesGetsNewInstances() throws {
        let realm = try realm()
        try realm.write { for number in 0..<300 { realm.add(MarkedPart(value: ["number": number])) } }
        var sum = 0
        for part in realm.objects(MarkedPart.self) {
            XCTAssertEqual(part.mark, "")
            part.mark = "seen"
            sum += part.number
        }
        XCTAssertEqual(sum, 299 * 150)
        let results = realm.objects(MarkedPart.self)
        results[5].mark = "again"
        XCTAssertEqual(results[5].mark, "")
    }

    func testEveryInstanceEnds() throws {
        let realm = try realm()
        try realm.write { for number in 0..<300 { realm.add(CountedPart(value: ["number": number])) } }
        let before = CountedPart.endCount
        weak var last: CountedPart?
        var kept: CountedPart?
        for part in realm.objects(CountedPart.self) {
            last = part
            if part.number == 150 { kept = part }
        }
        // The iteration is over, and with it what it kept.
        XCTAssertNil(last)
        XCTAssertEqual(kept?.number, 150)
        XCTAssertGreaterThan(CountedPart.endCount, before)
        let end = CountedPart.endCount
        kept = nil
        XCTAssertEqual(CountedPart.endCount, end + 1)
    }

    /// More steps than references are taken at once.
    func testALongLoopGivesBackWhatItTook() throws {
        let realm = try realm()
        try realm.write { for number in 0..<3000 { realm.add(CountedPart(value: ["number": number])) } }
        let before = CountedPart.endCount
        weak var last: CountedPart?
        var places: Set<ObjectIdentifier> = []
        for (number, part) in realm.objects(CountedPart.self).enumerated() {
            XCTAssertEqual(part.number, number)
            places.insert(ObjectIdentifier(part))
            if number == 2999 { last = part }
        }
        XCTAssertLessThanOrEqual(places.count, 2)
        XCTAssertNil(last)
        let results = realm.objects(CountedPart.self)
        do {
            var iterator = results.makeIterator()
            while let part = iterator.next(), part.number < 2500 {}
        }
        XCTAssertGreaterThanOrEqual(CountedPart.endCount, before + 2)
    }

    func testSubclassesHaveTheirOwnObjects() throws {
        let realm = try realm()
        try realm.write {
            for number in 0..<300 {
                realm.add(Vehicle(value: ["wheels": number]))
                realm.add(Truck(value: ["wheels": 1000 + number, "load": number, "driver": "driver \(number)"]))
            }
        }
        XCTAssertEqual(realm.objects(Vehicle.self).map(\.wheels), Array(0..<300))
        for (number, truck) in realm.objects(Truck.self).enumerated() {
            XCTAssertEqual(truck.wheels, 1000 + number)
            XCTAssertTrue(truck.load == number && truck.driver == "driver \(number)")
        }
    }

    func testFrozenObjectsAreReadByManyThreads() throws {
        let realm = try realmWithParts(1000)
        let frozen = UnsafeSharing(realm.objects(Part.self).freeze())
        let sorted = UnsafeSharing(realm.objects(Part.self).sorted(byKeyPath: "id").freeze())
        let one = UnsafeSharing(try XCTUnwrap(realm.objects(Part.self).last).freeze())
        try realm.write { realm.deleteAll() }
        let failures = UnsafeSharing(UnsafeMutablePointer<Int>.allocate(capacity: 4))
        failures.value.initialize(repeating: 0, count: 4)
        defer { failures.value.deallocate() }
        DispatchQueue.concurrentPerform(iterations: 4) { thread in
            for (position, part) in frozen.value.enumerated() where part.id != position || !part.isItself {
                failures.value[thread] += 1
            }
            for position in stride(from: thread, to: 1000, by: 3)
            where frozen.value[position].id != position || sorted.value[position].id != position {
                failures.value[thread] += 1
            }
            if frozen.value.count != 1000 || one.value.id != 999 || !one.value.isItself { failures.value[thread] += 1 }
        }
        XCTAssertEqual((0..<4).map { failures.value[$0] }, [0, 0, 0, 0])
    }

    /// Nobody has made an object of the frozen version before.
    func testTheFirstObjectsOfAFrozenVersionAreMadeByManyThreadsAtOnce() throws {
        let realm = try realmWithParts(64)
        for round in 0..<40 {
            try realm.write { realm.add(makePart(1000 + round)) }
            let frozen = UnsafeSharing(realm.freeze()), all = UnsafeSharing(realm.objects(Part.self).freeze())
            let sorted = UnsafeSharing(realm.objects(Part.self).sorted(byKeyPath: "id").freeze())
            let arrived = Atomic(0), failures = Atomic(0)
            DispatchQueue.concurrentPerform(iterations: 4) { thread in
                // Two begin at once, where there are two processors.
                arrived.add(1, ordering: .relaxed)
                var spins = 0
                while arrived.load(ordering: .relaxed) < 2 && spins < 20_000 { spins += 1 }
                let parts = [
                    all.value[thread], sorted.value[thread],
                    frozen.value.object(ofType: Part.self, forPrimaryKey: thread) ?? Part(),
                ]
                for part in parts where part.id != thread || !part.isItself {
                    failures.add(1, ordering: .relaxed)
                }
            }
            XCTAssertEqual(failures.load(ordering: .relaxed), 0, "round \(round)")
        }
    }
}
