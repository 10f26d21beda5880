/// How much a finding matters.
public enum Severity: String, Sendable, Comparable {
    /// Legal but unusual, a known habit of other writers, or harmless (leaked space).
    case warning
    /// The file is inconsistent: something will read wrongly, or a later commit may destroy data.
    case error
    public static func < (a: Severity, b: Severity) -> Bool { a == .warning && b == .error }
}

/// One place of a file that does not keep a rule.
public struct Finding: Sendable, Equatable, CustomStringConvertible {
    /// Whether data is damaged.
    public var severity: Severity
    /// The rule; its raw value is stable from release to release.
    public var code: FindingCode
    /// Name of the table, where the place belongs to one.
    public var table: String?
    /// Name of the column; `backlink NUMBER` for a column without a name.
    public var column: String?
    /// Key of the object (of the row), where it is known.
    public var object: ObjectKey?
    /// Byte position of the node at fault in the decrypted file; 0 for the file header.
    public var ref: Int
    /// What was found, with the values that differ.
    public var what: String

    public var description: String {
        var place = ""
        if let table { place += " table \(table)" }
        if let column { place += " column \(column)" }
        if let object { place += " object \(object)" }
        return "\(severity.rawValue) \(code.rawValue) at \(ref)\(place): \(what)"
    }
}

/// How far a verification goes.
public struct VerifierOptions: Sendable {
    /// The run stops when it has listed this many errors. As many warnings are listed; further ones are only counted, since the
    /// verdict must not depend on them.
    public var findingLimit = 1000
    /// Further findings of the same code and severity are only counted.
    public var findingsPerCode = 100
    /// The run stops when it has looked at this many elements of nodes. Nil: 32 for each byte of the file, more than any
    /// well-formed file holds (elements of width 0 are looked at once a node), so that a damaged one cannot keep the
    /// verifier busy.
    public var elementLimit: Int?
    /// Without anything in it.
    public init() {}
}

/// What a verification found.
public struct VerificationReport: Sendable {
    /// The first ones of each code; the rest is only counted.
    public var findings: [Finding] = []
    /// Findings that were counted but not listed.
    public var unlisted = 0
    /// All errors, also those that are not listed.
    public var errorCount = 0
    /// All warnings, also those that are not listed.
    public var warningCount = 0
    /// False where the run stopped at a limit of errors or elements: there may be more to find.
    public var isComplete = true
    /// Reachable nodes, and the bytes that they occupy.
    public var nodeCount = 0
    /// Bytes of all nodes that belong to the version.
    public var nodeByteCount = 0
    /// Bytes in the free list.
    public var freeByteCount = 0
    /// Bytes that are neither reachable nor free.
    public var leakedByteCount = 0
    /// Tables of the version.
    public var tableCount = 0
    /// Live objects of all tables.
    public var objectCount = 0
    /// Keys of objects that are linked to but gone.
    public var tombstoneCount = 0
    /// Links of all columns, those in collections included.
    public var linkCount = 0
    /// Entries of all indexes.
    public var indexEntryCount = 0
    /// Changesets in the history.
    public var historyElementCount = 0
    /// How long the verification took.
    public var elapsedNanoseconds: Int64 = 0

    /// Without anything in it.
    public init() {}
    /// True where no rule is broken; there may be warnings.
    public var isSound: Bool { errorCount == 0 && isComplete }
    /// The codes of all listed errors.
    public var errorCodes: Set<FindingCode> { Set(findings.lazy.filter { $0.severity == .error }.map(\.code)) }
    /// The codes of all listed findings.
    public var codes: Set<FindingCode> { Set(findings.map(\.code)) }
}
