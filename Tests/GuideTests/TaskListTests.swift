import Foundation
import TestSupport
import XCTest

/// `Examples/TaskList`, in several terminals.
final class TaskListTests: XCTestCase {
    private let scratch = ScratchDirectory("TaskList")

    @discardableResult
    private func run(_ arguments: String..., code: Int32 = 0, file: StaticString = #filePath, line: UInt = #line) throws -> String
    {
        let child = try ChildProcess(product: "TaskList", arguments)
        XCTAssertEqual(child.waitForEnd(seconds: 30), code, child.errors, file: file, line: line)
        return code == 0 ? child.output : child.errors
    }

    func testTheTaskListInOneTerminal() throws {
        let path = scratch.file("tasks.realm")
        XCTAssertEqual(try run(path, "add", "Feed the cat"), "added 1\n")
        XCTAssertEqual(try run(path, "add", "Water", "the", "plants"), "added 2\n")
        XCTAssertEqual(try run(path, "done", "1"), "done: Feed the cat\n")
        XCTAssertEqual(try run(path, "list"), "1 [x] Feed the cat\n2 [ ] Water the plants\n")
        XCTAssertEqual(try run(path, "remove", "1"), "removed: Feed the cat\n")
        XCTAssertEqual(try run(path, "list"), "1 [ ] Water the plants\n")
    }

    func testTheTaskListSaysWhatIsWrong() throws {
        let path = scratch.file("tasks.realm")
        XCTAssertEqual(try run(path, "done", "7", code: 1), "TaskList: there is no task 7: the list has 0\n")
        XCTAssertTrue(try run(path, "sing", code: 64).hasPrefix("usage: TaskList FILE add TITLE\n"))
        XCTAssertTrue(try run(path, "done", "first", code: 64).contains("'first' is no number"))
    }

    func testASecondTerminalSeesEachChangeWithItsPlace() throws {
        let path = scratch.file("tasks.realm")
        try run(path, "add", "Feed the cat")
        try run(path, "add", "Water the plants")
        let watcher = try ChildProcess(product: "TaskList", [path, "watch"])
        func expect(_ line: String, at testLine: UInt = #line) {
            XCTAssertEqual(watcher.readLine(seconds: 20), line, watcher.errors, line: testLine)
        }
        expect("2 tasks")
        expect("1 [ ] Feed the cat")
        expect("2 [ ] Water the plants")
        try run(path, "add", "Write to Ida")
        expect("+ 3 [ ] Write to Ida")
        try run(path, "done", "2")
        expect("~ 2 [x] Water the plants")
        try run(path, "remove", "1")
        expect("- 1 [ ] Feed the cat")
        try run(path, "done", "2")
        expect("~ 2 [x] Write to Ida")
        watcher.signal(SIGTERM)
        XCTAssertEqual(watcher.waitForEnd(), -SIGTERM)
        XCTAssertEqual(try run(path, "list"), "1 [x] Water the plants\n2 [x] Write to Ida\n")
    }

    /// The transcripts of the README, with another place for the file.
    func testTheReadmeShowsWhatHappens() throws {
        let path = scratch.file("readme.realm"), start = "$ .build/debug/TaskList /tmp/tasks.realm "
        let lines = try String(contentsOf: Fixtures.packageRoot.appendingPathComponent("README.md"), encoding: .utf8).components(
            separatedBy: "\n")
        var watcher: ChildProcess?
        var heard: [String] = []
        var commandCount = 0, index = 0
        /// The lines up to the next prompt or the end of the block.
        func answer() -> [String] {
            var answer: [String] = []
            while index < lines.count, !lines[index].hasPrefix("$ "), !lines[index].hasPrefix("```") {
                answer.append(lines[index])
                index += 1
            }
            return answer
        }
        while index < lines.count {
            let line = lines[index]
            index += 1
            if line.hasPrefix(start) {
                let command = line.dropFirst(start.count).split(separator: " ").map(String.init)
                let child = try ChildProcess(product: "TaskList", [path] + command)
                commandCount += 1
                if command == ["watch"] {
                    for expected in answer() { XCTAssertEqual(child.readLine(seconds: 20), expected, child.errors) }
                    watcher = child
                } else {
                    XCTAssertEqual(child.waitForEnd(seconds: 20), 0, child.errors)
                    let printed = child.output
                    XCTAssertEqual(printed, answer().map { $0 + "\n" }.joined(), line)
                    // What the watcher says of it, so that it does not hear of two at once.
                    if let watcher, let said = watcher.readLine(seconds: 20) { heard.append(said) }
                }
            } else if line.hasPrefix("while the first shows") {
                index += 2
                XCTAssertEqual(heard, answer())
            }
        }
        XCTAssertEqual(commandCount, 5)
        XCTAssertEqual(heard.count, 4)
    }
}
