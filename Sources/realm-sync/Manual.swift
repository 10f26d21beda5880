/// Manual pages and shell completion, made from the tables of commands and of configuration keys, so that they cannot be out of
/// date.
enum Manual {
    private static func escaped(_ text: String) -> String {
        let escaped = text.map { character -> String in
            switch character {
            case "\\": "\\e"
            case "-": "\\-"
            default: String(character)
            }
        }.joined()
        return escaped.hasPrefix(".") || escaped.hasPrefix("'") ? "\\&" + escaped : escaped
    }

    private static func paragraph(_ text: String) -> String { ".PP\n\(escaped(text))\n" }

    private static func item(_ label: String, _ text: String) -> String { ".TP\n\(label)\n\(escaped(text))\n" }

    private static func label(_ option: Option) -> String {
        let value = option.value.map { " \\fI\(escaped($0))\\fR" } ?? ""
        return (option.letter.map { "\\fB\\-\($0)\\fR, " } ?? "") + "\\fB\\-\\-\(escaped(option.name))\\fR\(value)"
    }

    /// realm-sync(1).
    static func program() -> String {
        var text = ".TH REALM\\-SYNC 1 \"\" \"\(Program.name) \(Program.version)\" \"User Commands\"\n"
        text += ".SH NAME\n\(escaped(Program.name)) \\- read, check, mirror and make .realm files while others use them\n"
        text += ".SH SYNOPSIS\n.B \(escaped(Program.name))\n\\fICOMMAND\\fR [\\fIOPERANDS\\fR] [\\fIOPTIONS\\fR]\n"
        text += ".SH COMMANDS\n"
        for command in CommandTable.all {
            text += ".SS \(escaped(command.name))\n\(escaped(command.summary))\n"
            let words = command.usage.dropFirst().map { escaped($0) }.joined(separator: " ")
            text += ".PP\n\\fBusage\\fR: \\fB\(escaped(Program.name)) \(escaped(command.name))\\fR \(words)\n"
            for detail in command.details { text += paragraph(detail) }
            for operand in command.operands { text += item("\\fI\(escaped(operand.name))\\fR", operand.help) }
            for option in command.allOptions { text += item(label(option), option.help) }
            for (code, meaning) in command.exitCodes { text += item("exit code \(code.rawValue)", meaning) }
        }
        text += ".SH EXIT STATUS\n"
        for code in ExitCode.allCases where code != .software { text += item("\\fB\(code.rawValue)\\fR", code.meaning) }
        text += environment() + examples()
        text += ".SH FILES\n" + item("\\fI\(escaped(ServiceConfiguration.defaultPath))\\fR", "The configuration of the service.")
        text += ".SH SEE ALSO\n.BR realm\\-sync.conf (5)\n"
        return text
    }

    private static func environment() -> String {
        ".SH ENVIRONMENT\n"
            + [
                (
                    "NAME of \\-\\-key\\-env NAME",
                    "Any variable that such an option names holds a key: 128 hex digits. Other users cannot read it, but programs that "
                        + "are started inherit it."
                ),
                (
                    "REALM_SYNC_SSH",
                    "The program that 'mirror' starts for ssh:// instead of ssh, with its first arguments, separated by blanks."
                ),
                (
                    "REALM_SYNC_SERVICE_SOCKET",
                    "The socket at which 'status' without FILE asks the service, and at which 'run' answers."
                ),
                ("REALM_SYNC_CONFIG", "The configuration that 'run' reads where --config names none."),
                (
                    "REALM_SYNC_SERVICE_..., REALM_SYNC_DEFAULTS_..., REALM_SYNC_MIRROR_...",
                    "Values of the configuration, see realm-sync.conf(5)."
                ),
                ("AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN", "The credentials for s3://."),
                (
                    "AWS_ENDPOINT_URL, AWS_REGION, AWS_DEFAULT_REGION",
                    "Where the store of s3:// is, if --endpoint and --region do not say."
                ),
                (
                    "TMPDIR",
                    "Where 'verify' of an archive makes its scratch file (/tmp), and where pipes for notices are made that the folder of a "
                        + "file cannot hold."
                ),
            ].map { item("\\fB\($0.0)\\fR", $0.1) }.joined()
    }

