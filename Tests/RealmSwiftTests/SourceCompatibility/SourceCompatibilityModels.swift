import Foundation
import RealmSwift

// Models of an imagined application about books and their readers, written as such code is: nothing here knows that it runs on
// Linux.

typealias ISBN = String

enum Genre: String, PersistableEnum, Codable {
    case novel, poetry, science, unknown
}

enum Stars: Int, PersistableEnum {
    case none = 0, one, two, three
}

enum Weight: Double, PersistableEnum {
    case light = 0.5, heavy = 2
}

struct PageRange: CustomPersistable {
    typealias PersistedType = String
    var first: Int, last: Int

    init(first: Int, last: Int) {
        self.first = first
        self.last = last
    }

    init(persistedValue: String) {
        let parts = persistedValue.split(separator: "-").compactMap { Int($0) }
        self.init(first: parts.first ?? 0, last: parts.last ?? 0)
    }

    var persistableValue: String { "\(first)-\(last)" }
}

struct Percentage: FailableCustomPersistable {
    typealias PersistedType = Int
    let value: Int
    init?(_ value: Int) {
        guard (0...100).contains(value) else { return nil }
        self.value = value
    }
    init?(persistedValue: Int) { self.init(persistedValue) }
    var persistableValue: Int { value }
}

class SizeModel: EmbeddedObject {
    @Persisted var width: Double
    @Persisted var height: Double
}

struct PaperSize: CustomPersistable {
    var width: Double, height: Double
    init(width: Double, height: Double) {
        self.width = width
        self.height = height
    }
    init(persistedValue: SizeModel) { self.init(width: persistedValue.width, height: persistedValue.height) }
    var persistableValue: SizeModel { SizeModel(value: [width, height]) }
}

final class Shelf: Object, ObjectKeyIdentifiable {
    @Persisted(primaryKey: true) var _id: ObjectId
    @Persisted(indexed: true) var label = ""
    @Persisted var books: RealmSwift.List<Book>
    @Persisted var loans: Map<String, Reader?>
    @Persisted var marks: MutableSet<String>
    @Persisted var place: ShelfPlace?
    @Persisted var notes: AnyRealmValue = .none

    convenience init(label: String) {
        self.init()
        self.label = label
    }

    var isFull: Bool { books.count >= 10 }
    override class func propertiesMapping() -> [String: String] { ["label": "shelf_label"] }
}

class ShelfPlace: EmbeddedObject, Codable {
    @Persisted var room: String = ""
    @Persisted var row: Int?
    @Persisted var point: MapPoint?
    @Persisted var former: RealmSwift.List<String>
}

class MapPoint: EmbeddedObject, Codable {
    @Persisted private var coordinates: RealmSwift.List<Double>
    @Persisted private var type: String = "Point"

    var latitude: Double { coordinates[1] }
    var longitude: Double { coordinates[0] }

    convenience init(_ latitude: Double, _ longitude: Double) {
        self.init()
        coordinates.append(objectsIn: [longitude, latitude])
    }
}

class Book: Object {
    @Persisted(primaryKey: true) var isbn: ISBN
    @Persisted var title: String = ""
    @Persisted(indexed: true) var published: Date = Date(timeIntervalSince1970: 0)
    @Persisted var genre: Genre
    @Persisted var secondGenre: Genre?
    @Persisted var stars = Stars.none
    @Persisted var weight: Weight?
    @Persisted var price: Decimal128
    @Persisted var pages: Int16 = 0
    @Persisted var cover: Data?
    @Persisted var lent: Bool
    @Persisted var author: Author?
    @Persisted var chapters: RealmSwift.List<PageRange>
    @Persisted var progress: Percentage?
    @Persisted var format: PaperSize?
    @Persisted var ratings: RealmSwift.List<Float>
    @Persisted var translations: Map<String, String>
    @Persisted(originProperty: "books") var shelves: LinkingObjects<Shelf>

    var cachedThumbnail: [UInt8]?
    private lazy var words: [String] = title.split(separator: " ").map(String.init)
    var wordCount: Int { words.count }
}

class Author: Object {
    @Persisted(primaryKey: true) var id = UUID()
    @Persisted var firstName: String
    @Persisted var lastName: String
    @Persisted var born: Date?
    @Persisted var books: RealmSwift.List<Book>
    @Persisted var influences: MutableSet<Author>

    var fullName: String { "\(firstName) \(lastName)" }
    override var description: String { "Author \(fullName)" }
}

class Reader: Object {
    @Persisted(primaryKey: true) var number: Int
    @Persisted var name: String
    @Persisted var friends: RealmSwift.List<Reader>
    @Persisted var borrowed: RealmSwift.List<Book>
    @Persisted var mentor: Reader?
    @Persisted var home: ShelfPlace?
    @Persisted var active = true
    @Persisted var visits: Int64?
    @Persisted var small: Int8
    @Persisted var medium: Int32
    @Persisted var score: Double?
    @Persisted var badge: ObjectId?
    @Persisted var device: UUID?
    @Persisted var credit: Decimal128?

    required override init() { super.init() }
}

/// A reader with privileges: a class of its own with inherited properties.
class Librarian: Reader {
    @Persisted var desk: String
}

struct ReaderSnapshot: Sendable, Equatable {
    let number: Int
    let name: String

    init(_ reader: Reader) {
        number = reader.number
        name = reader.name
    }
}

class ReaderView: Projection<Reader> {
    @Projected(\Reader.name) var name
    @Projected(\Reader.home?.room) var room
    @Projected(\Reader.mentor?.home?.row) var mentorRow
    @Projected(\Reader.borrowed.projectTo.title) var titles: ProjectedCollection<String>
    @Projected(\Reader.name.localizedUppercase) var shoutedName
    var greeting: String { "Hello \(name)" }
}

/// How an application describes its store.
enum Library {
    static let classes: [ObjectBase.Type] = [
        Shelf.self, ShelfPlace.self, MapPoint.self, Book.self, Author.self, Reader.self, Librarian.self, SizeModel.self,
    ]

    static func configuration(_ name: String) -> Realm.Configuration {
        var configuration = Realm.Configuration.defaultConfiguration
        configuration.inMemoryIdentifier = name
        configuration.schemaVersion = 3
        configuration.objectTypes = classes
        configuration.migrationBlock = { migration, oldSchemaVersion in
            if oldSchemaVersion < 2 {
                migration.enumerateObjects(ofType: Book.className()) { oldObject, newObject in
                    newObject!["title"] = oldObject!["name"]
                }
            }
            if oldSchemaVersion < 3 {
                migration.renameProperty(onType: "Reader", from: "no", to: "number")
            }
        }
        return configuration
    }
}
