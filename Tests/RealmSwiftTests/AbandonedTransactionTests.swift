import Foundation
import RealmSwift
import RealmSwiftTestModels
import SharedStore
import TestSupport
import XCTest

/// A write transaction that nobody can end any more is undone, so that others may write.
final class AbandonedTransactionTests: FileTestCase {
    /// Leaves a transaction open in which objects were made.
    private func abandon() throws -> Dog {
        let realm = try Realm(configuration: fileConfiguration())
        realm.beginWrite()
        let dog = realm.create(Dog.self, value: ["name": "first"])
        let person = Person()
        person.dogs.append(Dog(name: "second"))
        realm.add(person)
        XCTAssertEqual(realm.objects(Dog.self).count, 2)
        return dog
    }

    private func isSomebodyWriting() throws -> Bool {
        var options = StoreOptions()
        options.encryptionKey = TestKeys.usual
        let store = try Store.open(url().path, options)
        defer { try? store.close() }
        guard let transaction = try store.tryBeginWrite() else { return true }
        transaction.rollback()
        return false
    }

    func testObjectsThatATransactionMadeDoNotKeepIt() throws {
        makeFile(fileConfiguration(), dogs: 0)
        var dog: Dog? = try abandon()
        XCTAssertTrue(try isSomebodyWriting(), "the object has the Realm")
        XCTAssertEqual(dog?.realm?.isInWriteTransaction, true)
        XCTAssertEqual(dog?.name, "first")
        dog = nil
        XCTAssertFalse(try isSomebodyWriting())
        XCTAssertEqual(try Realm(configuration: fileConfiguration()).objects(Dog.self).count, 0)
    }

    /// The Realm comes back by way of the object, and with it what the transaction has to know.
    func testATransactionWhoseRealmCameBackEndsAsUsual() throws {
        makeFile(fileConfiguration(), dogs: 0)
        let kept = try abandon()
        try XCTUnwrap(kept.realm).commitWrite()
        XCTAssertEqual(kept.realm?.objects(Dog.self).count, 2)
        let realm = try XCTUnwrap(kept.realm)
        try realm.write { realm.deleteAll() }
        let undone = try abandon()
        try XCTUnwrap(undone.realm).cancelWrite()
        XCTAssertTrue(undone.isInvalidated)
        try realm.write { realm.add(Dog()) }
        XCTAssertTrue(undone.isInvalidated, "whatever has its key now")
    }
}
