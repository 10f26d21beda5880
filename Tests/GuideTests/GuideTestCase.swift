import Foundation
import RealmSwift
import TestSupport
import XCTest

/// A chapter of the user's guide. What stands between `// sample: NAME` and `// end` is shown in `Documentation/guide`;
/// `Scripts/guide` carries it there.
///
/// The default configuration is that of a new Realm in memory, so that samples can say `Realm()` as users do.
class GuideTestCase: XCTestCase {
    private var saved = Realm.Configuration.defaultConfiguration

    /// The classes of the guide's application; the test bundle has many more, which do not belong to it.
    class var types: [ObjectBase.Type] {
        [Bird.self, Sighting.self, Watcher.self, Place.self, Position.self, Station.self, Journal.self]
    }

    override func setUp() {
        saved = Realm.Configuration.defaultConfiguration
        Realm.Configuration.defaultConfiguration = Realm.Configuration(
            inMemoryIdentifier: name, objectTypes: type(of: self).types)
    }

    override func tearDown() { Realm.Configuration.defaultConfiguration = saved }

    /// Lets the main run loop turn until a condition holds.
    func spin(seconds: Double = 10, until condition: () -> Bool) -> Bool {
        let limit = Date(timeIntervalSinceNow: TestTime.limit(seconds))
        while !condition() {
            if limit.timeIntervalSinceNow < 0 { return false }
            RunLoop.current.run(until: Date(timeIntervalSinceNow: 0.002))
        }
        return true
    }
}
