import Foundation
import RealmSwift
import XCTest

/// Code of an application as it is written for Apple systems: that it compiles is the first half of the proof, that it does what
/// it says the second.
final class SourceCompatibilityTests: XCTestCase {
    private func makeLibrary() throws -> Realm {
        let realm = try Realm(configuration: Library.configuration(name))
        let le = Author(value: ["firstName": "Ursula", "lastName": "Le Guin"])
        let dispossessed = Book(
            value: [
                "isbn": "1", "title": "The Dispossessed", "genre": Genre.novel, "price": 9.5, "pages": 341, "author": le,
                "stars": Stars.three,
                "chapters": [PageRange(first: 1, last: 20), "21-40"], "ratings": [5, 4.5],
                "translations": ["de": "Planet der Habenichtse"],
            ] as [String: Any])
        let cosmos = Book(
            value: [
                "isbn": "2", "title": "Cosmos", "genre": "science", "price": "12.25", "pages": 396, "lent": true, "progress": 40,
            ] as [String: Any])
        let shelf = Shelf(label: "A")
        shelf.books.append(objectsIn: [dispossessed, cosmos])
        shelf.place = ShelfPlace(value: ["room": "north", "row": 3, "point": MapPoint(52.5, 13.4)] as [String: Any])
        let ann = Reader(value: [1, "Ann"] as [Any]),
            bo = Reader(value: ["number": 2, "name": "Bo", "mentor": ann] as [String: Any])
        shelf.loans["2"] = bo
        bo.borrowed.append(cosmos)
        try realm.write {
            realm.add(shelf)
            realm.add([ann, bo], update: .modified)
        }
        return realm
    }

    func testACompleteRound() throws {
        let realm = try makeLibrary()
        XCTAssertEqual(realm.objects(Book.self).count, 2)

        // Lookups
        guard let cosmos = realm.object(ofType: Book.self, forPrimaryKey: "2"),
            let bo = realm.object(ofType: Reader.self, forPrimaryKey: 2)
        else { return XCTFail("missing") }
        XCTAssertNil(realm.object(ofType: Reader.self, forPrimaryKey: 99))
        XCTAssertEqual(cosmos.progress, Percentage(40))
        XCTAssertEqual(cosmos.shelves.first?.label, "A")
        XCTAssertEqual(cosmos.shelves.first?.isFull, false)
        XCTAssertEqual(bo.mentor?.name, "Ann")
        XCTAssertEqual(realm.objects(Shelf.self).first?.place?.point?.latitude, 52.5)

        // Changes
        try! realm.write {
            cosmos.lent.toggle()
            cosmos.pages += 4
            cosmos.price = cosmos.price * 2 + 1
            cosmos.secondGenre = .poetry
            cosmos.weight = .heavy
            cosmos.format = PaperSize(width: 10, height: 20)
            cosmos.ratings.append(3.5)
            cosmos.translations["fr"] = "Le cosmos"
            bo.friends.append(Reader(value: ["number": 3, "name": "Cy"] as [String: Any]))
            bo.visits = (bo.visits ?? 0) + 1
        }
        XCTAssertEqual(cosmos.price, 25.5)
        XCTAssertEqual(cosmos.format?.height, 20)
        XCTAssertEqual(cosmos.ratings.last, 3.5)

        let result: Int = try realm.write {
            realm.delete(realm.objects(Reader.self).where { $0.name == "Cy" })
            return realm.objects(Reader.self).count
        }
        XCTAssertEqual(result, 2)
        XCTAssertTrue(bo.friends.isEmpty)
    }

