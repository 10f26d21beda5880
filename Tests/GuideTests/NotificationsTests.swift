import Foundation
import RealmSwift
import Synchronization
import TestSupport
import XCTest

// sample: notifications-actor
actor FlockCounter {
    private var realm: Realm!
    private var token: NotificationToken?
    private(set) var flocks = 0

    func start() async throws {
        realm = try await Realm.open()
        let flocks = realm.objects(Sighting.self).where { $0.number > 20 }
        token = await flocks.observe(on: self) { counter, change in
            switch change {
            case .initial(let flocks): counter.flocks = flocks.count
            case .update(let flocks, _, _, _): counter.flocks = flocks.count
            case .error: break
            }
        }
    }

    func stop() {
        token?.invalidate()
        token = nil
        realm = nil
    }
}
// end

final class NotificationsTests: GuideTestCase {
    private let scratch = ScratchDirectory("Notifications")

    override func setUp() {
        super.setUp()
        Realm.Configuration.defaultConfiguration.fileURL = URL(fileURLWithPath: scratch.file("guide.realm"))
    }

    /// What an observer was told, in a form that can be compared.
    private final class Log {
        var lines: [String] = []
        func note<C: Collection>(_ change: RealmCollectionChange<C>) {
            switch change {
            case .initial(let collection): lines.append("initial \(collection.count)")
            case .update(_, let deletions, let insertions, let modifications):
                lines.append("-\(deletions) +\(insertions) ~\(modifications)")
            case .error(let error): lines.append("\(error)")
            }
        }
    }

    func testACollection() throws {
        let realm = try Realm()
        // sample: notifications-collection
        let birds = realm.objects(Bird.self).sorted(by: \.name)
        let token = birds.observe { change in
            switch change {
            case .initial(let birds):
                print("\(birds.count) birds")
            case .update(let birds, let deletions, let insertions, let modifications):
                print("gone: \(deletions), new: \(insertions), changed: \(modifications), now \(birds.count)")
            case .error(let error):
                print(error)
            }
        }
        // end
        let log = Log()
        let second = birds.observe { log.note($0) }
        XCTAssertTrue(spin { log.lines.count == 1 })
        try realm.write { realm.add([Bird("Crane", wingspan: 2.2), Bird("Wren", wingspan: 0.15)]) }
        XCTAssertTrue(spin { log.lines.count == 2 })
        try realm.write {
            birds[1].wingspan = 0.16
            realm.delete(birds[0])
            realm.add(Bird("Robin", wingspan: 0.21))
        }
        XCTAssertTrue(spin { log.lines.count == 3 })
        XCTAssertEqual(log.lines, ["initial 0", "-[] +[0, 1] ~[]", "-[0] +[0] ~[1]"])
        // sample: notifications-end
        token.invalidate()
        // end
        second.invalidate()
    }

    func testAnObject() throws {
        let realm = try Realm()
        let wren = Bird("Wren", wingspan: 0.15)
        try realm.write { realm.add(wren) }
        // sample: notifications-object
        let token = wren.observe { (change: ObjectChange<Bird>) in
            switch change {
            case .change(let bird, let properties):
                for property in properties {
                    print("\(bird.name): \(property.name) is now \(property.newValue ?? "nil")")
                }
            case .deleted:
                print("gone")
            case .error(let error):
                print(error)
            }
        }
        // end
        var seen: [String] = []
        let second = wren.observe { (change: ObjectChange<Bird>) in
            switch change {
            case .change(_, let properties): seen += properties.map { "\($0.name) \($0.newValue ?? "nil")" }
            case .deleted: seen.append("deleted")
            case .error: seen.append("error")
            }
        }
        try realm.write { wren.wingspan = 0.16 }
        XCTAssertTrue(spin { seen.count == 1 })
        try realm.write { realm.delete(wren) }
        XCTAssertTrue(spin { seen.count == 2 })
        XCTAssertEqual(seen, ["wingspan 0.16", "deleted"])
        token.invalidate()
        second.invalidate()
    }

    func testKeyPaths() throws {
        let realm = try Realm()
        let sightings = realm.objects(Sighting.self)
        try realm.write { realm.create(Sighting.self, value: ["bird": Bird("Wren", wingspan: 0.15)]) }
        let log = Log()
        // sample: notifications-key-paths
        let token = sightings.observe(keyPaths: ["number", "bird.name"]) { change in
            // hears of these properties, and of sightings that come and go
            // end
            log.note(change)
        }
        // sample: notifications-key-paths-swift
        let other = sightings.observe(keyPaths: [\Sighting.remark]) { change in
            // the same, checked by the compiler
        }
        // end
        other.invalidate()
        XCTAssertTrue(spin { log.lines.count == 1 })
        try realm.write { sightings[0].certainty = .heard }
        try realm.write { sightings[0].number = 2 }
        XCTAssertTrue(spin { log.lines.count == 2 })
        XCTAssertEqual(log.lines, ["initial 1", "-[] +[] ~[0]"])
        token.invalidate()
    }

