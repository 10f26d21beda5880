import Foundation

/// A program that a test starts, reads line by line, feeds, stops and kills.
///
/// Every wait has a limit, so that a test with a hanging child fails and does not hang itself.
public final class ChildProcess: @unchecked Sendable {
    // Sendable: all mutable state is guarded by `condition`.
    private let process = Process()
    private let input = Pipe()
    private let condition = NSCondition()
    private var outputText = Data()
    private var errorText = Data()
    private var linesRead = 0
    private var openPipes = 2
    private var hasEnded = false

    /// Where the build put the programs of this package: beside the test bundle.
    public static let products: URL = {
        var url = URL(fileURLWithPath: CommandLine.arguments[0])
        if let bundle = Bundle.allBundles.first(where: { $0.bundlePath.hasSuffix(".xctest") }) { url = bundle.bundleURL }
        return url.deletingLastPathComponent()
    }()

    /// Starts a program of this package.
    public convenience init(product: String, _ arguments: [String], environment: [String: String] = [:]) throws {
        try self.init(path: Self.products.appendingPathComponent(product).path, arguments, environment: environment)
    }

    /// Starts any program. `environment` is added to the one of the test.
    public init(path: String, _ arguments: [String], environment: [String: String] = [:], workingDirectory: String? = nil) throws
    {
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        if let workingDirectory { process.currentDirectoryURL = URL(fileURLWithPath: workingDirectory) }
        let output = Pipe()
        let errors = Pipe()
        process.standardInput = input
        process.standardOutput = output
        process.standardError = errors
        process.terminationHandler = { [weak self] _ in
            guard let self else { return }
            self.condition.lock()
            self.hasEnded = true
            self.condition.broadcast()
            self.condition.unlock()
        }
        try process.run()
        collect(output.fileHandleForReading) { $0.outputText.append($1) }
        collect(errors.fileHandleForReading) { $0.errorText.append($1) }
    }

    deinit {
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
        closeInput()
    }

    private func collect(_ handle: FileHandle, _ append: @escaping @Sendable (ChildProcess, Data) -> Void) {
        Thread.detachNewThread { [weak self] in
            // By hand: the library keeps the objects of a process that has ended, and their descriptors with them.
            defer { try? handle.close() }
            while true {
                let data = handle.availableData
                guard let self else { return }
                self.condition.lock()
                if data.isEmpty { self.openPipes -= 1 } else { append(self, data) }
                self.condition.broadcast()
                self.condition.unlock()
                if data.isEmpty { return }
            }
        }
    }

    public var processIdentifier: Int32 { process.processIdentifier }

    /// Everything written to standard output so far.
    public var output: String { locked { String(decoding: outputText, as: UTF8.self) } }
    /// Everything written to standard error so far.
    public var errors: String { locked { String(decoding: errorText, as: UTF8.self) } }

    private func locked<T>(_ body: () -> T) -> T {
        condition.lock()
        defer { condition.unlock() }
        return body()
    }

    /// Waits until `body` gives something other than nil; nil after `seconds`, a limit of `TestTime`.
    private func wait<T>(seconds: Double, _ body: () -> T?) -> T? {
        let limit = Date(timeIntervalSinceNow: TestTime.limit(seconds))
        condition.lock()
        defer { condition.unlock() }
        while true {
            if let result = body() { return result }
            if !condition.wait(until: limit) { return body() }
        }
    }

    /// The next line of standard output that has not been returned yet, without its end; nil at the end or after `seconds`.
    public func readLine(seconds: Double = 10) -> String? {
        wait(seconds: seconds) { () -> String?? in
            let lines = String(decoding: outputText, as: UTF8.self).components(separatedBy: "\n")
            if lines.count - 1 > linesRead {
                defer { linesRead += 1 }
                return .some(lines[linesRead])
            }
            return openPipes == 0 ? .some(nil) : nil
        } ?? nil
    }

    /// Reads lines until one begins with `prefix`; nil when none comes.
    public func readLine(beginningWith prefix: String, seconds: Double = 10) -> String? {
        while let line = readLine(seconds: seconds) {
            if line.hasPrefix(prefix) { return line }
        }
        return nil
    }

    public func send(_ line: String) {
        try? input.fileHandleForWriting.write(contentsOf: Data((line + "\n").utf8))
    }

    public func closeInput() { try? input.fileHandleForWriting.close() }

    public func signal(_ number: Int32) { if process.isRunning { kill(process.processIdentifier, number) } }

    /// The exit code, or minus the number of the signal that ended it; nil when it still runs after `seconds`.
    @discardableResult
    public func waitForEnd(seconds: Double = 20) -> Int32? {
        guard wait(seconds: seconds, { hasEnded && openPipes == 0 ? true : nil }) != nil else { return nil }
        closeInput()
        return process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus
    }
}
