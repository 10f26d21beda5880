import Foundation
import RealmSwift

// Projections, and a class of the older form.

public class PersonProjection: Projection<Person> {
    @Projected(\Person.name) public var title
    @Projected(\Person.age) public var age
    @Projected(\Person.address?.city) public var city
    @Projected(\Person.friend?.name) public var friendName
    @Projected(\Person.name.localizedUppercase) public var shouted
    @Projected(\Person.dogs) public var dogs
    @Projected(\Person.dogs.projectTo.name) public var dogNames: ProjectedCollection<String>
    @Projected(\Person.dogs.projectTo.owner) public var dogOwners: ProjectedCollection<Person?>
}

public class DogProjection: Projection<Dog> {
    @Projected(\Dog.name) public var name
    @Projected(\Dog.age) public var years
}

public class AddressProjection: Projection<Address> {
    @Projected(\Address.city) public var city
}

/// Declared without `@Persisted`.
public class OldPerson: Object {
    public let number = RealmOptional<Int>()
    public let age = RealmProperty<Int?>()
    public let score = RealmOptional<Double>(1.5)
    public let anything = RealmProperty<AnyRealmValue>()
    public let friends = List<OldPerson>()
    public let tags = MutableSet<String>()
    public let counts = Map<String, Int>()
    public let admirers = LinkingObjects(fromType: OldPerson.self, property: "friends")
    public let draft = List<Int>()
    public var notStored = 7

    public override class func primaryKey() -> String? { "number" }
    public override class func indexedProperties() -> [String] { ["age"] }
    public override class func ignoredProperties() -> [String] { ["draft"] }
}

/// The base has wrappers, the subclass constants.
public class MixedForms: Base {
    public let numbers = List<Int>()
}

// Data as a web service gives it.

public class Venue: Object {
    @Persisted(primaryKey: true) public var id = ""
    @Persisted public var name = ""
    @Persisted public var contact: Contact?
    @Persisted public var location: Location?
    @Persisted public var verified: Bool?
    @Persisted public var rating: Double
    @Persisted public var categories: List<String>
}

public class Contact: Object {
    @Persisted(primaryKey: true) public var phone = ""
    @Persisted public var twitter: String?
}

public class Location: EmbeddedObject {
    @Persisted public var lat = 0.0
    @Persisted public var lng = 0.0
    @Persisted public var postalCode = ""
}

/// Its list is one of base objects, its enum and its mapped value are required.
public class Holder: Object {
    @Persisted public var bases: List<Base>
    @Persisted public var size: Size
    @Persisted public var percent: Percent
}

public struct Percent: FailableCustomPersistable {
    public var value: Int
    public init?(persistedValue: Int) {
        guard (0...100).contains(persistedValue) else { return nil }
        value = persistedValue
    }
    public var persistableValue: Int { value }
}
