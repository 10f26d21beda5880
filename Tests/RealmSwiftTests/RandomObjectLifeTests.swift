import Foundation
import RealmSwift
import TestSupport
import XCTest

/// Random lives of objects beside a plain model of them: transactions that are committed or undone, accessors that are kept,
/// frozen copies that are looked at much later.
///
/// `OBJECT_RANDOM_STEPS` sets the number of transactions of a seed, `OBJECT_RANDOM_SEED` the first seed.
final class RandomObjectLifeTests: XCTestCase {
    func testObjectsAndTheirModelAgree() throws {
        let environment = ProcessInfo.processInfo.environment
        let first = environment["OBJECT_RANDOM_SEED"].flatMap(UInt64.init) ?? 1,
            steps = environment["OBJECT_RANDOM_STEPS"].flatMap(Int.init) ?? 40
        for seed in first..<first + 4 {
            print("seed \(seed), \(steps) transactions")
            let life = try ObjectLife(seed: seed, name: "\(name) \(seed)")
            for step in 0..<steps {
                try life.step()
                if let difference = life.difference() { return XCTFail("seed \(seed), transaction \(step): \(difference)") }
            }
        }
    }
}

private class LifeNode: Object {
    @Persisted(primaryKey: true) var id: Int
    @Persisted(indexed: true) var number: Int
    @Persisted var text: String?
    @Persisted var link: LifeNode?
    @Persisted var ints: List<Int?>
    @Persisted var nodes: List<LifeNode>
    @Persisted var tags: MutableSet<String>
    @Persisted var counts: Map<String, Double>
    @Persisted var friends: Map<String, LifeNode?>
    @Persisted var home: LifeHome?
    @Persisted var homes: List<LifeHome>
    @Persisted var any: AnyRealmValue
    @Persisted(originProperty: "nodes") var owners: LinkingObjects<LifeNode>
}

private class LifeHome: EmbeddedObject {
    @Persisted var city: String
    @Persisted var rooms: List<Int>
}

/// What a node should hold.
private struct LifeModel: Equatable {
    var number = 0
    var text: String?
    var link: Int?
    var ints: [Int?] = []
    var nodes: [Int] = []
    var tags: Set<String> = []
    var counts: [String: Double] = [:]
    var friends: [String: Int?] = [:]
    var home: Home?
    var homes: [Home] = []
    var any = Value.none

    struct Home: Equatable {
        var city: String
        var rooms: [Int]
    }

    indirect enum Value: Equatable {
        case none, int(Int), text(String), node(Int), list([Value]), map([String: Value])
    }
}

private final class ObjectLife {
    private let realm: Realm
    private var random: SplitMix
    private var model: [Int: LifeModel] = [:]
    private var nextId = 0
    /// Accessors that were fetched at some time.
    private var kept: [Int: LifeNode] = [:]
    private var frozen: [(results: Results<LifeNode>, model: [Int: LifeModel])] = []

    init(seed: UInt64, name: String) throws {
        random = SplitMix(seed: seed)
        realm = try Realm(
            configuration: Realm.Configuration(inMemoryIdentifier: name, objectTypes: [LifeNode.self, LifeHome.self]))
    }

    private func number(_ limit: Int) -> Int { Int(random.next() % UInt64(limit)) }
    private func chance(_ one: Int) -> Bool { number(one) == 0 }
    private func anyId() -> Int? { model.isEmpty ? nil : model.keys.sorted()[number(model.count)] }
    private func word() -> String { ["", "a", "b", "c", "long word that does not fit", "é"][number(6)] }

    private func node(_ id: Int) -> LifeNode {
        if let node = kept[id], chance(2) { return node }
        guard let node = realm.object(ofType: LifeNode.self, forPrimaryKey: id) else { fatalError("node \(id) is not there") }
        kept[id] = node
        return node
    }

    // MARK: Changes

