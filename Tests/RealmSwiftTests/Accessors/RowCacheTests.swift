import Foundation
import RealmSwift
import TestSupport
import XCTest

/// What an accessor or an iteration remembers of its row must not outlive a change of the table.
final class RowCacheTests: AccessorTestCase {
    /// All of them are themselves, but for those that are gone.
    private func check(_ parts: [Part], gone: Set<Int> = [], line: UInt = #line) {
        for (id, part) in parts.enumerated() {
            if gone.contains(id) {
                XCTAssertTrue(part.isInvalidated, "\(id)", line: line)
            } else {
                XCTAssertTrue(part.id == id && part.isItself, "\(id)", line: line)
            }
        }
    }

    func testRowsThatMoveAreFoundAgain() throws {
        let realm = try realmWithParts(600)
        let parts = Array(realm.objects(Part.self))
        check(parts)
        var gone: Set<Int> = []
        try realm.write {
            for id in stride(from: 0, to: 600, by: 4) {
                realm.delete(parts[id])
                gone.insert(id)
                if id % 100 == 0 { check(parts, gone: gone) }
            }
            check(parts, gone: gone)
            // New leaves, and leaves that grow.
            for id in 600..<1300 { realm.add(makePart(id)) }
            check(parts, gone: gone)
            for part in parts where !gone.contains(part.isInvalidated ? 0 : part.id) { part.note = "changed" }
            check(parts, gone: gone)
        }
        check(parts, gone: gone)
        XCTAssertEqual(realm.objects(Part.self).where { $0.note == "changed" }.count, 450)
    }

    func testAnotherVersionIsReadAfterARefresh() throws {
        let realm = try realmWithParts(600)
        let parts = Array(realm.objects(Part.self))
        let last = try XCTUnwrap(realm.objects(Part.self).last)
        check(parts)
        let configuration = UnsafeSharing(realm.configuration)
        onThread {
            let other = try! Realm(configuration: configuration.value)
            try! other.write {
                for id in 0..<10 { other.delete(other.object(ofType: Part.self, forPrimaryKey: id)!) }
                other.object(ofType: Part.self, forPrimaryKey: 599)!.price = 7.5
            }
        }
        XCTAssertEqual(last.price, 0)
        check(parts)
        realm.refresh()
        XCTAssertEqual(last.price, 7.5)
        check(parts, gone: Set(0..<10))
        XCTAssertEqual(realm.objects(Part.self)[0].id, 10)
    }

    func testWhatIsUndoneIsAsBefore() throws {
        let realm = try realmWithParts(300)
        let parts = Array(realm.objects(Part.self))
        let results = realm.objects(Part.self)
        realm.beginWrite()
        for part in parts { part.weight = -1 }
        realm.delete(parts[7])
        let new = makePart(1000), forgotten = makePart(1001)
        realm.add(new)
        for id in 2000..<2100 { realm.add(makePart(id)) }
        realm.add(forgotten)
        XCTAssertEqual(results[7].id, 8)
        XCTAssertEqual(results[8].weight, -1)
        realm.cancelWrite()
        XCTAssertTrue(new.isInvalidated && forgotten.isInvalidated)
        // A deleted object has to be fetched again, even where its deletion is undone.
        check(parts, gone: [7])
        XCTAssertEqual(results.count, 300)
        XCTAssertEqual(results[7].weight, 21)
        try realm.write { for id in 1000..<1010 { realm.add(makePart(id)) } }
        XCTAssertTrue(new.isInvalidated && forgotten.isInvalidated, "others may have got their keys")
    }

    func testValuesAssignedInPlaceAreSeenByAll() throws {
        let realm = try realmWithParts(600)
        let date = Date(timeIntervalSince1970: 1_700_000_000)
        try realm.write {
            for round in 0..<2 {
                for part in realm.objects(Part.self) where part.id % 3 == 0 {
                    let other = try XCTUnwrap(realm.object(ofType: Part.self, forPrimaryKey: part.id))
                    part.weight = part.id &* (round == 0 ? 1 : 1_000_000_007)
                    part.name = String(repeating: "x", count: (part.id &* 7) % (round == 0 ? 12 : 200))
                    part.isNew = round == 1
                    part.price = Double(part.id) / 2
                    part.rank = round == 0 ? nil : part.id
                    part.note = round == 0 ? "" : nil
                    part.made = date
                    part.whole = other
                    XCTAssertTrue(
                        other.weight == part.weight && other.name == part.name && other.isNew == (round == 1)
                            && other.price == part.price)
                    XCTAssertTrue(
                        other.rank == (round == 0 ? nil : part.id) && other.note == (round == 0 ? "" : nil) && other.made == date)
                    XCTAssertEqual(other.whole?.id, part.id)
                }
            }
        }
        for part in realm.objects(Part.self) {
            if part.id % 3 != 0 {
                XCTAssertTrue(part.isItself && part.whole == nil && part.rank == nil)
                continue
            }
            XCTAssertEqual(part.weight, part.id &* 1_000_000_007)
            XCTAssertEqual(part.name.utf8.count, (part.id &* 7) % 200)
            XCTAssertTrue(
                part.isNew && part.price == Double(part.id) / 2 && part.rank == part.id && part.note == nil && part.made == date)
        }
        let text = try realm.where(Part.self, name: "")
        XCTAssertTrue(text.allSatisfy { $0.id % 3 == 0 })
    }

