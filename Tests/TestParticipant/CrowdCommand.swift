import Foundation
import RealmSwift
import RealmSwiftTestModels
import Synchronization
import TestSupport

/// `TestParticipant realm crowd PATH SEED STEPS`: one of many processes that change one file at random and observe it.
///
/// It keeps a model of each collection, which it changes by nothing but the change sets that its observers are told. It prints
/// "ready", begins to write at the first line of standard input, and prints "done" after so many transactions. When an `Owner`
/// with the key 999 appears it compares every model with the file, and prints "settled DIGEST CALLS FAULTS", and each fault to
/// standard error.
///
/// `realm digest PATH` prints the digest of the file as a new process finds it.
@MainActor func runCrowdCommand(_ arguments: [String], _ configuration: Realm.Configuration) throws -> Int32 {
    guard arguments.count >= 2, let seed = UInt64(arguments[0]), let steps = Int(arguments[1]) else { return 64 }
    let member = try CrowdMember(configuration, seed, steps)
    let begins = Atomic(false)
    // By hand: flushing the streams of C would wait for the thread that reads one of them.
    func line(_ text: String) { FileHandle.standardOutput.write(Data((text + "\n").utf8)) }
    line("ready")
    try withExtendedLifetime(member) {
        let reader = Thread {
            if readLine() == nil { exit(1) }
            begins.store(true, ordering: .releasing)
            // The end of the input means that the test is gone.
            while readLine() != nil {}
            exit(1)
        }
        reader.start()
        var isDone = false
        while !member.seesTheEnd {
            RunLoop.current.run(until: Date(timeIntervalSinceNow: 0.002))
            if begins.load(ordering: .acquiring) { try member.step() }
            if member.isDone && !isDone {
                isDone = true
                line("done")
            }
        }
        // What this process did itself last is told at the next turn.
        for _ in 0..<5 { RunLoop.current.run(until: Date(timeIntervalSinceNow: 0.005)) }
        let faults = member.check()
        line("settled \(member.digest()) \(member.calls) \(faults.count)")
        for fault in faults { FileHandle.standardError.write(Data((fault + "\n").utf8)) }
    }
    return 0
}

@MainActor func digest(_ realm: Realm) -> String {
    var text = realm.objects(Dog.self).map { "\($0.id) \($0.name) \($0.age)" }.joined(separator: ",")
    for person in realm.objects(Person.self) {
        text +=
            "|\(person.name) \(person.age)|" + person.dogs.map { "\($0.id)" }.joined(separator: ",") + "|"
            + person.tags.joined(separator: ",")
        text += "|" + person.pets.map { "\($0.key)=\(String(describing: $0.value?.id))" }.joined(separator: ",")
    }
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    for byte in text.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    return String(hash, radix: 16)
}

@MainActor private final class CrowdMember {
    private let realm: Realm
    private var random: SplitMix
    private var left: Int
    private var isWaiting = false
    private var tokens: [NotificationToken] = []
    /// Each says what is wrong with one model.
    private var checks: [() -> String?] = []
    private var faults: [String] = []
    private(set) var calls = 0

    init(_ configuration: Realm.Configuration, _ seed: UInt64, _ steps: Int) throws {
        realm = try Realm(configuration: configuration)
        random = SplitMix(seed: seed)
        left = steps
        guard let person = realm.objects(Person.self).first else { throw CocoaError(.fileReadCorruptFile) }
        let dogs = realm.objects(Dog.self)
        observe("all dogs", dogs) { CrowdMember.text($0) }
        observe("old dogs by age", dogs.where { $0.age > 3 }.sorted(byKeyPath: "age", ascending: false)) { CrowdMember.text($0) }
        observe("dogs by name", dogs.sorted(by: [SortDescriptor(keyPath: "name"), SortDescriptor(keyPath: "age")])) {
            CrowdMember.text($0)
        }
        observe("list", person.dogs) { CrowdMember.text($0) }
        observe("young dogs of the list", person.dogs.where { $0.age <= 3 }) { CrowdMember.text($0) }
        observe("tags", person.tags) { $0 }
        observe(person.pets)
        observe(person)
    }

    private nonisolated static func text(_ dog: Dog) -> String { "\(dog.id) \(dog.name) \(dog.age)" }

    // MARK: Models

    /// A row of the model that no change told of stays as it is, so that a change which is missing shows.
    private func observe<C: RealmCollection>(_ name: String, _ collection: C, _ text: @escaping (C.Element) -> String) {
        var model: [String]?
        tokens.append(
            collection.observe { [unowned self] change in
                calls += 1
                switch change {
                case .initial(let now): model = now.map(text)
                case .update(let now, let deletions, let insertions, let modifications):
                    guard let old = model else { return faults.append("\(name): an update before the first call") }
                    model = CrowdMember.apply(old, now.map(text), deletions, insertions, modifications)
                    if model != now.map(text) {
                        faults.append(
                            "\(name): -\(deletions) +\(insertions) *\(modifications) makes \(model ?? []) of \(old), not \(now.map(text))"
                        )
                        model = now.map(text)
                    }
                case .error(let error): faults.append("\(name): \(error)")
                }
            })
        checks.append { model == collection.map(text) ? nil : "\(name): \(model ?? []) is not \(collection.map(text))" }
    }

