import Foundation
import RealmSwift
import SystemCalls

/// The classes of the file that `make` leaves.
final class Owner: Object {
    @Persisted var name: String
    @Persisted var level: Int
}

final class Item: Object {
    @Persisted(primaryKey: true) var id: Int
    @Persisted var age: Int
    @Persisted var value: Int
    @Persisted var name: String
    @Persisted var score: Double
    @Persisted(indexed: true) var code: String
    @Persisted(indexed: true) var number: Int
    @Persisted var owner: Owner?
}

final class Named: Object {
    @Persisted(primaryKey: true) var id: String
    @Persisted var age: Int
}

final class OperationsElement: Object {
    @Persisted var age: Int
}

final class OperationsBox: Object {
    @Persisted var ints: List<Int>
    @Persisted var strings: List<String>
    @Persisted var links: List<OperationsElement>
}

/// What is done with objects.
extension OperationsWork {
    private func realm(_ path: String, _ types: [ObjectBase.Type]) throws -> Realm {
        var configuration = Realm.Configuration(fileURL: URL(fileURLWithPath: path))
        configuration.objectTypes = types
        return try Realm(configuration: configuration)
    }

    private static let mainTypes: [ObjectBase.Type] = [Owner.self, Item.self, Named.self]

    func objectScan() throws {
        let results = try realm(file("main.realm"), Self.mainTypes).objects(Item.self)
        timed("loop over results, int", 5) {
            var sum = 0
            for item in results { sum &+= item.age }
            keep(sum)
        }
    }

    func objectLists(_ path: String) throws {
        guard let box = try realm(path, [OperationsElement.self, OperationsBox.self]).objects(OperationsBox.self).first else {
            return
        }
        timed("list find an int", 5) { keep(box.ints.index(of: count - 1)) }
        timed("list sum", 5) { keep(box.ints.sum() as Int) }
    }

    /// The work behind a commit that has changed one object, beside an observer of results.
    func observe() throws {
        let path = try copyOfMain("notify.realm")
        let cases: [(String, (Results<Item>) -> Results<Item>)] = [
            ("whole class", { $0 }), ("filter", { $0.filter("age > 50") }), ("filter with few", { $0.filter("age > 1000") }),
            ("sorted by another property", { $0.sorted(byKeyPath: "value") }),
            ("filter sorted by the changed one", { $0.filter("name == 'name 7'").sorted(byKeyPath: "age") }),
            ("filter through a link", { $0.filter("owner.level > 5") }),
        ]
        for (label, select) in cases {
            let realm = try realm(path, Self.mainTypes), results = select(realm.objects(Item.self))
            var calls = 0, token: NotificationToken?
            timed("observe: first result, \(label)") {
                token = results.observe { _ in calls += 1 }
                realm.refresh()
                while calls == 0 { _ = RunLoop.current.run(mode: .default, before: Date(timeIntervalSinceNow: 0.0001)) }
            }
            var jumps = Jumps(count), times: [Double] = []
            for i in 0..<20 {
                let key = Int(jumps.next())
                realm.beginWrite()
                realm.object(ofType: Item.self, forPrimaryKey: key)?.age = (key + i) % 100
                times.append(
                    try seconds {
                        try realm.commitWrite()
                        realm.refresh()
                    })
            }
            line("observe: commit of one and notice, \(label)", times.sorted()[times.count / 2])
            print("# calls \(calls)")
            token?.invalidate()
        }
        remove(path)
    }
}