    /// Objects of two leaves in turn, so that each read finds the leaf of the other; and values that no longer fit into the leaf
    /// as it was read.
    func testALeafThatWasReadIsNotReadAfterItChanged() throws {
        let realm = try realmWithParts(600)
        let parts = [
            try XCTUnwrap(realm.object(ofType: Part.self, forPrimaryKey: 3)),
            try XCTUnwrap(realm.object(ofType: Part.self, forPrimaryKey: 597)),
        ]
        func assign(_ part: Part, _ round: Int) {
            part.weight = part.id &+ round &* 1_000_000_007
            part.name = String(repeating: "n", count: round * 40 + part.id % 7)
            part.isNew = round % 2 == 1
            part.price = Double(part.id) + Double(round) / 4
            part.rank = round == 2 ? nil : part.id * round * 1_000_003
            part.note = round == 1 ? nil : String(repeating: "x", count: round * 50)
            part.made = Date(timeIntervalSince1970: Double(part.id + round * 3_000_000_000))
            part.whole = round == 3 ? nil : part
        }
        func check(_ round: Int, line: UInt = #line) {
            for _ in 0..<2 {
                for part in parts {
                    XCTAssertEqual(part.weight, part.id &+ round &* 1_000_000_007, line: line)
                    XCTAssertEqual(part.name, String(repeating: "n", count: round * 40 + part.id % 7), line: line)
                    XCTAssertEqual(part.isNew, round % 2 == 1, line: line)
                    XCTAssertEqual(part.price, Double(part.id) + Double(round) / 4, line: line)
                    XCTAssertEqual(part.rank, round == 2 ? nil : part.id * round * 1_000_003, line: line)
                    XCTAssertEqual(part.note, round == 1 ? nil : String(repeating: "x", count: round * 50), line: line)
                    XCTAssertEqual(part.made, Date(timeIntervalSince1970: Double(part.id + round * 3_000_000_000)), line: line)
                    XCTAssertEqual(part.whole?.id, round == 3 ? nil : part.id, line: line)
                }
            }
        }
        try realm.write { for part in parts { assign(part, 0) } }
        check(0)
        for round in 1...4 {
            realm.beginWrite()
            check(round - 1)
            for part in parts { assign(part, round) }
            check(round)
            realm.cancelWrite()
            check(round - 1)
            try realm.write {
                for part in parts { assign(part, round) }
                check(round)
            }
            check(round)
        }
        let configuration = UnsafeSharing(realm.configuration)
        onThread {
            let other = try! Realm(configuration: configuration.value)
            try! other.write { for part in other.objects(Part.self) { part.weight = -part.id } }
        }
        check(4)
        realm.refresh()
        XCTAssertEqual(parts.map(\.weight), [-3, -597])
    }

    func testAnIterationShowsWhatWasThereWhenItBegan() throws {
        let realm = try realmWithParts(700)
        var seen = 0
        try realm.write {
            for part in realm.objects(Part.self) {
                XCTAssertEqual(part.id, seen)
                if seen % 50 == 3 { realm.add(makePart(10_000 + seen)) }
                if seen % 2 == 0 { realm.delete(part) }
                seen += 1
            }
        }
        XCTAssertEqual(seen, 700)
        XCTAssertEqual(realm.objects(Part.self).count, 350 + 14)
        // Deleted ahead of the iteration: handed out invalidated.
        var invalid = 0
        try realm.write {
            for part in realm.objects(Part.self) {
                if part.isInvalidated {
                    invalid += 1
                    continue
                }
                if part.id == 1 { realm.deleteAll() }
            }
        }
        XCTAssertEqual(invalid, 363)
    }

    func testAnIterationOutlivesItsVersion() throws {
        let realm = try realmWithParts(600)
        var iterator = realm.objects(Part.self).makeIterator()
        for id in 0..<300 { XCTAssertEqual(iterator.next()?.id, id) }
        let configuration = UnsafeSharing(realm.configuration)
        onThread {
            let other = try! Realm(configuration: configuration.value)
            try! other.write {
                other.delete(other.objects(Part.self).where { $0.id >= 400 && $0.id < 500 })
                for id in 600..<900 { other.add(makePart(id)) }
            }
        }
        realm.refresh()
        for id in 300..<600 {
            let part = try XCTUnwrap(iterator.next())
            XCTAssertEqual(part.isInvalidated, (400..<500).contains(id))
            if !part.isInvalidated { XCTAssertTrue(part.id == id && part.isItself) }
        }
        XCTAssertNil(iterator.next())

        // A transaction for each step.
        var count = 0
        for part in realm.objects(Part.self) {
            try realm.write { part.weight += 1 }
            count += 1
            if count == 20 { break }
        }
        XCTAssertEqual(realm.objects(Part.self).prefix(21).map { $0.weight - $0.id * 3 }, Array(repeating: 1, count: 20) + [0])
        // Nothing is left of the Realm.
        var others = realm.objects(Part.self).makeIterator()
        XCTAssertNotNil(others.next())
        realm.invalidate()
        while let part = others.next() { XCTAssertFalse(part.isInvalidated && part.realm != nil) }
    }

