import Foundation
import RealmSwift

// Models with properties of every type that can be declared, for `Declarations*.swift` and `TypedQueryFormTests.swift`.

extension Locale: CustomPersistable {
    public typealias PersistedType = String
    public init(persistedValue: String) { self.init(identifier: persistedValue) }
    public var persistableValue: String { identifier }
}

enum Declared {
    static let classes: [ObjectBase.Type] = [Pet.self, Human.self, Street.self, Coord.self, StreetPart.self]

    enum Status: String, PersistableEnum, CaseIterable { case todo, doing, done }
    enum Grade: Int, PersistableEnum { case bad, good }
    enum Grade8: Int8, PersistableEnum { case bad, good }
    enum Ratio: Float, PersistableEnum { case half = 0.5, whole = 1 }
    enum RatioD: Double, PersistableEnum { case half = 0.5, whole = 1 }

    struct Temperature: CustomPersistable, Comparable {
        typealias PersistedType = Double
        var c: Double
        init(c: Double) { self.c = c }
        init(persistedValue: Double) { c = persistedValue }
        var persistableValue: Double { c }
        static func < (a: Temperature, b: Temperature) -> Bool { a.c < b.c }
    }
    struct Tag: CustomPersistable {
        var name: String
        init(persistedValue: String) { name = persistedValue }
        var persistableValue: String { name }
    }
    struct Even: FailableCustomPersistable {
        let v: Int
        init?(persistedValue: Int) { if persistedValue % 2 != 0 { return nil }; v = persistedValue }
        var persistableValue: Int { v }
    }
    class Coord: EmbeddedObject {
        @Persisted var lat: Double
        @Persisted var lon: Double
    }
    struct Loc: CustomPersistable {
        var lat: Double, lon: Double
        init(lat: Double, lon: Double) { self.lat = lat; self.lon = lon }
        init(persistedValue: Coord) { lat = persistedValue.lat; lon = persistedValue.lon }
        var persistableValue: Coord { Coord(value: [lat, lon]) }
    }
    class StreetPart: EmbeddedObject {
        @Persisted var name: String
    }
    class Street: EmbeddedObject {
        @Persisted var name: String
        @Persisted var number: Int?
        @Persisted var inner: StreetPart?
        @Persisted var list: List<StreetPart>
    }
    class Pet: Object, ObjectKeyIdentifiable, Codable {
        @Persisted(primaryKey: true) var _id: ObjectId
        @Persisted(indexed: true) var name: String = ""
        @Persisted var age: Int = 0
        @Persisted var weight: Double?
        @Persisted(originProperty: "pets") var owners: LinkingObjects<Human>
        enum CodingKeys: String, CodingKey { case _id = "id", name, age, weight }
        convenience init(name: String, age: Int) { self.init(); self.name = name; self.age = age }
    }
    class Human: Object, ObjectKeyIdentifiable {
        @Persisted(primaryKey: true) var id: String = UUID().uuidString
        @Persisted var name: String
        @Persisted var birth: Date?
        @Persisted var status: Status = .todo
        @Persisted var statusOpt: Status?
        @Persisted var grade: Grade
        @Persisted var grade8: Grade8?
        @Persisted var ratio: Ratio?
        @Persisted var ratioD: RatioD
        @Persisted var pets: List<Pet>
        @Persisted var petSet: MutableSet<Pet>
        @Persisted var petMap: Map<String, Pet?>
        @Persisted var street: Street?
        @Persisted var streets: List<Street>
        @Persisted var streetMap: Map<String, Street?>
        @Persisted var partner: Human?
        @Persisted var temp: Temperature
        @Persisted var tempOpt: Temperature?
        @Persisted var temps: List<Temperature>
        @Persisted var tempMap: Map<String, Temperature?>
        @Persisted var tempSet: MutableSet<Temperature>
        @Persisted var tag: Tag
        @Persisted var even: Even?
        @Persisted var loc: Loc
        @Persisted var locOpt: Loc?
        @Persisted var locs: List<Loc>
        @Persisted var locMap: Map<String, Loc?>
        @Persisted var any: AnyRealmValue
        @Persisted var anys: List<AnyRealmValue>
        @Persisted var anyMap: Map<String, AnyRealmValue>
        @Persisted var anySet: MutableSet<AnyRealmValue>
        @Persisted var statuses: List<Status>
        @Persisted var statusesOpt: List<Status?>
        @Persisted var statusSet: MutableSet<Status>
        @Persisted var statusMap: Map<String, Status>
        @Persisted var statusMapOpt: Map<String, Status?>
        @Persisted var ints: List<Int>
        @Persisted var intsOpt: List<Int?>
        @Persisted var intSet: MutableSet<Int>
        @Persisted var intMap: Map<String, Int>
        @Persisted var intMapOpt: Map<String, Int?>
        @Persisted var strings: List<String>
        @Persisted var stringsOpt: List<String?>
        @Persisted var stringSet: MutableSet<String>
        @Persisted var stringMap: Map<String, String>
        @Persisted var stringMapOpt: Map<String, String?>
        @Persisted var dates: List<Date>
        @Persisted var datas: List<Data>
        @Persisted var decimals: List<Decimal128>
        @Persisted var oids: MutableSet<ObjectId>
        @Persisted var uuids: List<UUID?>
        @Persisted var bools: List<Bool>
        @Persisted var i8: Int8
        @Persisted var i16: Int16?
        @Persisted var i32: Int32
        @Persisted var i64: Int64
        @Persisted var f: Float
        @Persisted var d: Double
        @Persisted var b: Bool
        @Persisted var bOpt: Bool?
        @Persisted var data: Data
        @Persisted var dataOpt: Data?
        @Persisted var dec: Decimal128
        @Persisted var decOpt: Decimal128?
        @Persisted var oid: ObjectId
        @Persisted var uuid: UUID
        @Persisted var stringOpt: String?
        @Persisted var intOpt: Int?
        @Persisted var dblOpt: Double?
        @Persisted(originProperty: "partner") var partners: LinkingObjects<Human>
    }
    class HumanView: Projection<Human> {
        @Projected(\Human.name) var name
        @Projected(\Human.street?.name) var streetName
        @Projected(\Human.partner?.name) var partnerName
        @Projected(\Human.pets.projectTo.name) var petNames: ProjectedCollection<String>
        @Projected(\Human.petSet.projectTo.age) var petAges: ProjectedCollection<Int>
        @Projected(\Human.pets) var pets
        @Projected(\Human.status) var status
        @Projected(\Human.intOpt) var intOpt
        @Projected(\Human.b) var b: Bool
    }
}
