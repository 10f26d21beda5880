import Foundation
import RealmSwift
import RealmSwiftTestModels
import TestSupport
import XCTest

/// Observers of sections and of projected collections in all their forms.
final class ViewNotificationTests: FileTestCase {
    private actor Observing {
        private(set) var entries: [Told] = []
        private var tokens: [NotificationToken] = []

        func note(_ entry: Told) { entries.append(entry) }
        func end() { tokens = [] }

        func observe(_ configuration: Realm.Configuration, _ which: Int) async throws {
            let realm = try await Realm(configuration: configuration, actor: self)
            let sections = realm.objects(Dog.self).sectioned(by: \.age)
            guard let person = realm.objects(Person.self).first else { return }
            switch which {
            case 0:
                tokens.append(
                    await sections.observe(keyPaths: [\.name], on: self) { actor, change in actor.note(toldOfSections(change)) })
            case 1:
                tokens.append(
                    await sections[0].observe(keyPaths: [\.name], on: self) { actor, change in actor.note(toldOfSections(change))
                    })
            case 2:
                tokens.append(
                    await person.dogs.projectTo.name.observe(on: self) { actor, change in actor.note(toldOfNames(change)) })
            default:
                tokens.append(
                    await person.dogs.projectTo.name.observe(keyPaths: ["age"], on: self) { actor, change in
                        actor.note(toldOfNames(change))
                    })
            }
        }
    }

    private func makeDogs() {
        let configuration = fileConfiguration()
        onThread {
            let realm = try! Realm(configuration: configuration)
            try! realm.write {
                let person = realm.create(Person.self, value: ["name": "Ann"])
                for age in 0..<3 { person.dogs.append(Dog(name: "Dog \(age)", age: age)) }
            }
        }
    }

    private func write(_ body: @escaping @Sendable (Realm) -> Void) {
        let configuration = fileConfiguration()
        onThread {
            let realm = try! Realm(configuration: configuration)
            try! realm.write { body(realm) }
        }
    }

    private static func wait(_ actor: Observing, _ entries: [Told], line: UInt = #line) async throws {
        for _ in 0..<10_000 {
            if await actor.entries.count >= entries.count { break }
            try await Task.sleep(nanoseconds: 1_000_000)
        }
        let found = await actor.entries
        XCTAssertEqual(found, entries, line: line)
    }

    func testF260_F279_sectionsByKeyPathsOfTheirElements() throws {
        makeDogs()
        let realm = try Realm(configuration: fileConfiguration())
        let sections = realm.objects(Dog.self).sectioned(by: \.age)
        let all = NotificationLog<Told>(), one = NotificationLog<Told>()
        all.token = sections.observe(keyPaths: [\.name]) { all.entries.append(toldOfSections($0)) }
        one.token = sections[1].observe(keyPaths: [\.name]) { one.entries.append(toldOfSections($0)) }
        XCTAssertTrue(spin { all.entries == [.initial(3)] && one.entries == [.initial(1)] })
        let dogs = realm.objects(Dog.self).sorted(byKeyPath: "age")
        // The owner is no name.
        try realm.write { dogs[1].owner = realm.objects(Person.self).first }
        try realm.write { dogs[1].name = "x" }
        XCTAssertTrue(spin { all.entries.count == 2 && one.entries.count == 2 })
        XCTAssertEqual(all.entries.last, .update([], [], [1]))
        XCTAssertEqual(one.entries.last, .update([], [], [1]))
        try realm.write { dogs[0].name = "y" }
        XCTAssertTrue(spin { all.entries.count == 3 })
        _ = spin(seconds: 0.02) { false }
        XCTAssertEqual(one.entries.count, 2)
        (all.token, one.token) = (nil, nil)
    }

    /// Code that knows no more of its sections than the protocol says.
    private func observe<S: RealmSectionedResult>(_ sections: S, _ log: NotificationLog<Told>) {
        log.token = sections.observe { log.entries.append(toldOfSections($0)) }
    }

