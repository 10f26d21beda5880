import Foundation
import RealmSwift
import RealmSwiftTestModels
import TestSupport
import XCTest

/// Observers by the hundred, which begin and end in any order.
final class ManyObserversTests: RealmTestCase {
    private func wait(_ what: String, _ isDone: () -> Bool) {
        let limit = Date(timeIntervalSinceNow: TestTime.limit(20))
        while !isDone() && Date() < limit { RunLoop.current.run(until: Date(timeIntervalSinceNow: 0.001)) }
        XCTAssertTrue(isDone(), what)
    }

    func testThoseThatAreLeftAreToldAndThoseThatEndedAreNot() throws {
        let realm = try makeRealm()
        let dogs = try realm.write { (0..<300).map { number in realm.create(Dog.self, value: ["age": number]) } }
        var calls = [Int](repeating: 0, count: dogs.count)
        var tokens: [NotificationToken?] = dogs.enumerated().map { index, dog in
            dog.observe { (_: ObjectChange<Dog>) in calls[index] += 1 }
        }
        func change() throws { try realm.write { for dog in dogs { dog.age += 1 } } }
        try change()
        wait("all are told") { calls.allSatisfy { $0 == 1 } }
        // Every third stays, until only the first is left, and none.
        for index in tokens.indices.shuffled(using: &generator) where index % 3 != 0 { tokens[index] = nil }
        try change()
        wait("those that are left") { calls.enumerated().allSatisfy { index, count in index % 3 == 0 ? count == 2 : count == 1 } }
        for index in tokens.indices.reversed() where index > 0 { tokens[index]?.invalidate() }
        try change()
        wait("the last one") { calls[0] == 3 }
        tokens[0] = nil
        let later = dogs[1].observe { (_: ObjectChange<Dog>) in calls[1] += 100 }
        try change()
        wait("one that came later") { calls[1] == 101 }
        XCTAssertEqual(calls[0], 3)
        XCTAssertTrue(calls.enumerated().allSatisfy { index, count in index < 2 || count == (index % 3 == 0 ? 2 : 1) })
        later.invalidate()
    }

    private var generator = SplitMix(seed: 7)
}