    func testTypedQueries() throws {
        let realm = try makeLibrary()
        let books = realm.objects(Book.self)
        let circle = GeoCircle(center: GeoPoint(latitude: 52.5, longitude: 13.4)!, radius: .kilometers(5)!)
        XCTAssertEqual(books.where { $0.title.contains("cos", options: .caseInsensitive) }.count, 1)
        XCTAssertEqual(books.where { $0.genre == .novel && $0.pages > 300 || $0.lent }.count, 2)
        XCTAssertEqual(books.where { !$0.lent }.count, 1)
        XCTAssertEqual(books.where { $0.pages.contains(300..<390) }.count, 1)
        XCTAssertEqual(books.where { $0.isbn.in(["1", "7"]) }.count, 1)
        XCTAssertEqual(books.where { $0.author.lastName.starts(with: "Le") }.count, 1)
        XCTAssertEqual(books.where { $0.secondGenre == nil }.count, 2)
        XCTAssertEqual(books.where { $0.ratings.max > 4 }.count, 1)
        XCTAssertEqual(books.where { $0.translations.keys.contains("de") }.count, 1)
        XCTAssertEqual(books.where { $0.translations["de"].ends(with: "nichtse") }.count, 1)
        XCTAssertEqual(books.where { $0.shelves.label == "A" }.count, 2)
        XCTAssertEqual(books.where { $0.stars.rawValue > 2 }.count, 1)
        XCTAssertEqual(books.where { $0.stars >= .two }.count, 1)
        XCTAssertEqual(books.where { $0.chapters.contains(PageRange(first: 1, last: 20)) }.count, 1)
        XCTAssertEqual(books.where { $0.progress.persistableValue == 40 }.count, 1)
        let shelves = realm.objects(Shelf.self)
        XCTAssertEqual(shelves.where { ($0.books.pages > 350 && $0.books.lent == true).count == 1 }.count, 1)
        XCTAssertEqual(shelves.where { $0.books.pages.avg > 100 && $0.books.count == 2 }.count, 1)
        XCTAssertEqual(shelves.where { $0.loans.keys == "2" && $0.loans["2"].name == "Bo" }.count, 1)
        XCTAssertEqual(shelves.where { $0.place.point.geoWithin(circle) }.count, 1)
        XCTAssertEqual(shelves.where { $0.label == "A" && !$0.marks.containsAny(in: ["x"]) }.count, 1)
        let wanted: (Query<Book>) -> Query<Bool> = { $0.price > 10 && $0.published < Date() }
        XCTAssertEqual(books.where(wanted).first?.title, "Cosmos")
        XCTAssertEqual(books.index(matching: { $0.title == "Cosmos" }), 1)
    }

    func testPredicates() throws {
        let realm = try makeLibrary()
        let books = realm.objects(Book.self), title = "Cosmos"
        XCTAssertEqual(books.filter("title == %@", title).count, 1)
        XCTAssertEqual(books.filter("title == '\(title)' AND pages > 300").count, 1)
        XCTAssertEqual(books.filter("genre == %@ OR price > %@", Genre.novel, 10).count, 2)
        XCTAssertEqual(books.filter(NSPredicate(format: "author.lastName BEGINSWITH[c] %@", "le")).count, 1)
        XCTAssertEqual(books.filter(NSPredicate(format: "%K == %@", "isbn", "2")).count, 1)
        XCTAssertEqual(books.filter(NSPredicate(format: "isbn IN %@", argumentArray: [["1", "2"]])).count, 2)
        XCTAssertEqual(
            books.filter(
                NSCompoundPredicate(
                    type: .or, subpredicates: [NSPredicate(format: "lent == YES"), NSPredicate(format: "pages < 100")])
            ).count, 1)
        XCTAssertEqual(realm.objects(Shelf.self).filter("ANY books.title CONTAINS 'os' AND label == 'A'").count, 1)
        XCTAssertEqual(
            realm.objects(Shelf.self).filter("SUBQUERY(books, $book, $book.lent == true AND $book.pages > 1).@count > 0").count, 1
        )
        XCTAssertEqual(realm.objects(Reader.self).filter("mentor == nil").count, 1)
        XCTAssertEqual(books.index(matching: NSPredicate(format: "lent == true")), 1)
        XCTAssertEqual(books.index(matching: "lent == %@", true), 1)
    }

