// A life of a service, compressed to what happens in it: one file is committed to again and again, a service mirrors it to many
// places, all of them are stopped, killed and started again, a disk is full for a long time. What it costs is looked at all the
// while, and in the end every copy is the same.
//
//   Soak [--commits N] [--mirrors N] [--directory D] [--rounds N] [--seed N] [--nice N] [--full-disks N]
//   Soak --pace [--rounds N] ...            only what a mirror costs those who write
//
// The exit status is 1 where something was not as it must be; `Scripts/soak` is the long form.
import Foundation
import Glibc

var plan = SoakPlan()
var arguments = ArraySlice(CommandLine.arguments.dropFirst())

func usage(_ message: String) -> Never {
    FileHandle.standardError.write(Data("Soak: \(message)\n".utf8))
    exit(64)
}

if arguments.first == "writer" { exit(try SoakWriter.run()) }
@MainActor func number() -> Int {
    guard let text = arguments.popFirst(), let value = Int(text), value >= 0 else { usage("an option lacks its number") }
    return value
}
while let argument = arguments.popFirst() {
    switch argument {
    case "--commits": plan.commits = number()
    case "--mirrors": plan.mirrors = max(1, number())
    case "--rounds": plan.rounds = number()
    case "--seed": plan.seed = UInt64(number())
    case "--nice": plan.niceness = number()
    case "--full-disks": plan.fullDisks = max(1, number())
    case "--pace": plan.onlyPace = true
    case "--directory":
        guard let path = arguments.popFirst() else { usage("--directory lacks its path") }
        plan.parent = path
    default: usage("unknown argument \(argument)")
    }
}

/// Everything is cleared away when it returns.
func run(_ plan: SoakPlan) -> Int32 {
    do { return try Soak(plan).run() ? 0 : 1 } catch {
        FileHandle.standardError.write(Data("Soak: \(error)\n".utf8))
        return 1
    }
}
exit(run(plan))
