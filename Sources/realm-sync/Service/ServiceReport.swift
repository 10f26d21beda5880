import Glibc
import SystemCalls

/// The state of the whole service at one moment, in the forms in which it is asked for.
struct ServiceReport: Sendable {
    var streams: [StreamFacts]
    /// What is wrong with folders that are looked through, and with names in them.
    var folderErrors: [String]
    /// The configuration that could not be loaded, if the last reload failed.
    var configurationError: String?
    var upSeconds: Double

    /// The same with those streams only that are behind, have failed or wait for something.
    var problems: ServiceReport {
        var report = self
        report.streams.removeAll { $0.verdict == .fine && $0.waitsFor == nil }
        return report
    }

    /// The worst of all.
    var verdict: StreamFacts.Verdict {
        let worst = streams.map(\.verdict).max() ?? .fine
        return folderErrors.isEmpty && configurationError == nil ? worst : .failed
    }

    var summary: String {
        let counts = [(StreamFacts.Verdict.fine, "fine"), (.behind, "behind"), (.failed, "failed")].compactMap {
            verdict, text -> String? in
            let count = streams.filter { $0.verdict == verdict }.count
            return count == 0 ? nil : "\(count) \(text)"
        }
        let folders =
            folderErrors.isEmpty
            ? ""
            : "; "
                + Text.count(folderErrors.count, "trouble with folders", "troubles with folders")
        return "\(streams.count) streams" + (counts.isEmpty ? "" : ": " + counts.joined(separator: ", ")) + folders
    }

    var json: JSONText {
        .object([
            ("program", .string(Program.name)), ("programVersion", .string(Program.version)),
            ("process", .integer(Int(getpid()))),
            ("verdict", .string(verdict.text)), ("exitCode", .integer(verdict.rawValue)), ("upSeconds", .number(upSeconds)),
            ("configurationError", JSONText(configurationError)), ("folderErrors", .array(folderErrors.map { .string($0) })),
            ("streams", .array(streams.map(\.json))),
        ])
    }

    /// The text format of Prometheus, version 0.0.4.
    var metrics: String {
        var text = ""
        func family(_ name: String, _ type: String, _ help: String, _ value: (StreamFacts) -> Double?) {
            text += "# HELP realm_sync_\(name) \(help)\n# TYPE realm_sync_\(name) \(type)\n"
            for stream in streams {
                guard let value = value(stream) else { continue }
                text +=
                    "realm_sync_\(name){stream=\"\(Self.escaped(stream.name))\",kind=\"\(stream.kind)\"} \(Self.number(value))\n"
            }
        }
        text += "# HELP realm_sync_up_seconds Seconds since the service was started.\n# TYPE realm_sync_up_seconds gauge\n"
        text += "realm_sync_up_seconds \(Self.number(upSeconds))\n"
        text +=
            "# HELP realm_sync_streams Number of mirrors and archives.\n# TYPE realm_sync_streams gauge\nrealm_sync_streams \(streams.count)\n"
        text += "# HELP realm_sync_configuration_ok 1 where the last reload of the configuration succeeded.\n"
        text += "# TYPE realm_sync_configuration_ok gauge\nrealm_sync_configuration_ok \(configurationError == nil ? 1 : 0)\n"
        text += "# HELP realm_sync_folder_errors Folders that cannot be looked through, and names that no stream can have.\n"
        text += "# TYPE realm_sync_folder_errors gauge\nrealm_sync_folder_errors \(folderErrors.count)\n"
        family("verdict", "gauge", "0 fine, 1 behind, 2 failed.") { Double($0.verdict.rawValue) }
        family(
            "lag_seconds", "gauge",
            "Seconds since source and destination were known to be equal; rises while the other side is frozen."
        ) { $0.lagSeconds }
        family("lag_versions", "gauge", "Versions that the destination is behind.") { $0.lagVersions.map { Double($0) } }
        family("lag_bytes", "gauge", "Bytes that the destination is behind, where that is known.") {
            $0.lagBytes.map { Double($0) }
        }
        family("version", "gauge", "Version of the destination.") { $0.version.map { Double($0) } }
        family("source_version", "gauge", "Version of the source.") { $0.sourceVersion.map { Double($0) } }
        family("steps_total", "counter", "Versions that were carried over.") { Double($0.stepCount) }
        family("bytes_total", "counter", "Bytes of steps that were carried over.") { Double($0.byteCount) }
        family("images_total", "counter", "Whole images that were made.") { Double($0.imageCount) }
        family("failures_total", "counter", "Failures since the start of the service.") { Double($0.failureCount) }
        family("write_amplification", "gauge", "Bytes stored per byte changed, of an archive.") { $0.writeAmplification }
        family("last_success_timestamp_seconds", "gauge", "When source and destination were last seen to be equal.") {
            $0.lastSuccessTime.map { Double($0) / 1e9 }
        }
        return text
    }

    private static func number(_ value: Double) -> String {
        value.rounded() == value && abs(value) < 1e15 ? String(Int(value)) : "\(value)"
    }

    private static func escaped(_ text: String) -> String {
        text.map { character in
            switch character {
            case "\\": "\\\\"
            case "\"": "\\\""
            case "\n": "\\n"
            default: String(character)
            }
        }.joined()
    }
}
