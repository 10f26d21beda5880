/// The texts of `--help`.
enum Help {
    private static let width = 100

    static func program() -> String {
        var text = "Reads, checks, mirrors and makes .realm files, also while other programs have them open.\n\n"
        text += "Usage: \(Program.name) COMMAND [OPERANDS] [OPTIONS]\n\nCommands:\n"
        text += table(CommandTable.all.map { ($0.name, $0.summary) })
        text += "\nOptions:\n"
        text += table([("-h, --help", "Show this help, or that of a command."), ("    --version", "Show the version.")])
        text +=
            "\n'\(Program.name) COMMAND --help' explains a command; 'help --man' and 'help --man-config' print the manual pages.\n\nExit codes:\n"
        text += table(ExitCode.allCases.filter { $0 != .software }.map { ("\($0.rawValue)", $0.meaning) })
        return text
    }

    static func of(_ command: Command) -> String {
        var text = "\(command.summary)\n\nUsage: \(Program.name) \(command.usage.joined(separator: " "))\n"
        for paragraph in command.details { text += "\n" + wrap(paragraph, indent: 0) + "\n" }
        if !command.operands.isEmpty { text += "\nOperands:\n" + table(command.operands.map { ($0.name, $0.help) }) }
        text += "\nOptions:\n" + table(command.allOptions.map { (label($0), $0.help) })
        if !command.exitCodes.isEmpty {
            text += "\nExit codes of this command:\n" + table(command.exitCodes.map { ("\($0.0.rawValue)", $0.1) })
        }
        return text
    }

    /// Of a word that begins the names of several commands, such as "seed".
    static func group(_ name: String) -> String {
        "Usage: \(Program.name) \(name) COMMAND [OPERANDS] [OPTIONS]\n\nCommands:\n"
            + table(CommandTable.members(name).map { ($0.name, $0.summary) })
            + "\n'\(Program.name) \(name) COMMAND --help' explains a command.\n"
    }

    private static func label(_ option: Option) -> String {
        (option.letter.map { "-\($0), " } ?? "    ") + "--\(option.name)" + (option.value.map { " " + $0 } ?? "")
            + (option.isRepeated ? "..." : "")
    }

    private static func table(_ rows: [(String, String)]) -> String {
        let column = (rows.map(\.0.count).max() ?? 0) + 4
        return rows.map { row in
            let label = "  " + row.0 + String(repeating: " ", count: column - row.0.count - 2)
            return label + wrap(row.1, indent: column) + "\n"
        }.joined()
    }

    /// Breaks at spaces; lines after the first are indented.
    static func wrap(_ text: String, indent: Int) -> String {
        var lines: [String] = []
        var line = ""
        for word in text.split(separator: " ") {
            if !line.isEmpty, indent + line.count + 1 + word.count > width {
                lines.append(line)
                line = ""
            }
            line += (line.isEmpty ? "" : " ") + word
        }
        lines.append(line)
        return lines.joined(separator: "\n" + String(repeating: " ", count: indent))
    }
}