    private static func examples() -> String {
        ".SH EXAMPLES\n"
            + [
                (
                    "realm-sync query app.realm Person 'age > 20 SORT(name ASC)' --json",
                    "The objects of a class for which a predicate holds."
                ),
                ("realm-sync mirror app.realm /backup/app.realm --follow", "Keep a copy equal to a file, until told to stop."),
                (
                    "realm-sync mirror app.realm ssh://backup.example/srv/app.realm --once",
                    "Bring the newest version to another machine."
                ),
                ("realm-sync archive app.realm /backup/app --follow --keep-for 30d", "Keep each version for a month."),
                (
                    "realm-sync restore /backup/app old.realm --time 2026-03-01T12:00:00Z",
                    "The version that was the newest at a moment."
                ),
                (
                    "realm-sync keygen app.key && realm-sync encrypt app.realm --key-file app.key",
                    "Encrypt a file with a new key."
                ),
                ("realm-sync verify app.realm || echo damaged", "Check every rule of the format."),
            ].map { item("\\fB\(escaped($0.0))\\fR", $0.1) }.joined()
    }

    /// realm-sync.conf(5).
    static func configuration() -> String {
        var text = ".TH REALM\\-SYNC.CONF 5 \"\" \"\(Program.name) \(Program.version)\" \"File Formats\"\n"
        text += ".SH NAME\nrealm\\-sync.conf \\- configuration of the service that 'realm\\-sync run' starts\n.SH DESCRIPTION\n"
        text +=
            escaped(
                "Sections in brackets, and in each lines of the form key = value. A # or ; at the beginning of a line or behind a blank begins a "
                    + "comment; quotes keep blanks, # and ;, and within them \\\" is a quote and \\\\ a backslash. A key or section that is not known, and a value that cannot be, is an error, "
                    + "which is told with its line.") + "\n"
        text += paragraph(
            "A time is a number with ms, s, m, h or d, a size one with K, M, G or T. Paths are absolute. Names of sections are one word."
        )
        text += paragraph(
            "Each value can be given by the environment: REALM_SYNC_ followed by section, name and key in capitals, with _ for all that is "
                + "neither letter nor digit, such as REALM_SYNC_MIRROR_ORDERS_RATE_LIMIT; and over that by options of 'realm-sync run'."
        )
        for section in ConfigurationSection.allCases {
            text += ".SH SECTION [\(section.rawValue.uppercased())\(section.isNamed ? " NAME" : "")]\n\(escaped(section.help))\n"
            for key in section.keys { text += item("\\fB\(escaped(key.name))\\fR = \\fI\(escaped(key.value))\\fR", key.help) }
        }
        text += ".SH COMMANDS OF THE ADMINISTRATOR\n"
        text +=
            escaped(
                "on-failure, on-recovery and on-success are run by /bin/sh with these in the environment: REALM_SYNC_EVENT (failure, recovery or "
                    + "success), REALM_SYNC_STREAM, REALM_SYNC_SOURCE, REALM_SYNC_TARGET, REALM_SYNC_VERSION, REALM_SYNC_LAG_SECONDS and REALM_SYNC_ERROR. "
                    + "They may take a minute.") + "\n"
        text += ".SH SEE ALSO\n.BR realm\\-sync (1)\n"
        return text
    }

    // MARK: Completion

    enum Shell: String, CaseIterable, Sendable { case bash, zsh, fish }

    static func completion(_ shell: Shell) -> String {
        switch shell {
        case .bash: bash()
        case .zsh: zsh()
        case .fish: fish()
        }
    }

    /// The commands of one word, and the groups with their second words.
    private static var firstWords: [String] {
        var seen: Set<String> = []
        return CommandTable.all.compactMap { $0.name.split(separator: " ").first.map(String.init) }.filter {
            seen.insert($0).inserted
        } + ["help"]
    }

    private static func seconds(_ first: String) -> [String] {
        CommandTable.all.filter { $0.name.hasPrefix(first + " ") }.map { String($0.name.dropFirst(first.count + 1)) }
    }

