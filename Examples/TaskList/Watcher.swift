import Foundation
import RealmSwift

/// Prints the list once, and then every change of it, whichever process makes it.
final class Watcher {
    private let items: Results<TodoItem>
    /// What was printed last, in order: a removed task cannot be asked for its title any more.
    private var shown: [String] = []
    private var token: NotificationToken?

    init(_ file: TaskFile) { items = file.items }

    /// Does not return.
    func run() {
        token = items.observe { [unowned self] change in
            switch change {
            case .initial(let items):
                shown = items.map(\.line)
                print("\(shown.count) tasks")
                for (index, line) in shown.enumerated() { report("", index, line) }
            case .update(let items, let deletions, let insertions, let modifications):
                apply(items, deletions, insertions, modifications)
            case .error(let error):
                print("error: \(error)")
            }
            // To be seen at once, also by a program that reads this one.
            fflush(nil)
        }
        while true { RunLoop.main.run() }
    }

    /// Deletions and modifications count in the list as it was, insertions in the list as it is now.
    private func apply(_ items: Results<TodoItem>, _ deletions: [Int], _ insertions: [Int], _ modifications: [Int]) {
        for index in deletions { report("- ", index, shown[index]) }
        let modified = Set(modifications)
        var isModified = shown.indices.map { modified.contains($0) }
        for index in deletions.reversed() {
            shown.remove(at: index)
            isModified.remove(at: index)
        }
        for index in insertions {
            shown.insert(items[index].line, at: index)
            isModified.insert(false, at: index)
            report("+ ", index, shown[index])
        }
        for index in shown.indices where isModified[index] {
            shown[index] = items[index].line
            report("~ ", index, shown[index])
        }
    }

    private func report(_ sign: String, _ index: Int, _ line: String) { print("\(sign)\(index + 1) \(line)") }
}
