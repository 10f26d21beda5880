/// One option of a command.
struct Option: Sendable {
    /// Without dashes.
    let name: String
    /// The one-letter form, if any.
    var letter: Character?
    /// What the value is called in help; nil for a flag.
    var value: String?
    /// May be given several times.
    var isRepeated = false
    let help: String

    static func flag(_ name: String, _ letter: Character? = nil, _ help: String) -> Option {
        Option(name: name, letter: letter, help: help)
    }

    static func value(_ name: String, _ letter: Character? = nil, _ value: String, _ help: String, isRepeated: Bool = false)
        -> Option
    {
        Option(name: name, letter: letter, value: value, isRepeated: isRepeated, help: help)
    }
}

/// One operand of a command: what stands without dashes.
struct Operand: Sendable {
    enum Count: Sendable { case one, optional, any }
    /// In capitals, as help shows it.
    let name: String
    var count = Count.one
    /// No file has an empty name; a predicate may be empty.
    var mayBeEmpty = false
    let help: String
}

/// What was wrong with the command line; the text names the option or operand at fault.
struct UsageError: Error, CustomStringConvertible {
    let description: String
    /// The command whose help explains it.
    var command: String?
    init(_ description: String, command: String? = nil) {
        self.description = description
        self.command = command
    }
}

/// The options and operands of one call, checked against what the command declares.
///
/// Asking for an option that the command does not declare is an error of this program and traps.
struct Arguments {
    private let command: Command
    private var values: [String: [String]] = [:]
    private var operands: [String: [String]] = [:]

    /// Reads what follows the name of the command.
    ///
    /// - `--name value`, `--name=value`, `-n value` and `-nvalue` are the same; flags in one-letter form may be joined (`-ab`).
    /// - Options may stand before, between and behind operands; `--` ends them, so that what follows may begin with a dash.
    /// - A lone `-` is an operand.
    init(_ words: some Sequence<String>, of command: Command) throws {
        self.command = command
        var rest = Array(words)[...]
        var found: [String] = []
        while let word = rest.popFirst() {
            if word == "--" {
                found += rest
                rest = []
            } else if word.hasPrefix("--") {
                try readLong(word.dropFirst(2), &rest)
            } else if word.hasPrefix("-") && word != "-" {
                try readLetters(word.dropFirst(), &rest)
            } else {
                found.append(word)
            }
        }
        // Help is given whatever else is wrong or missing.
        if !wantsHelp { try assign(found) }
    }

    private mutating func readLong(_ text: Substring, _ rest: inout ArraySlice<String>) throws {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let name = String(parts[0])
        guard let option = command.allOptions.first(where: { $0.name == name }) else {
            let near = Spelling.nearest(name, among: command.allOptions.map(\.name)).map { "; did you mean --\($0)?" } ?? ""
            throw error("unknown option --\(name)\(near)")
        }
        if option.value == nil {
            if parts.count > 1 { throw error("option --\(name) takes no value") }
            try store("", option)
        } else if parts.count > 1 {
            try store(String(parts[1]), option)
        } else if let value = rest.popFirst() {
            try store(value, option)
        } else {
            throw error("option --\(name) needs a value: --\(name) \(option.value ?? "")")
        }
    }

    private mutating func readLetters(_ letters: Substring, _ rest: inout ArraySlice<String>) throws {
        var letters = letters
        while let letter = letters.popFirst() {
            guard let option = command.allOptions.first(where: { $0.letter == letter }) else {
                throw error("unknown option -\(letter); write -- before an operand that begins with a dash")
            }
            if option.value == nil {
                try store("", option)
            } else if !letters.isEmpty {
                try store(String(letters), option)
                return
            } else if let value = rest.popFirst() {
                try store(value, option)
            } else {
                throw error("option -\(letter) needs a value: -\(letter) \(option.value ?? "")")
            }
        }
    }

    private mutating func store(_ value: String, _ option: Option) throws {
        if option.value != nil, !option.isRepeated, values[option.name] != nil {
            throw error("option --\(option.name) is given twice")
        }
        values[option.name, default: []].append(value)
    }