    func step() throws {
        let before = model, keptBefore = kept
        realm.beginWrite()
        for _ in 0..<1 + number(12) { change() }
        if chance(4) {
            // Half of the time it is looked at before it is undone.
            if chance(2), let difference = difference() { fatalError("before the end: \(difference)") }
            realm.cancelWrite()
            model = before
            // What was deleted has to be fetched again; what was made is gone.
            kept = keptBefore.filter { !$0.value.isInvalidated && before[$0.key] != nil }
        } else {
            try realm.commitWrite()
            if chance(5) { frozen.append((realm.objects(LifeNode.self).sorted(byKeyPath: "id").freeze(), model)) }
            if frozen.count > 4 { frozen.remove(at: number(frozen.count)) }
        }
    }

    private func change() {
        if model.count < 3 || chance(6) { return create() }
        guard let id = anyId() else { return }
        if chance(14) { return delete(id) }
        let node = node(id)
        switch number(16) {
        case 0:
            model[id]?.number += 1
            node.number += 1
        case 1:
            let text = chance(3) ? nil : word()
            model[id]?.text = text
            node.text = text
        case 2:
            let other = chance(4) ? nil : anyId()
            model[id]?.link = other
            node.link = other.map { self.node($0) }
        case 3: changeInts(id, node)
        case 4, 5: changeNodes(id, node)
        case 6:
            let tag = word()
            if chance(2) {
                model[id]?.tags.insert(tag)
                node.tags.insert(tag)
            } else {
                model[id]?.tags.remove(tag)
                node.tags.remove(tag)
            }
        case 7:
            let key = word(), value = Double(number(9)) / 2
            if chance(3) {
                model[id]?.counts[key] = nil
                node.counts[key] = nil
            } else {
                model[id]?.counts[key] = value
                node.counts[key] = value
            }
        case 8:
            let key = word(), other = chance(4) ? nil : anyId()
            model[id]?.friends[key] = .some(other)
            node.friends[key] = .some(other.map { self.node($0) })
        case 9, 10: changeHomes(id, node)
        case 11, 12:
            let value = value(depth: 3)
            model[id]?.any = value
            node.any = realmValue(value)
        case 13: changeNested(id, node)
        case 14:
            // An update by key, which leaves the rest.
            let number = number(50)
            model[id]?.number = number
            model[id]?.ints = [1, nil]
            realm.create(
                LifeNode.self, value: ["id": id, "number": number, "ints": [1, NSNull()]] as [String: Any],
                update: chance(2) ? .modified : .all)
        default:
            // A whole list at once, also the same one.
            guard let other = anyId() else { return }
            let nodes = model[other]?.nodes ?? []
            model[id]?.nodes = nodes
            node.nodes = self.node(other).nodes
        }
    }

    private func create() {
        let id = nextId
        nextId += 1
        var new = LifeModel()
        let node = LifeNode()
        node.id = id
        new.number = number(50)
        node.number = new.number
        for _ in 0..<number(3) {
            new.ints.append(number(5))
            node.ints.append(new.ints[new.ints.count - 1])
        }
        if let other = anyId(), chance(2) {
            new.link = other
            node.link = self.node(other)
            new.nodes = [other, other]
            node.nodes.append(objectsIn: [self.node(other), self.node(other)])
        }
        if chance(3) {
            new.home = LifeModel.Home(city: word(), rooms: [number(3)])
            node.home = LifeHome(value: [new.home?.city ?? "", new.home?.rooms ?? []] as [Any])
        }
        new.any = value(depth: 2)
        node.any = realmValue(new.any)
        model[id] = new
        realm.add(node)
        kept[id] = node
    }

    private func delete(_ id: Int) {
        realm.delete(node(id))
        kept[id] = nil
        model[id] = nil
        for other in model.keys {
            if model[other]?.link == id { model[other]?.link = nil }
            model[other]?.nodes.removeAll { $0 == id }
            for (key, target) in model[other]?.friends ?? [:] where target == id { model[other]?.friends[key] = .some(nil) }
            if let any = model[other]?.any { model[other]?.any = ObjectLife.removing(id, from: any) }
        }
    }

    /// A link in a nested list goes with its place; elsewhere it becomes nothing (file-format-2 8.3).
    private static func removing(_ id: Int, from value: LifeModel.Value) -> LifeModel.Value {
        switch value {
        case .node(id): .none
        case .list(let values): .list(values.filter { $0 != .node(id) }.map { removing(id, from: $0) })
        case .map(let values): .map(values.mapValues { removing(id, from: $0) })
        default: value
        }
    }