    func testOrderSumsAndSections() throws {
        let realm = try makeLibrary()
        let books = realm.objects(Book.self)
        XCTAssertEqual(books.sorted(byKeyPath: "pages", ascending: false).first?.title, "Cosmos")
        XCTAssertEqual(books.sorted(by: \.title).map(\.isbn), ["2", "1"])
        XCTAssertEqual(
            books.sorted(by: [SortDescriptor(keyPath: "lent"), SortDescriptor(keyPath: \Book.title, ascending: false)]).map(
                \.isbn), ["1", "2"])
        XCTAssertEqual(books.distinct(by: ["genre"]).count, 2)
        XCTAssertEqual(books.distinct(by: [\Book.lent]).count, 2)
        let total: Int = books.sum(ofProperty: "pages")
        XCTAssertEqual(total, 737)
        XCTAssertEqual(books.sum(of: \.price), 21.75)
        XCTAssertEqual(books.average(ofProperty: "pages"), 368.5)
        XCTAssertEqual(books.max(of: \.pages), 396)
        XCTAssertEqual(books.min(ofProperty: "published"), Date(timeIntervalSince1970: 0))
        let ratings = realm.objects(Book.self)[0].ratings
        XCTAssertEqual(ratings.sum(), 9.5)
        XCTAssertEqual(ratings.average(), 4.75)
        XCTAssertEqual(ratings.max(), 5)
        XCTAssertEqual(Array(ratings.sorted(ascending: true)), [4.5, 5])

        let sections: SectionedResults<String, Book> = books.sectioned(
            by: { String($0.title.first!) }, sortDescriptors: [SortDescriptor(keyPath: "title")])
        for section in sections {
            let letter: String = section.key
            XCTAssertTrue(section.allSatisfy { $0.title.hasPrefix(letter) })
        }
        XCTAssertEqual(sections.allKeys, ["C", "T"])
        XCTAssertEqual(sections[0][0].title, "Cosmos")
        XCTAssertEqual(books.sectioned(by: \Book.genre, ascending: true).count, 2)
    }

    func testCollections() throws {
        let realm = try makeLibrary()
        let shelf = realm.objects(Shelf.self).first!
        try realm.write {
            shelf.books.insert(Book(value: ["isbn": "3"]), at: 0)
            shelf.books.move(from: 0, to: 2)
            shelf.books.swapAt(0, 1)
            shelf.books.remove(at: 2)
            shelf.books.append(objectsIn: realm.objects(Book.self).filter("isbn == '3'"))
            shelf.books.removeLast()
            shelf.marks.insert(objectsIn: ["red", "blue"])
            shelf.marks.remove("red")
            shelf.loans.updateValue(nil, forKey: "7")
            shelf.loans.removeObject(for: "7")
            shelf.notes = .fromDictionary(["when": .date(Date()), "who": .fromArray([.string("Ann"), .none])])
        }
        XCTAssertEqual(shelf.books.map { $0.isbn }, ["2", "1"])
        XCTAssertTrue(shelf.marks.contains("blue"))
        for (key, reader) in shelf.loans.asKeyValueSequence() { XCTAssertEqual(key, "\(reader?.number ?? 0)") }
        for entry in shelf.loans { XCTAssertEqual(entry.value?.name, "Bo") }
        switch shelf.notes {
        case .dictionary(let map): XCTAssertEqual(map["who"]?.listValue?[0].stringValue, "Ann")
        case .none, .int, .bool, .float, .double, .string, .data, .date, .object, .objectId, .decimal128, .uuid, .list:
            XCTFail("no dictionary")
        }
        let erased: AnyRealmCollection<Book> = AnyRealmCollection(shelf.books)
        XCTAssertEqual(erased.count, 2)
        func total<C: RealmCollection>(_ collection: C) -> Int where C.Element == Book {
            collection.sum(of: \.pages).hashValue == 0 ? 0 : Int(collection.sum(of: \.pages))
        }
        XCTAssertEqual(total(shelf.books), total(realm.objects(Book.self).filter("isbn != '3'")))
        let titles = (shelf.books.value(forKey: "title") as Any) as? [String]
        XCTAssertEqual(titles, ["Cosmos", "The Dispossessed"])
        let lazyTitles = shelf.books.lazy.filter { $0.lent }.map(\.title)
        XCTAssertEqual(Array(lazyTitles), ["Cosmos"])
        XCTAssertEqual(Dictionary(grouping: shelf.books, by: \.lent).count, 2)
        XCTAssertEqual(shelf.books.first(where: { $0.pages > 390 })?.title, "Cosmos")
        XCTAssertEqual(shelf.books.reduce(0) { $0 + Int($1.pages) }, 737)
        XCTAssertTrue(shelf.books.contains(where: { $0.title == "Cosmos" }))
        XCTAssertTrue(shelf.books.contains(shelf.books[1]))
        XCTAssertEqual(zip(shelf.books, 1...).map { $1 }, [1, 2])
        XCTAssertEqual(Set(shelf.books.map(\.genre)), [.novel, .science])
    }

