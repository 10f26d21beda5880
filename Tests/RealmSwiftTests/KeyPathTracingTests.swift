import Foundation
import RealmSwift
import XCTest

// Types and computed properties of applications that bear some values only: key paths are found out by reading properties of an
// object that stands in for its class, and must not need more of them than a new object does.

extension TimeZone: FailableCustomPersistable {
    public typealias PersistedType = String
    public init?(persistedValue: String) { self.init(identifier: persistedValue) }
    public var persistableValue: String { identifier }
}

private struct Shade: CustomPersistable {
    static let names = ["dark", "light"]
    let name: String
    init(persistedValue: Int) { name = Shade.names[persistedValue] }
    var persistableValue: Int { Shade.names.firstIndex(of: name) ?? 0 }
}

private enum Direction: CustomPersistable {
    case north, south
    init(persistedValue: String) {
        switch persistedValue {
        case "", "n": self = .north
        case "s": self = .south
        default: fatalError("no direction '\(persistedValue)'")
        }
    }
    var persistableValue: String {
        switch self {
        case .north: "n"
        case .south: "s"
        }
    }
}

private class Trip: Object {
    @Persisted(primaryKey: true) var id: Int
    @Persisted var rating: Int
    @Persisted var zone: TimeZone?
    @Persisted var homeZone: TimeZone = TimeZone(secondsFromGMT: 0)!
    @Persisted var shade: Shade
    @Persisted var heading: Direction
    @Persisted var name: String
    @Persisted var next: Trip?
    var stars: String { String(repeating: "*", count: rating) }
    var doubled: Int { rating * 2 }
    var heat: String { Shade.names[rating % 2] }
}

private class TripView: Projection<Trip> {
    @Projected(\Trip.stars) var stars
    @Projected(\Trip.heat) var heat
    @Projected(\Trip.next?.stars) var nextStars
    @Projected(\Trip.zone?.identifier) var zoneName
    @Projected(\Trip.name) var name
}

final class KeyPathTracingTests: XCTestCase {
    private func makeRealm() throws -> Realm {
        let realm = try Realm(configuration: .init(inMemoryIdentifier: name, objectTypes: [Trip.self]))
        try realm.write {
            let second = realm.create(
                Trip.self, value: ["id": 2, "rating": 1, "zone": "Europe/Berlin", "heading": "s"] as [String: Any])
            realm.create(Trip.self, value: ["id": 1, "rating": 3, "name": "first", "shade": 1, "next": second] as [String: Any])
        }
        return realm
    }

    func testMappedTypesThatBearFewValuesAreQueriedAndSorted() throws {
        let trips = try makeRealm().objects(Trip.self)
        XCTAssertEqual(trips.where { $0.zone == TimeZone(identifier: "Europe/Berlin") }.map(\.id), [2])
        XCTAssertEqual(trips.where { $0.zone == nil }.map(\.id), [1])
        XCTAssertEqual(trips.where { $0.homeZone == TimeZone(secondsFromGMT: 0)! }.count, 2)
        XCTAssertEqual(trips.where { $0.next.zone == TimeZone(identifier: "Europe/Berlin") }.map(\.id), [1])
        XCTAssertEqual(trips.where { $0.shade == Shade(persistedValue: 1) }.map(\.id), [1])
        XCTAssertEqual(trips.where { $0.heading == .south }.map(\.id), [2])
        XCTAssertEqual(trips.where { $0.heading.persistableValue.starts(with: "s") }.map(\.id), [2])
        XCTAssertEqual(_name(for: \Trip.zone), "zone")
        XCTAssertEqual(_name(for: \Trip.next?.homeZone), "next.homeZone")
        XCTAssertEqual(
            trips.sorted(by: [SortDescriptor(keyPath: \Trip.zone), SortDescriptor(keyPath: \Trip.heading)]).map(\.id), [1, 2])
        XCTAssertEqual(
            trips.sectioned(by: { $0.shade.name }, sortDescriptors: [SortDescriptor(keyPath: \Trip.shade)]).map(\.key),
            ["dark", "light"])
    }

    func testProjectionsOfWhatIsComputed() throws {
        let views = try makeRealm().objects(TripView.self).sorted(byKeyPath: "id")
        XCTAssertEqual(views.map(\.stars), ["***", "*"])
        XCTAssertEqual(views.map(\.heat), ["light", "light"])
        XCTAssertEqual(views[0].nextStars, "*")
        XCTAssertEqual(views.map(\.zoneName), [nil, "Europe/Berlin"])
        XCTAssertEqual(_name(for: \TripView.stars), "rating")
        XCTAssertEqual(_name(for: \TripView.nextStars), "next.rating")
    }

    func testWhatIsComputedIsNotTakenForThePropertyThoughBothBeginWithZero() {
        assertTraps("query: computed from a number", "persisted")
    }
}
