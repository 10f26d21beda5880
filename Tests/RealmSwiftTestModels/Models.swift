import Foundation
import RealmSwift

public class Dog: Object {
    @Persisted(primaryKey: true) public var id: ObjectId
    @Persisted(indexed: true) public var name = ""
    @Persisted public var age: Int
    @Persisted public var owner: Person?
    @Persisted(originProperty: "dogs") public var fans: LinkingObjects<Person>

    public convenience init(name: String, age: Int = 0) {
        self.init()
        self.name = name
        self.age = age
    }
}

public class Person: Object {
    @Persisted public var name: String
    @Persisted public var age: Int
    @Persisted public var dogs: List<Dog>
    @Persisted public var friend: Person?
    @Persisted public var address: Address?
    @Persisted public var homes: List<Address>
    @Persisted public var places: Map<String, Address?>
    @Persisted public var tags: MutableSet<String>
    @Persisted public var pets: Map<String, Dog?>
    @Persisted public var anything: AnyRealmValue
}

public class Address: EmbeddedObject {
    @Persisted public var street: String
    @Persisted public var city: String
    @Persisted public var country: Country?
}

public class Country: EmbeddedObject {
    @Persisted public var name: String
}

public enum Size: String, PersistableEnum {
    case small, medium, large
}

public enum Level: Int, PersistableEnum {
    case low = 1, high = 10
}

public class AllTypes: Object {
    @Persisted(primaryKey: true) public var key: String
    @Persisted public var bool: Bool
    @Persisted public var int: Int
    @Persisted public var int8: Int8
    @Persisted public var int16: Int16
    @Persisted public var int32: Int32
    @Persisted public var int64: Int64
    @Persisted public var float: Float
    @Persisted public var double: Double
    @Persisted public var string: String
    @Persisted public var data: Data
    @Persisted public var date: Date
    @Persisted public var objectId: ObjectId
    @Persisted public var uuid: UUID
    @Persisted public var decimal: Decimal128
    @Persisted public var any: AnyRealmValue
    @Persisted public var size: Size
    @Persisted public var level: Level

    @Persisted public var optBool: Bool?
    @Persisted public var optInt: Int?
    @Persisted public var optInt8: Int8?
    @Persisted public var optInt16: Int16?
    @Persisted public var optInt32: Int32?
    @Persisted public var optInt64: Int64?
    @Persisted public var optFloat: Float?
    @Persisted public var optDouble: Double?
    @Persisted public var optString: String?
    @Persisted public var optData: Data?
    @Persisted public var optDate: Date?
    @Persisted public var optObjectId: ObjectId?
    @Persisted public var optUuid: UUID?
    @Persisted public var optDecimal: Decimal128?
    @Persisted public var optSize: Size?

    @Persisted public var ints: List<Int>
    @Persisted public var bools: List<Bool>
    @Persisted public var floats: List<Float>
    @Persisted public var doubles: List<Double>
    @Persisted public var strings: List<String>
    @Persisted public var datas: List<Data>
    @Persisted public var dates: List<Date>
    @Persisted public var objectIds: List<ObjectId>
    @Persisted public var uuids: List<UUID>
    @Persisted public var decimals: List<Decimal128>
    @Persisted public var anys: List<AnyRealmValue>
    @Persisted public var sizes: List<Size>
    @Persisted public var optInts: List<Int?>
    @Persisted public var optStrings: List<String?>
    @Persisted public var intSet: MutableSet<Int>
    @Persisted public var stringSet: MutableSet<String>
    @Persisted public var anySet: MutableSet<AnyRealmValue>
    @Persisted public var intMap: Map<String, Int>
    @Persisted public var optStringMap: Map<String, String?>
    @Persisted public var anyMap: Map<String, AnyRealmValue>
}

public class Owner: Object {
    @Persisted(primaryKey: true) public var id: Int
    @Persisted public var dog: Dog?
}

// MARK: Mapped types

public struct Celsius: Hashable, CustomPersistable {
    public var degrees: Double
    public init(degrees: Double) { self.degrees = degrees }
    public init(persistedValue: Double) { degrees = persistedValue }
    public var persistableValue: Double { degrees }
}

public struct EvenNumber: FailableCustomPersistable {
    public var value: Int
    public init?(persistedValue: Int) {
        if persistedValue % 2 != 0 { return nil }
        value = persistedValue
    }
    public var persistableValue: Int { value }
}

public class PointModel: EmbeddedObject {
    @Persisted public var x: Double
    @Persisted public var y: Double
}

public struct Point: CustomPersistable {
    public var x: Double, y: Double
    public init(x: Double, y: Double) {
        self.x = x
        self.y = y
    }
    public init(persistedValue: PointModel) {
        x = persistedValue.x
        y = persistedValue.y
    }
    public var persistableValue: PointModel { PointModel(value: ["x": x, "y": y]) }
}

extension URL: FailableCustomPersistable {
    public typealias PersistedType = String
    public init?(persistedValue: String) { self.init(string: persistedValue) }
    public var persistableValue: String { absoluteString }
}

public class Mapped: Object {
    @Persisted public var temperature: Celsius
    @Persisted public var optTemperature: Celsius?
    @Persisted public var even: EvenNumber?
    @Persisted public var place: Point
    @Persisted public var optPlace: Point?
    @Persisted public var url: URL?
    @Persisted public var urls: List<URL>
    @Persisted public var urlsByName: Map<String, URL>
}

// MARK: Declarations of every kind

public class Renamed: Object {
    @Persisted public var firstName: String
    @Persisted public var count: Int
    public override class func propertiesMapping() -> [String: String] { ["firstName": "first_name"] }
}

public class Base: Object {
    @Persisted(primaryKey: true) public var id: UUID
    @Persisted public var title: String
}

public class Derived: Base {
    @Persisted public var subtitle: String
    public var notStored = 5
    public lazy var lazily = "computed once"
    public var computed: String { title + subtitle }
}

public class Hidden: Object {
    @Persisted public var value: Int
    public override class func shouldIncludeInDefaultSchema() -> Bool { false }
}

public class CodableDog: Object, Codable {
    @Persisted public var name: String
    @Persisted public var nickname: String?
    @Persisted public var age: Int
    @Persisted public var toys: List<String>
}
