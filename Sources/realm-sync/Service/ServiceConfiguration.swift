import Glibc
import Replication
import SharedStore
import SystemCalls

/// What the service is to do, checked: from a file, over it the environment, over that the options of the command line.
struct ServiceConfiguration: Equatable, Sendable {
    var socket: String?
    var socketMode: UInt32 = 0o660
    /// Host and port.
    var listen: Address?
    var logLevel = ServiceLog.Level.info
    var logFormat = ServiceLog.Format.plain
    var stopTimeout = Duration.seconds(10)
    var streams: [StreamSpecification] = []
    var directories: [DirectorySpecification] = []

    struct Address: Equatable, Sendable {
        var host: String
        var port: UInt16
    }

    static let defaultPath = "/etc/realm-sync/realm-sync.conf"

    /// Where the service is asked when nothing else is said: below the folder that the service manager gives, or that of the
    /// user.
    static func defaultSocket(_ environment: (String) -> String?) -> String {
        if let folder = environment("RUNTIME_DIRECTORY")?.split(separator: ":").first, folder.hasPrefix("/") {
            return folder + "/status.sock"
        }
        if getuid() != 0, let folder = environment("XDG_RUNTIME_DIR"), folder.hasPrefix("/") {
            return folder + "/realm-sync.sock"
        }
        return "/run/realm-sync/status.sock"
    }

    /// - Parameters:
    ///   - path: nil where there is no file.
    ///   - settings: `SECTION.KEY=VALUE`, with what to call the option that gave it.
    /// - Throws: `ConfigurationError` with all that is wrong; `OpenError` where the file cannot be read.
    static func read(path: String?, environment: [String: String], settings: [(text: String, place: String)]) throws
        -> ServiceConfiguration
    {
        var text = ConfigurationText()
        if let path {
            _ = try Self.status(path)
            guard let content = FileText.read(path, limit: 4 << 20, ofAnyKind: true) else {
                throw CommandFailure(.noInput, "\(path): cannot be read, or has more than 4 MB")
            }
            text = ConfigurationText(content, file: path)
        }
        var builder = ConfigurationBuilder(text, environment)
        builder.apply(environment)
        builder.apply(settings)
        return try builder.build()
    }

    private static func status(_ path: String) throws -> SystemCalls.Status {
        do {
            let status = try SystemCalls.status(path: path)
            if !status.isRegularFile { throw OpenError.notARegularFile(path: path) }
            let descriptor = try SystemCalls.open(path, O_RDONLY)
            SystemCalls.close(descriptor)
            return status
        } catch let error as SystemError { throw OpenError(error, path: path) }
    }
}

/// Makes a `ServiceConfiguration` of text and collects what is wrong with it.
struct ConfigurationBuilder {
    private var text: ConfigurationText
    private let environment: [String: String]
    private var problems: [ConfigurationProblem]

    init(_ text: ConfigurationText, _ environment: [String: String]) {
        self.text = text
        self.environment = environment
        problems = text.problems
    }

    private mutating func complain(_ place: String, _ text: String) {
        problems.append(ConfigurationProblem(place: place, text: text))
    }

    // MARK: Environment and options

    /// `REALM_SYNC_SERVICE_LOG_LEVEL`, `REALM_SYNC_DEFAULTS_GRACE`, `REALM_SYNC_MIRROR_ORDERS_GRACE`: capitals, and `_` for all
    /// else.
    static func variable(_ section: String, _ key: String) -> String {
        let words = "REALM_SYNC_\(section)_\(key)".unicodeScalars.map { scalar -> Character in
            scalar.isASCII && (scalar.properties.isAlphabetic || ("0"..."9").contains(scalar)) ? Character(scalar) : "_"
        }
        return String(words).uppercased()
    }

    mutating func apply(_ environment: [String: String]) {
        var titles = [("service", ConfigurationSection.service), ("defaults", .defaults)]
        for section in text.sections {
            if let kind = ConfigurationSection(rawValue: section.kind), kind.isNamed { titles.append((section.title, kind)) }
        }
        var known: Set<String> = []
        for (title, kind) in titles {
            for key in kind.keys {
                let name = Self.variable(title, key.name)
                known.insert(name)
                if let value = environment[name] { text.set(title, key.name, to: value, place: name) }
            }
        }
        for name in environment.keys.sorted() where !known.contains(name) {
            if name.hasPrefix("REALM_SYNC_SERVICE_") || name.hasPrefix("REALM_SYNC_DEFAULTS_") {
                complain(name, "this environment variable names no key of the configuration")
            }
        }
    }

