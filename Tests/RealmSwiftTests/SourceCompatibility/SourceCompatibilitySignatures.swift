import Foundation
import RealmSwift
import XCTest

// Generic code over the protocols of the library: every member with its labels, in functions that an application could have.

private func everything<C: RealmCollection>(_ collection: C) throws -> [Any?] where C.Element: Object {
    let first: C.Element? = collection.first, last: C.Element? = collection.last
    var seen: [Any?] = [
        collection.realm, collection.isInvalidated, collection.count, collection.description, first, last, collection.startIndex,
        collection.endIndex,
    ]
    if let first {
        seen.append(collection.index(of: first))
        seen.append(collection[0].isSameObject(as: first))
    }
    seen.append(collection.index(after: 0))
    seen.append(collection.index(before: 1))
    seen.append(collection.objects(at: IndexSet()))
    seen.append(collection.value(forKey: "self"))
    seen.append(collection.value(forKeyPath: "@count"))
    let all: Results<C.Element> = collection.filter("TRUEPREDICATE")
    seen.append(all.count)
    seen.append(collection.filter(NSPredicate(value: true)).count)
    seen.append(collection.sorted(by: [SortDescriptor(keyPath: "isbn", ascending: false)]).count)
    seen.append(collection.distinct(by: ["isbn"]).count)
    seen.append(collection.index(matching: NSPredicate(value: true)))
    seen.append(collection.index(matching: "isbn == %@", "1"))
    let minimum: Int16? = collection.min(ofProperty: "pages"), maximum: Int16? = collection.max(ofProperty: "pages")
    let sum: Int = collection.sum(ofProperty: "pages"), mean: Double? = collection.average(ofProperty: "pages")
    seen += [minimum, maximum, sum, mean]
    seen.append(collection.isFrozen)
    let frozen: C = collection.freeze()
    let thawed: C? = frozen.thaw()
    seen.append(thawed?.count)
    seen.append(collection == collection)
    var iterator: RLMIterator<C.Element> = collection.makeIterator()
    seen.append(iterator.next())
    seen.append(Array(collection).count)
    seen.append(collection.sectioned(sortDescriptors: [SortDescriptor(keyPath: "isbn")]) { $0.isInvalidated }.count)
    return seen
}

private func books<C: RealmCollection>(_ books: C) -> [Any?] where C.Element == Book {
    [
        books.min(of: \.pages), books.max(of: \.published), books.sum(of: \.price), books.average(of: \.pages),
        books.sorted(byKeyPath: "title", ascending: true).count,
        books.sorted(by: \.title, ascending: false).count, books.distinct(by: [\Book.title, \Book.pages]).count,
        books.where { $0.pages > 1 }.count,
        books.sectioned(by: \.lent).count,
        books.sectioned(by: \.lent, sortDescriptors: [SortDescriptor(keyPath: \Book.lent)]).count,
        books.sectioned(by: { $0.lent }, sortDescriptors: [SortDescriptor(keyPath: "lent")]).count,
    ]
}

private func numbers<C: RealmCollection>(_ numbers: C) -> [Any?] where C.Element == Float {
    let mean: Double? = numbers.average()
    return [
        numbers.min(), numbers.max(), numbers.sum(), mean, numbers.sorted(ascending: true).count, numbers.distinct().count,
        numbers.sectioned(by: { $0 > 4 }, ascending: true).count,
    ]
}

private func values<M: RealmKeyedCollection>(_ map: M) -> [Any?] where M.Key == String, M.Value == String {
    let keys: [String] = map.keys, values: [String] = map.values
    return [
        keys, values, map.count, map.realm, map.isInvalidated, map.description, map["de"], map.value(forKey: "de"),
        map.value(forKeyPath: "de"), map.contains { $0 == $1 },
        map.sorted(ascending: true).count, map.isFrozen, map.freeze().count, map.freeze().thaw()?.count,
    ]
}

