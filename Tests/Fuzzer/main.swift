// Damages good files in ways determined by (seed, case) and reads them with everything that reads files.
//
//   Fuzzer --seed 1 --count 200000 --jobs 2     many cases, in child processes; the exit status is 1 where one failed
//   Fuzzer --seed 1 --case 4711                 one case in this process, with what it does to the file
//   Fuzzer --seed 1 --case 4711 --minimise      only the changes that are needed to fail; writes the file to fuzz-SEED-CASE.realm
//   Fuzzer --generator exchange ...             another kind of damage: bytes (the usual one), exchange, resize (TreeDamage.swift)
//   Fuzzer --verify FILE ...                    what the verifier says about files
//
// --fixtures DIRECTORY, any number of times, instead of the given files of the package.
import Foundation
import SharedStore

func verifyFiles(_ paths: some Sequence<String>) throws -> Bool {
    var isSound = true
    for path in paths {
        let data = try Data(contentsOf: URL(fileURLWithPath: path))
        let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: data.count, alignment: 16)
        defer { bytes.deallocate() }
        data.withUnsafeBytes { bytes.copyBytes(from: $0) }
        let report = try Verifier.verify(file: bytes)
        isSound = isSound && report.isSound
        print(
            "\(URL(fileURLWithPath: path).lastPathComponent): \(report.errorCount) errors, \(report.warningCount) warnings, "
                + "\(report.nodeCount) nodes, \(report.objectCount) objects, \(report.linkCount) links, \(report.indexEntryCount) index entries, "
                + "\(report.freeByteCount) bytes free, \(report.leakedByteCount) leaked, \(report.elapsedNanoseconds / 1000) us")
        for finding in report.findings { print("    \(finding)") }
    }
    return isSound
}

func showCase(_ index: Int, _ settings: Supervisor.Settings, minimise: Bool) throws -> Bool {
    let fuzzing = try Fuzzing(seed: settings.seed, directories: settings.directories, generator: settings.generator)
    let mutator = fuzzing.mutated(index)
    print("\(mutator.fixture.name):\n  " + mutator.steps.joined(separator: "\n  "))
    fflush(nil)
    if minimise {
        let path = "fuzz-\(settings.seed)-\(index).realm"
        try Data(mutator.bytes).write(to: URL(fileURLWithPath: path))
        print("the whole case: \(path)")
        // Cases have four changes at most: every selection is tried, the smallest first. A crash ends this, too; what was tried
        // last is printed.
        for only in (1..<16).sorted(by: { $0.nonzeroBitCount < $1.nonzeroBitCount }) {
            let changes = Set((0..<4).filter { only >> $0 & 1 != 0 })
            let smaller = fuzzing.mutated(index, only: changes)
            print("trying changes \(changes.sorted()):\n  " + smaller.steps.joined(separator: "\n  "))
            try Data(smaller.bytes).write(to: URL(fileURLWithPath: path))
            fflush(nil)
            if let failure = fuzzing.run(index, only: changes) {
                print("fails: \(failure)")
                return false
            }
        }
        return true
    }
    let outcome = try Exercise.run(mutator.bytes)
    for finding in outcome.report.findings { print("  \(finding)") }
    print(
        "  exported \(outcome.exportedByteCount.map { "\($0) bytes" } ?? "nothing")\(outcome.readError.map { ": \($0)" } ?? "")")
    print("  slowest: \(outcome.slowest.step), \(outcome.slowest.nanoseconds / 1000) us")
    return true
}

var settings = Supervisor.Settings()
var single: Int?
var minimise = false
var child: String?
var arguments = ArraySlice(CommandLine.arguments.dropFirst())
func usage(_ message: String) -> Never {
    FileHandle.standardError.write(Data("Fuzzer: \(message)\n".utf8))
    exit(64)
}
@MainActor func value<T>(_ parse: (String) -> T?) -> T {
    guard let text = arguments.popFirst(), let value = parse(text) else { usage("an option lacks its value") }
    return value
}
while let argument = arguments.popFirst() {
    switch argument {
    case "--seed": settings.seed = value { UInt64($0) }
    case "--generator": settings.generator = value { Generator(rawValue: $0) }
    case "--first": settings.first = value { Int($0) }
    case "--count": settings.count = value { Int($0) }
    case "--jobs": settings.jobs = value { Int($0) }
    case "--case": single = value { Int($0) }
    case "--minimise": minimise = true
    case "--child": child = value { $0 }
    case "--fixtures": settings.directories.append(value { $0 })
    case "--verify": exit(try verifyFiles(arguments) ? 0 : 1)
    default: usage("unknown argument \(argument)")
    }
}
if settings.directories.isEmpty {
    let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    settings.directories = [
        "core14",
        "older",
    ].map { root.appendingPathComponent("Fixtures/\($0)").path }.filter { FileManager.default.fileExists(atPath: $0) }
}
let supervisor = Supervisor(settings: settings)
if let child { try supervisor.runAsChild(progressPath: child) }
if let single { exit(try showCase(single, settings, minimise: minimise) ? 0 : 1) }
exit(try supervisor.run() == 0 ? 0 : 1)