    mutating func apply(_ settings: [(text: String, place: String)]) {
        for (setting, place) in settings {
            let parts = setting.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            guard parts.count == 2, let dot = parts[0].lastIndex(of: ".") else {
                complain(place, "'\(setting)' is not of the form SECTION.KEY=VALUE")
                continue
            }
            let title = String(parts[0][..<dot]), key = String(parts[0][parts[0].index(after: dot)...])
            text.set(title, key, to: parts[1], place: "\(place) \(parts[0])")
        }
    }

    // MARK: Sections

    mutating func build() throws -> ServiceConfiguration {
        var result = ServiceConfiguration()
        result.socket = ServiceConfiguration.defaultSocket { environment[$0] }
        var defaults = Values([:])
        for section in text.sections {
            guard let kind = ConfigurationSection(rawValue: section.kind) else {
                let near =
                    Spelling.nearest(section.kind, among: ConfigurationSection.allCases.map(\.rawValue)).map {
                        "; did you mean [\($0)]?"
                    } ?? ""
                complain(section.place, "there is no section [\(section.kind)]\(near)")
                continue
            }
            if kind.isNamed == section.name.isEmpty {
                complain(
                    section.place, kind.isNamed ? "the section needs a name: [\(kind) NAME]" : "the section [\(kind)] has no name"
                )
            }
            if kind == .defaults { defaults = values(section, kind, Values([:])) }
        }
        for section in text.sections {
            guard let kind = ConfigurationSection(rawValue: section.kind), kind != .defaults else { continue }
            let values = values(section, kind, kind == .service ? Values([:]) : defaults)
            switch kind {
            case .service: service(values, &result)
            case .mirror, .archive: if let stream = stream(values, section, kind) { result.streams.append(stream) }
            case .directory: if let directory = directory(values, section) { result.directories.append(directory) }
            case .defaults: break
            }
        }
        checkTargets(result)
        // By line within a file; what came from elsewhere stays at its place.
        if !problems.isEmpty { throw ConfigurationError(problems: Self.sorted(problems)) }
        return result
    }

    private static func sorted(_ problems: [ConfigurationProblem]) -> [ConfigurationProblem] {
        func line(_ place: String) -> Int { place.split(separator: ":").last.flatMap { Int($0) } ?? Int.max }
        return problems.enumerated().sorted { (line($0.element.place), $0.offset) < (line($1.element.place), $1.offset) }.map(
            \.element)
    }

    /// The values of a section by key, over those of the defaults.
    struct Values {
        private(set) var entries: [String: [ConfigurationText.Entry]]
        init(_ entries: [String: [ConfigurationText.Entry]]) { self.entries = entries }

        subscript(_ key: String) -> ConfigurationText.Entry? { entries[key]?.last }
        func all(_ key: String) -> [ConfigurationText.Entry] { entries[key] ?? [] }
        func over(_ defaults: Values) -> Values {
            Values(defaults.entries.merging(entries) { $1 })
        }
        mutating func remove(_ keys: [String]) { for key in keys { entries[key] = nil } }
    }

    private mutating func values(_ section: ConfigurationText.Section, _ kind: ConfigurationSection, _ defaults: Values) -> Values
    {
        var found: [String: [ConfigurationText.Entry]] = [:]
        let keys = kind.keys
        for entry in section.entries {
            guard let key = keys.first(where: { $0.name == entry.key }) else {
                let near = Spelling.nearest(entry.key, among: keys.map(\.name)).map { "; did you mean '\($0)'?" } ?? ""
                complain(entry.place, "[\(section.kind)] has no key '\(entry.key)'\(near)")
                continue
            }
            if !key.isRepeated, let other = found[entry.key]?.first {
                complain(entry.place, "'\(entry.key)' stands at \(other.place) already")
                continue
            }
            found[entry.key, default: []].append(entry)
        }
        var result = Values(found)
        // A key of the section ends what the defaults say of the same thing in another way.
        var defaults = defaults
        for pair in [["key-file", "key-env"], ["dest-key-file", "dest-key-env", "dest-plain"]]
        where pair.contains(where: { found[$0] != nil }) {
            defaults.remove(pair)
        }
        result = result.over(defaults)
        return result
    }