    private mutating func assign(_ found: [String]) throws {
        var rest = found[...]
        for operand in command.operands {
            if !operand.mayBeEmpty, operand.count == .any ? rest.contains("") : rest.first == "" {
                throw error("\(operand.name) is empty")
            }
            switch operand.count {
            case .one:
                guard let value = rest.popFirst() else { throw error("\(operand.name) is missing") }
                operands[operand.name] = [value]
            case .optional: operands[operand.name] = rest.popFirst().map { [$0] } ?? []
            case .any:
                operands[operand.name] = Array(rest)
                rest = []
            }
        }
        if let extra = rest.first { throw error("unexpected operand '\(extra)'") }
    }

    private func error(_ text: String) -> UsageError { UsageError(text, command: command.name) }

    // MARK: Asking

    var commandName: String { command.name }

    var wantsHelp: Bool { values["help"] != nil }

    private func declared(_ name: String) {
        precondition(
            command.allOptions.contains { $0.name == name },
            "\(command.name) asks for the option --\(name), which it does not declare")
    }

    func has(_ name: String) -> Bool {
        declared(name)
        return values[name] != nil
    }

    func string(_ name: String) -> String? {
        declared(name)
        return values[name]?.last
    }

    func strings(_ name: String) -> [String] {
        declared(name)
        return values[name] ?? []
    }

    /// A whole number in `range`; nil where the option is not given.
    func integer(_ name: String, in range: ClosedRange<Int> = 0...Int.max) throws -> Int? {
        guard let text = string(name) else { return nil }
        guard let value = Int(text) else { throw error("option --\(name): '\(text)' is not a whole number") }
        guard range.contains(value) else {
            let limit =
                range.upperBound == Int.max ? "at least \(range.lowerBound)" : "from \(range.lowerBound) to \(range.upperBound)"
            throw error("option --\(name): \(text) is out of range, the number must be \(limit)")
        }
        return value
    }

    /// A time such as `500ms`, `2s`, `1.5m`, `3h`, `1d`; a number alone is seconds.
    func duration(_ name: String) throws -> Duration? {
        guard let text = string(name) else { return nil }
        guard let value = Units.duration(text) else {
            throw error("option --\(name): '\(text)' is not a time; write a number with ms, s, m, h or d")
        }
        return value
    }

    /// A size in bytes such as `4096`, `64K`, `2M`, `1G`, in powers of 1024.
    func byteCount(_ name: String) throws -> Int? {
        guard let text = string(name) else { return nil }
        guard let value = Units.byteCount(text) else {
            throw error("option --\(name): '\(text)' is not a size; write a number of bytes, or one with K, M, G or T")
        }
        return value
    }

    /// The operand that the command declares with count `.one`.
    func operand(_ name: String) -> String {
        guard let value = operands[name]?.first else {
            preconditionFailure("\(command.name) asks for the operand \(name), which it does not declare")
        }
        return value
    }

    func operands(_ name: String) -> [String] { operands[name] ?? [] }

    /// For what only the command itself can judge.
    func usageError(_ text: String) -> UsageError { error(text) }
}

/// Finds what somebody meant who mistyped a name.
enum Spelling {
    /// Names are no longer than that in a file, nor are options.
    private static let byteCountMax = 64
    /// More names than that are not looked through.
    private static let candidateCountMax = 10_000

    /// The candidate that differs in the fewest letters, if that is few enough to be a slip.
    static func nearest(_ text: String, among candidates: [String]) -> String? {
        if text.utf8.count > byteCountMax { return nil }
        let letters = Array(text.unicodeScalars)
        var limit = max(1, letters.count / 3)
        var best: String?
        for candidate in candidates.prefix(candidateCountMax) where candidate.utf8.count <= byteCountMax {
            guard let distance = distance(letters, Array(candidate.unicodeScalars), limit: limit) else { continue }
            best = candidate
            if distance == 0 { break }
            limit = distance - 1
        }
        return best
    }

    /// Insertions, deletions and changes that make `b` of `a`; nil for more than `limit`.
    private static func distance(_ a: [Unicode.Scalar], _ b: [Unicode.Scalar], limit: Int) -> Int? {
        if abs(a.count - b.count) > limit { return nil }
        var row = Array(0...b.count)
        for i in a.indices {
            var diagonal = row[0]
            row[0] = i + 1
            var least = row[0]
            for j in b.indices {
                let cost = min(row[j] + 1, row[j + 1] + 1, diagonal + (a[i] == b[j] ? 0 : 1))
                diagonal = row[j + 1]
                row[j + 1] = cost
                least = min(least, cost)
            }
            // From here on it can only become more.
            if least > limit { return nil }
        }
        return row[b.count] <= limit ? row[b.count] : nil
    }
}
