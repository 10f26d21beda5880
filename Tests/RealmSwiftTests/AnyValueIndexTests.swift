import Foundation
import RealmSwift
import RealmSwiftTestModels
import SharedStore
import TestSupport
import XCTest

/// An index over values of every type.
final class AnyValueIndexTests: XCTestCase {
    private static let types: [ObjectBase.Type] = [Noted.self, Dog.self, Person.self, Address.self, Country.self]

    /// Values that are near each other: equal ones of different types, and different ones that begin alike.
    private func value(_ random: inout SplitMix, _ dogs: Results<Dog>) -> AnyRealmValue {
        let small = Int(random.next() % 4)
        switch random.next() % 13 {
        case 0: return .none
        case 1: return .int(small)
        case 2: return .double(Double(small))
        case 3: return .decimal128(Decimal128(value: small))
        case 4: return .float(Float(small) + 0.5)
        case 5: return .bool(small > 1)
        case 6: return .string(String(repeating: "ab", count: small) + "c")
        case 7: return .data(Data(repeating: 97, count: small))
        case 8: return .date(Date(timeIntervalSince1970: Double(small)))
        case 9: return .uuid(UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, UInt8(small))))
        case 10: return dogs.isEmpty ? .none : .object(dogs[small % dogs.count])
        case 11: return .fromArray([.int(small), .string("x")])
        default: return .fromDictionary(["key": .int(small)])
        }
    }

    func testAnIndexedValueOfEveryTypeIsFoundAsWithoutTheIndex() throws {
        let scratch = ScratchDirectory(), seed: UInt64 = 20_261_130
        var random = SplitMix(seed: seed)
        let path = scratch.file("any.realm")
        try autoreleasepool {
            let realm = try Realm(
                configuration: Realm.Configuration(fileURL: URL(fileURLWithPath: path), objectTypes: Self.types))
            XCTAssertEqual(realm.schema["Noted"]?["indexed"]?.isIndexed, true)
            XCTAssertEqual(realm.schema["Noted"]?["plain"]?.isIndexed, false)
            let dogs = realm.objects(Dog.self), notes = realm.objects(Noted.self)
            try realm.write {
                for number in 0..<4 { realm.add(Dog(name: "dog \(number)")) }
                for _ in 0..<120 { realm.add(Noted()) }
            }
            for round in 0..<12 {
                try realm.write {
                    for _ in 0..<60 {
                        let note = notes[Int(random.next() % UInt64(notes.count))]
                        // Twice the same, since a collection belongs to one place.
                        var twin = random
                        note.indexed = value(&random, dogs)
                        note.plain = value(&twin, dogs)
                    }
                    if round % 4 == 3, let dog = dogs.first { realm.delete(dog) }
                    if round % 3 == 2 { realm.delete(notes[Int(random.next() % UInt64(notes.count))]) }
                }
                for _ in 0..<20 {
                    let wanted = value(&random, dogs)
                    switch wanted {
                    case .list, .dictionary: continue
                    default: break
                    }
                    XCTAssertEqual(
                        notes.where { $0.indexed == wanted }.map(\.id).sorted(),
                        notes.where { $0.plain == wanted }.map(\.id).sorted(),
                        "\(wanted) in round \(round), seed \(seed)")
                }
                XCTAssertEqual(
                    notes.filter("indexed IN {1, 'abc', true}").map(\.id).sorted(),
                    notes.filter("plain IN {1, 'abc', true}").map(\.id).sorted(),
                    "round \(round), seed \(seed)")
            }
        }
        let report = try Verifier.verify(ImmutableFile(path: path))
        XCTAssertTrue(report.isSound && report.findings.isEmpty, "\(report.findings.prefix(4).map(\.description)), seed \(seed)")
    }
}

private class Noted: Object {
    @Persisted(primaryKey: true) var id: ObjectId
    @Persisted(indexed: true) var indexed: AnyRealmValue
    @Persisted var plain: AnyRealmValue
    override class func shouldIncludeInDefaultSchema() -> Bool { false }
}
