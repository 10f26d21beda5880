import Glibc
import SystemCalls

/// One line of output: a name, a figure, and what stands beside it.
struct Result {
    var name: String
    var value: Double
    var unit: String
    var note = ""
}

/// Runs `body` several times and returns the median of its durations in seconds.
func median(_ rounds: Int = 5, _ body: () throws -> Void) rethrows -> Double {
    var times: [Double] = []
    for _ in 0..<rounds {
        let begin = SystemCalls.monotonicNanoseconds()
        try body()
        times.append(Double(SystemCalls.monotonicNanoseconds() - begin) / 1e9)
    }
    return times.sorted()[rounds / 2]
}

func seconds(_ body: () throws -> Void) rethrows -> Double { try median(1, body) }

/// A number with three significant digits and a prefix: 1.24 M.
func short(_ value: Double) -> String {
    let units: [(Double, String)] = [(1e9, " G"), (1e6, " M"), (1e3, " k"), (1, " "), (1e-3, " m"), (1e-6, " u"), (1e-9, " n")]
    let (scale, prefix) = units.first { abs(value) >= $0.0 } ?? (1, " ")
    let scaled = value / scale
    let digits = scaled >= 100 ? 0 : scaled >= 10 ? 1 : 2
    var text = String(Int((scaled * [1, 10, 100][digits]).rounded()))
    if digits > 0 {
        while text.utf8.count <= digits { text = "0" + text }
        text.insert(".", at: text.index(text.endIndex, offsetBy: -digits))
    }
    return text + prefix
}

func printTitle(_ title: String) {
    print("\n\(title)")
    fflush(nil)
}

func printLine(_ name: String, _ value: Double, _ unit: String, _ note: String = "") {
    let padded = name + String(repeating: " ", count: max(1, 46 - name.utf8.count))
    let figure = short(value) + unit
    defer { fflush(nil) }
    print("  \(padded)\(String(repeating: " ", count: max(0, 12 - figure.utf8.count)))\(figure)   \(note)")
}

/// `ours` against `theirs`, both as rates: how many times as fast.
func ratio(_ ours: Double, _ theirs: Double) -> String {
    let r = (ours / theirs * 100).rounded() / 100
    return "\(r)x"
}

/// Keeps the optimiser from dropping a result.
@inline(never) func keep<T>(_ value: T) {}

/// A directory for the files of a run, removed at the end.
final class Workplace {
    let path: String
    init(_ parent: String) throws {
        path = parent + "/benchmark-\(getpid())"
        try SystemCalls.makeDirectory(path)
    }
    func file(_ name: String) -> String { path + "/" + name }
    deinit { removeTree(path) }
    private func removeTree(_ path: String) {
        for name in (try? SystemCalls.names(inDirectory: path)) ?? [] {
            let entry = path + "/" + name
            if (try? SystemCalls.linkStatus(path: entry))?.isDirectory == true {
                removeTree(entry)
            } else {
                try? SystemCalls.unlink(entry)
            }
        }
        try? SystemCalls.removeDirectory(path)
    }
}