    func testARealm() throws {
        var changes = 0
        // sample: notifications-realm
        let realm = try Realm()
        let token = realm.observe { notification, realm in
            changes += 1  // after every commit, whoever made it
        }
        // end
        try realm.write { realm.add(Bird("Wren", wingspan: 0.15)) }
        XCTAssertEqual(changes, 1)
        token.invalidate()
    }

    func testASilentWrite() throws {
        let realm = try Realm()
        let birds = realm.objects(Bird.self)
        let log = Log()
        let token = birds.observe { log.note($0) }
        XCTAssertTrue(spin { log.lines.count == 1 })
        // sample: notifications-silent
        try realm.write(withoutNotifying: [token]) {
            realm.add(Bird("Wren", wingspan: 0.15))  // shown already by whoever made the change
        }
        // end
        try realm.write { realm.add(Bird("Crane", wingspan: 2.2)) }
        XCTAssertTrue(spin { log.lines.count == 2 })
        XCTAssertEqual(log.lines, ["initial 0", "-[] +[1] ~[]"])
        token.invalidate()
    }

    func testAQueue() throws {
        let realm = try Realm()
        let birds = realm.objects(Bird.self)
        let seen = Mutex(-1)
        // sample: notifications-queue
        let queue = DispatchQueue(label: "observers")
        let token = birds.observe(on: queue) { change in
            if case .initial(let birds) = change {  // the queue's own results
                seen.withLock { $0 = birds.count }
            }
        }
        // end
        XCTAssertTrue(spin { seen.withLock { $0 } == 0 })
        token.invalidate()
    }

    func testAnActor() async throws {
        // sample: notifications-actor-use
        let counter = FlockCounter()
        try await counter.start()
        // end
        // On a thread of its own, as any other part of the program may.
        let thread = Thread {
            let realm = try! Realm()
            try! realm.write { realm.create(Sighting.self, value: ["number": 50]) }
        }
        thread.start()
        var flocks = 0
        for _ in 0..<5000 where flocks == 0 {
            try await Task.sleep(nanoseconds: 2_000_000)
            flocks = await counter.flocks
        }
        XCTAssertEqual(flocks, 1)
        await counter.stop()
    }

    @MainActor
    func testASequence() async throws {
        let realm = try await Realm()
        let birds = realm.objects(Bird.self).sorted(by: \.name)
        var seen: [String] = []
        // sample: notifications-sequence
        for await change in birds.changes() {
            switch change {
            case .initial(let birds): print("\(birds.count) birds")
            case .update(let birds, _, let insertions, _): print(insertions.map { birds[$0].name })
            case .error(let error): print(error)
            }
            // end
            if case .update(let birds, let deletions, let insertions, _) = change {
                XCTAssertTrue(birds.isFrozen)
                seen.append("-\(deletions) +\(insertions.map { birds[$0].name })")
            } else {
                seen.append("initial")
            }
            if seen.count == 3 { break }
            // Two steps at once: each element has the state that its positions belong to.
            if seen.count == 1 {
                try realm.write { realm.add([Bird("Wren", wingspan: 0.15), Bird("Crane", wingspan: 2.2)]) }
                realm.refresh()
            }
            if seen.count == 2 { try realm.write { realm.delete(realm.objects(Bird.self).where { $0.name == "Crane" }) } }
        }
        XCTAssertEqual(seen, ["initial", "-[] +[\"Crane\", \"Wren\"]", "-[0] +[]"])
    }

    @MainActor
    func testTheSequenceOfAnObjectEndsWithIt() async throws {
        let realm = try await Realm()
        let wren = Bird("Wren", wingspan: 0.15)
        try realm.write { realm.add(wren) }
        var seen: [String] = []
        let changes = wren.changes(keyPaths: ["wingspan"])
        try realm.write { wren.wingspan = 0.16 }
        for await change in changes {
            switch change {
            case .change(let bird, let properties):
                seen.append("\(properties.map(\.name)) \(bird.wingspan) \(bird.isFrozen)")
                try realm.write { realm.delete(wren) }
            case .deleted: seen.append("deleted")
            case .error: seen.append("error")
            }
        }
        XCTAssertEqual(seen, ["[\"wingspan\"] 0.16 true", "deleted"])
    }

