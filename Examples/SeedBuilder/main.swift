// Builds the file that an app ships with, in a build job:
//
//     SeedBuilder phrases.json phrases.realm --schema-version 3
import Foundation

func run(_ arguments: [String]) throws -> Int32 {
    var operands: [String] = [], schemaVersion: UInt64 = 0
    var rest = arguments[...]
    while let argument = rest.popFirst() {
        if argument == "--schema-version" {
            guard let text = rest.popFirst(), let number = UInt64(text), number < .max else {
                return complain("--schema-version needs a number")
            }
            schemaVersion = number
        } else {
            operands.append(argument)
        }
    }
    guard operands.count == 2 else { return complain("usage: SeedBuilder INPUT.json OUTPUT.realm [--schema-version N]") }
    let builder = SeedBuilder(
        input: URL(fileURLWithPath: operands[0]), output: URL(fileURLWithPath: operands[1]), schemaVersion: schemaVersion)
    let summary = try builder.build()
    print("\(operands[1]): \(summary.topicCount) topics, \(summary.phraseCount) phrases, \(summary.byteCount) bytes, sound")
    return 0
}

func complain(_ text: String) -> Int32 {
    FileHandle.standardError.write(Data((text + "\n").utf8))
    return 64
}

do {
    exit(try run(Array(CommandLine.arguments.dropFirst())))
} catch {
    FileHandle.standardError.write(Data("SeedBuilder: \(error)\n".utf8))
    exit(1)
}
