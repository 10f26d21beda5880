import Foundation
import RealmSwift
import TestSupport
import XCTest

// sample: actors-actor
actor Diary {
    private var realm: Realm!

    init() async throws {
        realm = try await Realm(actor: self)  // belongs to this actor
    }

    func record(_ name: String, wingspan: Double) async throws {
        try await realm.asyncWrite {
            realm.add(Bird(name, wingspan: wingspan), update: .modified)
        }
    }

    var count: Int { realm.objects(Bird.self).count }

    /// Values that are safe to send go out; objects stay.
    func names() -> [String] {
        Array(realm.objects(Bird.self).sorted(by: \.name).map(\.name))
    }

    func close() { realm = nil }
}
// end

// sample: actors-global
@globalActor actor Background {
    static let shared = Background()
}

@Background
func importBirds(_ names: [String]) async throws -> Int {
    let realm = try await Realm.open()
    try await realm.asyncWrite {
        for name in names {
            realm.create(Bird.self, value: ["name": name], update: .modified)
        }
    }
    return realm.objects(Bird.self).count
}
// end

// sample: actors-isolated
func countBirds(_isolation actor: isolated any Actor = #isolation) async throws -> Int {
    let realm = try await Realm.open()  // belongs to the caller's actor
    return realm.objects(Bird.self).count
}
// end

final class ActorsTests: GuideTestCase {
    private let scratch = ScratchDirectory("Actors")

    override func setUp() {
        super.setUp()
        Realm.Configuration.defaultConfiguration.fileURL = URL(fileURLWithPath: scratch.file("guide.realm"))
    }

    @MainActor
    func testTheMainActor() async throws {
        // sample: actors-main
        let realm = try await Realm()  // belongs to the main actor
        try await realm.asyncWrite {
            realm.add(Bird("Wren", wingspan: 0.15))
        }
        print(realm.objects(Bird.self).count)
        // end
        XCTAssertEqual(realm.objects(Bird.self).count, 1)
        let count = try await countBirds()
        XCTAssertEqual(count, 1)
    }

    func testAnActor() async throws {
        // sample: actors-actor-use
        let diary = try await Diary()
        try await diary.record("Wren", wingspan: 0.15)
        try await diary.record("Crane", wingspan: 2.2)
        print(await diary.names())
        // end
        let names = await diary.names()
        XCTAssertEqual(names, ["Crane", "Wren"])
        await diary.close()
    }

    @MainActor
    func testAcrossActors() async throws {
        // sample: actors-refresh
        let realm = try await Realm()
        let birds = realm.objects(Bird.self)
        let stored = try await importBirds(["Wren", "Robin", "Crane"])
        await realm.asyncRefresh()  // sees what another actor has written
        print(stored, birds.count)  // 3 3
        // end
        XCTAssertEqual(stored, 3)
        XCTAssertEqual(birds.count, 3)

        // sample: actors-key
        let key = birds[0].name  // a key is safe to send
        let wingspan = try await Task { @Background in
            let realm = try await Realm.open()
            return realm.object(ofType: Bird.self, forPrimaryKey: key)?.wingspan
        }.value
        // end
        XCTAssertEqual(wingspan, 0)
    }

    @MainActor
    func testReferences() async throws {
        let realm = try await Realm()
        try await realm.asyncWrite { realm.add(Bird("Wren", wingspan: 0.15)) }
        // sample: actors-reference
        let reference = ThreadSafeReference(to: realm.objects(Bird.self).first!)
        try await Task { @Background in
            let realm = try await Realm.open()
            guard let bird = realm.resolve(reference) else { return }
            try await realm.asyncWrite {
                bird.wingspan = 0.18
            }
        }.value
        // end
        await realm.asyncRefresh()
        XCTAssertEqual(realm.objects(Bird.self).first?.wingspan, 0.18)
    }

    func testACallback() throws {
        let done = expectation(description: "opened")
        // sample: actors-callback
        Realm.asyncOpen { result in  // migrates and compacts on another thread
            switch result {
            case .success(let realm): print(realm.isEmpty)
            case .failure(let error): print(error)
            }
            done.fulfill()
        }
        // end
        wait(for: [done], timeout: TestTime.limit(10))
    }
}
