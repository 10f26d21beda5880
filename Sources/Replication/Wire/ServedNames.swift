import Glibc
import SharedStore
import SystemCalls

/// What clients may do: a small file of lines, checked when it is read.
///
/// ```
/// # CLIENT   RIGHTS            NAMES
/// web-1      push              web-1/*.realm
/// reporting  pull              **
/// admin      push,pull,force   **
/// *          pull              public/**
/// ```
/// CLIENT is the common name of a certificate, or the name of a shared secret; `*` stands for every client. RIGHTS are `push`
/// (carry a file here), `pull` (carry one away) and `force` (replace what stands there and is no replica of the client's source),
/// and `rate=SIZE`, such as `push,rate=5M`, holds the client to so many bytes a second where this is the first line that allows
/// what it does. In NAMES, `*` stands for any letters but `/`, `**` for any letters, `?` for one letter. What no line allows is
/// not allowed.
public struct ServerRights: Sendable, Equatable {
    /// The raw value is how it is written.
    public enum Right: String, Sendable, CaseIterable { case push, pull, force }

    struct Rule: Sendable, Equatable {
        var client: String
        var rights: Set<Right>
        var patterns: [String]
        var bytesPerSecond: Int?
    }

    var rules: [Rule]

    /// Every client may push and pull every name.
    public static let all = ServerRights(rules: [Rule(client: "*", rights: [.push, .pull], patterns: ["**"])])

    init(rules: [Rule]) { self.rules = rules }

    /// - Throws: `WireError.badConfiguration` with the number of the line at fault.
    public init(text: String, path: String) throws {
        rules = []
        for (number, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
            let words = line.prefix { $0 != "#" }.split(whereSeparator: \.isWhitespace).map(String.init)
            if words.isEmpty { continue }
            func problem(_ reason: String) -> WireError { .badConfiguration("\(path): line \(number + 1): \(reason)") }
            guard words.count >= 3 else { throw problem("CLIENT, RIGHTS and NAMES are needed") }
            var rights: Set<Right> = []
            var bytesPerSecond: Int?
            for word in words[1].split(separator: ",") {
                if word.hasPrefix("rate=") {
                    guard let rate = Self.rate(word.dropFirst(5)) else {
                        throw problem(
                            "'\(word)' is no rate of at least \(Self.rateMin / 1024)K; write it like rate=500K or rate=5M")
                    }
                    bytesPerSecond = rate
                    continue
                }
                guard let right = Right(rawValue: String(word)) else {
                    throw problem(
                        "'\(word)' is no right; there are \(Right.allCases.map(\.rawValue).joined(separator: ", ")) and rate=SIZE"
                    )
                }
                rights.insert(right)
            }
            rules.append(Rule(client: words[0], rights: rights, patterns: Array(words[2...]), bytesPerSecond: bytesPerSecond))
        }
    }

    /// - Throws: `WireError.badConfiguration`, also where the file cannot be read. What lies beyond a megabyte is not read.
    public static func read(_ path: String) throws -> ServerRights {
        do {
            let descriptor = try SystemCalls.open(path, O_RDONLY | O_NONBLOCK)
            defer { SystemCalls.close(descriptor) }
            var bytes = [UInt8](repeating: 0, count: 1 << 20)
            let count = try bytes.withUnsafeMutableBytes { try SystemCalls.read(descriptor, into: $0, at: 0, path: path) }
            return try ServerRights(text: String(decoding: bytes[..<count], as: UTF8.self), path: path)
        } catch let error as SystemError { throw WireError.badConfiguration("\(error)") }
    }

    /// Slower than this a message of a megabyte would take longer than a silence may last.
    public static let rateMin = 16 << 10

    private static func rate(_ text: Substring) -> Int? {
        let digits = text.prefix { $0.isASCII && $0.isNumber }
        let shift: Int? =
            switch text.dropFirst(digits.count).uppercased() {
            case "": 0
            case "K": 10
            case "M": 20
            case "G": 30
            default: nil
            }
        guard let shift, let number = Int(digits), number <= Int.max >> shift, number << shift >= rateMin else { return nil }
        return number << shift
    }

    /// Whether some line allows it; the client's name is what its certificate or its secret says.
    public func allows(_ right: Right, client: String, name: String) -> Bool { rule(right, client, name) != nil }

    /// The rate at which a client may do what it is allowed to; nil for any.
    func bytesPerSecond(_ right: Right, client: String, name: String) -> Int? { rule(right, client, name)?.bytesPerSecond }

