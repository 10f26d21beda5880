import Foundation
import RealmSwift

/// One entry of the list.
final class TodoItem: Object {
    @Persisted(primaryKey: true) var id: ObjectId
    @Persisted var title: String
    @Persisted var isDone = false
    @Persisted var created = Date()

    convenience init(title: String) {
        self.init()
        self.title = title
    }

    var line: String { "[\(isDone ? "x" : " ")] \(title)" }
}

/// The list in a file that any number of processes share.
struct TaskFile {
    let realm: Realm

    init(path: String) throws {
        realm = try Realm(configuration: Realm.Configuration(fileURL: URL(fileURLWithPath: path), objectTypes: [TodoItem.self]))
    }

    /// In the order in which they were added. An entry's number is its place here, counted from 1.
    var items: Results<TodoItem> { realm.objects(TodoItem.self).sorted(by: ["created", "id"]) }

    @discardableResult
    func add(_ title: String) throws -> Int {
        try realm.write {
            realm.add(TodoItem(title: title))
            return items.count
        }
    }

    /// Numbers are looked up within the transaction: what another process removes a moment before is seen.
    @discardableResult
    func complete(_ number: Int) throws -> String {
        try realm.write {
            let item = try find(number)
            item.isDone = true
            return item.title
        }
    }

    @discardableResult
    func remove(_ number: Int) throws -> String {
        try realm.write {
            let item = try find(number)
            defer { realm.delete(item) }
            return item.title
        }
    }

    private func find(_ number: Int) throws -> TodoItem {
        let items = items
        guard number >= 1, number <= items.count else { throw TaskError.noSuchNumber(number, items.count) }
        return items[number - 1]
    }
}

enum TaskError: Error, CustomStringConvertible {
    case noSuchNumber(Int, Int)

    var description: String {
        switch self {
        case .noSuchNumber(let number, let count): "there is no task \(number): the list has \(count)"
        }
    }
}
