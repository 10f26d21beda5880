import Foundation
import Glibc
import TestSupport

/// One run: the processes, the places, and what is wrong so far.
final class Soak {
    let plan: SoakPlan
    let folder: String
    let source: String
    private let targets: [SoakTarget]
    private let port: Int
    private var random: SplitMix
    private var service: SoakProcess?
    private var server: SoakProcess?
    private var writer: SoakWriterProcess?
    /// Has the file open all the time, so that the session is never begun anew as a synced one, by a service that comes first.
    private var anchor: SoakWriterProcess?
    private var samples: [Sample] = []
    private var troubles: [String] = []
    /// A small disk, where one can be mounted.
    private let smallDisk: String
    private var hasSmallDisk = false
    private var restarts = 0
    private var restartedWhileFull = false

    private struct Sample {
        var phase: SoakPlan.Phase, round: Int
        var service: ProcessFigures, server: ProcessFigures
        var source: Int, targets: Int, archives: Int, scratch: Int
    }

    init(_ plan: SoakPlan) throws {
        self.plan = plan
        folder = "\(plan.parent)/soak-\(getpid())"
        source = "\(folder)/source/app.realm"
        smallDisk = "\(folder)/small-disk"
        random = SplitMix(seed: plan.seed)
        targets = SoakTarget.make(plan.mirrors, folder: "\(folder)/targets", served: "\(folder)/served")
        port = try Self.freePort()
        for name in ["source", "targets", "served", "small-disk"] {
            try FileManager.default.createDirectory(atPath: "\(folder)/\(name)", withIntermediateDirectories: true)
        }
    }

    deinit {
        service = nil
        server = nil
        writer = nil
        anchor = nil
        if hasSmallDisk { umount2(smallDisk, Int32(MNT_DETACH)) }
        try? FileManager.default.removeItem(atPath: folder)
    }

