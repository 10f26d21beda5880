import Foundation
import RealmSwift
import RealmSwiftTestModels
import TestSupport
import XCTest

/// Creating, changing, deleting and reading without making a thread wait.
final class AsyncFeatureTests: RealmTestCase {
    func testF138_F237_F250_writesThatAreAwaited() async throws {
        let counts = try await AsyncLife.run(configuration())
        XCTAssertEqual(counts, [1, 1, 7, 0])
    }

    func testF177_readingWithinAnActor() async throws {
        let configuration = configuration()
        let keeper = try await DogKeeper(configuration)
        try await keeper.add("Rex", age: 3)
        try await keeper.add("Ada", age: 5)
        let names = await keeper.names(olderThan: 4)
        XCTAssertEqual(names, ["Ada"])
        let count = await keeper.count
        XCTAssertEqual(count, 2)
    }
}

@MainActor
private enum AsyncLife {
    /// How many dogs there are after each step.
    static func run(_ configuration: Realm.Configuration) async throws -> [Int] {
        let realm = try await Realm(configuration: configuration)
        let dog = try await realm.asyncWrite { realm.create(Dog.self, value: ["name": "Rex", "age": 1] as [String: Any]) }
        var counts = [realm.objects(Dog.self).count]
        try await realm.asyncWrite { dog.age = 7 }
        counts.append(realm.objects(Dog.self).count)
        counts.append(realm.objects(Dog.self)[0].age)
        try await realm.asyncWrite { realm.delete(dog) }
        counts.append(realm.objects(Dog.self).count)
        return counts
    }
}

private actor DogKeeper {
    var realm: Realm!

    init(_ configuration: Realm.Configuration) async throws { realm = try await Realm(configuration: configuration, actor: self) }

    var count: Int { realm.objects(Dog.self).count }

    func add(_ name: String, age: Int) async throws {
        try await realm.asyncWrite { realm.create(Dog.self, value: ["name": name, "age": age] as [String: Any]) }
    }

    func names(olderThan age: Int) -> [String] { realm.objects(Dog.self).where { $0.age > age }.map(\.name) }
}