    private mutating func service(_ values: Values, _ result: inout ServiceConfiguration) {
        if let entry = values["socket"] { result.socket = entry.value == "none" ? nil : path(entry) }
        if let entry = values["socket-mode"] {
            if let mode = UInt32(entry.value, radix: 8), mode <= 0o777 {
                result.socketMode = mode
            } else {
                complain(entry.place, "socket-mode: '\(entry.value)' is no mode; write three octal digits such as 660")
            }
        }
        if let entry = values["listen"], entry.value != "none" { result.listen = address(entry) }
        if let entry = values["log-level"] { result.logLevel = choice(entry, ServiceLog.Level.self) ?? result.logLevel }
        if let entry = values["log-format"] { result.logFormat = choice(entry, ServiceLog.Format.self) ?? result.logFormat }
        result.stopTimeout = duration(values["stop-timeout"]) ?? result.stopTimeout
    }

    private mutating func stream(_ values: Values, _ section: ConfigurationText.Section, _ kind: ConfigurationSection)
        -> StreamSpecification?
    {
        let targetKey = kind == .mirror ? "destination" : "archive"
        let source = values["source"], target = values[targetKey]
        for key in ["source", targetKey] where values[key] == nil { complain(section.place, "[\(section.title)] has no \(key)") }
        // What else is wrong is told too.
        let from = source.map { place($0) } ?? "", to = target.map { place($0) } ?? ""
        var stream = StreamSpecification(name: section.name, source: from, target: kind == .mirror ? .file(to) : .archive(to))
        fill(&stream, values)
        if kind == .mirror, let target, StreamSpecification.isRemote(from), StreamSpecification.isRemote(to) {
            complain(target.place, "source and destination are both on another machine; one of them must be here")
        }
        if kind == .archive, let source, StreamSpecification.isRemote(from) {
            complain(source.place, "the source of an archive must be a file of this machine")
        }
        if let target, let local = stream.localSource, let replica = stream.localReplica, Self.plain(local) == Self.plain(replica)
        {
            complain(target.place, "source and destination are the same file")
        }
        checkWire(stream, from, source)
        checkWire(stream, to, target)
        return isEnabled(values) && source != nil && target != nil ? stream : nil
    }

    /// Whoever is reached over TLS must be told who we are.
    private mutating func checkWire(_ stream: StreamSpecification, _ address: String, _ entry: ConfigurationText.Entry?) {
        guard let entry, address.hasPrefix("realm://"), stream.wire.sharedSecrets == nil, stream.wire.certificate == nil,
            stream.wire.key == nil,
            stream.wire.authority == nil
        else { return }
        complain(entry.place, "\(entry.key): a realm:// address needs cert, key and ca, or psk-file")
    }

    /// A path in one of the forms that it may have, without asking the file system: what is checked need not be there yet.
    private static func plain(_ path: String) -> String {
        "/" + path.split(separator: "/").filter { $0 != "." }.joined(separator: "/")
    }

    private mutating func directory(_ values: Values, _ section: ConfigurationText.Section) -> DirectorySpecification? {
        let source = values["source"]
        if source == nil { complain(section.place, "[\(section.title)] has no source") }
        var target: StreamSpecification.Target?
        switch (values["destination"], values["archive"]) {
        case (let entry?, nil): target = .file(place(entry))
        case (nil, let entry?): target = .archive(place(entry))
        case (nil, nil):
            complain(section.place, "[\(section.title)] needs a destination or an archive")
        case (_, let entry?):
            complain(entry.place, "[\(section.title)] has a destination and an archive; write two sections")
        }
        // What else is wrong is told too.
        var template = StreamSpecification(name: section.name, source: "", target: target ?? .file(""))
        fill(&template, values)
        let folder = source.map { path($0) ?? $0.value } ?? ""
        var directory = DirectorySpecification(name: section.name, folder: folder, template: template)
        while directory.folder.count > 1, directory.folder.hasSuffix("/") { directory.folder.removeLast() }
        if !values.all("pattern").isEmpty { directory.patterns = values.all("pattern").map(\.value) }
        directory.excludes = values.all("exclude").map(\.value)
        directory.isRecursive = flag(values["recursive"]) ?? false
        directory.scanInterval = max(.milliseconds(100), duration(values["scan-interval"]) ?? directory.scanInterval)
        if let entry = values["destination"] ?? values["archive"], let source, let target,
            Self.plain(source.value) == Self.plain(target.text)
        {
            complain(entry.place, "\(entry.key): each file would be copied over itself; name another folder")
        }
        checkWire(template, target?.text ?? "", values["destination"])
        return isEnabled(values) && source != nil && target != nil ? directory : nil
    }