    /// A port that nobody has now.
    private static func freePort() throws -> Int {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        var address = sockaddr_in(), size = socklen_t(MemoryLayout<sockaddr_in>.size)
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        let code = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(descriptor, $0, size) == 0 && getsockname(descriptor, $0, &size) == 0
            }
        }
        if !code { throw SoakError("no port to be had") }
        return Int(UInt16(bigEndian: address.sin_port))
    }

    func run() throws -> Bool {
        say("soak: \(plan.commits) commits, \(plan.mirrors) mirrors, seed \(plan.seed), in \(folder)")
        if !plan.onlyPace {
            try prepare()
            try work()
            try settle()
            try compareAll()
            try checkFlatness()
            try stopAll()
        }
        if plan.rounds > 0 {
            var pace = try SoakPace(plan, folder)
            try pace.run()
        }
        for trouble in troubles { say("WRONG: \(trouble)") }
        say(troubles.isEmpty ? "soak: passed" : "soak: failed")
        return troubles.isEmpty
    }

    // MARK: Processes

    private func prepare() throws {
        hasSmallDisk = mount("tmpfs", smallDisk, "tmpfs", 0, "size=64m") == 0
        if !hasSmallDisk { say("no small disk can be mounted here: \(String(cString: strerror(errno))); no disk will be full") }
        try "soak:\(String(repeating: "5a", count: 32))\n".write(toFile: "\(folder)/secret", atomically: true, encoding: .utf8)
        chmod("\(folder)/secret", 0o600)
        var text =
            "[service]\nsocket = \(folder)/status\nlog-level = info\n\n[defaults]\nretry-min = 100ms\nretry-max = 1s\npin-limit = 1h\nkeep = 500\nremoval-delay = 0\n"
        for target in targets {
            switch target.kind {
            case .folder: text += "[mirror \(target.name)]\nsource = \(source)\ndestination = \(target.path)\n"
            case .archive: text += "[archive \(target.name)]\nsource = \(source)\narchive = \(target.path)\n"
            case .wire:
                let name = (target.path as NSString).lastPathComponent
                text +=
                    "[mirror \(target.name)]\nsource = \(source)\ndestination = realm://127.0.0.1:\(port)/\(name)\npsk-file = \(folder)/secret\n"
            }
        }
        if hasSmallDisk { text += "[mirror small]\nsource = \(source)\ndestination = \(smallDisk)/copy.realm\n" }
        try text.write(toFile: "\(folder)/service.conf", atomically: true, encoding: .utf8)
        try startWriter()
        _ = try commit(10)
        anchor = try SoakWriterProcess()
        _ = try anchor?.order("version \(source)")
        try startServer()
        try startService()
    }

    private func startService() throws {
        service = try SoakProcess(
            "realm-sync", ["run", "--config", "\(folder)/service.conf"], log: "\(folder)/service.log", niceness: plan.niceness)
    }

    private func startServer() throws {
        server = try SoakProcess(
            "realm-sync",
            ["serve", "--listen", "127.0.0.1:\(port)", "--root", "\(folder)/served", "--psk-file", "\(folder)/secret"],
            log: "\(folder)/server.log", niceness: plan.niceness)
    }

    private func startWriter() throws { writer = try SoakWriterProcess() }

    private func stopAll() throws {
        try service?.end(SIGTERM)
        try server?.end(SIGTERM)
        service = nil
        server = nil
        if writer?.finish() != 0 { troubles.append("the writer has not ended well") }
        writer = nil
        if anchor?.finish() != 0 { troubles.append("the anchor has not ended well") }
        anchor = nil
    }

    private func commit(_ count: Int) throws -> [Int64] {
        try order("run \(source) \(count) 0").split(separator: " ").dropFirst().compactMap { Int64($0) }
    }

    @discardableResult
    private func order(_ command: String) throws -> Substring {
        guard let writer else { throw SoakError("there is no writer") }
        return try writer.order(command)
    }

    // MARK: The work

    private func work() throws {
        var done = 0, phase = SoakPlan.Phase.warmUp, round = 0
        var times: [Int64] = []
        let begin = Date()
        say(
            "   commits  phase       commits/s   p99 us | service: MB  fds  threads  cpu s | server: MB  fds | source MB  targets MB  archives MB  scratch MB"
        )
        while done < plan.commits {
            let (next, nextRound) = plan.phase(done)
            if next != phase { try enter(next, from: phase, nextRound) }
            (phase, round) = (next, nextRound)
            let count = min(plan.piece, plan.commits - done), pieceBegin = Date()
            times = try commit(count)
            done += count
            try look(done, phase, round, Double(count) / -pieceBegin.timeIntervalSinceNow, percentile(times, 99))
            if phase == .restarts { try disturb() }
            if phase == .fullDisk, !restartedWhileFull, plan.phase(done + plan.piece).phase == .peace {
                // Whoever begins with a full disk must cope as well.
                restartedWhileFull = true
                restarts += 1
                try service?.end(SIGKILL)
                try startService()
            }
        }
        if phase == .fullDisk { try enter(.peace, from: phase, round) }
        say("\(done) commits in \(Int(-begin.timeIntervalSinceNow)) s, \(restarts) restarts")
    }

    private func enter(_ phase: SoakPlan.Phase, from old: SoakPlan.Phase, _ round: Int) throws {
        let filler = "\(smallDisk)/filler"
        if old == .fullDisk, hasSmallDisk {
            var told = ""
            let limit = Date(timeIntervalSinceNow: 120)
            while !told.contains("space"), limit.timeIntervalSinceNow > 0 {
                told = try toldBySmall()
                if !told.contains("space") { usleep(50_000) }
            }
            if told.contains("space") {
                say("the full disk: \(told)")
            } else {
                troubles.append("the full disk is not told of: \(told)")
            }
            unlink(filler)
            if round == 0 { try order("shrink \(source)") }
        }
        if phase == .fullDisk, hasSmallDisk {
            // The copy is there when the disk becomes full.
            try settle()
            // The first time the file must grow and cannot; later it is large enough, so it is gone, and a whole image finds no
            // room.
            if round > 0 {
                for name in ["copy.realm", "copy.realm.lock", "copy.realm.note"] { unlink("\(smallDisk)/\(name)") }
                try? FileManager.default.removeItem(atPath: "\(smallDisk)/copy.realm.management")
            }
            fill(filler)
            if round == 0 { try order("grow \(source) 4000000") }
            // Who has the removed copy open gives its room back only now.
            let limit = Date(timeIntervalSinceNow: 60)
            while round > 0, limit.timeIntervalSinceNow > 0, try !toldBySmall().contains("space") {
                usleep(200_000)
                fill(filler)
            }
        }
    }

    /// Takes all the room that there is.
    private func fill(_ path: String) {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND, 0o600)
        defer { close(descriptor) }
        let block = [UInt8](repeating: 0, count: 65536)
        while write(descriptor, block, block.count) > 0 {}
        while write(descriptor, block, 512) > 0 {}
    }

    /// What was the last error may be that of the last time.
    private func toldBySmall() throws -> String {
        let state = try streams()["small"] ?? [:]
        return ["state", "waitsFor"].compactMap { state[$0] as? String }.joined(separator: ", ")
    }

    /// Stops or kills somebody, and starts him again.
    private func disturb() throws {
        restarts += 1
        let signal = random.below(2) == 0 ? SIGTERM : SIGKILL
        switch random.below(4) {
        case 0, 1:
            try service?.end(signal)
            try startService()
        case 2:
            try server?.end(signal)
            try startServer()
        default:
            if signal == SIGKILL {
                writer?.kill()
            } else if writer?.finish() != 0 {
                troubles.append("the writer has not ended well")
            }
            try startWriter()
        }
    }

    private func look(_ done: Int, _ phase: SoakPlan.Phase, _ round: Int, _ rate: Double, _ p99: Double) throws {
        guard let service, let server else { return }
        if !service.isRunning || !server.isRunning {
            throw SoakError("service or server has ended:\n" + service.text.suffix(2000) + server.text.suffix(2000))
        }
        let isScratch: (String) -> Bool = { $0.contains(".part") || $0.contains(".tmp") || $0.contains(".replaced-") }
        let places = ["targets", "served"].map { "\(folder)/\($0)" }
        let sample = Sample(
            phase: phase, round: round, service: ProcessFigures(service.identifier), server: ProcessFigures(server.identifier),
            source: folderUse("\(folder)/source").bytes,
            targets: places.reduce(0) { $0 + folderUse($1, where: { !$0.contains(".archive") && !isScratch($0) }).bytes },
            archives: folderUse("\(folder)/targets", where: { $0.contains(".archive") }).bytes,
            scratch: places.reduce(0) { $0 + folderUse($1, where: isScratch).bytes })
        samples.append(sample)
        var line =
            "\(right(done, 10))  \(phase.rawValue.padding(toLength: 10, withPad: " ", startingAt: 0))\(right(Int(rate), 11))\(right(tenths(p99), 9)) |"
        line += right(tenths(Double(sample.service.residentKilobytes) / 1024), 12) + right(sample.service.descriptors, 5)
        line += right(sample.service.threads, 9) + right(tenths(Double(sample.service.processorMilliseconds) / 1000), 7) + " |"
        line += right(tenths(Double(sample.server.residentKilobytes) / 1024), 11) + right(sample.server.descriptors, 5) + " |"
        for bytes in [sample.source, sample.targets, sample.archives, sample.scratch] {
            line += right(tenths(Double(bytes) / 1_048_576), 11)
        }
        say(line)
    }

    private func right(_ value: some CustomStringConvertible, _ width: Int) -> String {
        let text = value.description
        return String(repeating: " ", count: max(1, width - text.count)) + text
    }

    private func tenths(_ value: Double) -> Double { (value * 10).rounded() / 10 }

    // MARK: The end

    private func streams() throws -> [String: [String: Any]] {
        let (_, output) = try SoakProcess.run("realm-sync", ["status", "--socket", "\(folder)/status", "--json"])
        let object = (try? JSONSerialization.jsonObject(with: Data(output.utf8))) as? [String: Any]
        let list = object?["streams"] as? [[String: Any]] ?? []
        return Dictionary(list.map { ($0["name"] as? String ?? "", $0) }) { $1 }
    }

    /// Waits until every target is where the source is.
    private func settle() throws {
        let version = Int(try order("version \(source)"))
        let begin = Date(), limit = Date(timeIntervalSinceNow: 300)
        var late: [String] = []
        while limit.timeIntervalSinceNow > 0 {
            let found = try streams()
            late = found.filter { $1["version"] as? Int != version }.map { "\($0): \($1)" }
            if late.isEmpty && found.count >= targets.count {
                say("all at version \(version ?? 0) after \(tenths(-begin.timeIntervalSinceNow)) s")
                return
            }
            usleep(50_000)
        }
        troubles.append("not at version \(version ?? 0) after 300 s: \(late.joined(separator: "; "))")
    }

    private func compareAll() throws {
        func expect(_ arguments: [String], _ what: String) throws {
            let (code, output) = try SoakProcess.run("realm-sync", arguments)
            if code != 0 { troubles.append("\(what): \(arguments.joined(separator: " ")) says \(code): \(output)") }
        }
        try expect(["verify", source], "the source")
        for target in targets {
            if target.kind == .archive {
                try expect(["verify", target.path, "--scratch", folder], target.name)
                let restored = "\(folder)/restored.realm"
                try expect(["restore", target.path, restored], target.name)
                try expect(["compare", source, restored], target.name)
                for name in [restored, restored + ".lock", restored + ".note"] { unlink(name) }
                continue
            }
            try expect(["verify", target.path], target.name)
            try expect(["compare", source, target.path], target.name)
        }
        if hasSmallDisk { try expect(["compare", source, "\(smallDisk)/copy.realm"], "the copy on the small disk") }
        say("compared and verified: \(targets.count + (hasSmallDisk ? 1 : 0)) copies")
    }

    /// Compares the beginning and the end of the peaceful time, and what is left after each full disk: nothing may have grown.
    private func checkFlatness() throws {
        let last = samples.filter { $0.phase == .peace && $0.round == plan.fullDisks - 1 }
        let third = last.count / 3
        if third < 5 {
            say("too short to say whether something grows in peace")
        } else {
            compareFigures(
                "the beginning and the end of the last peaceful time", Array(last.prefix(third)), Array(last.suffix(third)))
        }
        let rounds = (0..<plan.fullDisks).map { round in samples.filter { $0.phase == .peace && $0.round == round } }
        guard let first = rounds.first, let end = rounds.last, rounds.count > 1, first.count > 2 else { return }
        compareFigures("the peace after the first full disk and that after the last of \(plan.fullDisks)", first, end)
        let medians = rounds.map { median($0) { $0.service.residentKilobytes / 1024 } }
        say("memory of the service in MB after each full disk: \(medians.map { "\($0)" }.joined(separator: ", "))")
    }

    private func median(_ samples: [Sample], _ value: (Sample) -> Int) -> Int {
        samples.isEmpty ? 0 : samples.map(value).sorted()[samples.count / 2]
    }

    private func compareFigures(_ what: String, _ first: [Sample], _ last: [Sample]) {
        say("\(what):")
        func compare(_ name: String, slack: Int, _ value: (Sample) -> Int) {
            let before = median(first, value), after = median(last, value)
            say("  \(name): \(before), then \(after)")
            if after > before + before / 4 + slack { troubles.append("\(name) has grown from \(before) to \(after)") }
        }
        compare("service, memory in KB", slack: 16_384) { $0.service.residentKilobytes }
        compare("service, descriptors", slack: 4) { $0.service.descriptors }
        compare("service, threads", slack: 2) { $0.service.threads }
        compare("server, memory in KB", slack: 16_384) { $0.server.residentKilobytes }
        compare("server, descriptors", slack: 4) { $0.server.descriptors }
        compare("source, bytes", slack: 1 << 20) { $0.source }
        compare("targets, bytes", slack: 4 << 20) { $0.targets }
        compare("archives, bytes", slack: 16 << 20) { $0.archives }
        compare("scratch, bytes", slack: 4 << 20) { $0.scratch }
    }
}

/// In microseconds.
func percentile(_ times: [Int64], _ percent: Int) -> Double {
    times.isEmpty ? 0 : Double(times.sorted()[min(times.count - 1, times.count * percent / 100)]) / 1000
}
