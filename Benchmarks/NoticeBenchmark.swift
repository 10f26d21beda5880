import Foundation
import Glibc
import Notifier
import SharedStore
import SystemCalls

/// From a commit in one process to the callback in another.
enum NoticeBenchmark {
    /// What the child does: says when it heard of each version, as "version nanoseconds" lines.
    static func listen(_ path: String) throws {
        let store = try Store.open(path, ReadBenchmarks.options())
        let subscription = Notifier.shared.subscribe(path: path, newestVersion: { (try? store.newestVersion()) ?? 0 }) { _ in
            let now = SystemCalls.monotonicNanoseconds()
            let version = (try? store.newestVersion()) ?? 0
            FileHandle.standardOutput.write(Data("\(version) \(now)\n".utf8))
        }
        FileHandle.standardOutput.write(Data("ready\n".utf8))
        // Until the parent closes its end.
        while !FileHandle.standardInput.availableData.isEmpty {}
        subscription.cancel()
    }

    static func run(_ place: Workplace, program: String) throws {
        printTitle("Notice of a commit, from process to process")
        let path = place.file("notice.realm")
        let store = try Store.open(path, ReadBenchmarks.options())
        try store.write { try $0.editor.setSchemaVersion(0) }
        let child = Process()
        child.executableURL = URL(fileURLWithPath: program)
        child.arguments = ["listen", path]
        let input = Pipe(), output = Pipe()
        child.standardInput = input
        child.standardOutput = output
        try child.run()
        var text = ""
        func read() { text += String(decoding: output.fileHandleForReading.availableData, as: UTF8.self) }
        while !text.contains("ready\n") { read() }
        var sent: [UInt64: Int64] = [:]
        for i in 0..<300 {
            usleep(2000)
            let begin = SystemCalls.monotonicNanoseconds()
            try store.write { try $0.editor.setSchemaVersion(Int64(i)) }
            sent[try store.newestVersion()] = begin
        }
        usleep(200_000)
        try input.fileHandleForWriting.close()
        child.waitUntilExit()
        text += String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        var delays: [Double] = []
        for line in text.split(separator: "\n") {
            let parts = line.split(separator: " ")
            if parts.count == 2, let version = UInt64(parts[0]), let time = Int64(parts[1]),
                let begin = sent.removeValue(forKey: version)
            {
                delays.append(Double(time - begin) / 1e9)
            }
        }
        delays.sort()
        guard !delays.isEmpty else { return print("  no notice arrived") }
        printLine(
            "begin of write to callback elsewhere, median", delays[delays.count / 2], "s",
            "\(delays.count) of 300 versions heard singly")
        printLine("the same, 95th percentile", delays[delays.count * 95 / 100], "s")
        try store.close()
    }
}