    private func changeInts(_ id: Int, _ node: LifeNode) {
        let list = node.ints
        var ints = model[id]?.ints ?? []
        let value = chance(4) ? nil : Optional(number(9))
        switch number(7) {
        case 0 where !ints.isEmpty:
            let index = number(ints.count)
            ints.remove(at: index)
            list.remove(at: index)
        case 1 where !ints.isEmpty:
            let index = number(ints.count)
            ints[index] = value
            list[index] = value
        case 2 where ints.count > 1:
            let from = number(ints.count), to = number(ints.count)
            ints.insert(ints.remove(at: from), at: to)
            list.move(from: from, to: to)
        case 3 where ints.count > 1:
            let a = number(ints.count), b = number(ints.count)
            ints.swapAt(a, b)
            list.swapAt(a, b)
        case 4 where chance(4):
            ints = []
            list.removeAll()
        default:
            let index = number(ints.count + 1)
            ints.insert(value, at: index)
            list.insert(value, at: index)
        }
        model[id]?.ints = ints
    }

    private func changeNodes(_ id: Int, _ node: LifeNode) {
        guard let other = anyId() else { return }
        var nodes = model[id]?.nodes ?? []
        let list = node.nodes
        switch number(5) {
        case 0 where !nodes.isEmpty:
            let index = number(nodes.count)
            nodes.remove(at: index)
            list.remove(at: index)
        case 1 where !nodes.isEmpty:
            let index = number(nodes.count)
            nodes[index] = other
            list.replace(index: index, object: self.node(other))
        case 2 where nodes.count > 1:
            let from = number(nodes.count), to = number(nodes.count)
            nodes.insert(nodes.remove(at: from), at: to)
            list.move(from: from, to: to)
        default:
            let index = number(nodes.count + 1)
            nodes.insert(other, at: index)
            list.insert(self.node(other), at: index)
        }
        model[id]?.nodes = nodes
    }

    private func changeHomes(_ id: Int, _ node: LifeNode) {
        let home = LifeModel.Home(city: word(), rooms: (0..<number(3)).map { $0 })
        let new = LifeHome(value: [home.city, home.rooms] as [Any])
        switch number(6) {
        case 0:
            model[id]?.home = home
            node.home = new
        case 1:
            model[id]?.home = nil
            node.home = nil
        case 2 where model[id]?.home != nil:
            model[id]?.home?.rooms.append(7)
            node.home?.rooms.append(7)
        case 3 where model[id]?.homes.isEmpty == false:
            let index = number(model[id]?.homes.count ?? 1)
            model[id]?.homes.remove(at: index)
            node.homes.remove(at: index)
        case 4 where model[id]?.homes.isEmpty == false:
            let index = number(model[id]?.homes.count ?? 1)
            model[id]?.homes[index].city = home.city
            node.homes[index].city = home.city
        default:
            model[id]?.homes.append(home)
            node.homes.append(new)
        }
    }

    private func value(depth: Int) -> LifeModel.Value {
        switch number(depth > 0 ? 7 : 4) {
        case 0: return .none
        case 1: return .int(number(9))
        case 2: return .text(word())
        case 3: return anyId().map { .node($0) } ?? .none
        case 4, 5: return .list((0..<number(4)).map { _ in value(depth: depth - 1) })
        default: return .map(Dictionary((0..<number(3)).map { _ in (word(), value(depth: depth - 1)) }, uniquingKeysWith: { $1 }))
        }
    }

    private func realmValue(_ value: LifeModel.Value) -> AnyRealmValue {
        switch value {
        case .none: .none
        case .int(let v): .int(v)
        case .text(let v): .string(v)
        case .node(let id): .object(node(id))
        case .list(let values): .fromArray(values.map { realmValue($0) })
        case .map(let values): .fromDictionary(values.mapValues { realmValue($0) })
        }
    }

