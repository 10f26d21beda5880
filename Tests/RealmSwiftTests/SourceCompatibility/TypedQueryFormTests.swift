import Foundation
import RealmSwift
import XCTest

/// Every form of a condition in Swift, on properties of every type.
final class TypedQueryFormTests: XCTestCase {
    func testEveryFormOfAConditionIsFoundByTheCompilerAndRuns() throws {
        let realm = try Realm(configuration: .init(inMemoryIdentifier: name, objectTypes: Declared.classes))
        try realm.write {
            realm.create(
                Declared.Human.self, value: ["id": "x", "name": "x", "pets": [["name": "x", "age": 5]]] as [String: Any])
            realm.create(Declared.Human.self, value: ["id": "y", "name": "y"])
        }
        XCTAssertGreaterThan(run(realm), 200)
    }

    private func run(_ realm: Realm) -> Int {
        let q = realm.objects(Declared.Human.self), pets = realm.objects(Declared.Pet.self)
        var n = 0
        func c(_ r: Results<Declared.Human>) {
            n += 1
            XCTAssertLessThanOrEqual(r.count, 2)
            XCTAssertEqual(r.count, Array(r).count)
        }
        let date = Date(), id = ObjectId.generate(), uuid = UUID()
        // equality and comparison
        c(q.where { $0.name == "x" }); c(q.where { $0.name != "x" }); c(q.where { $0.name == $0.id })
        c(q.where { $0.stringOpt == nil }); c(q.where { $0.stringOpt != nil }); c(q.where { $0.stringOpt == "x" })
        c(q.where { $0.d > 3 }); c(q.where { $0.d >= 3.5 }); c(q.where { $0.i8 < 3 }); c(q.where { $0.i16 <= 3 })
        c(q.where { $0.i16 == nil }); c(q.where { $0.f > 3 }); c(q.where { $0.birth > date }); c(q.where { $0.birth == nil })
        c(q.where { $0.dec > 3 }); c(q.where { $0.decOpt < 3 }); c(q.where { $0.oid == id }); c(q.where { $0.uuid == uuid })
        c(q.where { $0.data == Data() }); c(q.where { $0.dataOpt == nil }); c(q.where { $0.b }); c(q.where { !$0.b })
        c(q.where { $0.b == true }); c(q.where { $0.bOpt == true }); c(q.where { $0.bOpt == nil })
        c(q.where { $0.any == .int(3) }); c(q.where { $0.any > .int(3) }); c(q.where { $0.any == .none })
        c(q.where { $0.any["a"] == .int(3) }); c(q.where { $0.any[0] == .int(3) })
        c(q.where { $0.any["a"][0]["b"] == .string("x") }); c(q.where { $0.any.any == .int(3) })
        c(q.where { $0.any["a"].any == .int(3) }); c(q.where { $0.any != .string("x") })
        c(q.where { $0.status == .todo }); c(q.where { $0.statusOpt == .todo }); c(q.where { $0.statusOpt == nil })
        c(q.where { $0.status != .done }); c(q.where { $0.status.in([.todo, .done]) })
        c(q.where { $0.status.rawValue == "todo" }); c(q.where { $0.statusOpt.rawValue == "todo" })
        c(q.where { $0.grade > .bad }); c(q.where { $0.grade.rawValue > 0 })
        c(q.where { $0.status.rawValue.starts(with: "t") }); c(q.where { $0.ratio == .half })
        c(q.where { $0.ratioD == .whole })
        c(q.where { $0.status.starts(with: .todo) }); c(q.where { $0.status > .todo })
        c(q.where { $0.temp == Declared.Temperature(c: 3) }); c(q.where { $0.temp > Declared.Temperature(c: 3) })
        c(q.where { $0.tempOpt == nil }); c(q.where { $0.tempOpt > Declared.Temperature(c: 3) })
        c(q.where { $0.temp.persistableValue > 3 })
        c(q.where { $0.temp.contains(Declared.Temperature(c: 1)...Declared.Temperature(c: 2)) })
        c(q.where { $0.tag == Declared.Tag(persistedValue: "x") })
        c(q.where { $0.tag.starts(with: Declared.Tag(persistedValue: "x")) })
        c(q.where { $0.tag.persistableValue.contains("x") })
        c(q.where { $0.tag.contains(Declared.Tag(persistedValue: "x"), options: [.caseInsensitive]) })
        c(q.where { $0.loc == Declared.Loc(lat: 1, lon: 2) }); c(q.where { $0.loc.persistableValue.lat > 3 })
        c(q.where { $0.locOpt == nil }); c(q.where { $0.locOpt.persistableValue.lat > 3 })
        c(q.where { $0.even == Declared.Even(persistedValue: 4) }); c(q.where { $0.even == nil })
        // in, ranges
        c(q.where { $0.name.in(["x", "y"]) }); c(q.where { $0.d.in([1, 2]) }); c(q.where { $0.intOpt.in([1, nil]) })
        c(q.where { $0.intOpt.in([1, 2]) }); c(q.where { $0.oid.in([id]) }); c(q.where { $0.name.in(Set(["x"])) })
        c(q.where { $0.d.contains(1..<3) }); c(q.where { $0.d.contains(1...3) }); c(q.where { $0.intOpt.contains(1..<3) })
        c(q.where { $0.intOpt.contains(1...3) }); c(q.where { $0.birth.contains(date...date) })
        c(q.where { $0.name.contains("a"..<"b") }); c(q.where { $0.dec.contains(1...3) })
        // strings
        c(q.where { $0.name.contains("x") }); c(q.where { $0.name.contains("x", options: .caseInsensitive) })
        c(q.where { $0.name.contains("x", options: [.caseInsensitive, .diacriticInsensitive]) })
        c(q.where { $0.name.starts(with: "x") }); c(q.where { $0.name.starts(with: "x", options: .caseInsensitive) })
        c(q.where { $0.name.ends(with: "x") }); c(q.where { $0.name.like("x*") })
        c(q.where { $0.name.like("x?", caseInsensitive: true) })
        c(q.where { $0.name.equals("x", options: .diacriticInsensitive) })
        c(q.where { $0.name.notEquals("x", options: .caseInsensitive) })
        c(q.where { $0.stringOpt.contains("x") }); c(q.where { $0.stringOpt.starts(with: "x") })
        c(q.where { $0.stringOpt.like("x") }); c(q.where { $0.stringOpt.ends(with: "x", options: .caseInsensitive) })
        c(q.where { $0.name.contains($0.id) }); c(q.where { $0.name.starts(with: $0.id) })
        c(q.where { $0.name.ends(with: $0.id, options: .caseInsensitive) }); c(q.where { $0.name.like($0.id) })
        c(q.where { $0.name.equals($0.id) }); c(q.where { $0.name.notEquals($0.id) }); c(q.where { $0.name > "x" })
        c(q.where { $0.name <= "x" }); c(q.where { $0.name > $0.id }); c(q.where { $0.name.contains($0.stringOpt) })
        c(q.where { $0.data.contains(Data([1])) }); c(q.where { $0.data.starts(with: Data([1])) })
        c(q.where { $0.dataOpt.ends(with: Data([1])) })
        // links
        c(q.where { $0.partner.name == "x" }); c(q.where { $0.partner == nil }); c(q.where { $0.partner != nil })
        c(q.where { $0.partner.partner.name == "x" }); c(q.where { $0.street.name == "x" }); c(q.where { $0.street == nil })
        c(q.where { $0.street.inner.name == "x" }); c(q.where { $0.street.number > 3 })
        c(q.where { $0.partner.pets.age > 3 }); c(q.where { $0.partner.pets.count > 3 })
        let h = Declared.Human(); _ = h
        c(q.where { $0.partner == q.first }); c(q.where { $0.partner.in(Array(q) as [Declared.Human?]) })
        // lists
        c(q.where { $0.ints.contains(3) }); c(q.where { $0.ints.containsAny(in: [1, 2]) })
        c(q.where { $0.ints.contains(1..<3) }); c(q.where { $0.ints.contains(1...3) }); c(q.where { $0.ints == 3 })
        c(q.where { $0.ints != 3 }); c(q.where { $0.ints > 3 }); c(q.where { $0.ints.count > 3 })
        c(q.where { $0.ints.count == 0 }); c(q.where { $0.ints.min > 3 }); c(q.where { $0.ints.max == 3 })
        c(q.where { $0.ints.avg > 3 }); c(q.where { $0.ints.sum >= 3 })
        c(q.where { $0.intsOpt.contains(nil) }); c(q.where { $0.intsOpt.contains(1...3) })
        c(q.where { $0.intsOpt.contains(3) }); c(q.where { $0.intsOpt.max > 3 }); c(q.where { $0.strings.contains("x") })
        c(q.where { $0.strings.containsAny(in: ["x"]) }); c(q.where { $0.stringsOpt.contains(nil) })
        c(q.where { $0.dates.contains(date) }); c(q.where { $0.dates > date }); c(q.where { $0.decimals.sum > 3 })
        c(q.where { $0.bools.contains(true) }); c(q.where { $0.oids.contains(id) }); c(q.where { $0.uuids.contains(uuid) })
        c(q.where { $0.datas.contains(Data()) })
        c(q.where { $0.statuses.contains(.todo) }); c(q.where { $0.statuses.containsAny(in: [.todo]) })
        c(q.where { $0.statuses.rawValue.contains("todo") }); c(q.where { $0.statusesOpt.contains(nil) })
        c(q.where { $0.statusesOpt.rawValue.contains("todo") }); c(q.where { $0.statusSet.contains(.todo) })
        c(q.where { $0.temps.contains(Declared.Temperature(c: 3)) }); c(q.where { $0.temps.persistableValue.contains(3) })
        c(q.where { $0.temps > Declared.Temperature(c: 3) }); c(q.where { $0.tempSet.contains(Declared.Temperature(c: 3)) })
        c(q.where { $0.intSet.contains(3) }); c(q.where { $0.intSet.count > 2 })
        c(q.where { $0.stringSet.containsAny(in: ["x"]) }); c(q.where { $0.intSet.avg > 3 })
        c(q.where { $0.pets.age > 3 }); c(q.where { $0.pets.name == "x" })
        c(q.where { $0.pets.name.contains("x", options: .caseInsensitive) }); c(q.where { $0.pets.count > 3 })
        c(q.where { $0.pets.age.avg > 3 }); c(q.where { $0.pets.age.max > 3 }); c(q.where { $0.pets.age.min > 3 })
        c(q.where { $0.pets.age.sum > 3 }); c(q.where { $0.pets.weight.sum > 3 }); c(q.where { ($0.pets.age > 3).count > 1 })
        c(q.where { ($0.pets.age > 3 && $0.pets.name == "x").count >= 1 }); c(q.where { $0.pets.contains(pets[0]) })
        c(q.where { $0.pets.containsAny(in: pets) }); c(q.where { $0.pets.name.in(["a"]) })
        c(q.where { $0.pets.owners.name == "x" }); c(q.where { $0.petSet.age > 3 })
        c(q.where { ($0.petSet.age > 3).count > 1 }); c(q.where { $0.streets.name == "x" })
        c(q.where { $0.streets.inner.name == "x" }); c(q.where { ($0.streets.name == "x").count == 1 })
        c(q.where { $0.pets.age.contains(1...3) })
        c(q.where { $0.partners.name == "x" }); c(q.where { $0.partners.count > 3 })
        c(q.where { ($0.partners.name == "x").count > 0 })
        // maps
        c(q.where { $0.intMap.keys == "x" }); c(q.where { $0.intMap.keys.contains("x") })
        c(q.where { $0.intMap.keys.like("x*") }); c(q.where { $0.intMap.keys.starts(with: "x") })
        c(q.where { $0.intMap.keys.ends(with: "x") }); c(q.where { $0.intMap.keys.contains("x", options: .caseInsensitive) })
        c(q.where { $0.intMap.keys != "x" }); c(q.where { $0.intMap.keys.in(["a"]) })
        c(q.where { $0.intMap.values > 3 }); c(q.where { $0.intMap.values == 3 })
        c(q.where { $0.stringMap.values.contains("x") })
        c(q.where { $0.stringMap.values.starts(with: "x", options: .caseInsensitive) }); c(q.where { $0.intMap["x"] == 3 })
        c(q.where { $0.intMap["x"] > 3 }); c(q.where { $0.stringMap["x"].contains("y") })
        c(q.where { $0.stringMapOpt["x"] == nil }); c(q.where { $0.intMap.contains(3) })
        c(q.where { $0.intMap.containsAny(in: [1, 2]) }); c(q.where { $0.intMap.contains(1..<3) })
        c(q.where { $0.intMapOpt.contains(1...3) }); c(q.where { $0.intMap.count > 3 }); c(q.where { $0.intMap.min > 3 })
        c(q.where { $0.intMap.max > 3 }); c(q.where { $0.intMap.avg > 3 }); c(q.where { $0.intMap.sum > 3 })
        c(q.where { $0.intMap.contains(3) && $0.intMap.keys == "x" })
        c(q.where { $0.petMap["x"].age > 3 }); c(q.where { $0.petMap["x"].name == "x" })
        c(q.where { $0.petMap.values.age > 3 }); c(q.where { $0.streetMap["x"].name == "x" })
        c(q.where { $0.petMap.keys.contains("x") }); c(q.where { $0.statusMap["x"] == .todo })
        c(q.where { $0.statusMap.rawValue["x"] == "todo" }); c(q.where { $0.statusMapOpt.rawValue["x"] == "todo" })
        c(q.where { $0.anyMap["x"] == .int(3) }); c(q.where { $0.anys.contains(.int(3)) }); c(q.where { $0.anys == .int(3) })
        c(q.where { $0.anySet.contains(.string("x")) }); c(q.where { $0.tempMap["x"] == Declared.Temperature(c: 3) })
        c(q.where { $0.petMap.contains(pets[0]) });
        // logic
        c(q.where { ($0.name == "x" || $0.d > 3) && !($0.b) }); c(q.where { !($0.name == "x") && $0.b || $0.bOpt == true })
        c(q.where { $0.b && $0.partner.b && !$0.partner.b })
        let filterFunction: (Query<Declared.Human>) -> Query<Bool> = { $0.name == "x" }
        c(q.where(filterFunction))
        let ext: [(Query<Declared.Human>) -> Query<Bool>] = [{ $0.b }, { $0.d > 3 }]
        c(ext.reduce(q) { $0.where($1) })
        let text: (String, [Any]) = Query<Declared.Human>._constructForTesting().name._constructPredicate()
        _ = text
        c(
            q.where { query in
                let a = query.name == "x"
                return a && query.b
            })
        // on lists, sets, linking objects, maps
        let human = q[0]
        XCTAssertEqual(human.pets.where { $0.age > 3 }.count, 1)
        XCTAssertEqual(human.petSet.where { $0.age > 3 }.count, 0)
        XCTAssertEqual(human.partners.where { $0.name == "x" }.count, 0)
        XCTAssertEqual(human.petMap.where { $0.age > 3 }.count, 0)
        XCTAssertEqual(human.streets.where { $0.name == "x" }.count, 0)
        let i: Int? = human.pets.index(matching: { $0.age > 3 })
        _ = i
        func generic<T: Object>(
            _ type: T.Type,
            _ isIncluded: (Query<T>) -> Query<Bool>
        ) -> Results<T> { realm.objects(type).where(isIncluded) }
        n += generic(Declared.Pet.self) { $0.age > 3 }.count
        return n
    }
}