    private mutating func isEnabled(_ values: Values) -> Bool { flag(values["enabled"]) ?? true }

    private mutating func fill(_ stream: inout StreamSpecification, _ values: Values) {
        stream.force = flag(values["force"]) ?? false
        stream.grace = duration(values["grace"])
        stream.pinLimit = duration(values["pin-limit"])
        stream.gatherLimit = duration(values["gather"])
        stream.key = key(values, "key-file", "key-env")
        stream.bytesPerSecond = byteCount(values["rate-limit"])
        if let entry = values["leave-when-idle"], entry.value != "no" { stream.leaveWhenIdle = duration(entry) }
        stream.lagWarning = duration(values["lag-warning"]) ?? stream.lagWarning
        stream.retryMin = max(.milliseconds(10), duration(values["retry-min"]) ?? stream.retryMin)
        stream.retryMax = max(stream.retryMin, duration(values["retry-max"]) ?? stream.retryMax)
        stream.hooks.onFailure = values["on-failure"]?.value
        stream.hooks.onRecovery = values["on-recovery"]?.value
        stream.hooks.onSuccess = values["on-success"]?.value
        stream.hooks.interval = duration(values["hook-interval"]) ?? stream.hooks.interval
        stream.checkInterval = integer(values["check-every"])
        stream.destinationKey = key(values, "dest-key-file", "dest-key-env")
        stream.isDestinationPlain = flag(values["dest-plain"]) ?? false
        if stream.isDestinationPlain, stream.destinationKey.isGiven, let entry = values["dest-plain"] {
            complain(entry.place, "the destination cannot have a key and be plain")
        }
        stream.wire.certificate = values["cert"].flatMap { path($0) }
        stream.wire.key = values["key"].flatMap { path($0) }
        stream.wire.authority = values["ca"].flatMap { path($0) }
        stream.wire.sharedSecrets = values["psk-file"].flatMap { path($0) }
        stream.wire.revocations = values["revoked"].flatMap { path($0) }
        let files = ["cert", "key", "ca"].compactMap { values[$0] }
        if !files.isEmpty && files.count < 3 { complain(files[0].place, "cert, key and ca belong together") }
        stream.wire.sshProgram = values["ssh-program"]?.value.split(separator: " ").map(String.init) ?? []
        stream.wire.remoteProgram = values["remote-program"]?.value
        stream.wire.remoteKeyFile = values["remote-key-file"]?.value
        stream.wire.allowsPlain = flag(values["allow-plain"]) ?? false
        stream.keep = integer(values["keep"])
        stream.keepFor = duration(values["keep-for"])
        stream.snapshotInterval = duration(values["snapshot-interval"])
        stream.removalDelay = duration(values["removal-delay"])
        stream.lease = duration(values["lease"])
    }

    private mutating func key(_ values: Values, _ file: String, _ variable: String) -> StreamSpecification.KeySource {
        if let entry = values[variable], values[file] != nil { complain(entry.place, "\(file) and \(variable) are both given") }
        return StreamSpecification.KeySource(
            file: values[file].flatMap { path($0) }, environment: values[variable]?.value,
            allowsReadableFile: flag(values["allow-readable-key-file"]) ?? false)
    }

    /// Two streams into one place would be in each other's way for ever.
    private mutating func checkTargets(_ result: ServiceConfiguration) {
        var seen: [ExactString: String] = [:]
        for stream in result.streams {
            if let other = seen.updateValue(stream.name, forKey: ExactString(stream.target.text)) {
                let title = text.sections.first { $0.name == stream.name && ($0.kind == "mirror" || $0.kind == "archive") }
                complain(title?.place ?? stream.name, "'\(stream.name)' and '\(other)' both write to \(stream.target.text)")
            }
        }
        checkLoops(result)
        var names: Set<ExactString> = []
        for section in text.sections where ["mirror", "archive", "directory"].contains(section.kind) && !section.name.isEmpty {
            if !names.insert(ExactString(section.name)).inserted {
                complain(section.place, "the name '\(section.name)' is given twice")
            }
        }
    }

