import Foundation
import RealmSwift
import RealmSwiftTestModels
import TestSupport
import XCTest

/// Observers that are isolated to actors.
final class ActorNotificationTests: FileTestCase {
    private actor Observing {
        private(set) var entries: [Told] = []
        var token: NotificationToken?

        func note(_ entry: Told) { entries.append(entry) }
        func keep(_ token: NotificationToken) { self.token = token }
        func end() { token = nil }

        func observeDogs(_ configuration: Realm.Configuration) async throws {
            let realm = try await Realm(configuration: configuration, actor: self)
            token = await realm.objects(Dog.self).observe(on: self) { actor, change in actor.note(told(change)) }
        }

        func observeDog(_ configuration: Realm.Configuration) async throws {
            let realm = try await Realm(configuration: configuration, actor: self)
            guard let dog = realm.objects(Dog.self).first else { return }
            token = await dog.observe(keyPaths: ["name"], on: self) { (actor, change: ObjectChange<Dog>) in
                actor.note(told(change))
            }
        }

        func observeMap(_ configuration: Realm.Configuration) async throws {
            let realm = try await Realm(configuration: configuration, actor: self)
            let person = try realm.write { realm.create(Person.self, value: ["name": "Ann"]) }
            token = await person.pets.observe(on: self) { actor, change in
                if case .update(_, let deletions, let insertions, let modifications) = change {
                    actor.note(.keys(deletions, insertions, modifications))
                }
            }
            try realm.write { person.pets["a"] = realm.objects(Dog.self).first }
        }
    }

    private static func wait(_ actor: Observing, _ entries: [Told], line: UInt = #line) async throws {
        for _ in 0..<5000 {
            if await actor.entries.count >= entries.count { break }
            try await Task.sleep(nanoseconds: 2_000_000)
        }
        let found = await actor.entries
        XCTAssertEqual(found, entries, line: line)
    }

    private func write(_ body: @escaping @Sendable (Realm) -> Void) {
        let configuration = fileConfiguration()
        onThread {
            let realm = try! Realm(configuration: configuration)
            try! realm.write { body(realm) }
        }
    }

    func testF267_aCollectionObserverOfAnActorRunsOnTheActor() async throws {
        makeFile(fileConfiguration(), dogs: 2)
        let actor = Observing()
        try await actor.observeDogs(fileConfiguration())
        try await Self.wait(actor, [.initial(2)])
        write { $0.add(Dog(name: "New")) }
        try await Self.wait(actor, [.initial(2), .update([], [2], [])])
        await actor.end()
        write { $0.add(Dog(name: "Unheard")) }
        try await Task.sleep(nanoseconds: 20_000_000)
        try await Self.wait(actor, [.initial(2), .update([], [2], [])])
    }

    func testF268_anObjectObserverOfAnActor() async throws {
        makeFile(fileConfiguration(), dogs: 1)
        let actor = Observing()
        try await actor.observeDog(fileConfiguration())
        write { $0.objects(Dog.self).first!.age = 3 }
        write { $0.objects(Dog.self).first!.name = "x" }
        try await Self.wait(actor, [.change(["name"])])
        write { $0.deleteAll() }
        try await Self.wait(actor, [.change(["name"]), .deleted])
        await actor.end()
    }

    func testF266_aMapObserverOfAnActorHearsOfItsOwnWrites() async throws {
        makeFile(fileConfiguration(), dogs: 1)
        let actor = Observing()
        try await actor.observeMap(fileConfiguration())
        try await Self.wait(actor, [.keys([], ["a"], [])])
        await actor.end()
    }

    /// The Realm belongs to the main actor, the observer to another one.
    @MainActor
    func testF265_reactingOnADifferentActor() async throws {
        let configuration = fileConfiguration()
        makeFile(configuration, dogs: 3)
        let actor = Observing()
        let realm = try await Realm(configuration: configuration)
        let token = await realm.objects(Dog.self).where { $0.age > 0 }.observe(on: actor) { actor, change in
            actor.note(told(change))
        }
        try await Self.wait(actor, [.initial(2)])
        try realm.write { realm.objects(Dog.self).first!.age = 9 }
        try await Self.wait(actor, [.initial(2), .update([], [0], [])])
        token.invalidate()
        try realm.write { realm.objects(Dog.self).first!.age = 0 }
        try await Task.sleep(nanoseconds: 20_000_000)
        try await Self.wait(actor, [.initial(2), .update([], [0], [])])
    }
}
