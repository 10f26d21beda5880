import Foundation
import RealmSwift
import XCTest

// Every form of observing, as view models have them.

@MainActor
private final class ShelfModel {
    private(set) var events: [String] = []
    private var tokens: [NotificationToken] = []
    private let realm: Realm
    let books: Results<Book>

    init(realm: Realm) {
        self.realm = realm
        books = realm.objects(Book.self).sorted(by: \.title)
    }

    deinit {}

    func start(_ shelf: Shelf, _ reader: ReaderView) {
        tokens.append(
            realm.observe { [weak self] notification, realm in
                self?.events.append("realm \(notification == .didChange) \(realm.isEmpty)")
            })
        tokens.append(
            books.observe { [weak self] (changes: RealmCollectionChange) in
                switch changes {
                case .initial: self?.events.append("books")
                case .update(let books, deletions: let deletions, insertions: let insertions, modifications: let modifications):
                    self?.events.append("books \(books.count) \(deletions) \(insertions) \(modifications)")
                case .error(let error): fatalError("\(error)")
                }
            })
        tokens.append(books.observe(keyPaths: ["title"]) { [weak self] _ in self?.events.append("titles") })
        tokens.append(books.observe(keyPaths: [\Book.pages, \Book.author?.lastName], on: .main) { _ in })
        tokens.append(shelf.books.observe(on: .main) { (_: RealmCollectionChange<RealmSwift.List<Book>>) in })
        tokens.append(shelf.marks.observe { (_: RealmCollectionChange<MutableSet<String>>) in })
        tokens.append(
            shelf.loans.observe { (change: RealmMapChange<Map<String, Reader?>>) in
                switch change {
                case .initial(let map): _ = map.count
                case .update(let map, deletions: let deletions, insertions: let insertions, modifications: let modifications):
                    _ = (map.count, deletions + insertions + modifications)
                case .error: break
                }
            })
        tokens.append(AnyRealmCollection(shelf.books).observe { _ in })
        tokens.append(
            shelf.observe { (change: ObjectChange<Shelf>) in
                switch change {
                case .change(let shelf, let properties): _ = (shelf.label, properties.map { ($0.name, $0.oldValue, $0.newValue) })
                case .deleted: break
                case .error(let error): _ = error.localizedDescription
                }
            })
        tokens.append(shelf.observe(keyPaths: ["label", "books.title"]) { (_: ObjectChange<Shelf>) in })
        tokens.append(shelf.observe(keyPaths: [\Shelf.label], on: DispatchQueue.main) { (_: ObjectChange<Shelf>) in })
        if let place = shelf.place { tokens.append(place.observe { (_: ObjectChange<ShelfPlace>) in }) }
        tokens.append(reader.observe(keyPaths: ["name"]) { (_: ObjectChange<ReaderView>) in })
        tokens.append(reader.observe { _ in })
        tokens.append(books.sectioned(by: \.lent).observe { (_: RealmSectionedResultsChange) in })
        if let section = books.sectioned(by: \.lent).first { tokens.append(section.observe { _ in }) }
    }

    func stop() {
        tokens.forEach { $0.invalidate() }
        tokens = []
    }
}

@MainActor
private func changeTitle(_ configuration: Realm.Configuration) async throws -> [String] {
    let realm = try await Realm(configuration: configuration)
    let shelf = Shelf(label: "a")
    shelf.place = ShelfPlace()
    let reader = Reader(value: [1, "Ann"] as [Any])
    try realm.write {
        realm.add(shelf)
        realm.add(reader)
        shelf.books.append(Book(value: ["isbn": "1"]))
    }
    let model = ShelfModel(realm: realm)
    model.start(shelf, ReaderView(projecting: reader))
    for _ in 0..<500 where !(model.events.contains("books") && model.events.contains("titles")) {
        try await Task.sleep(for: .milliseconds(10))
    }
    try realm.write { shelf.books[0].title = "x" }
    for _ in 0..<500 where !model.events.contains("books 1 [] [] [0]") { try await Task.sleep(for: .milliseconds(10)) }
    model.stop()
    return model.events
}

private actor Watcher {
    var seen: [String] = []
    private var tokens: [NotificationToken] = []

    func watch(_ configuration: Realm.Configuration) async throws {
        let realm = try await Realm(configuration: configuration, actor: self)
        let shelf = realm.objects(Shelf.self)[0]
        tokens.append(await realm.objects(Book.self).observe(on: self) { actor, change in actor.add(change) })
        tokens.append(await realm.objects(Book.self).observe(keyPaths: [\Book.title], on: self) { _, _ in })
        tokens.append(await shelf.books.observe(keyPaths: ["title"], on: self) { _, _ in })
        tokens.append(await shelf.observe(on: self) { (_: isolated Watcher, _: ObjectChange<Shelf>) in })
        tokens.append(
            await shelf.observe(keyPaths: [\Shelf.label], on: self) { (_: isolated Watcher, _: ObjectChange<Shelf>) in })
        tokens.append(await shelf.loans.observe(on: self) { _, _ in })
    }

    private func add(_ change: RealmCollectionChange<Results<Book>>) {
        switch change {
        case .initial: seen.append("initial")
        case .update(_, let deletions, let insertions, let modifications):
            seen.append("\(deletions) \(insertions) \(modifications)")
        case .error: seen.append("error")
        }
    }

    func stop() { tokens.forEach { $0.invalidate() } }
}

final class SourceCompatibilityObservation: XCTestCase {
    func testAViewModel() async throws {
        let configuration = Library.configuration(name)
        let events = try await changeTitle(configuration)
        XCTAssertTrue(events.contains("books 1 [] [] [0]"), "\(events)")
        XCTAssertTrue(events.contains("realm true false"), "\(events)")
    }

    func testAnActorThatWatches() async throws {
        let configuration = Library.configuration(name)
        let watcher = Watcher()
        try await WatchedLife.run(configuration, watcher)
        let seen = await watcher.seen
        XCTAssertEqual(seen, ["initial", "[] [] [0]"])
        await watcher.stop()
    }
}

@MainActor
private enum WatchedLife {
    static func run(_ configuration: Realm.Configuration, _ watcher: Watcher) async throws {
        let realm = try await Realm(configuration: configuration)
        try realm.write {
            let shelf = realm.create(Shelf.self, value: ["label": "a"])
            shelf.books.append(Book(value: ["isbn": "1"]))
        }
        try await watcher.watch(configuration)
        for _ in 0..<500 where await watcher.seen.isEmpty { try await Task.sleep(for: .milliseconds(10)) }
        try await realm.asyncWrite { realm.objects(Book.self)[0].title = "x" }
        for _ in 0..<500 where await watcher.seen.count < 2 { try await Task.sleep(for: .milliseconds(10)) }
    }
}
