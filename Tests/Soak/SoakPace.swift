import Foundation
import Glibc

/// What mirrors cost those who write: the same commits, by one process, to a file without a mirror, one with one mirror and one
/// with many, in short blocks by turns, so that whatever else happens on the machine happens to all of them.
///
/// The replicas lie on another disk, in memory: a disk that two have to share is slower for both whoever they are.
struct SoakPace {
    private let plan: SoakPlan
    private let folder: String
    private var random: SoakRandom

    private struct Mode {
        let name: String
        let isSynced: Bool
        let pause: Int
        /// Quick commits are many, so that the time in which the service wakes up is a small part of theirs.
        var factor = 1
    }
    private static let modes = [
        Mode(name: "synced, 1 ms apart", isSynced: true, pause: 1000),
        Mode(name: "unsynced, 1 ms apart", isSynced: false, pause: 1000),
        Mode(name: "unsynced, one after the other", isSynced: false, pause: 0, factor: 20),
    ]
    private static let kinds = ["without a mirror", "with one mirror", "with many mirrors"]

    init(_ plan: SoakPlan, _ folder: String) throws {
        self.plan = plan
        self.folder = "\(folder)/pace"
        random = SoakRandom(seed: plan.seed)
        try FileManager.default.createDirectory(atPath: self.folder, withIntermediateDirectories: true)
    }

    private func file(_ mode: Int, _ kind: Int) -> String { "\(folder)/file-\(mode)-\(kind).realm" }

    mutating func run() throws {
        let memory =
            (FileManager.default.isWritableFile(atPath: "/dev/shm") ? "/dev/shm" : NSTemporaryDirectory())
            + "/soak-pace-\(getpid())"
        try FileManager.default.createDirectory(atPath: memory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: memory) }
        var text = "[service]\nsocket = \(folder)/status\n"
        for mode in Self.modes.indices {
            for kind in 1...2 {
                for copy in 0..<(kind == 1 ? 1 : plan.mirrors) {
                    text +=
                        "[mirror m\(mode)-\(kind)-\(copy)]\nsource = \(file(mode, kind))\ndestination = \(memory)/copy-\(mode)-\(kind)-\(copy).realm\n"
                }
            }
        }
        try text.write(toFile: "\(folder)/service.conf", atomically: true, encoding: .utf8)
        let writer = try SoakWriterProcess()
        for (mode, what) in Self.modes.enumerated() { _ = try pace(writer, mode, what, 20, [0, 1, 2]) }
        let service = try SoakProcess(
            "realm-sync", ["run", "--config", "\(folder)/service.conf"], log: "\(folder)/service.log", niceness: plan.niceness)
        let limit = Date(timeIntervalSinceNow: 60)
        while !isEqual(), limit.timeIntervalSinceNow > 0 { usleep(50_000) }
        say(
            "\nwhat mirrors cost those who write: \(plan.rounds) rounds of \(plan.commitsInRound) commits, many = \(plan.mirrors)"
        )
        for (mode, what) in Self.modes.enumerated() {
            var times: [[Int64]] = [[], [], []]
            for _ in 0..<plan.rounds {
                for kind in shuffled() {
                    waitForQuiet(service)
                    times[kind] += try pace(writer, mode, what, plan.commitsInRound * what.factor, [kind])
                }
            }
            say("  \(what.name)")
            for kind in Self.kinds.indices {
                let figures = [50, 95, 99].map { percent in
                    let value = percentile(times[kind], percent), base = percentile(times[0], percent)
                    return "p\(percent) \(fixed(value, 1)) us"
                        + (kind == 0 ? "" : " (\(value >= base ? "+" : "")\(fixed((value / base - 1) * 100, 1)) %)")
                }
                say(
                    "    \(Self.kinds[kind].padding(toLength: 18, withPad: " ", startingAt: 0)) \(figures.joined(separator: "   "))"
                )
            }
        }
        try service.end(SIGTERM)
        if writer.finish() != 0 { throw SoakError("the writer has not ended well") }
    }

    private mutating func shuffled() -> [Int] {
        var kinds = [0, 1, 2]
        for i in [2, 1] { kinds.swapAt(i, random.next(below: i + 1)) }
        return kinds
    }

    private func fixed(_ value: Double, _ digits: Int) -> String { String(format: "%.\(digits)f", value) }

    private func pace(_ writer: SoakWriterProcess, _ mode: Int, _ what: Mode, _ count: Int, _ kinds: [Int]) throws -> [Int64] {
        let paths = kinds.map { file(mode, $0) }.joined(separator: " ")
        return try writer.order("pace \(count) \(what.pause) \(what.isSynced ? 1 : 0) \(paths)").split(separator: " ").compactMap
        { Int64($0) }
    }

    private func isEqual() -> Bool {
        guard let (code, output) = try? SoakProcess.run("realm-sync", ["status", "--socket", "\(folder)/status", "--json"]) else {
            return false
        }
        return code == 0 && !output.contains("\"copying\"") && !output.contains("\"starting\"")
    }

    /// Until the service has nothing to do.
    private func waitForQuiet(_ service: SoakProcess) {
        var before = ProcessFigures(service.identifier).processorMilliseconds
        for _ in 0..<100 {
            usleep(30_000)
            let now = ProcessFigures(service.identifier).processorMilliseconds
            if now == before { return }
            before = now
        }
    }
}
