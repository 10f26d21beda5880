import CShims

/// Text that is fit for a terminal: how wide it is, and without what would disturb.
enum Text {
    /// Columns that `text` takes on a terminal: two for East Asian and emoji characters, none for accents that combine.
    static func width(_ text: String) -> Int {
        // The fast way for what is nearly all text.
        if text.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7F }) { return text.utf8.count }
        return text.reduce(0) { $0 + width($1) }
    }

    private static func width(_ character: Character) -> Int {
        var width = 0
        for scalar in character.unicodeScalars {
            // An emoji variant selector makes a narrow sign wide.
            if scalar.value == 0xFE0F { return 2 }
            width = max(width, min(2, Int(CShims_character_width(scalar.value))))
        }
        return max(0, width)
    }

    /// Makes line ends and other control characters visible, so that a value cannot move the cursor or fake a line.
    static func visible(_ text: String) -> String {
        func isHarmful(_ scalar: Unicode.Scalar) -> Bool {
            switch scalar.value {
            // C0, DEL and C1; line and paragraph separators; marks that turn the direction of writing.
            case 0..<0x20, 0x7F..<0xA0, 0x2028, 0x2029, 0x202A...0x202E, 0x2066...0x2069: true
            default: false
            }
        }
        guard text.unicodeScalars.contains(where: isHarmful) else { return text }
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\n": result += "\\n"
            case "\r": result += "\\r"
            case "\t": result += "\\t"
            case _ where isHarmful(scalar): result += "\\u{\(String(scalar.value, radix: 16))}"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    /// "1 object", "2 objects".
    static func count(_ number: Int, _ one: String, _ many: String? = nil) -> String {
        number == 1 ? "1 \(one)" : "\(number) \(many ?? one + "s")"
    }

    static func oneLine(_ text: String) -> String {
        visible(text.split(separator: "\n").joined(separator: " "))
    }

    /// Cuts to `columns`, with an ellipsis where something was cut.
    static func cut(_ text: String, toColumns columns: Int) -> String {
        if text.utf8.count <= columns || width(text) <= columns { return text }
        var result = ""
        var used = 0
        for character in text {
            let next = width(String(character))
            if used + next > columns - 1 { break }
            used += next
            result.append(character)
        }
        return result + "\u{2026}"
    }
}

/// Rows of cells in columns that line up.
struct TextTable {
    enum Alignment { case left, right }

    private let titles: [String]
    private let alignments: [Alignment]
    private var rows: [[String]] = []
    /// Longer cells are cut; nil for never.
    var cellColumnsMax: Int? = 60

    /// - Parameter titles: with `>` in front for a column whose cells stand at the right.
    init(_ titles: [String]) {
        alignments = titles.map { $0.hasPrefix(">") ? .right : .left }
        self.titles = titles.map { $0.hasPrefix(">") ? String($0.dropFirst()) : $0 }
    }

    init(titles: [String], alignments: [Alignment]) {
        (self.titles, self.alignments) = (titles, alignments)
    }

    mutating func add(_ cells: [String]) {
        precondition(cells.count == titles.count, "a row has \(cells.count) cells, the table \(titles.count) columns")
        rows.append(
            cells.map { cell in
                let visible = Text.visible(cell)
                return cellColumnsMax.map { Text.cut(visible, toColumns: $0) } ?? visible
            })
    }

    var isEmpty: Bool { rows.isEmpty }

    func write(to output: OutputStream) throws {
        for line in lines { try output.line(line) }
    }

    /// Heading, rule and rows.
    var lines: [String] {
        let heading = titles.map(Text.visible)
        var widths = heading.map(Text.width)
        for row in rows {
            for (column, cell) in row.enumerated() { widths[column] = max(widths[column], Text.width(cell)) }
        }
        return [line(heading, widths), widths.map { String(repeating: "-", count: $0) }.joined(separator: "  ")]
            + rows.map { line($0, widths) }
    }

    private func line(_ cells: [String], _ widths: [Int]) -> String {
        var text = ""
        for (column, cell) in cells.enumerated() {
            let gap = String(repeating: " ", count: widths[column] - Text.width(cell))
            text += alignments[column] == .right ? gap + cell : cell + gap
            if column < cells.count - 1 { text += "  " }
        }
        while text.last == " " { text.removeLast() }
        return text
    }
}

/// Lines of `name: value` with the values below each other.
struct FieldList {
    private var fields: [(String, String)] = []

    mutating func add(_ name: String, _ value: String) { fields.append((name, value)) }
    mutating func add(_ name: String, _ value: String?) { if let value { add(name, value) } }

    func write(to output: OutputStream) throws {
        let column = (fields.map { Text.width($0.0) }.max() ?? 0) + 2
        for (name, value) in fields {
            try output.line(name + ":" + String(repeating: " ", count: column - Text.width(name) - 1) + Text.visible(value))
        }
    }
}