    func testDynamicAccessAndSchema() throws {
        let realm = try makeLibrary()
        let book: DynamicObject = realm.dynamicObject(ofType: "Book", forPrimaryKey: "1")!
        XCTAssertEqual(book["title"] as? String, "The Dispossessed")
        XCTAssertEqual(book.genre as? String, "novel")
        XCTAssertEqual((book["chapters"] as? RealmSwift.List<String>)?.first, "1-20")
        XCTAssertEqual(book.dynamicList("shelves".isEmpty ? "" : "chapters").count, 2)
        try realm.write {
            book["title"] = "Another"
            book.setValue(12, forKey: "pages")
            let made = realm.dynamicCreate("Reader", value: ["number": 9, "name": "Di"])
            XCTAssertEqual(made.name as? String, "Di")
        }
        XCTAssertEqual(realm.objects(Book.self).filter("title == 'Another'").first?.pages, 12)
        let schema: Schema = realm.schema
        let objectSchema: ObjectSchema = schema["Book"]!
        let property: Property = objectSchema["title"]!
        let type: PropertyType = property.type
        XCTAssertEqual(type, .string)
        XCTAssertEqual(objectSchema.primaryKeyProperty?.name, "isbn")
        XCTAssertEqual(schema["Shelf"]?["label"]?.columnName, "shelf_label")
        for property in objectSchema.properties where property.isArray { XCTAssertFalse(property.isMap || property.isSet) }
        XCTAssertEqual(_name(for: \Book.title), "title")
        XCTAssertEqual(_name(for: \Book.author?.lastName), "author.lastName")
        XCTAssertEqual(Book.className(), "Book")
        XCTAssertEqual(realm.configuration.schemaVersion, 3)
        let mirror = Mirror(reflecting: Book())
        XCTAssertFalse(mirror.children.isEmpty)
    }

    func testErrorsAreCaughtInEveryWay() throws {
        let directory = URL(fileURLWithPath: NSTemporaryDirectory()).appendingPathComponent("no such folder \(UUID())")
        var configuration = Library.configuration(name)
        configuration.fileURL = directory.appendingPathComponent("x.realm")
        do {
            _ = try Realm(configuration: configuration)
            XCTFail("opened")
        } catch Realm.Error.fileNotFound {
            // As expected.
        }
        do {
            _ = try Realm(configuration: configuration)
        } catch let error as Realm.Error {
            switch error.code {
            case .fileNotFound: XCTAssertEqual(error.fileURL?.lastPathComponent, "x.realm")
            case .fileAccess, .filePermissionDenied: XCTFail("another code")
            default: XCTFail("another code")
            }
            XCTAssertTrue(error.code == .fileNotFound)
            XCTAssertTrue(error == Realm.Error(.fileNotFound) && error != Realm.Error(.fail))
            XCTAssertTrue(error == Realm.Error(Realm.Error.fileNotFound, userInfo: [NSFilePathErrorKey: "elsewhere"]))
        }
        do {
            _ = try Realm(configuration: configuration)
        } catch let error as NSError {
            XCTAssertEqual(error.domain, "io.realm")
            XCTAssertEqual(error.code, Realm.Error.Code.fileNotFound.rawValue)
            XCTAssertFalse(error.localizedDescription.isEmpty)
        }
    }

