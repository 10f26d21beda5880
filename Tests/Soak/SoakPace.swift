import Foundation
import Glibc
import TestSupport

/// What mirrors cost those who write: the same commits, by one process, to files that differ only in who mirrors them, in short
/// blocks by turns, so that whatever else happens on the machine happens to all of them.
///
/// What counts is the median, over all rounds, of the ratio of two 99th percentiles of one round: a round in which something else
/// took the machine is one of many. A second file without a mirror tells how exact that is.
struct SoakPace {
    private let plan: SoakPlan
    private let folder: String
    private var random: SplitMix

    private struct Mode {
        let name: String
        let isSynced: Bool
        /// Microseconds after each commit.
        let pause: Int
        /// How long a block takes, in milliseconds.
        let blockMilliseconds: Int
    }
    private static let modes = [
        Mode(name: "synced, 1 ms apart", isSynced: true, pause: 1000, blockMilliseconds: 2000),
        Mode(name: "unsynced, 1 ms apart", isSynced: false, pause: 1000, blockMilliseconds: 2000),
        Mode(name: "unsynced, one after the other", isSynced: false, pause: 0, blockMilliseconds: 500),
    ]

    private struct Kind {
        let name: String
        let mirrors: Int
        /// The replicas lie on the disk of the source, else in memory.
        var isOnDisk = false
    }
    private let kinds: [Kind]

    init(_ plan: SoakPlan, _ folder: String) throws {
        self.plan = plan
        self.folder = "\(folder)/pace"
        random = SplitMix(seed: plan.seed)
        kinds = [
            Kind(name: "without a mirror", mirrors: 0),
            Kind(name: "another one without", mirrors: 0),
            Kind(name: "one mirror", mirrors: 1),
            Kind(name: "one, on the same disk", mirrors: 1, isOnDisk: true),
            Kind(name: "\(plan.mirrors) mirrors", mirrors: plan.mirrors),
        ]
        try FileManager.default.createDirectory(atPath: self.folder, withIntermediateDirectories: true)
    }

    private func file(_ mode: Int, _ kind: Int) -> String { "\(folder)/file-\(mode)-\(kind).realm" }

    mutating func run() throws {
        let memory =
            (FileManager.default.isWritableFile(atPath: "/dev/shm") ? "/dev/shm" : NSTemporaryDirectory())
            + "/soak-pace-\(getpid())"
        try FileManager.default.createDirectory(atPath: memory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: memory) }
        try configuration(memory).write(toFile: "\(folder)/service.conf", atomically: true, encoding: .utf8)
        let writer = try SoakWriterProcess()
        for mode in Self.modes.indices {
            for kind in kinds.indices { _ = try pace(writer, mode, kind, milliseconds: 20) }
        }
        let service = try SoakProcess(
            "realm-sync", ["run", "--config", "\(folder)/service.conf"], log: "\(folder)/service.log", niceness: plan.niceness)
        let limit = Date(timeIntervalSinceNow: 60)
        while !isEqual(), limit.timeIntervalSinceNow > 0 { usleep(50_000) }
        say("\nwhat mirrors cost those who write: \(plan.rounds) rounds, replicas in \(memory) and in \(folder)")
        var times = Self.modes.map { _ in kinds.map { _ in [[Int64]]() } }
        for _ in 0..<plan.rounds {
            for mode in Self.modes.indices {
                for kind in shuffled() {
                    waitForQuiet(service)
                    times[mode][kind].append(try pace(writer, mode, kind, milliseconds: Self.modes[mode].blockMilliseconds))
                }
            }
        }
        for mode in Self.modes.indices { report(mode, times[mode]) }
        try service.end(SIGTERM)
        if writer.finish() != 0 { throw SoakError("the writer has not ended well") }
    }

    private func configuration(_ memory: String) -> String {
        var text = "[service]\nsocket = \(folder)/status\n"
        for mode in Self.modes.indices {
            for kind in kinds.indices {
                for copy in 0..<kinds[kind].mirrors {
                    text += "[mirror m\(mode)-\(kind)-\(copy)]\nsource = \(file(mode, kind))\n"
                    text += "destination = \(kinds[kind].isOnDisk ? folder : memory)/copy-\(mode)-\(kind)-\(copy).realm\n"
                }
            }
        }
        return text
    }

    // MARK: Figures

    /// - Parameter times: of each kind, in each round.
    private func report(_ mode: Int, _ times: [[[Int64]]]) {
        let commits = times.map { $0.reduce(0) { $0 + $1.count } }.min() ?? 0
        say("  \(Self.modes[mode].name): \(commits) commits of each kind or more")
        for kind in kinds.indices {
            let percentiles = [50, 95, 99].map { percent in
                "p\(percent) \(fixed(median(times[kind].map { percentile($0, percent) }), 1)) us"
            }
            var line =
                "    \(kinds[kind].name.padding(toLength: 22, withPad: " ", startingAt: 0)) \(percentiles.joined(separator: "   "))"
            if kind > 0 {
                let ratios = (0..<plan.rounds).map { percentile(times[kind][$0], 99) / max(0.001, percentile(times[0][$0], 99)) }
                    .sorted()
                let all = percentile(times[kind].flatMap { $0 }, 99) / max(0.001, percentile(times[0].flatMap { $0 }, 99))
                line += "   p99 \(change(median(ratios))) (half of the rounds \(change(ratios[ratios.count / 4])) to "
                line += "\(change(ratios[ratios.count * 3 / 4])); all as one \(change(all)))"
            }
            say(line)
        }
    }

    private func median(_ values: [Double]) -> Double {
        let sorted = values.sorted(), n = sorted.count
        return n == 0 ? 0 : (sorted[(n - 1) / 2] + sorted[n / 2]) / 2
    }

    private func change(_ ratio: Double) -> String { "\(ratio >= 1 ? "+" : "")\(fixed((ratio - 1) * 100, 1)) %" }

    private func fixed(_ value: Double, _ digits: Int) -> String { String(format: "%.\(digits)f", value) }

    // MARK: The work

    private mutating func shuffled() -> [Int] {
        var order = Array(kinds.indices)
        for i in stride(from: order.count - 1, to: 0, by: -1) { order.swapAt(i, random.below(i + 1)) }
        return order
    }

    private func pace(_ writer: SoakWriterProcess, _ mode: Int, _ kind: Int, milliseconds: Int) throws -> [Int64] {
        let what = Self.modes[mode]
        return try writer.order("pace \(milliseconds) \(what.pause) \(what.isSynced ? 1 : 0) \(file(mode, kind))")
            .split(separator: " ").compactMap { Int64($0) }
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