    private static func bash() -> String {
        var text = """
            # bash completion for realm-sync
            _realm_sync() {
                local current="${COMP_WORDS[COMP_CWORD]}" first="${COMP_WORDS[1]}" options=""
                if [ "$COMP_CWORD" -eq 1 ]; then
                    COMPREPLY=($(compgen -W "\(firstWords.joined(separator: " ")) --help --version" -- "$current"))
                    return
                fi
                case "$first" in

            """
        for first in firstWords {
            let group = seconds(first)
            let commands = CommandTable.all.filter { $0.name == first || $0.name.hasPrefix(first + " ") }
            var options: [String] = []
            for option in commands.flatMap(\.allOptions) where !options.contains("--" + option.name) {
                options.append("--" + option.name)
            }
            text += "    \(first)) options=\"\(options.joined(separator: " "))\""
            if !group.isEmpty {
                text +=
                    "; [ \"$COMP_CWORD\" -eq 2 ] && { COMPREPLY=($(compgen -W \"\(group.joined(separator: " "))\" -- \"$current\")); return; }"
            }
            text += " ;;\n"
        }
        text += """
                esac
                if [[ "$current" == -* ]]; then
                    COMPREPLY=($(compgen -W "$options" -- "$current"))
                else
                    compopt -o filenames 2>/dev/null
                    COMPREPLY=($(compgen -f -- "$current"))
                fi
            }
            complete -F _realm_sync realm-sync

            """
        return text
    }

    private static func quoted(_ text: String) -> String { "'" + text.map { $0 == "'" ? "'\\''" : String($0) }.joined() + "'" }

    private static func zsh() -> String {
        func plain(_ text: String) -> String { text.map { "[]:'\\\"`$".contains($0) ? " " : String($0) }.joined() }
        var text = "#compdef realm-sync\n_realm_sync() {\n    local -a commands\n    commands=(\n"
        for first in firstWords {
            let summary =
                CommandTable.all.first { $0.name == first }?.summary
                ?? (first == "help" ? "Show help." : "Commands: " + seconds(first).joined(separator: ", "))
            text += "        \(quoted(first + ":" + plain(summary)))\n"
        }
        text += "    )\n    if (( CURRENT == 2 )); then _describe command commands; return; fi\n    case \"$words[2]\" in\n"
        for first in firstWords {
            let commands = CommandTable.all.filter { $0.name == first || $0.name.hasPrefix(first + " ") }
            var seen: Set<String> = []
            let options = commands.flatMap(\.allOptions).filter { seen.insert($0.name).inserted }.map { option in
                quoted("--\(option.name)[\(plain(option.help))]" + (option.value.map { ":\(plain($0)):_files" } ?? ""))
            }
            let group = seconds(first)
            text += "    \(first))"
            if !group.isEmpty { text += " if (( CURRENT == 3 )); then compadd \(group.joined(separator: " ")); return; fi;" }
            text += " _arguments \(options.joined(separator: " ")) '*:file:_files' ;;\n"
        }
        return text + "    esac\n}\n_realm_sync \"$@\"\n"
    }

    private static func fish() -> String {
        var text = "# fish completion for realm-sync\ncomplete -c realm-sync -f -n __fish_use_subcommand\n"
        for first in firstWords {
            let summary = CommandTable.all.first { $0.name == first }?.summary ?? first
            text += "complete -c realm-sync -f -n __fish_use_subcommand -a \(first) -d \(quoted(summary))\n"
            for second in seconds(first) {
                text += "complete -c realm-sync -n '__fish_seen_subcommand_from \(first)' -a \(second)\n"
            }
            var seen: Set<String> = []
            for command in CommandTable.all where command.name == first || command.name.hasPrefix(first + " ") {
                for option in command.allOptions where seen.insert(option.name).inserted {
                    text += "complete -c realm-sync -n '__fish_seen_subcommand_from \(first)' -l \(option.name)"
                    if let letter = option.letter { text += " -s \(letter)" }
                    if option.value != nil { text += " -r" }
                    text += " -d \(quoted(option.help))\n"
                }
            }
        }
        return text
    }
}