private func people<M: RealmKeyedCollection>(_ map: M) -> [Any?] where M.Key == String, M.Value == Reader? {
    let minimum: Int? = map.min(ofProperty: "number"), maximum: Int? = map.max(ofProperty: "number"),
        sum: Int = map.sum(ofProperty: "number"), mean: Double? = map.average(ofProperty: "number")
    return [
        minimum, maximum, sum, mean, map.min(of: \.number), map.max(of: \.number), map.sum(of: \.number),
        map.average(of: \.number), map.filter(NSPredicate(value: true)).count,
        map.where { $0.name == "Bo" }.count, map.sorted(byKeyPath: "name", ascending: false).count,
        map.sorted(by: [SortDescriptor(keyPath: "name")]).count,
        map.sorted(by: \.name, ascending: true).count,
    ]
}

private func sections<S: RealmSectionedResult>(_ sections: S) -> [Any?] {
    [
        sections.count, sections.realm, sections.isInvalidated, sections.isFrozen, sections.freeze().count,
        sections.freeze().thaw()?.count,
    ]
}

private func confined<T: ThreadConfined>(_ value: T) -> [Any?] {
    [value.realm, value.isInvalidated, value.isFrozen, value.freeze(), value.freeze().thaw()]
}

/// Constraints as libraries on top of this one write them.
private protocol Repository {
    associatedtype Item: Object
    var realm: Realm { get }
}

extension Repository {
    func all() -> Results<Item> { realm.objects(Item.self) }
    func find<Key>(_ key: Key) -> Item? { realm.object(ofType: Item.self, forPrimaryKey: key) }
    func save(_ item: Item) throws { try realm.write { realm.add(item, update: .modified) } }
    func update(_ change: (Item) throws -> Void) throws {
        try realm.write {
            for item in all() { try change(item) }
        }
    }
    func fetched<Element: RealmFetchable>(_ type: Element.Type) -> [Element] { Array(realm.objects(type)) }
}

private struct Books: Repository {
    typealias Item = Book
    let realm: Realm
}

extension Results {
    fileprivate func toArray() -> [Element] { Array(self) }
}

extension RealmSwift.List where Element == String {
    fileprivate var joinedText: String { joined(separator: ", ") }
}

final class SourceCompatibilitySignatures: XCTestCase {
    func testGenericCodeOverEveryProtocol() throws {
        let realm = try Realm(configuration: Library.configuration(name))
        let repository = Books(realm: realm)
        let shelf = Shelf(label: "x")
        try realm.write {
            realm.add(shelf)
            shelf.books.append(
                Book(value: ["isbn": "1", "pages": 3, "ratings": [1, 5], "translations": ["de": "a"]] as [String: Any]))
            shelf.loans["b"] = Reader(value: [2, "Bo"] as [Any])
        }
        try repository.save(Book(value: ["isbn": "2", "pages": 5] as [String: Any]))
        try repository.update { $0.title = "t" + $0.isbn }
        XCTAssertEqual(repository.all().toArray().map(\.title), ["t1", "t2"])
        XCTAssertEqual(repository.find("2")?.pages, 5)
        XCTAssertEqual(repository.fetched(ReaderView.self).map(\.name), ["Bo"])
        let book = shelf.books[0]
        XCTAssertEqual(try everything(realm.objects(Book.self)).count, 31)
        XCTAssertEqual(try everything(shelf.books).count, 31)
        XCTAssertEqual(try everything(AnyRealmCollection(shelf.books)).count, 31)
        XCTAssertEqual(try everything(realm.objects(Book.self).filter("pages > 4")).count, 31)
        XCTAssertEqual(books(realm.objects(Book.self)).count, 11)
        XCTAssertEqual(books(shelf.books).count, 11)
        XCTAssertEqual(numbers(book.ratings).compactMap { $0 as? Double ?? ($0 as? Float).map(Double.init) }, [1, 5, 6, 3])
        XCTAssertEqual(values(book.translations).count, 14)
        XCTAssertEqual(people(shelf.loans).first as? Int, 2)
        XCTAssertEqual(sections(realm.objects(Book.self).sectioned(by: \.lent)).count, 6)
        XCTAssertEqual(sections(realm.objects(Book.self).sectioned(by: \.lent)[0]).first as? Int, 2)
        XCTAssertEqual(confined(book).count, 5)
        XCTAssertEqual(confined(shelf.loans).count, 5)
        XCTAssertEqual(confined(book.shelves).count, 5)
        XCTAssertEqual(confined(ReaderView(projecting: realm.objects(Reader.self)[0])).count, 5)
        let names = RealmSwift.List<String>()
        names.append(objectsIn: ["a", "b"])
        XCTAssertEqual(names.joinedText, "a, b")
    }