    func testValuesOfNewObjectsOfEveryType() throws {
        let realm = try realm()
        let tickets = (0..<400).map { number -> Ticket in
            let ticket = Ticket()
            if number % 3 != 0 {
                ticket.code = number
                ticket.text = "ticket \(number)"
                ticket.data = Data([UInt8(truncatingIfNeeded: number)])
                ticket.small = Int8(truncatingIfNeeded: number)
                ticket.flag = number % 2 == 0
                ticket.level = .second
                ticket.size = Decimal128(integerLiteral: Int64(number))
                ticket.any = .int(number)
                ticket.date = Date(timeIntervalSince1970: Double(number))
            }
            return ticket
        }
        let fresh = tickets[3], id = fresh.id, date = fresh.date, other = fresh.other
        try realm.write { realm.add(tickets) }
        XCTAssertTrue(fresh.id == id && fresh.other == other && abs(fresh.date.timeIntervalSince(date)) < 0.000_001)
        for (number, ticket) in tickets.enumerated() {
            let isGiven = number % 3 != 0
            let same = try XCTUnwrap(realm.object(ofType: Ticket.self, forPrimaryKey: ticket.id))
            XCTAssertTrue(
                same == ticket && same.code == (isGiven ? number : 0) && same.text == (isGiven ? "ticket \(number)" : ""))
            XCTAssertTrue(
                same.data == (isGiven ? Data([UInt8(truncatingIfNeeded: number)]) : Data())
                    && same.small == (isGiven ? Int8(truncatingIfNeeded: number) : 0))
            XCTAssertTrue(same.flag == (isGiven ? number % 2 == 0 : nil) && same.level == (isGiven ? .second : .first))
            XCTAssertTrue(
                same.size == Decimal128(integerLiteral: isGiven ? Int64(number) : 0)
                    && same.any == (isGiven ? .int(number) : .none))
            if isGiven { XCTAssertEqual(same.date, Date(timeIntervalSince1970: Double(number))) }
        }
        XCTAssertEqual(realm.objects(Ticket.self).where { $0.code == 200 }.map(\.text), ["ticket 200"])
        XCTAssertEqual(realm.objects(Ticket.self).where { $0.text == "" }.count, 134)
        // An update writes to the object that is there.
        let update = Ticket(value: ["id": id, "code": 5])
        try realm.write { realm.add(update, update: .modified) }
        XCTAssertTrue(fresh.code == 5 && realm.objects(Ticket.self).count == 400)
    }

    func testObjectsThatReferToEachOtherAreAddedTogether() throws {
        let realm = try realm()
        let a = makePart(1), b = makePart(2), c = makePart(3)
        a.whole = b
        b.whole = c
        c.whole = a
        a.pieces.append(objectsIn: [b, c, a])
        try realm.write { realm.add(a) }
        XCTAssertEqual(realm.objects(Part.self).count, 3)
        XCTAssertEqual([a.whole?.id, b.whole?.id, c.whole?.id], [2, 3, 1])
        XCTAssertEqual(a.pieces.map(\.id), [2, 3, 1])
        XCTAssertTrue(a.isItself && b.isItself && c.isItself)
    }

    func testSumsOfAllObjects() throws {
        let realm = try realmWithParts(1000)
        XCTAssertEqual(realm.objects(Part.self).sum(of: \.weight), 3 * 999 * 500)
        XCTAssertEqual(realm.objects(Part.self).max(of: \.weight), 2997)
        let average: Double? = realm.objects(Part.self).average(ofProperty: "weight")
        XCTAssertEqual(average, 1498.5)
        try realm.write { for part in realm.objects(Part.self) where part.id >= 500 { part.weight = Int.max } }
        XCTAssertEqual(realm.objects(Part.self).sum(of: \.weight), (0..<500).reduce(500 &* Int.max) { $0 &+ $1 * 3 })
    }
}

extension Realm {
    fileprivate func `where`(_ type: Part.Type, name: String) throws -> Results<Part> { objects(type).where { $0.name == name } }
}

/// A file of parts, of which weight and name follow from the key.
class AccessorTestCase: XCTestCase {
    let scratch = ScratchDirectory()

    func realm() throws -> Realm {
        let types: [ObjectBase.Type] = [Part.self, MarkedPart.self, CountedPart.self, Vehicle.self, Truck.self, Ticket.self]
        return try Realm(
            configuration: Realm.Configuration(
                fileURL: URL(fileURLWithPath: scratch.file("parts.realm")), encryptionKey: TestKeys.usualData, objectTypes: types)
        )
    }

    func realmWithParts(_ count: Int) throws -> Realm {
        let realm = try realm()
        try realm.write { for id in 0..<count { realm.add(makePart(id)) } }
        return realm
    }
}

func makePart(_ id: Int) -> Part {
    let part = Part()
    part.id = id
    part.weight = id &* 3
    part.name = "part \(id)"
    return part
}
