import Foundation
import RealmSwift
import RealmSwiftTestModels

/// The commands of `TestParticipant realm`, which use the object API on a file with the test models:
///
///     add PATH NAME [KEY]    adds a dog; prints how many there are
///     names PATH [KEY]       prints the names of all dogs, in order of names
///     hold PATH              opens the file, prints "open", and waits for a line of standard input
///     hold-write PATH        begins a write transaction in a way that may end on any thread, prints "writing", and waits for a line
///     crowd PATH SEED STEPS  writes at random and observes, see `CrowdCommand.swift`
///     digest PATH            prints a digest of the file
///     main-actor PATH        works on the main actor while worker threads serve it, as in a program with an asynchronous main
///     default -              opens the Realm of the default configuration; prints its path or the error
///     migrate PATH HOW       raises the schema version to 1, with classes that have more properties (HOW: more) or other ones (HOW: others)
///     exit-busy PATH         exits while threads write and observe
///
/// KEY: 128 hexadecimal digits.
@MainActor func runRealmCommand(_ arguments: [String]) throws -> Int32 {
    guard arguments.count >= 2 else { return 64 }
    var configuration = Realm.Configuration(
        fileURL: URL(fileURLWithPath: arguments[1]), objectTypes: [Dog.self, Person.self, Address.self, Country.self])
    func use(_ key: String) { configuration.encryptionKey = bytes(key) }
    // As the test that started it (`TestSupport/TestKeys.swift`).
    if getenv("REALM_TEST_ENCRYPTED") != nil { configuration.encryptionKey = Data((0..<64).map { UInt8($0) }) }
    switch arguments[0] {
    case "add" where arguments.count >= 3:
        if arguments.count > 3 { use(arguments[3]) }
        let realm = try Realm(configuration: configuration)
        try realm.write { realm.add(Dog(name: arguments[2])) }
        print(realm.objects(Dog.self).count)
    case "names":
        if arguments.count > 2 { use(arguments[2]) }
        let realm = try Realm(configuration: configuration)
        print(realm.objects(Dog.self).sorted(byKeyPath: "name").map(\.name).joined(separator: " "))
    case "hold":
        let realm = try Realm(configuration: configuration)
        print("open")
        fflush(nil)
        _ = readLine()
        withExtendedLifetime(realm) {}
    case "hold-write":
        let queue = DispatchQueue(label: "writer")
        let realm = try queue.sync {
            let realm = try Realm(configuration: configuration, queue: queue)
            realm.beginWrite()
            realm.add(Dog(name: "lost"))
            return Kept(value: realm)
        }
        print("writing")
        fflush(nil)
        _ = readLine()
        withExtendedLifetime(realm) {}
    case "crowd", "digest":
        configuration.objectTypes = [Dog.self, Person.self, Address.self, Country.self, Owner.self]
        if arguments[0] == "crowd" { return try runCrowdCommand(Array(arguments.dropFirst(2)), configuration) }
        print(digest(try Realm(configuration: configuration)))
    case "main-actor":
        let finalConfiguration = configuration
        Task { @MainActor in
            do { try await workOnMainActor(finalConfiguration) } catch {
                print("error \(error)")
                exit(1)
            }
            fflush(nil)
            exit(0)
        }
        dispatchMain()
    case "default":
        var configuration = Realm.Configuration.defaultConfiguration
        configuration.objectTypes = [Owner.self, Dog.self, Person.self, Address.self, Country.self]
        do { print(try Realm(configuration: configuration).configuration.fileURL?.path ?? "") } catch {
            print("error \(error.localizedDescription)")
        }
    case "migrate" where arguments.count == 3:
        configuration.schemaVersion = 1
        configuration.objectTypes = arguments[2] == "more" ? [LaterWithMore.Owner.self] : [LaterWithOthers.Owner.self]
        print(try Realm(configuration: configuration).dynamicObjects("Owner").count)
    case "exit-busy": exitWhileThreadsWork(configuration)
    default: return 64
    }
    return 0
}

/// The models of later versions of a program whose class `Owner` was that of the test models without its link.
private enum LaterWithMore {
    final class Owner: Object {
        @Persisted(primaryKey: true) var id: Int
        @Persisted var name: String
        @Persisted var score: Int
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }
}

private enum LaterWithOthers {
    final class Owner: Object {
        @Persisted(primaryKey: true) var id: Int
        @Persisted var score: String
        override class func shouldIncludeInDefaultSchema() -> Bool { false }
    }
}

/// Four threads commit, four queues and the main thread observe, and nobody is told that the end comes.
@MainActor private func exitWhileThreadsWork(_ configuration: Realm.Configuration) -> Never {
    let realm = try! Realm(configuration: configuration)
    var callCount = 0
    let token = realm.objects(Dog.self).filter("age >= 0").observe { _ in callCount += 1 }
    for number in 0..<4 {
        let queue = DispatchQueue(label: "observer \(number)")
        queue.async {
            let realm = try! Realm(configuration: configuration, queue: queue)
            let token = realm.objects(Dog.self).observe { _ in }
            withExtendedLifetime((realm, token)) { Thread.sleep(forTimeInterval: 100) }
        }
        Thread {
            let realm = try! Realm(configuration: configuration)
            while true { try! realm.write { realm.add(Dog(name: "\(number)", age: number)) } }
        }.start()
    }
    while callCount < 3 { RunLoop.main.run(until: Date().addingTimeInterval(0.01)) }
    withExtendedLifetime(token) {}
    exit(0)
}

private struct Kept: @unchecked Sendable {
    // Sendable: kept, not used.
    let value: Realm
}

private func isOnFirstThread() -> Bool { Thread.isMainThread }

/// Transactions of every kind, with suspensions in between, after which the code runs on whatever thread.
@MainActor private func workOnMainActor(_ configuration: Realm.Configuration) async throws {
    var sawWorker = false
    let realm = try await Realm(configuration: configuration)
    let dogs = realm.objects(Dog.self)
    for round in 0..<10 {
        realm.beginWrite()
        realm.add(Dog(name: "by hand \(round)"))
        try await Task.sleep(nanoseconds: 1_000_000)
        try realm.commitWrite()
        if !isOnFirstThread() { sawWorker = true }
        try realm.write { realm.add(Dog(name: "write \(round)")) }
        try await realm.asyncWrite { realm.add(Dog(name: "async \(round)")) }
        await withCheckedContinuation { continuation in
            realm.writeAsync({ realm.add(Dog(name: "block \(round)")) }, onComplete: { _ in continuation.resume() })
        }
    }
    let other = Task.detached {
        func add() throws {
            let realm = try Realm(configuration: configuration)
            try realm.write { realm.add(Dog(name: "other")) }
        }
        try add()
    }
    try await other.value
    for _ in 0..<2000 where dogs.count == 40 { try await Task.sleep(nanoseconds: 1_000_000) }
    print("\(dogs.count) \(sawWorker)")
}

private func bytes(_ text: String) -> Data {
    let digits = Array(text)
    return Data(stride(from: 0, to: digits.count - 1, by: 2).compactMap { UInt8(String(digits[$0...$0 + 1]), radix: 16) })
}