    /// What a table on a screen would show after the changes; nil where they cannot be.
    private static func apply(_ old: [String], _ now: [String], _ deletions: [Int], _ insertions: [Int], _ modifications: [Int])
        -> [String]?
    {
        if old.count - deletions.count + insertions.count != now.count { return nil }
        let deleted = Set(deletions), inserted = Set(insertions), modified = Set(modifications)
        if !deleted.isDisjoint(with: modified) || deleted.count != deletions.count || inserted.count != insertions.count {
            return nil
        }
        var result: [String] = []
        var rest = old.indices.filter { !deleted.contains($0) }[...]
        for position in now.indices {
            if inserted.contains(position) {
                result.append(now[position])
            } else {
                guard let before = rest.popFirst() else { return nil }
                result.append(modified.contains(before) ? now[position] : old[before])
            }
        }
        return result
    }

    private func observe(_ map: Map<String, Dog?>) {
        func state(_ map: Map<String, Dog?>) -> [String: String] {
            map.reduce(into: [:]) { $0[$1.key] = $1.value.map { "\($0.id)" } ?? "none" }
        }
        var model: [String: String]?
        tokens.append(
            map.observe { [unowned self] change in
                calls += 1
                switch change {
                case .initial(let now): model = state(now)
                case .update(let now, let deletions, let insertions, let modifications):
                    let new = state(now)
                    for key in deletions { model?[key] = nil }
                    for key in insertions + modifications { model?[key] = new[key] }
                    if model != new {
                        faults.append("map: -\(deletions) +\(insertions) *\(modifications) makes \(model ?? [:]), not \(new)")
                        model = new
                    }
                case .error(let error): faults.append("map: \(error)")
                }
            })
        checks.append { model == state(map) ? nil : "map: \(model ?? [:]) is not \(state(map))" }
    }

    private func observe(_ person: Person) {
        var name = person.name, age = person.age
        tokens.append(
            person.observe { [unowned self] (change: ObjectChange<Person>) in
                calls += 1
                guard case .change(_, let properties) = change else { return faults.append("the person is gone") }
                for property in properties {
                    if property.name == "name", let value = property.newValue as? String { name = value }
                    if property.name == "age", let value = property.newValue as? Int { age = value }
                }
            })
        checks.append {
            name == person.name && age == person.age ? nil : "person: \(name) \(age) is not \(person.name) \(person.age)"
        }
    }

    func check() -> [String] { faults + checks.compactMap { $0() } }
    func digest() -> String { TestParticipant.digest(realm) }

    // MARK: Changes

    var isDone: Bool { left == 0 && !isWaiting }
    var seesTheEnd: Bool { realm.object(ofType: Owner.self, forPrimaryKey: 999) != nil }

    private func below(_ limit: Int) -> Int { random.below(limit) }

    func step() throws {
        if left == 0 || isWaiting { return }
        left -= 1
        if below(3) > 0 { return try realm.write { change() } }
        isWaiting = true
        realm.writeAsync(
            { [unowned self] in change() },
            onComplete: { [unowned self] error in
                isWaiting = false
                if let error { faults.append("\(error)") }
            })
    }

    private func change() {
        guard let person = realm.objects(Person.self).first else { return }
        for _ in 0...below(4) { change(person) }
    }

    private func change(_ person: Person) {
        let dogs = realm.objects(Dog.self), list = person.dogs
        let dog = dogs.isEmpty ? nil : dogs[below(dogs.count)]
        switch below(14) {
        case 0, 1, 2: realm.add(Dog(name: "d\(below(50))", age: below(8)))
        case 3: if dogs.count > 6, let dog { realm.delete(dog) }
        case 4, 5: dog?.age = below(8)
        case 6: dog?.name = "d\(below(50))"
        case 7, 8: if let dog { list.insert(dog, at: below(list.count + 1)) }
        case 9: if !list.isEmpty { list.remove(at: below(list.count)) }
        case 10: if list.count > 1 { list.move(from: below(list.count), to: below(list.count)) }
        case 11: if below(2) == 0 { person.tags.insert("t\(below(12))") } else { person.tags.remove("t\(below(12))") }
        case 12: person.pets["k\(below(5))"] = below(3) == 0 ? nil : .some(dog)
        default: if below(2) == 0 { person.name = "p\(below(9))" } else { person.age = below(90) }
        }
    }
}