    func testTheAlgorithmsOfTheStandardLibrary() throws {
        let realm = try Realm(configuration: Library.configuration(name))
        try realm.write {
            for (isbn, pages) in [("1", 30), ("2", 10), ("3", 20)] {
                realm.create(Book.self, value: ["isbn": isbn, "pages": pages, "title": "t" + isbn] as [String: Any])
            }
        }
        let books = realm.objects(Book.self)
        XCTAssertEqual(books.sorted { $0.pages < $1.pages }.map(\.isbn), ["2", "3", "1"])
        XCTAssertEqual(books.sorted(by: { $0.pages > $1.pages }).map(\.isbn), ["1", "3", "2"])
        XCTAssertEqual(books.max { $0.pages < $1.pages }?.isbn, "1")
        XCTAssertEqual(books.min(by: { $0.pages < $1.pages })?.isbn, "2")
        XCTAssertEqual(Array(books.filter { $0.pages > 10 }.map(\.isbn)), ["1", "3"])
        XCTAssertEqual(books.compactMap { $0.pages > 10 ? $0.isbn : nil }.count, 2)
        XCTAssertEqual(books.flatMap { [$0.isbn, $0.title] }.count, 6)
        XCTAssertEqual(books.reduce(into: 0) { $0 += Int($1.pages) }, 60)
        XCTAssertEqual(books.first { $0.pages == 20 }?.isbn, "3")
        XCTAssertEqual(books.firstIndex { $0.pages == 20 }, 2)
        XCTAssertEqual(books.firstIndex(of: books[1]), 1)
        XCTAssertEqual(books.lastIndex { $0.pages > 5 }, 2)
        XCTAssertTrue(books.allSatisfy { $0.pages > 5 } && !books.isEmpty && books.contains { $0.isbn == "2" })
        XCTAssertEqual(books.dropLast().count, 2)
        XCTAssertEqual(books.prefix { $0.pages > 20 }.count, 1)
        XCTAssertEqual(Array(books.reversed().map(\.isbn)), ["3", "2", "1"])
        XCTAssertEqual(Dictionary(uniqueKeysWithValues: books.map { ($0.isbn, $0.pages) })["2"], 10)
        XCTAssertEqual(Dictionary(grouping: books) { $0.pages > 15 }[true]?.count, 2)
        XCTAssertEqual(Set(books.map(\.pages)), [10, 20, 30])
        XCTAssertNotNil(books.randomElement())
        XCTAssertEqual(books.shuffled().count, 3)
        XCTAssertEqual(Array(books.indices), [0, 1, 2])
        var seen = 0
        books.forEach { seen += Int($0.pages) }
        for (index, book) in books.enumerated() where index > 0 { seen += Int(book.pages) }
        XCTAssertEqual(seen, 90)
        let lazily = books.lazy.map { $0.title }
        XCTAssertEqual(lazily.first, "t1")
        XCTAssertEqual(books.elementsEqual(Array(books)), true)
        XCTAssertEqual((books[0]["shelves"] as? LinkingObjects<Shelf>)?.count, 0)
        let slice: Slice<Results<Book>> = books[1...]
        XCTAssertEqual(slice.map(\.isbn), ["2", "3"])
        var list = RealmSwift.List<Int>()
        list.append(objectsIn: [3, 1, 2])
        list.sort()
        list.reverse()
        list.swapAt(0, 2)
        XCTAssertEqual(Array(list), [1, 2, 3])
        list.shuffle()
        XCTAssertEqual(list.sorted { $0 < $1 }, [1, 2, 3])
        XCTAssertEqual(list.partition { $0 > 2 }, 2)
    }
}
