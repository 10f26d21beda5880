import Foundation
import RealmSwift
import RealmSwiftTestModels
import XCTest

/// Tests with a Realm in memory, a new one for each.
class RealmTestCase: XCTestCase {
    static let types: [ObjectBase.Type] = [
        Dog.self, Person.self, Address.self, Country.self, AllTypes.self, Mapped.self, PointModel.self, Renamed.self, Base.self, Derived.self, Owner.self,
    ]

    func configuration(_ name: String? = nil) -> Realm.Configuration {
        Realm.Configuration(inMemoryIdentifier: name ?? self.name, objectTypes: RealmTestCase.types)
    }

    func makeRealm() throws -> Realm { try Realm(configuration: configuration()) }
}
