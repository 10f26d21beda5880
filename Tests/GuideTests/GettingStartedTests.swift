import TestSupport
import XCTest

// sample: getting-started-model
import Foundation
import RealmSwift

class Bird: Object {
    @Persisted(primaryKey: true) var name: String
    @Persisted var wingspan = 0.0  // metres
    @Persisted var isMigratory = false

    convenience init(_ name: String, wingspan: Double, isMigratory: Bool = false) {
        self.init()
        self.name = name
        self.wingspan = wingspan
        self.isMigratory = isMigratory
    }
}
// end

final class GettingStartedTests: GuideTestCase {
    func testTheFirstProgramMayRunAgain() throws {
        // Keeps the data in memory from the first run to the second.
        let keeper = try Realm()
        try runTheFirstProgram()
        try runTheFirstProgram()
        XCTAssertEqual(keeper.objects(Bird.self).count, 1)
    }

    private func runTheFirstProgram() throws {
        // sample: getting-started-write
        let realm = try Realm()
        try realm.write {
            // `update:` because the program may run twice: a second bird of the same name would end it.
            realm.add(Bird("Common swift", wingspan: 0.42, isMigratory: true), update: .modified)
            realm.add(Bird("House sparrow", wingspan: 0.23), update: .modified)
        }
        // end

        // sample: getting-started-read
        let travellers = realm.objects(Bird.self).where { $0.isMigratory }
        for bird in travellers.sorted(by: \.name) {
            print("\(bird.name): \(bird.wingspan) m")
        }
        // end
        XCTAssertEqual(travellers.map(\.name), ["Common swift"])

        // sample: getting-started-live
        let sparrow = realm.object(ofType: Bird.self, forPrimaryKey: "House sparrow")!
        try realm.write {
            sparrow.isMigratory = true
        }
        print(travellers.count)  // 2: results are live
        // end
        XCTAssertEqual(travellers.count, 2)

        // sample: getting-started-delete
        try realm.write {
            realm.delete(sparrow)
        }
        print(travellers.count)  // 1
        // end
        XCTAssertEqual(travellers.count, 1)
    }

    func testDataStaysInTheFile() throws {
        let scratch = ScratchDirectory()
        let path = scratch.file("birds.realm")
        Realm.Configuration.defaultConfiguration = Realm.Configuration(objectTypes: [Bird.self])
        // sample: getting-started-place
        var configuration = Realm.Configuration.defaultConfiguration
        configuration.fileURL = URL(fileURLWithPath: path)
        Realm.Configuration.defaultConfiguration = configuration
        // end
        try autoreleasepool {
            let realm = try Realm()
            try realm.write { realm.add(Bird("Wren", wingspan: 0.15)) }
        }
        XCTAssertEqual(try Realm().objects(Bird.self).first?.name, "Wren")
        XCTAssertTrue(FileManager.default.fileExists(atPath: path))
    }
}
