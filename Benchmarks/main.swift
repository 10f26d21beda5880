// Prints what this package does on this machine, beside SQLite and LMDB doing the same work in the same run.
// Usage: Benchmarks [--objects N] [--directory D] [all|bulk|read|small|encryption|objects|mirror|idle|notice]...
// `loops` and `commits`, only on demand, do one thing a thousand times and nothing else: for profilers, which count instructions.
// `space`, on demand as well: what 100000 small commits make of a file.
// `operations GROUP DIRECTORY [COUNT]`: every operation of a group by itself, for programs that compare (see Operations).
import Glibc

func runBenchmarks() throws {
    var count = 1_000_000
    var directory = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
    var chosen: Set<String> = []
    var arguments = CommandLine.arguments.dropFirst()
    if arguments.first == "listen", let path = arguments.last { return try NoticeBenchmark.listen(path) }
    if arguments.first == "operations", arguments.count >= 3 {
        let words = Array(arguments)
        return try Operations.run(words[1], words[2], count: words.count > 3 ? Int(words[3]) ?? count : count)
    }
    while let argument = arguments.popFirst() {
        switch argument {
        case "--objects": count = arguments.popFirst().flatMap { Int($0) } ?? count
        case "--directory": directory = arguments.popFirst() ?? directory
        default: chosen.insert(argument)
        }
    }
    func wants(_ name: String) -> Bool { chosen.isEmpty || chosen.contains("all") || chosen.contains(name) }
    let place = try Workplace(directory)
    print("Figures of one run on one machine; compare the ratios, not the numbers.")
    if wants("bulk") || wants("read") {
        let path = try WriteBenchmarks.bulk(place, count: count)
        if wants("read") { try ReadBenchmarks.run(path, count: count) }
    }
    if wants("small") { try WriteBenchmarks.smallCommits(place) }
    if wants("encryption") { try EncryptionBenchmark.run(place, count: count) }
    if wants("objects") { try ObjectBenchmark.run(place, count: count) }
    if wants("mirror") { try MirrorBenchmark.run(place, count: count) }
    if wants("idle") { try IdleBenchmark.run(place) }
    if chosen.contains("loops") { try ObjectBenchmark.loops(place, count: count) }
    if chosen.contains("commits") { try WriteBenchmarks.commits(place, count: count) }
    if chosen.contains("space") { try SpaceBenchmark.run(place, count: count, commits: 100_000) }
    if wants("notice") { try NoticeBenchmark.run(place, program: "/proc/self/exe") }
}

try runBenchmarks()