    func testF279_sectionsOfAnyKindAreObservedAlike() throws {
        makeDogs()
        let realm = try Realm(configuration: fileConfiguration())
        let sections = realm.objects(Dog.self).sectioned(by: \.age)
        let all = NotificationLog<Told>(), one = NotificationLog<Told>()
        observe(sections, all)
        observe(sections[2], one)
        XCTAssertTrue(spin { all.entries == [.initial(3)] && one.entries == [.initial(1)] })
        (all.token, one.token) = (nil, nil)
    }

    func testF265_F279_sectionsOnAnActorByKeyPaths() async throws {
        makeDogs()
        let all = Observing(), one = Observing()
        try await all.observe(fileConfiguration(), 0)
        try await one.observe(fileConfiguration(), 1)
        try await Self.wait(all, [.initial(3)])
        try await Self.wait(one, [.initial(1)])
        write { $0.objects(Dog.self).where { $0.age == 0 }.first!.owner = $0.objects(Person.self).first }
        write { $0.objects(Dog.self).where { $0.age == 0 }.first!.name = "x" }
        try await Self.wait(all, [.initial(3), .update([], [], [0])])
        try await Self.wait(one, [.initial(1), .update([], [], [0])])
        write { $0.objects(Dog.self).where { $0.age == 2 }.first!.name = "y" }
        try await Self.wait(all, [.initial(3), .update([], [], [0]), .update([], [], [2])])
        try await Self.wait(one, [.initial(1), .update([], [], [0])])
        await all.end()
        await one.end()
    }

    func testF265_F269_projectedCollectionsOnAnActor() async throws {
        makeDogs()
        let names = Observing(), ages = Observing()
        try await names.observe(fileConfiguration(), 2)
        try await ages.observe(fileConfiguration(), 3)
        try await Self.wait(names, [.initial(3)])
        try await Self.wait(ages, [.initial(3)])
        write { $0.objects(Dog.self).where { $0.age == 1 }.first!.name = "x" }
        try await Self.wait(names, [.initial(3), .update([], [], [1])])
        write { $0.objects(Dog.self).where { $0.age == 2 }.first!.age = 7 }
        try await Self.wait(ages, [.initial(3), .update([], [], [2])])
        write { $0.objects(Person.self).first!.dogs.remove(at: 0) }
        try await Self.wait(names, [.initial(3), .update([], [], [1]), .update([0], [], [])])
        try await Self.wait(ages, [.initial(3), .update([], [], [2]), .update([0], [], [])])
        await names.end()
        await ages.end()
    }

    @MainActor
    func testF269_changesOfProjectedCollectionsAsASequence() async throws {
        makeDogs()
        let realm = try await Realm(configuration: fileConfiguration())
        let person = try XCTUnwrap(realm.objects(Person.self).first)
        var seen: [[String]] = []
        for await change in person.dogs.projectTo.name.changes() {
            switch change {
            case .initial(let names), .update(let names, _, _, _): seen.append(Array(names))
            case .error(let error): XCTFail("\(error)")
            }
            if seen.count == 2 { break }
            try realm.write { person.dogs[1].name = "x" }
        }
        XCTAssertEqual(seen, [["Dog 0", "Dog 1", "Dog 2"], ["Dog 0", "x", "Dog 2"]])
    }
}

/// The sections of the paths.
private func toldOfSections<C: Collection>(_ change: SectionedResultsChange<C>) -> Told {
    switch change {
    case .initial(let sections): .initial(sections.count)
    case .update(_, let deletions, let insertions, let modifications, _, _):
        .update(deletions.map(\.section), insertions.map(\.section), modifications.map(\.section))
    }
}

private func toldOfNames(_ change: RealmCollectionChange<ProjectedCollection<String>>) -> Told {
    switch change {
    case .initial(let names): .initial(names.count)
    case .update(_, let deletions, let insertions, let modifications): .update(deletions, insertions, modifications)
    case .error: .error
    }
}
