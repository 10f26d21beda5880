import Foundation
import Glibc

/// A program of this package that runs in the background; what it says goes into a file.
final class SoakProcess {
    private let process = Process()
    let log: String

    init(_ name: String, _ arguments: [String], log: String, niceness: Int = 0) throws {
        self.log = log
        if !FileManager.default.fileExists(atPath: log) { try Data().write(to: URL(fileURLWithPath: log)) }
        guard let handle = FileHandle(forWritingAtPath: log) else { throw SoakError("\(log) cannot be written") }
        try handle.seekToEnd()
        let path = Self.path(name)
        process.executableURL = URL(fileURLWithPath: niceness == 0 ? path : "/usr/bin/nice")
        process.arguments = niceness == 0 ? arguments : ["-n", "\(niceness)", path] + arguments
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = handle
        process.standardError = handle
        try process.run()
        try handle.close()
    }

    deinit { if process.isRunning { kill(process.processIdentifier, SIGKILL) } }

    /// The programs of a build lie side by side.
    static func path(_ name: String) -> String {
        URL(fileURLWithPath: "/proc/self/exe").resolvingSymlinksInPath().deletingLastPathComponent().appendingPathComponent(name)
            .path
    }

    var identifier: Int32 { process.processIdentifier }
    var isRunning: Bool { process.isRunning }
    var text: String { (try? String(contentsOfFile: log, encoding: .utf8)) ?? "" }

    /// Sends a signal and waits for the end.
    func end(_ number: Int32) throws {
        kill(identifier, number)
        let limit = Date(timeIntervalSinceNow: 60)
        while process.isRunning {
            if limit.timeIntervalSinceNow < 0 { throw SoakError("process \(identifier) does not end") }
            usleep(5000)
        }
    }

    /// Runs a program to its end; its exit code and what it said.
    static func run(_ name: String, _ arguments: [String]) throws -> (code: Int32, output: String) {
        let process = Process(), output = Pipe()
        process.executableURL = URL(fileURLWithPath: path(name))
        process.arguments = arguments
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = output
        process.standardError = output
        try process.run()
        let data = output.fileHandleForReading.readDataToEndOfFile()
        try? output.fileHandleForReading.close()
        process.waitUntilExit()
        return (process.terminationStatus, String(decoding: data, as: UTF8.self))
    }
}

/// One line of output, at once.
func say(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }

struct SoakError: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

/// A `SoakWriter`, which gets an order a line and answers each with a line.
final class SoakWriterProcess {
    private let process = Process()
    private let input = Pipe(), output = Pipe()
    private var buffer: [UInt8] = []

    init() throws {
        signal(SIGPIPE, SIG_IGN)
        process.executableURL = URL(fileURLWithPath: SoakProcess.path("Soak"))
        process.arguments = ["writer"]
        process.standardInput = input
        process.standardOutput = output
        try process.run()
    }

    deinit { if process.isRunning { kill() } }

    /// - Throws: where the answer is an error, or does not come in time.
    func order(_ line: String, within seconds: Double = 600) throws -> Substring {
        try input.fileHandleForWriting.write(contentsOf: Data((line + "\n").utf8))
        let limit = Date(timeIntervalSinceNow: seconds), descriptor = output.fileHandleForReading.fileDescriptor
        var chunk = [UInt8](repeating: 0, count: 65536)
        while buffer.last != UInt8(ascii: "\n") {
            var poller = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            let left = limit.timeIntervalSinceNow
            guard left > 0, poll(&poller, 1, Int32(left * 1000) + 1) > 0 else {
                throw SoakError("the writer does not answer '\(line)'")
            }
            let count = read(descriptor, &chunk, chunk.count)
            guard count > 0 else { throw SoakError("the writer has ended at '\(line)'") }
            buffer += chunk[..<count]
        }
        let answer = String(decoding: buffer.dropLast(), as: UTF8.self)
        buffer = []
        guard answer.hasPrefix("ok") else { throw SoakError("the writer says to '\(line)': \(answer)") }
        return answer.dropFirst(3)
    }

    func kill() {
        Glibc.kill(process.processIdentifier, SIGKILL)
        process.waitUntilExit()
    }

    /// The exit code.
    func finish() -> Int32 {
        try? input.fileHandleForWriting.close()
        process.waitUntilExit()
        return process.terminationStatus
    }
}

/// What a process uses at one moment, as the system tells.
struct ProcessFigures {
    var residentKilobytes = 0, descriptors = 0, threads = 0
    /// Processor time used so far, in milliseconds.
    var processorMilliseconds = 0

    init(_ process: Int32) {
        let status = (try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)) ?? ""
        for line in status.split(separator: "\n") {
            let words = line.split(whereSeparator: { $0 == " " || $0 == "\t" })
            guard words.count > 1, let value = Int(words[1]) else { continue }
            // What is mapped from files is in the page cache anyway, and is given back when others need it.
            if words[0] == "RssAnon:" { residentKilobytes = value }
            if words[0] == "Threads:" { threads = value }
        }
        descriptors = ((try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/fd")) ?? []).count
        let text = (try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8)) ?? ""
        let fields = text.lastIndex(of: ")").map { text[$0...].split(separator: " ") } ?? []
        if fields.count > 13, let user = Int(fields[12]), let system = Int(fields[13]) {
            processorMilliseconds = (user + system) * 1000 / max(1, sysconf(Int32(_SC_CLK_TCK)))
        }
    }
}

/// Bytes of all files below a folder, as blocks on the disk, and their number.
func folderUse(_ path: String, where isCounted: (String) -> Bool = { _ in true }) -> (bytes: Int, files: Int) {
    var sum = (bytes: 0, files: 0)
    guard let walker = FileManager.default.enumerator(atPath: path) else { return sum }
    for case let name as String in walker where isCounted(name) {
        var status = stat()
        guard lstat("\(path)/\(name)", &status) == 0, status.st_mode & S_IFMT == S_IFREG else { continue }
        sum.bytes += Int(status.st_blocks) * 512
        sum.files += 1
    }
    return sum
}
