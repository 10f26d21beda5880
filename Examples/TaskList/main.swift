// A task list in one file, for any number of terminals:
//
//     TaskList tasks.realm watch                  in one terminal
//     TaskList tasks.realm add "Feed the cat"     in another
import Foundation

let usage = """
    usage: TaskList FILE add TITLE
           TaskList FILE done NUMBER
           TaskList FILE remove NUMBER
           TaskList FILE list
           TaskList FILE watch
    """

func run(_ arguments: [String]) throws -> Int32 {
    guard arguments.count >= 2 else { return complain(usage) }
    let command = arguments[1], rest = Array(arguments.dropFirst(2))
    switch (command, rest.count) {
    case ("add", 1...):
        let number = try TaskFile(path: arguments[0]).add(rest.joined(separator: " "))
        print("added \(number)")
    case ("done", 1), ("remove", 1):
        guard let number = Int(rest[0]) else { return complain("'\(rest[0])' is no number") }
        let file = try TaskFile(path: arguments[0])
        print(command == "done" ? "done: \(try file.complete(number))" : "removed: \(try file.remove(number))")
    case ("list", 0):
        for (index, item) in try TaskFile(path: arguments[0]).items.enumerated() { print("\(index + 1) \(item.line)") }
    case ("watch", 0):
        Watcher(try TaskFile(path: arguments[0])).run()
    default:
        return complain(usage)
    }
    return 0
}

func complain(_ text: String) -> Int32 {
    FileHandle.standardError.write(Data((text + "\n").utf8))
    return 64
}

do {
    exit(try run(Array(CommandLine.arguments.dropFirst())))
} catch {
    FileHandle.standardError.write(Data("TaskList: \(error)\n".utf8))
    exit(1)
}