    @MainActor
    func testSequencesOfMapsAndSections() async throws {
        let realm = try await Realm()
        let ida = try realm.write { realm.create(Watcher.self, value: ["name": "Ida"]) }
        let birds = realm.objects(Bird.self).sectioned(by: \.isMigratory)
        let sequence = birds.changes()
        var keys: [String] = [], sections: [Int] = []
        for await change in ida.favourites.changes() {
            if case .update(let map, _, let insertions, _) = change {
                XCTAssertEqual(map["song"]??.name, "Blackbird")
                keys = insertions
                break
            }
            try realm.write { ida.favourites["song"] = Bird("Blackbird", wingspan: 0.36) }
        }
        for await change in sequence {
            switch change {
            case .initial(let sections): XCTAssertTrue(sections.isFrozen)
            case .update(let all, _, _, _, let new, _):
                XCTAssertEqual(all[0][0].name, "Blackbird")
                sections = Array(new)
            }
            if !sections.isEmpty { break }
        }
        XCTAssertEqual(keys, ["song"])
        XCTAssertEqual(sections, [0])
    }

    func testMapsAndSections() throws {
        let realm = try Realm()
        let ida = try realm.write { realm.create(Watcher.self, value: ["name": "Ida"]) }
        var keys: [String] = [], sections: [String] = []
        // sample: notifications-map
        let favourites = ida.favourites.observe { change in
            if case .update(_, let deletions, let insertions, let modifications) = change {
                keys = deletions + insertions + modifications  // keys instead of positions
            }
        }
        // end
        // sample: notifications-sections
        let birds = realm.objects(Bird.self).sectioned(by: \.isMigratory)
        let token = birds.observe { change in
            if case .update(let birds, _, let insertions, _, let newSections, _) = change {
                for path in insertions {
                    print(birds[path].name)
                }
                print(newSections.count)
                // end
                sections += insertions.map { "\($0[0]).\($0[1])" } + newSections.map { "section \($0)" }
            }
        }
        var started = false
        let initial = birds.observe { _ in started = true }
        XCTAssertTrue(spin { started })
        try realm.write { ida.favourites["song"] = Bird("Blackbird", wingspan: 0.36) }
        XCTAssertTrue(spin { !keys.isEmpty && !sections.isEmpty })
        XCTAssertEqual(keys, ["song"])
        XCTAssertEqual(sections, ["0.0", "section 0"])
        favourites.invalidate()
        token.invalidate()
        initial.invalidate()
    }

    func testACopyIsKeptInStep() throws {
        let realm = try Realm()
        let birds = realm.objects(Bird.self).sorted(by: \.name)
        var isStarted = false
        // sample: notifications-apply
        var rows: [String] = []
        let token = birds.observe { change in
            switch change {
            case .initial(let birds):
                rows = birds.map(\.name)
            case .update(let birds, let deletions, let insertions, let modifications):
                for index in modifications { rows[index] += "*" }  // in the old positions
                for index in deletions.reversed() { rows.remove(at: index) }  // in the old positions
                for index in insertions { rows.insert(birds[index].name, at: index) }  // in the new ones
            case .error(let error):
                print(error)
            }
            isStarted = true
        }
        // end
        XCTAssertTrue(spin { isStarted })
        try realm.write {
            realm.add([Bird("Crane", wingspan: 2.2), Bird("Wren", wingspan: 0.15), Bird("Robin", wingspan: 0.21)])
        }
        XCTAssertTrue(spin { rows == ["Crane", "Robin", "Wren"] })
        try realm.write {
            realm.delete(birds[0])
            birds[1].wingspan = 0.16
            realm.add(Bird("Owl", wingspan: 1))
        }
        XCTAssertTrue(spin { rows.count == 3 && rows != ["Crane", "Robin", "Wren"] })
        XCTAssertEqual(rows, ["Owl", "Robin", "Wren*"])
        token.invalidate()
    }

    func testAProjection() throws {
        let realm = try Realm()
        let sighting = try realm.write { realm.create(Sighting.self, value: ["number": 1]) }
        var names: [String] = []
        // sample: notifications-projection
        let row = SightingRow(projecting: sighting)
        let token = row.observe(keyPaths: [\SightingRow.number]) { change in
            if case .change(_, let properties) = change {
                names = properties.map(\.name)  // those of the projection
            }
        }
        // end
        try realm.write { sighting.number = 2 }
        XCTAssertTrue(spin { !names.isEmpty })
        XCTAssertEqual(names, ["number"])
        token.invalidate()
    }
}
