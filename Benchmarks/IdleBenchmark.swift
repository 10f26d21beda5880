import Glibc
import SharedStore
import SystemCalls

/// What a service costs while nothing is committed: processor time and wake-ups of all its threads, over some time.
enum IdleBenchmark {
    /// Seconds that are measured; the first ones after the start are not.
    private static let secondsMeasured: UInt32 = 60, secondsBefore: UInt32 = 12

    static func run(_ place: Workplace) throws {
        guard let program = neighbour("realm-sync") else {
            return print("\nidle: realm-sync is not beside this program; build it first")
        }
        printTitle("A service with nothing to do, for \(secondsMeasured) s")
        for count in [1, 50] {
            var text = "[service]\nsocket = \(place.file("status-\(count)"))\nlog-level = error\n[defaults]\ngrace = 0\n"
            for i in 0..<count {
                let source = place.file("idle-\(count)-\(i).realm")
                let store = try Store.open(source, ReadBenchmarks.options(.unsafe))
                try store.write { _ = try $0.editor.createTable("class_Item") }
                try store.close()
                text += "[mirror m\(i)]\nsource = \(source)\ndestination = \(place.file("copy-\(count)-\(i).realm"))\n"
            }
            let configuration = place.file("idle-\(count).conf")
            let descriptor = try SystemCalls.open(configuration, O_WRONLY | O_CREAT)
            try Array(text.utf8).withUnsafeBytes { try SystemCalls.write(descriptor, $0, at: 0, path: configuration) }
            SystemCalls.close(descriptor)
            let process = try spawn([program, "run", "--config", configuration])
            sleep(secondsBefore)
            let before = use(process)
            sleep(secondsMeasured)
            let after = use(process)
            kill(process, SIGTERM)
            var status: Int32 = 0
            waitpid(process, &status, 0)
            let perMinute = 60 / Double(secondsMeasured)
            printLine(
                "\(count) mirror\(count == 1 ? "" : "s"): processor time a minute",
                Double(after.ticks - before.ticks) / 100 * perMinute, "s")
            printLine(
                "  wake-ups a minute, of all threads", Double(after.switches - before.switches) * perMinute, "",
                "\(after.threads) threads")
        }
    }

    /// A program of the same build.
    private static func neighbour(_ name: String) -> String? {
        guard let resolved = realpath("/proc/self/exe", nil) else { return nil }
        defer { free(resolved) }
        let path = SystemCalls.parentDirectory(of: String(cString: resolved)) + "/" + name
        return access(path, X_OK) == 0 ? path : nil
    }

    private static func spawn(_ words: [String]) throws -> pid_t {
        var arguments = words.map { strdup($0) } + [nil]
        defer { arguments.forEach { free($0) } }
        var process: pid_t = 0
        let code = posix_spawn(&process, words[0], nil, nil, &arguments, environ)
        if code != 0 { throw SystemError(call: "posix_spawn", code: code, path: words[0]) }
        return process
    }

    /// Ticks of a hundredth of a second in user and system mode, and how often a thread has gone to sleep by itself.
    private static func use(_ process: pid_t) -> (ticks: Int, switches: Int, threads: Int) {
        let stat = text("/proc/\(process)/stat")
        let fields = stat.lastIndex(of: ")").map { stat[$0...].split(separator: " ") } ?? []
        let ticks = fields.count > 13 ? (Int(fields[12]) ?? 0) + (Int(fields[13]) ?? 0) : 0
        let threads = ((try? SystemCalls.names(inDirectory: "/proc/\(process)/task")) ?? []).filter { Int($0) != nil }
        var switches = 0
        for thread in threads {
            for line in text("/proc/\(process)/task/\(thread)/status").split(separator: "\n")
            where line.hasPrefix("voluntary_ctxt_switches:") {
                switches += line.split(whereSeparator: { $0 == "\t" || $0 == " " }).last.flatMap { Int($0) } ?? 0
            }
        }
        return (ticks, switches, threads.count)
    }

    private static func text(_ path: String) -> String {
        guard let descriptor = try? SystemCalls.open(path, O_RDONLY) else { return "" }
        defer { SystemCalls.close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 8192)
        let count = (try? bytes.withUnsafeMutableBytes { try SystemCalls.read(descriptor, into: $0, at: 0, path: path) }) ?? 0
        return String(decoding: bytes[..<count], as: UTF8.self)
    }
}
