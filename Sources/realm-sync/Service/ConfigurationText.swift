import Glibc

/// What is wrong with a configuration: where, and what.
struct ConfigurationProblem: Equatable {
    /// "FILE:LINE", the name of an environment variable, or an option.
    let place: String
    let text: String
    var description: String { "\(place): \(text)" }
}

/// All that is wrong with a configuration, in the order of its lines.
struct ConfigurationError: Error, CustomStringConvertible {
    let problems: [ConfigurationProblem]
    var description: String { problems.map(\.description).joined(separator: "\n") }
}

/// The text of a configuration: sections of keys with values, each with the place where it stands.
///
/// ```
/// # A comment, from a # or ; at the beginning of a line or behind a blank.
/// [kind name]
/// key = value
/// other = "a value with  blanks, a # or \" in it"
/// ```
///
/// Here is only the form; what the sections and keys mean is the matter of `ServiceConfiguration`.
struct ConfigurationText {
    struct Entry: Equatable {
        let key: String
        let value: String
        let place: String
    }

    struct Section: Equatable {
        let kind: String
        /// Empty where the section has none.
        let name: String
        let place: String
        var entries: [Entry] = []

        var title: String { name.isEmpty ? kind : "\(kind) \(name)" }
    }

    private(set) var sections: [Section] = []
    private(set) var problems: [ConfigurationProblem] = []

    static let byteCountMax = 4 << 20
    static let sectionCountMax = 20_000

    init() {}

    init(_ text: String, file: String) {
        for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let place = "\(file):\(index + 1)"
            let line = Self.trim(line)
            if line.isEmpty || line.hasPrefix("#") || line.hasPrefix(";") { continue }
            do throws(FormProblem) {
                if line.hasPrefix("[") { try begin(line, place) } else { try add(line, place) }
            } catch { problems.append(ConfigurationProblem(place: place, text: error.text)) }
        }
    }

    private struct FormProblem: Error {
        let text: String
    }

    private static func trim(_ text: Substring) -> Substring {
        let blanks: Set<Character> = [" ", "\t", "\r"]
        var text = text
        while let first = text.first, blanks.contains(first) || first == "\r\n" { text.removeFirst() }
        while let last = text.last, blanks.contains(last) || last == "\r\n" { text.removeLast() }
        return text
    }

    private mutating func begin(_ line: Substring, _ place: String) throws(FormProblem) {
        guard let end = line.firstIndex(of: "]") else {
            throw FormProblem(text: "the ] at the end of the section's name is missing")
        }
        let rest = Self.trim(line[line.index(after: end)...])
        if !rest.isEmpty && !rest.hasPrefix("#") && !rest.hasPrefix(";") {
            throw FormProblem(text: "'\(rest)' stands behind the section's name")
        }
        let words = line[line.index(after: line.startIndex)..<end].split(whereSeparator: { $0 == " " || $0 == "\t" })
        guard let kind = words.first else { throw FormProblem(text: "the section has no name") }
        if words.count > 2 { throw FormProblem(text: "a section is named by one word, or two: [\(kind) NAME]") }
        if sections.count == Self.sectionCountMax {
            throw FormProblem(text: "there are more than \(Self.sectionCountMax) sections")
        }
        let name = words.count == 2 ? String(words[1]) : ""
        if let other = sections.first(where: { $0.kind == kind && $0.name == name }) {
            // What follows belongs to no section that counts.
            sections.append(Section(kind: String(kind), name: name, place: place))
            throw FormProblem(text: "[\(other.title)] stands at \(other.place) already")
        }
        sections.append(Section(kind: String(kind), name: name, place: place))
    }

    private mutating func add(_ line: Substring, _ place: String) throws(FormProblem) {
        guard let sign = line.firstIndex(of: "=") else {
            throw FormProblem(text: "this is neither [section], nor key = value, nor # comment")
        }
        let key = String(Self.trim(line[..<sign]))
        if key.isEmpty { throw FormProblem(text: "the key before the = is missing") }
        let value = try Self.value(Self.trim(line[line.index(after: sign)...]))
        if sections.isEmpty { throw FormProblem(text: "'\(key)' stands before the first [section]") }
        sections[sections.count - 1].entries.append(Entry(key: key, value: value, place: place))
    }

    /// Without quotes and without a comment behind it.
    private static func value(_ text: Substring) throws(FormProblem) -> String {
        guard text.hasPrefix("\"") else {
            var result = Substring()
            var previous: Character = " "
            for character in text {
                if character == "#" || character == ";", previous == " " || previous == "\t" { break }
                result.append(character)
                previous = character
            }
            return String(trim(result))
        }
        var result = ""
        var rest = text.dropFirst()
        while let character = rest.popFirst() {
            switch character {
            case "\\":
                guard let next = rest.popFirst(), next == "\\" || next == "\"" else {
                    throw FormProblem(text: "only \\\\ and \\\" may follow a \\ within quotes")
                }
                result.append(next)
            case "\"":
                let behind = trim(rest)
                if !behind.isEmpty && !behind.hasPrefix("#") && !behind.hasPrefix(";") {
                    throw FormProblem(text: "'\(behind)' stands behind the closing quote")
                }
                return result
            default: result.append(character)
            }
        }
        throw FormProblem(text: "the closing quote is missing")
    }

    /// Puts `key` in the section `title` to `value`, making the section where there is none: what options and the environment do.
    mutating func set(_ title: String, _ key: String, to value: String, place: String) {
        let words = title.split(separator: " ", maxSplits: 1).map(String.init)
        let kind = words.first ?? "", name = words.count > 1 ? words[1] : ""
        let index: Int
        if let found = sections.firstIndex(where: { $0.kind == kind && $0.name == name }) {
            index = found
        } else {
            index = sections.count
            sections.append(Section(kind: kind, name: name, place: place))
        }
        sections[index].entries.removeAll { $0.key == key && $0.place != place }
        sections[index].entries.append(Entry(key: key, value: value, place: place))
    }
}