    /// A change within a nested collection, in place.
    private func changeNested(_ id: Int, _ node: LifeNode) {
        switch model[id]?.any {
        case .list(var values):
            guard let list = node.any.listValue else { fatalError("no list") }
            let new = value(depth: 1)
            if !values.isEmpty && chance(3) {
                let index = number(values.count)
                values.remove(at: index)
                list.remove(at: index)
            } else {
                let index = number(values.count + 1)
                values.insert(new, at: index)
                list.insert(realmValue(new), at: index)
            }
            model[id]?.any = .list(values)
        case .map(var values):
            guard let map = node.any.dictionaryValue else { fatalError("no map") }
            let key = word(), new = value(depth: 1)
            if chance(3) {
                values[key] = nil
                map[key] = nil
            } else {
                values[key] = new
                map[key] = realmValue(new)
            }
            model[id]?.any = .map(values)
        default: break
        }
    }

    // MARK: Comparing

    private static func value(_ value: AnyRealmValue) -> LifeModel.Value {
        switch value {
        case .int(let v): .int(v)
        case .string(let v): .text(v)
        case .object(let object): .node((object as? LifeNode)?.id ?? -1)
        case .list(let list): .list(list.map { self.value($0) })
        case .dictionary(let map): .map(Dictionary(uniqueKeysWithValues: map.map { ($0.key, self.value($0.value)) }))
        default: .none
        }
    }

    private static func home(_ home: LifeHome) -> LifeModel.Home { LifeModel.Home(city: home.city, rooms: Array(home.rooms)) }

    private static func content(_ node: LifeNode) -> LifeModel {
        LifeModel(
            number: node.number, text: node.text, link: node.link?.id, ints: Array(node.ints), nodes: node.nodes.map(\.id),
            tags: Set(node.tags),
            counts: Dictionary(uniqueKeysWithValues: node.counts.map { ($0.key, $0.value) }),
            friends: Dictionary(uniqueKeysWithValues: node.friends.map { ($0.key, $0.value?.id) }),
            home: node.home.map { home($0) }, homes: node.homes.map { home($0) }, any: value(node.any))
    }

    private static func difference(_ nodes: Results<LifeNode>, _ model: [Int: LifeModel]) -> String? {
        if nodes.count != model.count { return "\(nodes.count) objects instead of \(model.count)" }
        for node in nodes {
            guard let wanted = model[node.id] else { return "node \(node.id) should not be there" }
            let found = content(node)
            if found != wanted { return "node \(node.id): \(found) instead of \(wanted)" }
        }
        return nil
    }

    /// Nil where everything is as it should be.
    func difference() -> String? {
        let all = realm.objects(LifeNode.self)
        if let difference = ObjectLife.difference(all, model) { return difference }
        for (id, node) in kept.sorted(by: { $0.key < $1.key }) {
            if node.isInvalidated { return "the kept node \(id) is invalid" }
            if node.id != id || node.number != model[id]?.number { return "the kept node \(id) shows \(node.id)" }
        }
        let limit = number(50),
            wanted = model.filter { $0.value.number > limit }.sorted { ($0.value.number, $0.key) < ($1.value.number, $1.key) }
                .map(\.key)
        let found = all.where { $0.number > limit }.sorted(by: ["number", "id"]).map(\.id)
        if Array(found) != wanted { return "number > \(limit): \(Array(found)) instead of \(wanted)" }
        if let id = anyId() {
            let owners = model.flatMap { owner in owner.value.nodes.filter { $0 == id }.map { _ in owner.key } }.sorted()
            let found = (realm.object(ofType: LifeNode.self, forPrimaryKey: id)?.owners.map(\.id) ?? []).sorted()
            if found != owners { return "owners of \(id): \(found) instead of \(owners)" }
        }
        let homes = model.values.reduce(0) { $0 + $1.homes.count + ($1.home == nil ? 0 : 1) }
        if realm.dynamicObjects("LifeHome").count != homes {
            return "\(realm.dynamicObjects("LifeHome").count) homes instead of \(homes)"
        }
        for (results, model) in frozen {
            if let difference = ObjectLife.difference(results, model) { return "frozen: \(difference)" }
        }
        return nil
    }
}