    func testProjectionsAndCopies() throws {
        let realm = try makeLibrary()
        let views = realm.objects(ReaderView.self).sorted(byKeyPath: "name")
        XCTAssertEqual(views.map(\.greeting), ["Hello Ann", "Hello Bo"])
        XCTAssertEqual(Array(views[1].titles), ["Cosmos"])
        XCTAssertEqual(views[0].shoutedName, "ANN")
        XCTAssertNil(views[0].room)
        try realm.write { views[0].name = "Eve" }
        XCTAssertEqual(
            realm.objects(Reader.self).where { $0.number == 1 }.map { ReaderSnapshot($0) }.first,
            ReaderSnapshot(realm.object(ofType: Reader.self, forPrimaryKey: 1)!))
        let detached = Reader(value: realm.object(ofType: Reader.self, forPrimaryKey: 1)!)
        XCTAssertNil(detached.realm)
        XCTAssertEqual(detached.name, "Eve")
        let encoded = try JSONEncoder().encode(ShelfPlace(value: ["room": "south", "row": 2, "former": ["a"]] as [String: Any]))
        let decoded = try JSONDecoder().decode(ShelfPlace.self, from: encoded)
        XCTAssertEqual(decoded.room, "south")
        XCTAssertEqual(decoded.row, 2)
        let shelf = realm.objects(Shelf.self)[0]
        XCTAssertEqual(shelf.id, realm.objects(Shelf.self)[0].id)
        let frozen = shelf.freeze()
        XCTAssertTrue(frozen.isFrozen && frozen.books.isFrozen)
        XCTAssertEqual(frozen.thaw()?.label, "A")
        XCTAssertEqual(realm.freeze().objects(Book.self).count, 2)
        let librarian = try realm.write {
            realm.create(Librarian.self, value: ["number": 5, "name": "Li", "desk": "front"], update: .all)
        }
        XCTAssertEqual(librarian.desk, "front")
        XCTAssertEqual(realm.objects(Reader.self).count, 2)
    }

    func testValues() throws {
        let id = ObjectId.generate(), same = try ObjectId(string: id.stringValue)
        XCTAssertEqual(id, same)
        XCTAssertEqual(ObjectId("507f1f77bcf86cd799439011").timestamp, Date(timeIntervalSince1970: 1_350_508_407))
        XCTAssertLessThan(ObjectId("507f1f77bcf86cd799439011"), ObjectId("507f1f77bcf86cd799439012"))
        XCTAssertThrowsError(try ObjectId(string: "x"))
        let price: Decimal128 = 1.1, other: Decimal128 = "2.2"
        XCTAssertEqual(price + price, other)
        XCTAssertEqual((other / 2).stringValue, "1.1")
        XCTAssertEqual(Decimal128(value: 5), 5)
        XCTAssertEqual(Decimal128(number: 2.5).doubleValue, 2.5)
        XCTAssertEqual(try Decimal128(string: "3.14").decimalValue, Decimal(string: "3.14"))
        XCTAssertTrue(Decimal128.min < 0 && Decimal128.max > 0)
        XCTAssertEqual(Decimal128(exactly: Int64.max)?.stringValue, "9223372036854775807")
        XCTAssertEqual(max(price, other), other)
        XCTAssertEqual(AnyRealmValue.int(3).intValue, 3)
        XCTAssertEqual(Set<AnyRealmValue>([.int(1), .int(1), .string("1")]).count, 2)
        XCTAssertEqual(SortDescriptor(keyPath: "a"), "a")
        XCTAssertEqual(Genre(rawValue: "poetry"), .poetry)
        XCTAssertEqual(StringOptions([.caseInsensitive, .diacriticInsensitive]).rawValue, 3)
        XCTAssertEqual(autoreleasepool { 5 }, 5)
    }
}
