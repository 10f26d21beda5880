/// What the objects of an archive are called, and how the versions in it are numbered.
///
/// ```
/// realm-archive        the manifest              lease            who may write
/// images/<S>           the version S, whole      hashes           block hashes of a version
/// steps/0/<S>          from version S-1 to S     index/<N>        what is known of the versions 256 N ... 256 N + 255
/// steps/<K>/<S>        from S - 4^K to S: the steps between, merged
/// ```
/// S, the sequence number of an archived version, counts without gaps, but where something had to begin anew (the source's
/// history did not go on from the newest archived version): that begins with an image at the next multiple of 4096. So each merge
/// begins at a multiple of its length, whether it exists can be asked by its name, and nobody has to list anything.
enum ArchiveNames {
    static let manifest = "realm-archive"
    static let lease = "lease"
    static let hashes = "hashes"

    /// So many merges of one level make one of the next.
    static let fanShift = 2
    static let levelMax = 12
    static let startAlignment: UInt64 = 4096
    static let indexChunkCount: UInt64 = 256

    /// Steps of one merge of a level.
    static func span(_ level: Int) -> UInt64 { 1 << UInt64(fanShift * level) }

    static func image(_ sequence: UInt64) -> String { "images/\(hexadecimal(sequence))" }

    static func step(_ level: Int, _ sequence: UInt64) -> String {
        let digits = hexadecimal(sequence)
        return "steps/\(level)/\(digits.dropLast(3))/\(digits.suffix(3))"
    }

    static func index(_ chunk: UInt64) -> String { "index/\(hexadecimal(chunk))" }

    static func chunk(of sequence: UInt64) -> UInt64 { sequence / indexChunkCount }

    enum Meaning: Equatable {
        case image(UInt64)
        case step(level: Int, last: UInt64)
    }

    /// What an object with this name holds; nil for anything else that may lie in a folder.
    static func meaning(of name: String) -> Meaning? {
        let parts = name.split(separator: "/", omittingEmptySubsequences: false)
        func number(_ digits: Substring) -> UInt64? { UInt64(digits, radix: 16).flatMap { $0 < 1 << 60 ? $0 : nil } }
        if parts.count == 2, parts[0] == "images", let sequence = number(parts[1]), image(sequence) == name {
            return .image(sequence)
        }
        if parts.count == 4, parts[0] == "steps", let level = Int(parts[1]), (0...levelMax).contains(level),
            let last = number(parts[2] + parts[3]), step(level, last) == name
        {
            return .step(level: level, last: last)
        }
        return nil
    }

    private static func hexadecimal(_ value: UInt64) -> String {
        let digits = String(value, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }
}
