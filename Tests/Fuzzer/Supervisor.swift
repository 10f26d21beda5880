import Foundation
import Glibc

/// Runs the cases in child processes, so that a crash or a hang names its case and the others go on.
struct Supervisor {
    struct Settings {
        var seed: UInt64 = 1
        var generator = Generator.bytes
        var first = 0
        var count = 1000
        var jobs = 1
        var directories: [String] = []
        /// A case that takes longer is killed and reported.
        var secondsPerCase = 60.0
    }
    let settings: Settings

    /// A child, and the file in which it notes the case that it is at.
    private final class Child {
        let process: Process
        let progressPath: String
        let output: Pipe
        let end: Int
        var lastCase: Int
        var lastChange = Date()
        init(process: Process, progressPath: String, output: Pipe, first: Int, end: Int) {
            self.process = process
            self.progressPath = progressPath
            self.output = output
            self.end = end
            lastCase = first
        }
    }

    /// Returns the number of failures.
    func run() throws -> Int {
        let batch = max(1, min(2000, settings.count / max(1, settings.jobs)))
        var pending: [(first: Int, end: Int)] = stride(from: settings.first, to: settings.first + settings.count, by: batch).map {
            ($0, min($0 + batch, settings.first + settings.count))
        }
        pending.reverse()
        var children: [Child] = []
        var failures = 0
        let start = Date()
        let name = settings.generator.rawValue
        print(
            "\(name), seed \(settings.seed), cases \(settings.first) to \(settings.first + settings.count - 1), \(settings.jobs) at a time"
        )
        while !pending.isEmpty || !children.isEmpty {
            while children.count < settings.jobs, let next = pending.popLast() {
                children.append(try spawn(next.first, next.end))
            }
            usleep(50_000)
            for child in children {
                let position = progress(child)
                if position != child.lastCase {
                    child.lastCase = position
                    child.lastChange = Date()
                }
                let isHung = child.process.isRunning && Date().timeIntervalSince(child.lastChange) > settings.secondsPerCase
                if isHung { kill(child.process.processIdentifier, SIGKILL) }
                if child.process.isRunning && !isHung { continue }
                child.process.waitUntilExit()
                let text = String(decoding: child.output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
                if !text.isEmpty { print(text, terminator: "") }
                failures += text.split(separator: "\n").filter { $0.hasPrefix("FAILED") }.count
                let at = progress(child)
                if isHung || child.process.terminationReason == .uncaughtSignal || child.process.terminationStatus != 0 {
                    failures += 1
                    let cause = child.process.terminationReason == .uncaughtSignal ? "signal" : "status"
                    let how = isHung ? "hangs" : "dies of \(cause) \(child.process.terminationStatus)"
                    let again = "Fuzzer --generator \(name) --seed \(settings.seed) --case \(at)"
                    print("FAILED seed \(settings.seed) case \(at): \(how); again with: \(again)")
                    if at + 1 < child.end { pending.append((at + 1, child.end)) }
                }
                unlink(child.progressPath)
                children.removeAll { $0 === child }
                print("\(Int(Date().timeIntervalSince(start))) s: up to case \(at), \(failures) failures")
                fflush(nil)
            }
        }
        return failures
    }

    private func spawn(_ first: Int, _ end: Int) throws -> Child {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath()
        let path = NSTemporaryDirectory() + "fuzz-\(getpid())-\(first)"
        _ = FileManager.default.createFile(atPath: path, contents: Data(repeating: 0, count: 8))
        process.arguments =
            ["--child", path, "--generator", settings.generator.rawValue, "--seed", "\(settings.seed)"]
            + ["--first", "\(first)", "--count", "\(end - first)"]
            + settings.directories.flatMap { ["--fixtures", $0] }
        var environment = ProcessInfo.processInfo.environment
        environment["SWIFT_BACKTRACE"] = "enable=no"
        process.environment = environment
        let output = Pipe()
        process.standardOutput = output
        try process.run()
        return Child(process: process, progressPath: path, output: output, first: first, end: end)
    }

    private func progress(_ child: Child) -> Int {
        guard let data = FileManager.default.contents(atPath: child.progressPath), data.count >= 8 else { return child.lastCase }
        let value = Int(data.withUnsafeBytes { $0.loadUnaligned(as: Int64.self) })
        return max(value, child.lastCase)
    }

    /// What a child does: notes each case before it runs it, and prints what fails.
    func runAsChild(progressPath: String) throws -> Never {
        // More memory than any case needs: unbounded allocation ends in a crash that the parent reports.
        var limit = rlimit(rlim_cur: 4 << 30, rlim_max: 4 << 30)
        setrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit)
        let fuzzing = try Fuzzing(seed: settings.seed, directories: settings.directories, generator: settings.generator)
        let descriptor = open(progressPath, O_WRONLY)
        for index in settings.first..<(settings.first + settings.count) {
            var position = Int64(index)
            pwrite(descriptor, &position, 8, 0)
            if let failure = fuzzing.run(index) {
                print("FAILED \(settings.generator.rawValue) seed \(settings.seed) case \(index): \(failure)")
                fflush(nil)
            }
        }
        exit(0)
    }
}
