import Foundation
import RealmSwift
import RealmSwiftTestModels
import TestSupport
import XCTest

/// Ten processes that write to one file and observe it, each with its own model of what it was told.
///
/// `CROWD_STEPS` sets the number of transactions of each process, `CROWD_SEED` another seed.
final class CrowdTests: FileTestCase {
    private static let processCount = 10
    /// Not how long it takes, but when nothing will come any more.
    private static let secondsMax = 120.0

    func testTenProcessesWithObserversAndWritersSettleOnTheSameState() throws {
        let environment = ProcessInfo.processInfo.environment
        let steps = environment["CROWD_STEPS"].flatMap { Int($0) } ?? 12
        let seed = environment["CROWD_SEED"].flatMap { UInt64($0) } ?? 5
        print("seed \(seed), \(steps) transactions a process")
        let configuration = fileConfiguration("a.realm", [Dog.self, Person.self, Address.self, Country.self, Owner.self])
        onThread {
            let realm = try! Realm(configuration: configuration)
            try! realm.write {
                for number in 0..<8 { realm.add(Dog(name: "d\(number)", age: number)) }
                realm.create(Person.self, value: ["name": "Ann", "age": 30]).dogs.append(objectsIn: realm.objects(Dog.self))
            }
        }
        var members: [ChildProcess] = []
        for number in 0..<CrowdTests.processCount {
            members.append(
                try ChildProcess(
                    product: "TestParticipant", ["realm", "crowd", url().path, "\(seed &* 1000 &+ UInt64(number))", "\(steps)"]))
        }
        func expect(_ prefix: String) -> [String] {
            members.enumerated().compactMap { number, member in
                let line = member.readLine(seconds: CrowdTests.secondsMax + Double(steps))
                if line?.hasPrefix(prefix) != true {
                    XCTFail("process \(number) says \(line ?? "nothing") instead of \(prefix): \(member.errors)")
                }
                return line
            }
        }
        guard expect("ready").count == members.count else { return }
        for member in members { member.send("go") }
        guard expect("done").count == members.count else { return }
        onThread {
            let realm = try! Realm(configuration: configuration)
            try! realm.write { _ = realm.create(Owner.self, value: ["id": 999]) }
        }
        let ends = expect("settled").map { $0.split(separator: " ").map(String.init) }
        let digest = try runRealmCommand(["digest", url().path])
        for (number, end) in ends.enumerated() where end.count == 4 {
            XCTAssertEqual(end[1], digest, "process \(number) sees another state")
            XCTAssertGreaterThan(Int(end[2]) ?? 0, steps, "process \(number) was told next to nothing")
            XCTAssertEqual(end[3], "0", "process \(number): \(members[number].errors)")
        }
        for (number, member) in members.enumerated() {
            XCTAssertEqual(member.waitForEnd(seconds: CrowdTests.secondsMax), 0, "process \(number): \(member.errors)")
        }
        // Every transaction was committed, none twice.
        onThread {
            let realm = try! Realm(configuration: configuration)
            XCTAssertEqual(realm.objects(Person.self).count, 1)
        }
    }
}
