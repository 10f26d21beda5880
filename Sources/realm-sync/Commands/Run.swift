import Glibc
import SharedStore
import SystemCalls

extension Command {
    static let run = Command(
        name: "run",
        summary: "Run as a service: keep all mirrors and archives of a configuration file going.",
        details: [
            "Each mirror and archive has a thread of its own and is begun again after a failure; a slow or failing one holds back no other. SIGHUP loads "
                + "the configuration again, and what did not change goes on undisturbed; SIGTERM ends the service in good order; SIGUSR1 writes a line "
                + "a mirror to the log. 'realm-sync status' shows how it is.",
            "The configuration is explained in realm-sync.conf(5). Each of its values can be given by the environment, such as "
                + "REALM_SYNC_SERVICE_LOG_LEVEL=debug or REALM_SYNC_MIRROR_ORDERS_GRACE=1h, and over that by --set. Without --config, "
                + "\(ServiceConfiguration.defaultPath) is read, unless --set names all there is to do.",
        ],
        options: [
            .value("config", "c", "FILE", "The configuration file."),
            .flag("check-config", nil, "Check the configuration, tell all that is wrong with it by line, and end."),
            .value(
                "set", "s", "SECTION.KEY=VALUE", "Set a value, such as 'mirror orders.source=/srv/orders.realm'.",
                isRepeated: true),
            .value("socket", "S", "PATH", "The same as --set service.socket=PATH."),
            .value("listen", "l", "ADDRESS:PORT", "The same as --set service.listen=ADDRESS:PORT."),
            .value("log-level", nil, "LEVEL", "The same as --set service.log-level=LEVEL."),
            .value("log-format", nil, "FORMAT", "The same as --set service.log-format=FORMAT."),
        ],
        exitCodes: [(.configuration, "the configuration is wrong; each error is a line on standard error")],
        run: runService)
}

private func runService(_ invocation: Invocation) throws -> ExitCode {
    let arguments = invocation.arguments
    let environment = ProcessEnvironment.all
    var settings: [(text: String, place: String)] = arguments.strings("set").map { ($0, "--set") }
    for name in ["socket", "listen", "log-level", "log-format"] {
        if let value = arguments.string(name) { settings.append(("service.\(name)=\(value)", "--\(name)")) }
    }
    let path =
        arguments.string("config") ?? environment["REALM_SYNC_CONFIG"]
        ?? (arguments.has("set") ? nil : ServiceConfiguration.defaultPath)
    let final = settings
    func read() throws -> ServiceConfiguration {
        try ServiceConfiguration.read(path: path, environment: environment, settings: final)
    }
    do {
        if arguments.has("check-config") {
            let configuration = try read()
            try invocation.output.line(
                "\(path ?? "the options"): all is well: \(Text.count(configuration.streams.count, "mirror or archive", "mirrors and archives")), "
                    + Text.count(configuration.directories.count, "directory", "directories"))
            return .ok
        }
        let log = ServiceLog { environment[$0] }
        let service = try Service(log: log, environment: environment, read: read)
        return try service.run()
    } catch let error as ConfigurationError {
        for problem in error.problems { invocation.console.message(problem.description) }
        return .configuration
    }
}

/// Asks the service, and shows what it says.
func runServiceStatus(_ invocation: Invocation) throws -> ExitCode {
    let environment = ProcessEnvironment.all
    if invocation.arguments.has("immutable") || invocation.arguments.has("key-file") || invocation.arguments.has("key-env") {
        throw invocation.arguments.usageError(
            "FILE is missing; without it the service is asked, which needs neither --immutable nor a key")
    }
    let socket =
        invocation.arguments.string("socket") ?? environment[ConfigurationBuilder.variable("service", "socket")]
        ?? ServiceConfiguration.defaultSocket { environment[$0] }
    do {
        let page = (invocation.wantsJSON ? "/status" : "/status.txt") + (invocation.arguments.has("problems") ? "?problems" : "")
        let (body, verdict) = try StatusClient.get(page, socket: socket)
        try invocation.output.write(body)
        return verdict == 0 ? .ok : verdict == 1 ? .damageFound : .failed
    } catch let error as SystemError {
        let advice =
            switch error.code {
            case ENOENT, ECONNREFUSED: "; the service does not run, or has another socket (--socket)"
            case EACCES, EPERM: "; only members of the service's group may ask it"
            case ETIMEDOUT: "; the service does not answer"
            default: ""
            }
        throw CommandFailure(.failed, "\(error)\(advice)")
    }
}

enum ProcessEnvironment {
    /// All variables of this process, as they were at its start, but for those that hold the key of a file: of a key there is no
    /// other copy than the one that is wiped, and commands that the service starts do not get it.
    static var all: [String: String] {
        var result: [String: String] = [:]
        var next = environ
        while let entry = next.pointee {
            defer { next += 1 }
            if let value = strchr(entry, Int32(UInt8(ascii: "="))).map({ $0 + 1 }),
                EncryptionKey.isHexadecimal(UnsafeRawBufferPointer(start: value, count: strlen(value)))
            {
                continue
            }
            let text = String(cString: entry)
            if let sign = text.firstIndex(of: "=") { result[String(text[..<sign])] = String(text[text.index(after: sign)...]) }
        }
        return result
    }
}
