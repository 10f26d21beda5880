import RealmSwift
import RealmSwiftTestModels
import XCTest

/// Keys, members and primary keys that look alike and have other bytes are two, before and after their object is added.
final class LookalikeKeyTests: RealmTestCase {
    private let composed = "caf\u{E9}", decomposed = "cafe\u{301}"

    func testMapsAndSetsKeepBoth() throws {
        XCTAssertEqual(composed, decomposed, "Swift takes them for one")
        let object = AllTypes()
        object.intMap[composed] = 1
        object.intMap[decomposed] = 2
        object.stringSet.insert(objectsIn: [composed, decomposed, composed])
        func check(_ object: AllTypes, line: UInt = #line) {
            XCTAssertEqual(object.intMap.count, 2, line: line)
            XCTAssertEqual(object.intMap[composed], 1, line: line)
            XCTAssertEqual(object.intMap[decomposed], 2, line: line)
            XCTAssertEqual(object.stringSet.count, 2, line: line)
            XCTAssertTrue(object.stringSet.contains(composed) && object.stringSet.contains(decomposed), line: line)
        }
        check(object)
        let realm = try makeRealm()
        try realm.write { realm.add(object) }
        check(object)
        try realm.write {
            object.stringSet.remove(decomposed)
            object.intMap.removeObject(for: composed)
        }
        XCTAssertEqual(object.stringSet.map { Array($0.utf8) }, [Array(composed.utf8)])
        XCTAssertEqual(object.intMap.keys.map { Array($0.utf8) }, [Array(decomposed.utf8)])
        let unmanaged = MutableSet<AnyRealmValue>()
        unmanaged.insert(objectsIn: [.string(composed), .string(decomposed), .string(composed)])
        XCTAssertEqual(unmanaged.count, 2)
        unmanaged.remove(.string(composed))
        XCTAssertFalse(unmanaged.contains(.string(composed)))
        XCTAssertTrue(unmanaged.contains(.string(decomposed)))
    }
}