    private func rule(_ right: Right, _ client: String, _ name: String) -> Rule? {
        rules.first { rule in
            (rule.client == "*" || rule.client == client) && rule.rights.contains(right)
                && rule.patterns.contains { Self.matches($0, name) }
        }
    }

    /// Compares by a table of pattern places, so that no pattern takes long.
    static func matches(_ pattern: String, _ name: String) -> Bool {
        enum Part { case letter(UInt8), one, some, all }
        var parts: [Part] = []
        var rest = Array(pattern.utf8)[...]
        while let byte = rest.popFirst() {
            if byte == UInt8(ascii: "*") {
                if rest.first == UInt8(ascii: "*") {
                    rest.removeFirst()
                    parts.append(.all)
                } else {
                    parts.append(.some)
                }
            } else {
                parts.append(byte == UInt8(ascii: "?") ? .one : .letter(byte))
            }
        }
        /// Places that can be reached without a letter.
        func closed(_ places: [Bool]) -> [Bool] {
            var places = places
            for i in parts.indices where places[i] {
                switch parts[i] {
                case .some, .all: places[i + 1] = true
                default: break
                }
            }
            return places
        }
        var places = [Bool](repeating: false, count: parts.count + 1)
        places[0] = true
        places = closed(places)
        for byte in name.utf8 {
            var next = [Bool](repeating: false, count: parts.count + 1)
            for i in parts.indices where places[i] {
                switch parts[i] {
                case .letter(let wanted): if wanted == byte { next[i + 1] = true }
                case .one: if byte != UInt8(ascii: "/") { next[i + 1] = true }
                case .some: if byte != UInt8(ascii: "/") { next[i] = true }
                case .all: next[i] = true
                }
            }
            places = closed(next)
        }
        return places[parts.count]
    }
}

/// Files below a folder, by names that clients give.
enum ServedName {
    /// Endings that belong to side files.
    private static let reserved = [".lock", ".management", ".note", ".part", ".mirror"]
    private static let componentByteCountMax = 200

    /// The path of the file `name` below `root`.
    ///
    /// No name leads out of the root: not by "..", not from "/", and not by a symbolic link, none of which may lie on the way.
    /// - Parameter makesFolders: make those on the way that are missing.
    /// - Throws: `WireError.refused` with `.badName` or `.notFound`.
    static func path(_ name: String, below root: String, makesFolders: Bool) throws -> String {
        func refusal(_ code: WireCode, _ reason: String) -> WireError {
            .refused(peer: "this server", code: code, reason: reason)
        }
        let parts = name.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        guard !name.isEmpty, name.utf8.count <= Frame.nameByteCountMax else {
            throw refusal(.badName, "'\(name)' cannot be the name of a file here")
        }
        for part in parts {
            guard !part.isEmpty, part != ".", part != "..", part.utf8.count <= componentByteCountMax,
                !part.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7F })
            else {
                throw refusal(.badName, "'\(name)' leaves the served folder, or cannot be the name of a file")
            }
            guard !reserved.contains(where: { part.hasSuffix($0) }) else {
                throw refusal(.badName, "'\(name)' is the name of a side file")
            }
        }
        var path = root
        for (index, part) in parts.enumerated() {
            path += "/" + part
            let isLast = index == parts.count - 1
            let status: SystemCalls.Status
            do { status = try SystemCalls.linkStatus(path: path) } catch let error as SystemError where error.code == ENOENT {
                if isLast { break }
                guard makesFolders else { throw refusal(.notFound, "there is no '\(name)' here") }
                do { try SystemCalls.makeDirectory(path, mode: 0o750) } catch let error as SystemError where error.code == EEXIST
                {}
                continue
            }
            if status.isSymbolicLink { throw refusal(.badName, "'\(name)' leads through a symbolic link") }
            guard isLast ? status.isRegularFile : status.isDirectory else { throw refusal(.badName, "'\(name)' is no file") }
        }
        return path
    }

    /// A file that begins like one that is not encrypted, or is empty.
    static func isPlain(_ path: String) -> Bool {
        guard let descriptor = try? SystemCalls.open(path, O_RDONLY | O_NONBLOCK) else { return false }
        defer { SystemCalls.close(descriptor) }
        var bytes: (UInt64, UInt64, UInt64) = (0, 0, 0)
        return withUnsafeMutableBytes(of: &bytes) { space in
            guard let start = space.baseAddress, let count = try? SystemCalls.read(descriptor, into: space, at: 0, path: path)
            else { return false }
            return count < space.count || FileHeader(start).mnemonic == FileHeader.mnemonic
        }
    }
}
