import SystemCalls

/// Shows how far a long work has come, on a terminal only: one line of standard error that is written over and over.
///
/// Used by one thread. Nothing appears in the first half second, and not more than ten times a second.
final class Progress {
    private let console: Console
    private let what: String
    private let total: Int?
    private let unit: Unit
    private let start = SystemCalls.monotonicNanoseconds()
    private var nextUpdate: Int64
    private var isShown = false

    enum Unit { case bytes, objects }

    /// - Parameter total: nil where it is not known how much there is to do.
    init(_ what: String, total: Int?, unit: Unit, on console: Console) {
        self.console = console
        self.what = what
        self.total = total
        self.unit = unit
        nextUpdate = start + 500_000_000
    }

    /// Tells that `done` of the total is done; cheap enough for an inner loop that runs some thousand times a second.
    func update(_ done: Int) {
        guard console.isTerminal else { return }
        let now = SystemCalls.monotonicNanoseconds()
        if now < nextUpdate { return }
        nextUpdate = now + 100_000_000
        isShown = true
        let seconds = max(0.001, Double(now - start) / 1e9)
        let rate = Double(done) / seconds
        var line = "\(what): \(amount(done))"
        if let total, total > 0 {
            line += " of \(amount(total)), \(min(100, done * 100 / total)) %"
            if rate > 0, done < total { line += ", \(Units.text(seconds: Double(total - done) / rate)) left" }
        }
        line += " (\(amount(Int(rate)))/s)"
        // Carriage return, text, erase to the end of the line.
        console.write("\r\(line)\u{1B}[K")
    }

    /// Removes the line.
    func end() {
        if isShown { console.write("\r\u{1B}[K") }
        isShown = false
    }

    private func amount(_ value: Int) -> String { unit == .bytes ? Units.text(bytes: value) : "\(value)" }
}
