import Foundation
import RealmSwift
import RealmSwiftTestModels
import TestSupport
import XCTest

/// Tests with a Realm in memory, a new one for each.
class RealmTestCase: XCTestCase {
    static let types: [ObjectBase.Type] = [
        Dog.self, Person.self, Address.self, Country.self, AllTypes.self, Mapped.self, PointModel.self, Renamed.self, Base.self,
        Derived.self, Owner.self,
        OldPerson.self, MixedForms.self, Venue.self, Contact.self, Location.self, Holder.self,
    ]

    func configuration(_ name: String? = nil) -> Realm.Configuration {
        guard let key = TestKeys.usualData else {
            return Realm.Configuration(inMemoryIdentifier: name ?? self.name, objectTypes: RealmTestCase.types)
        }
        let url = URL(fileURLWithPath: encrypted.file((name ?? self.name) + ".realm"))
        return Realm.Configuration(fileURL: url, encryptionKey: key, objectTypes: RealmTestCase.types)
    }

    /// Where Realms lie that would be in memory, when all tests run over encrypted files.
    private lazy var encrypted = ScratchDirectory("RealmTestCase", inMemory: true)

    func makeRealm() throws -> Realm { try Realm(configuration: configuration()) }

    /// A Realm in a file of `scratch`, which the test keeps as long as the Realm.
    func makeFileRealm(_ scratch: ScratchDirectory, _ types: [ObjectBase.Type] = RealmTestCase.types) throws -> Realm {
        try Realm(configuration: fileConfiguration(scratch, types))
    }

    func fileConfiguration(_ scratch: ScratchDirectory, _ types: [ObjectBase.Type] = RealmTestCase.types) -> Realm.Configuration {
        Realm.Configuration(
            fileURL: URL(fileURLWithPath: scratch.file("test.realm")), encryptionKey: TestKeys.usualData, objectTypes: types)
    }
}
