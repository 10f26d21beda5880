import Foundation
import RealmSwift
import RealmSwiftTestModels

// Misuses of collections, queries, sections and projections.

private class EmptyProjection: Projection<Person> {
    var nothing = 1
}

private class ForeignProjection: Projection<Derived> {
    @Projected(\Derived.notStored) var notStored
}

@MainActor let collectionTrapCases: [String: TrapCase] = [
    "outside of a transaction: list": { directory in try filledRealm(directory).1.dogs.removeAll() },
    "outside of a transaction: set": { directory in try filledRealm(directory).1.tags.insert("x") },
    "outside of a transaction: map": { directory in try filledRealm(directory).1.pets["x"] = nil },
    "outside of a transaction: set operation": { directory in try filledRealm(directory).1.tags.formUnion(MutableSet()) },
    "outside of a transaction: nested list": { directory in
        let realm = try modelRealm(directory)
        let object = try realm.write { realm.create(AllTypes.self, value: ["any": [1, 2]]) }
        object.any.listValue?.append(.int(3))
    },
    "frozen list": { directory in
        let (realm, person) = try filledRealm(directory)
        let dogs = person.dogs.freeze()
        try realm.write { dogs.removeAll() }
    },
    "position: results": { directory in
        let (realm, _) = try filledRealm(directory)
        _ = realm.objects(Dog.self)[3]
    },
    "position: filtered results": { directory in
        let (realm, _) = try filledRealm(directory)
        _ = realm.objects(Dog.self).filter("age > 0")[2]
    },
    "position: list": { directory in _ = try filledRealm(directory).1.dogs[2] },
    "position: negative": { directory in _ = try filledRealm(directory).1.dogs[-1] },
    "position: unmanaged list": { _ in _ = List<Int>()[0] },
    "position: several": { directory in _ = try filledRealm(directory).1.dogs.objects(at: IndexSet([0, 5])) },
    "position: insert": { directory in
        let (realm, person) = try filledRealm(directory)
        try realm.write { person.dogs.insert(Dog(), at: 4) }
    },
    "position: remove last of none": { _ in List<Int>().removeLast() },
    "position: remove more than there are": { directory in
        let (realm, person) = try filledRealm(directory)
        try realm.write { person.dogs.removeFirst(3) }
    },
    "position: section": { directory in
        let (realm, _) = try filledRealm(directory)
        _ = realm.objects(Dog.self).sectioned(by: \.age)[7]
    },
    "position of an element of a set": { directory in _ = try filledRealm(directory).1.tags.index(of: "t") },
    "position in a set by a predicate": { directory in _ = try filledRealm(directory).1.tags.index(matching: "x == 1") },
    "set of another Realm": { directory in
        let (realm, person) = try filledRealm(directory)
        let other = try modelRealm(directory, "other")
        let foreign = try other.write { other.create(Person.self, value: ["tags": ["x"]]) }
        try realm.write { person.tags.formUnion(foreign.tags) }
    },
    "position of an object of another Realm": { directory in
        let (_, person) = try filledRealm(directory)
        let other = try modelRealm(directory, "other")
        let dog = try other.write { other.create(Dog.self) }
        _ = person.dogs.index(of: dog)
    },
    "map key with a period": { _ in Map<String, Int>()["a.b"] = 1 },
    "map key with a dollar": { directory in
        let (realm, person) = try filledRealm(directory)
        try realm.write { person.pets["$a"] = .some(nil) }
    },
    "map key with a period in a dictionary": { directory in
        let realm = try modelRealm(directory)
        try realm.write { realm.create(AllTypes.self, value: ["intMap": ["a.b": 1]]) }
    },
    "nested too deep": { directory in
        let realm = try modelRealm(directory)
        let object = try realm.write { realm.create(AllTypes.self) }
        var value = AnyRealmValue.none
        for _ in 0..<101 { value = .fromArray([value]) }
        try realm.write { object.any = value }
    },
    "query: unmanaged list": { _ in _ = Person().dogs.filter("age > 1") },
    "query: values": { directory in
        let realm = try modelRealm(directory)
        let object = try realm.write { realm.create(AllTypes.self, value: ["ints": [1]]) }
        _ = object.ints.filter("self > 1").count
    },
    "query: values, in Swift": { directory in
        let realm = try modelRealm(directory)
        let object = try realm.write { realm.create(AllTypes.self, value: ["ints": [1]]) }
        _ = object.ints.where { $0 > 1 }.count
    },
    "query: text that cannot be read": { directory in _ = try modelRealm(directory).objects(Dog.self).filter("age >") },
    "query: unknown property": { directory in _ = try modelRealm(directory).objects(Dog.self).filter("nothing == 1") },
    "query: id against text": { directory in _ = try modelRealm(directory).objects(Dog.self).filter("id == 'x'") },
    "query: number against text": { directory in _ = try modelRealm(directory).objects(Dog.self).filter("age == %@", "x") },
    "query: too few arguments": { directory in _ = try modelRealm(directory).objects(Dog.self).filter("age == %@") },
    "query: MATCHES": { directory in _ = try modelRealm(directory).objects(Dog.self).filter("name MATCHES 'x.*'") },
    "query: block": { directory in _ = try modelRealm(directory).objects(Dog.self).filter(NSPredicate { _, _ in true }) },
    "query: computed property": { directory in _ = try modelRealm(directory).objects(Derived.self).where { $0.computed == "x" } },
    "query: computed from a number": { directory in
        _ = try modelRealm(directory).objects(Person.self).where { $0.doubledAge == 0 }
    },
    "query: two collections": { directory in
        _ = try modelRealm(directory).objects(Person.self).where { $0.dogs.name == $0.homes.city }
    },
    "query: subquery over a map": { directory in
        _ = try modelRealm(directory).objects(AllTypes.self).where { ($0.intMap["a"] == 1).count > 1 }
    },
    "query: subquery without a collection": { directory in
        _ = try modelRealm(directory).objects(Dog.self).where { ($0.age == 1).count > 1 }
    },
    "sort: unknown property": { directory in _ = try modelRealm(directory).objects(Dog.self).sorted(byKeyPath: "nothing") },
    "sort: along a list": { directory in _ = try modelRealm(directory).objects(Person.self).sorted(byKeyPath: "dogs.age") },
    "sort: by a link": { directory in _ = try modelRealm(directory).objects(Dog.self).sorted(byKeyPath: "owner") },
    "sort: values by a key": { directory in
        let realm = try modelRealm(directory)
        let object = try realm.write { realm.create(AllTypes.self) }
        _ = object.ints.sorted(by: [SortDescriptor(keyPath: "x")])
    },
    "distinct: operator": { directory in _ = try modelRealm(directory).objects(Person.self).distinct(by: ["dogs.@count"]) },
    "sum: unknown property": { directory in _ = try modelRealm(directory).objects(Dog.self).sum(ofProperty: "nothing") as Int },
    "sum: date": { directory in _ = try modelRealm(directory).objects(AllTypes.self).sum(ofProperty: "date") as Int },
    "values: nested operator": { directory in
        _ = try filledRealm(directory).0.objects(Person.self).value(forKeyPath: "@sum.dogs.@count")
    },
    "sections: no order": { directory in _ = try modelRealm(directory).objects(Dog.self).sectioned(by: \.age, sortDescriptors: [])
    },
    "sections: another order": { directory in
        _ = try modelRealm(directory).objects(Dog.self).sectioned(by: \.age, sortDescriptors: [SortDescriptor(keyPath: "name")])
    },
    "sections: block that writes": { directory in
        let (realm, _) = try filledRealm(directory)
        try realm.write {
            _ =
                realm.objects(Dog.self).sectioned(
                    by: { dog -> Int in
                        dog.age += 1
                        return dog.age
                    }, sortDescriptors: [SortDescriptor(keyPath: "name")]
                ).count
        }
    },
    "projection of nothing": { directory in _ = EmptyProjection(projecting: try filledRealm(directory).1) },
    "projection of what is not stored": { _ in _ = ForeignProjection(projecting: Derived()) },
    "projection that cannot be set": { _ in PersonProjection(projecting: Person()).shouted = "x" },
    "projection outside of a transaction": { directory in PersonProjection(projecting: try filledRealm(directory).1).title = "x"
    },
    "key path of what is not stored": { _ in _ = _name(for: \Derived.notStored) },
    "freeze of an unmanaged list": { _ in _ = List<Int>().freeze() },
]

extension Person {
    /// Zero where the age is.
    fileprivate var doubledAge: Int { age * 2 }
}