    /// A file that is mirrored to itself by way of others would be refused by one of the mirrors, for ever, whichever comes last.
    private mutating func checkLoops(_ result: ServiceConfiguration) {
        var next: [String: [String]] = [:]
        for stream in result.streams {
            guard let source = stream.localSource, let replica = stream.localReplica, Self.plain(source) != Self.plain(replica)
            else { continue }
            // Only what the earlier ones make can be led back by a later one.
            var reached: Set<String> = [Self.plain(replica)], pending = [Self.plain(replica)]
            while let file = pending.popLast() {
                for step in next[file] ?? [] where reached.insert(step).inserted { pending.append(step) }
            }
            if reached.contains(Self.plain(source)) {
                let title = text.sections.first { $0.name == stream.name && $0.kind == "mirror" }
                complain(title?.place ?? stream.name, "'\(stream.name)' mirrors back to \(replica) what comes from there: a loop")
            } else {
                next[Self.plain(source), default: []].append(Self.plain(replica))
            }
        }
    }

    // MARK: Values

    /// An absolute path, or an address of another place.
    private mutating func place(_ entry: ConfigurationText.Entry) -> String {
        if !StreamSpecification.isRemote(entry.value) { return path(entry) ?? entry.value }
        do {
            if entry.key == "archive" { try StreamJob.checkPlace(entry.value) } else { try StreamJob.checkAddress(entry.value) }
        } catch { complain(entry.place, "\(entry.key): \(error)") }
        return entry.value
    }

    private mutating func path(_ entry: ConfigurationText.Entry) -> String? {
        if entry.value.hasPrefix("/") { return entry.value }
        complain(entry.place, "\(entry.key): '\(entry.value)' is no absolute path; begin with a /")
        return nil
    }

    private mutating func duration(_ entry: ConfigurationText.Entry?) -> Duration? {
        guard let entry else { return nil }
        if let value = Units.duration(entry.value) { return value }
        complain(entry.place, "\(entry.key): '\(entry.value)' is not a time; write a number with ms, s, m, h or d")
        return nil
    }

    private mutating func byteCount(_ entry: ConfigurationText.Entry?) -> Int? {
        guard let entry else { return nil }
        if let value = Units.byteCount(entry.value), value >= 1024 { return value }
        complain(
            entry.place,
            "\(entry.key): '\(entry.value)' is not a size of at least 1K; write a number of bytes, or one with K, M, G or T")
        return nil
    }

    private mutating func integer(_ entry: ConfigurationText.Entry?) -> Int? {
        guard let entry else { return nil }
        if let value = Int(entry.value), value >= 1 { return value }
        complain(entry.place, "\(entry.key): '\(entry.value)' is not a whole number of at least 1")
        return nil
    }

    private mutating func flag(_ entry: ConfigurationText.Entry?) -> Bool? {
        guard let entry else { return nil }
        switch entry.value.lowercased() {
        case "yes", "true", "on", "1": return true
        case "no", "false", "off", "0": return false
        default:
            complain(entry.place, "\(entry.key): '\(entry.value)' is neither yes nor no")
            return nil
        }
    }

    private mutating func choice<Choice: RawRepresentable & CaseIterable>(_ entry: ConfigurationText.Entry, _ type: Choice.Type)
        -> Choice?
    where Choice.RawValue == String {
        if let value = Choice(rawValue: entry.value) { return value }
        complain(
            entry.place, "\(entry.key): '\(entry.value)' is none of \(Choice.allCases.map(\.rawValue).joined(separator: ", "))")
        return nil
    }

    private mutating func address(_ entry: ConfigurationText.Entry) -> ServiceConfiguration.Address? {
        var host = entry.value[...]
        guard let colon = entry.value.lastIndex(of: ":"), let port = UInt16(entry.value[entry.value.index(after: colon)...])
        else {
            complain(entry.place, "listen: '\(entry.value)' is not ADDRESS:PORT")
            return nil
        }
        host = entry.value[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
        guard LocalSocket.isNumericAddress(String(host)) else {
            complain(entry.place, "listen: '\(host)' is no numeric address; 127.0.0.1 and [::1] are this machine's own")
            return nil
        }
        return ServiceConfiguration.Address(host: String(host), port: port)
    }
}
