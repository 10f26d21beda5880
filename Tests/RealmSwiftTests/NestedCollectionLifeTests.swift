import Foundation
import RealmSwift
import RealmSwiftTestModels
import XCTest

/// How long an accessor of a list or dictionary in a value of any type lives: until another value takes its place, for good.
final class NestedCollectionLifeTests: RealmTestCase {
    private func add(_ value: AnyRealmValue, to realm: Realm) throws -> AllTypes {
        let object = AllTypes()
        object.any = value
        try realm.write { realm.add(object) }
        return object
    }

    func testAReplacedListStaysInvalidWhateverComesInItsPlace() throws {
        let realm = try makeRealm()
        let object = try add(.fromArray([.int(1), .fromArray([.int(2)])]), to: realm)
        let list = try XCTUnwrap(object.any.listValue), inner = try XCTUnwrap(list[1].listValue)
        XCTAssertEqual(list, object.any.listValue)
        try realm.write { object.any = .fromArray([.int(7), .fromArray([.int(8)])]) }
        let second = try XCTUnwrap(object.any.listValue)
        XCTAssertTrue(list.isInvalidated)
        XCTAssertNil(list.realm)
        XCTAssertTrue(inner.isInvalidated)
        XCTAssertFalse(second.isInvalidated)
        XCTAssertNotEqual(list, second)
        // By way of another value, in transactions of their own.
        try realm.write { object.any = .int(3) }
        XCTAssertTrue(second.isInvalidated)
        try realm.write { object.any = .fromArray([.int(9)]) }
        XCTAssertTrue(list.isInvalidated && inner.isInvalidated && second.isInvalidated)
        XCTAssertEqual(object.any.listValue.map { Array($0) }, [.int(9)])
    }

    func testAReplacedDictionaryStaysInvalid() throws {
        let realm = try makeRealm()
        let object = try add(.fromDictionary(["a": .fromDictionary(["b": .int(1)])]), to: realm)
        let map = try XCTUnwrap(object.any.dictionaryValue), inner = try XCTUnwrap(map["a"]?.dictionaryValue)
        for round in 0..<40 {
            try realm.write { map["a"] = .fromDictionary(["b": .int(round)]) }
            XCTAssertTrue(inner.isInvalidated, "round \(round)")
        }
        XCTAssertFalse(map.isInvalidated)
        try realm.write { object.any = .fromDictionary([:]) }
        XCTAssertTrue(map.isInvalidated)
    }

    func testChangesOfTheContentKeepTheAccessor() throws {
        let realm = try makeRealm()
        let object = try add(.fromArray([.int(1), .fromArray([.int(2)])]), to: realm)
        let list = try XCTUnwrap(object.any.listValue), inner = try XCTUnwrap(list[1].listValue)
        let frozen = list.freeze()
        try realm.write {
            list.insert(.int(0), at: 0)
            inner.append(.int(3))
            object.string = "other"
        }
        XCTAssertEqual(Array(inner), [.int(2), .int(3)])
        XCTAssertEqual(Array(list).first, .int(0))
        XCTAssertEqual(frozen.count, 2)
        XCTAssertEqual(frozen.thaw(), list)
        try realm.write { list[2] = .fromArray([.int(4)]) }
        XCTAssertTrue(inner.isInvalidated)
        XCTAssertFalse(list.isInvalidated)
        try realm.write { object.any = .fromArray([]) }
        XCTAssertNil(frozen.thaw())
        XCTAssertEqual(frozen.count, 2)
    }

    func testALaterTransactionDoesNotReviveAnElement() throws {
        let realm = try makeRealm()
        let object = try add(.fromArray([.none]), to: realm)
        let list = try XCTUnwrap(object.any.listValue)
        try realm.write { list[0] = .fromArray([.int(1)]) }
        let first = try XCTUnwrap(list[0].listValue)
        try realm.write { list[0] = .fromArray([.int(2)]) }
        XCTAssertTrue(first.isInvalidated)
        XCTAssertEqual(list[0].listValue?.first, .int(2))
    }

    /// With salts of eight bits, as the original gives them to few siblings, an old accessor finds a newer element after some 255
    /// transactions.
    func testManyTransactionsDoNotReviveAnElementOrAProperty() throws {
        let realm = try makeRealm()
        let object = try add(.fromArray([.fromArray([.int(-1)]), .fromDictionary(["a": .fromArray([])])]), to: realm)
        let other = AllTypes()
        other.key = "other"
        other.any = .fromArray([.int(-1)])
        try realm.write { realm.add(other) }
        let list = try XCTUnwrap(object.any.listValue), map = try XCTUnwrap(list[1].dictionaryValue)
        let element = try XCTUnwrap(list[0].listValue), value = try XCTUnwrap(map["a"]?.listValue)
        let whole = try XCTUnwrap(other.any.listValue)
        for round in 0..<1000 {
            try realm.write {
                list[0] = .fromArray([.int(round)])
                map["a"] = .fromArray([.int(round)])
                other.any = .fromArray([.int(round)])
            }
            XCTAssertTrue(element.isInvalidated && value.isInvalidated && whole.isInvalidated, "round \(round)")
        }
        XCTAssertFalse(list.isInvalidated || map.isInvalidated)
        XCTAssertEqual(list[0].listValue?.first, .int(999))
        XCTAssertEqual(map["a"]?.listValue?.first, .int(999))
    }
}
