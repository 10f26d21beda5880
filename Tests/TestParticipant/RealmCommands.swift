import Foundation
import RealmSwift
import RealmSwiftTestModels

/// The commands of `TestParticipant realm`, which use the object API on a file with the test models:
///
///     add PATH NAME [KEY]    adds a dog; prints how many there are
///     names PATH [KEY]       prints the names of all dogs, in order of names
///     hold PATH              opens the file, prints "open", and waits for a line of standard input
///
/// KEY: 128 hexadecimal digits.
@MainActor func runRealmCommand(_ arguments: [String]) throws -> Int32 {
    guard arguments.count >= 2 else { return 64 }
    var configuration = Realm.Configuration(fileURL: URL(fileURLWithPath: arguments[1]), objectTypes: [Dog.self, Person.self, Address.self, Country.self])
    func use(_ key: String) { configuration.encryptionKey = bytes(key) }
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
    default: return 64
    }
    return 0
}

private func bytes(_ text: String) -> Data {
    let digits = Array(text)
    return Data(stride(from: 0, to: digits.count - 1, by: 2).compactMap { UInt8(String(digits[$0...$0 + 1]), radix: 16) })
}
