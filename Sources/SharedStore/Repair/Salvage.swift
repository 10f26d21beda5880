/// Makes the best of a damaged file: the newest version of it that is sound, or, where there is none, every table and object that
/// can still be read.
///
/// Versions are looked for where the header says, in its other slot, in a footer, and by scanning for top arrays: a commit leaves
/// the one before it in free space until something else is put there. Objects are read one by one; what cannot be read, to its
/// last value, is lost and listed. Links to what is lost become null, or leave their list. A class that the chosen version has
/// not whole is taken from an older one only where that version can read it and the chosen one cannot.
///
/// Memory: some words for each object; their text lies in a scratch file.
public struct Salvage {
    /// What could not be had.
    public struct Loss: Sendable, Equatable, CustomStringConvertible {
        /// The class.
        public var className: String
        /// Nil for a part of the class whose objects are not known, or the class itself.
        public var object: ObjectKey?
        /// Why, for people.
        public var reason: String
        public var description: String { "\(className)\(object.map { " object \($0.rawValue)" } ?? ""): \(reason)" }
    }

    /// What was saved.
    public enum Content {
        /// A version without damage, to be copied as it is. Valid as long as the `Salvage`.
        case sound(Group)
        /// Objects, in the form that `JSONImporter` reads.
        case objects(TextSpool)
    }

    /// The version that most is taken from.
    public let chosen: SalvageCandidate
    /// What was saved.
    public let content: Content
    /// What was lost; the first ones, the rest is only counted.
    public private(set) var losses: [Loss] = []
    /// All losses.
    public private(set) var lossCount = 0
    /// Objects that were saved.
    public private(set) var objectCount = 0
    /// Versions newer than the chosen one that were there and cannot be had, each in words for a person. They count as losses.
    public private(set) var lostVersions: [String] = []
    /// Classes that came from an older version.
    public private(set) var olderClasses: [(name: String, version: UInt64)] = []
    private let file: DamagedBytes

    /// So many versions are checked as a whole; where they are all damaged, older ones have the same damage.
    private static let checkedCountMax = 12
    /// So many losses are listed.
    public static let lossCountMax = 10_000

    /// - Parameter scratchFolder: gets a file without a name, where no version is sound, for the text of all objects twice.
    /// - Throws: `OpenError` where nothing can be read; `FormatError` where no version is left in the file; `SystemError` where
    ///   the scratch file cannot be written.
    public init(path: String, key: EncryptionKey? = nil, scratchFolder: String) throws {
        let file = DamagedBytes(try FileMapping.open(path: path, key: key))
        self.file = file
        let candidates = file.candidates()
        var readable: [(SalvageCandidate, Group)] = []
        for candidate in candidates {
            let memory = file.memory(limit: candidate.snapshot.logicalSize)
            guard let group = try? Group(memory: memory, topRef: candidate.snapshot.topRef, format: candidate.format, owner: nil)
            else { continue }
            readable.append((candidate, group))
            if readable.count <= Self.checkedCountMax, Self.isSound(candidate, memory) {
                (chosen, content) = (candidate, .sound(group))
                noteLostVersions(readable.dropLast().map(\.0))
                objectCount = try group.classTables().reduce(0) { $0 + $1.objectCount }
                return
            }
        }
        guard let first = readable.first else {
            throw FormatError(
                ref: 0, "no version is left: neither the header nor any of \(candidates.count) top arrays leads to tables")
        }
        chosen = first.0
        let spool = try TextSpool(folder: scratchFolder)
        var run = SalvageRun(spool)
        let names = Set(readable.flatMap { $0.1.tableNames.compactMap { Table.className($0) } })
        var classes: [SalvageRun.Class] = []
        for name in names.sorted(by: { $0.utf8.lexicographicallyPrecedes($1.utf8) }) {
            // What the chosen version does not have was removed before.
            guard first.1.tableNames.contains(Table.classPrefix + name) else { continue }
            for (candidate, group) in readable {
                guard let found = try run.read(name, group) else { continue }
                if candidate != first.0 { olderClasses.append((name, candidate.snapshot.version)) }
                classes.append(found)
                break
            }
            if !(classes.last?.name).isSame(as: name) { run.lose(name, nil, "its schema cannot be read in any version") }
        }
        let version = (try? first.1.schemaVersion()) ?? -1
        let text = try TextSpool(folder: scratchFolder)
        try run.write(classes, schemaVersion: version, to: text)
        content = .objects(text)
        losses = run.losses
        lossCount = run.lossCount
        noteLostVersions([])
        objectCount = classes.reduce(0) { $0 + $1.objects.count }
    }

    /// - Parameter damaged: versions that were tried before the chosen one.
    private mutating func noteLostVersions(_ damaged: [SalvageCandidate]) {
        if let ref = file.lostTopRef {
            lostVersions.append(
                "the newest version, later than \(chosen.snapshot.version): its top array at byte \(ref), where the header says, cannot be read"
            )
        }
        for candidate in damaged where candidate.snapshot.version > chosen.snapshot.version {
            lostVersions.append("version \(candidate.snapshot.version), found by \(candidate.origin.rawValue): it is damaged")
        }
        lossCount += lostVersions.count
    }

    private static func isSound(_ candidate: SalvageCandidate, _ memory: Memory) -> Bool {
        let form: Verifier.Form = candidate.origin == .footer ? .streaming : .inPlace
        let report = try? Verifier.verify(
            memory: memory, snapshot: candidate.snapshot, form: form, format: UInt8(candidate.format), physicalSize: nil,
            header: nil)
        return report?.isSound ?? false
    }
}

/// A sink for text.
final class CollectedText {
    private(set) var bytes: [UInt8] = []
    func append(_ piece: UnsafeRawBufferPointer) { bytes.append(contentsOf: piece) }
}

/// Reads what can be read of tables.
struct SalvageRun {
    struct Class {
        var name: String
        var schema: ObjectSchema
        /// Where the text of each object lies, in key order.
        var objects: [(key: Int64, text: Range<Int>)]
    }

    private let spool: TextSpool
    private(set) var losses: [Salvage.Loss] = []
    private(set) var lossCount = 0

    init(_ spool: TextSpool) { self.spool = spool }

    mutating func lose(_ name: String, _ key: ObjectKey?, _ reason: String) {
        lossCount += 1
        if losses.count < Salvage.lossCountMax { losses.append(.init(className: name, object: key, reason: reason)) }
    }

    /// Nil where schema or tree of the class cannot be read at all.
    /// - Throws: only where the scratch file cannot be written.
    mutating func read(_ name: String, _ group: Group) throws -> Class? {
        var scratchError: (any Error)?
        guard let table = try? group.table(ofClass: name), let schema = try? group.objectSchema(table) else { return nil }
        var found = Class(name: name, schema: schema, objects: [])
        var lost: [(ObjectKey?, String)] = []
        var keys: Set<Int64> = [], primaryKeys: Set<[UInt8]> = []
        table.tree.forEachReadableLeaf(lost: { lost.append((nil, "objects: \($0)")) }) { leaf in
            for row in 0..<leaf.count where scratchError == nil {
                let key = leaf.key(row)
                do {
                    guard let object = try table.find(key), keys.insert(key.rawValue).inserted else {
                        lost.append((key, "its key leads to another object"))
                        continue
                    }
                    let text = try Self.text(object, table, group)
                    if let property = schema.primaryKey {
                        guard let value = try Self.member(property, text), primaryKeys.insert(value).inserted else {
                            lost.append((key, "another object has its primary key"))
                            continue
                        }
                    }
                    do { found.objects.append((key.rawValue, try text.withUnsafeBytes { try spool.append($0) })) } catch {
                        scratchError = error
                    }
                } catch { lost.append((key, "\(error)")) }
            }
        }
        if let scratchError { throw scratchError }
        for (key, reason) in lost { lose(name, key, reason) }
        return found
    }

    private static func text(_ row: ObjectRow, _ table: Table, _ group: Group) throws -> [UInt8] {
        let text = CollectedText()
        try JSONExporter.export(objectsOf: table, in: group, to: text.append) { try $0(row) }
        // Without the brackets of the array.
        return Array(text.bytes.dropFirst().dropLast())
    }

    private static func member(_ name: String, _ text: [UInt8]) throws -> [UInt8]? {
        var found: [UInt8]?
        try text.withUnsafeBytes { bytes in
            var cursor = JSONCursor(bytes)
            try cursor.forEachMember { key, cursor in
                _ = try cursor.kind()
                let start = cursor.offset
                try cursor.skip()
                if key.isSame(as: name) { found = Array(text[start..<cursor.offset]) }
            }
        }
        return found
    }

    // MARK: The text

    /// Writes all that was read as one text, without links to what was lost.
    mutating func write(_ classes: [Class], schemaVersion: Int64, to out: TextSpool) throws {
        try spool.withUnsafeBytes { read in
            var rewriter = LinkRewriter(classes)
            // Owners first: of the embedded objects only those stay that somebody owns.
            for one in classes where !one.schema.isEmbedded {
                for object in one.objects {
                    _ = rewrite(read, object.text, one.name, &rewriter)
                    noteLostLinks(rewriter, one.name, object.key)
                }
            }
            let owned = rewriter.owned
            // The same once more, in the same order, so that the same owners come first.
            rewriter.forgetOwners()
            var buffer = JSONBuffer { try out.append($0) }
            buffer.raw("{\"schemaVersion\":")
            buffer.integer(schemaVersion)
            buffer.raw(",\"classes\":{")
            let embedded = Set(classes.lazy.filter(\.schema.isEmbedded).map { ExactString($0.name) })
            for (index, one) in classes.enumerated() {
                if index > 0 { buffer.raw(",") }
                Self.write(one.schema, embedded: embedded, &buffer)
                rewriter.notesOwners = !one.schema.isEmbedded
                var isFirst = true
                for object in one.objects
                where !one.schema.isEmbedded || owned[ExactString(one.name)]?.contains(object.key) ?? false {
                    if !isFirst { buffer.raw(",") }
                    isFirst = false
                    buffer.raw(String(decoding: rewrite(read, object.text, one.name, &rewriter), as: UTF8.self))
                    if one.schema.isEmbedded { noteLostLinks(rewriter, one.name, object.key) }
                    try buffer.flushIfFull()
                }
                buffer.raw("]}")
            }
            buffer.raw("},\"tables\":{}}")
            try buffer.flush()
        }
    }

    private mutating func noteLostLinks(_ rewriter: LinkRewriter, _ name: String, _ key: Int64) {
        if rewriter.count > 0 { lose(name, ObjectKey(key), "\(rewriter.count) links to lost objects") }
    }

    private func rewrite(_ read: UnsafeRawBufferPointer, _ place: Range<Int>, _ name: String, _ rewriter: inout LinkRewriter)
        -> [UInt8]
    {
        let text = UnsafeRawBufferPointer(rebasing: read[place])
        return (try? rewriter.rewrite(text, of: name)) ?? Array(text)
    }

    private static func write(_ schema: ObjectSchema, embedded: Set<ExactString>, _ out: inout JSONBuffer) {
        out.string(schema.name)
        out.raw(schema.isEmbedded ? ":{\"embedded\":true,\"primaryKey\":" : ":{\"embedded\":false,\"primaryKey\":")
        if let key = schema.primaryKey { out.string(key) } else { out.raw("null") }
        out.raw(",\"properties\":[")
        for (index, property) in schema.properties.enumerated() {
            if index > 0 { out.raw(",") }
            out.raw("{\"name\":")
            out.string(property.name)
            out.raw(",\"type\":\"")
            out.raw(property.type.propertyName)
            switch property.collection {
            case nil: out.raw("\",\"collection\":null")
            case .list: out.raw("\",\"collection\":\"list\"")
            // No file can have a set of embedded objects, but a damaged one.
            case .set where property.objectType.map { embedded.contains(ExactString($0)) } ?? false:
                out.raw("\",\"collection\":\"list\"")
            case .set: out.raw("\",\"collection\":\"set\"")
            case .dictionary: out.raw("\",\"collection\":\"dictionary\"")
            }
            out.raw(property.isOptional ? ",\"optional\":true" : ",\"optional\":false")
            out.raw(property.isIndexed ? ",\"indexed\":true" : ",\"indexed\":false")
            out.raw(property.isFullTextIndexed ? ",\"fulltext\":true" : ",\"fulltext\":false")
            out.raw(",\"objectType\":")
            if let type = property.objectType { out.string(type) } else { out.raw("null") }
            out.raw("}")
        }
        out.raw("],\"objects\":[")
    }
}

/// Takes links to objects that are not there out of the text of an object, and notes which embedded objects have an owner.
struct LinkRewriter {
    private var known: [ExactString: Set<Int64>] = [:]
    /// The class that a property leads to, by class and property.
    private var targets: [ExactString: [ExactString: String]] = [:]
    /// Properties that are sets, by class: these hold no collections, whatever a damaged file has in them.
    private var sets: [ExactString: Set<ExactString>] = [:]
    /// Embedded objects by class; each has one owner.
    private(set) var owned: [ExactString: Set<Int64>] = [:]
    var notesOwners = true
    /// Links that were taken out of the last object.
    private(set) var count = 0
    private var out: [UInt8] = []
    /// The array that is being read is [key, value] of a dictionary.
    private var isInPair = false

    init(_ classes: [SalvageRun.Class]) {
        for one in classes {
            known[ExactString(one.name)] = Set(one.objects.map(\.key))
            var map: [ExactString: String] = [:]
            for property in one.schema.properties { map[ExactString(property.name)] = property.objectType }
            targets[ExactString(one.name)] = map
            sets[ExactString(one.name)] = Set(one.schema.properties.filter { $0.collection == .set }.map { ExactString($0.name) })
        }
    }

    mutating func forgetOwners() { owned = [:] }

    mutating func rewrite(_ text: UnsafeRawBufferPointer, of className: String) throws -> [UInt8] {
        out = []
        out.reserveCapacity(text.count)
        count = 0
        isInPair = false
        var cursor = JSONCursor(text)
        try object(&cursor, className)
        return out
    }

    /// An object with its properties.
    private mutating func object(_ cursor: inout JSONCursor, _ className: String?) throws {
        out.append(UInt8(ascii: "{"))
        var isFirst = true
        try cursor.forEachMember { name, cursor in
            if !isFirst { out.append(UInt8(ascii: ",")) }
            isFirst = false
            string(name)
            out.append(UInt8(ascii: ":"))
            let isSet = className.flatMap { sets[ExactString($0)]?.contains(ExactString(name)) } ?? false
            try value(&cursor, className.flatMap { targets[ExactString($0)]?[ExactString(name)] }, isPairs: false, isSet: isSet)
        }
        out.append(UInt8(ascii: "}"))
    }

    /// - Parameters:
    ///   - target: the class of embedded objects in the value.
    ///   - isPairs: the value is the array of [key, value] of a dictionary.
    ///   - isSet: the value is the array of a set.
    ///   - isKept: it was asked already whether the value is lost, which notes the owner of an embedded object and so is asked
    ///     once.
    private mutating func value(
        _ cursor: inout JSONCursor, _ target: String?, isPairs: Bool, isSet: Bool = false,
        isKept: Bool = false
    ) throws {
        switch try cursor.kind() {
        case .object:
            if try !isKept && isLost(cursor, target) {
                try cursor.skip()
                count += 1
                out += Array("null".utf8)
                return
            }
            out.append(UInt8(ascii: "{"))
            var isFirst = true
            try cursor.forEachMember { name, cursor in
                if !isFirst { out.append(UInt8(ascii: ",")) }
                isFirst = false
                string(name)
                out.append(UInt8(ascii: ":"))
                if name == "$embedded" {
                    try object(&cursor, target)
                } else {
                    try value(&cursor, target, isPairs: name == "$dict")
                }
            }
            out.append(UInt8(ascii: "}"))
        case .array:
            out.append(UInt8(ascii: "["))
            let isPair = isInPair
            isInPair = isPairs
            defer { isInPair = isPair }
            var isFirst = true
            try cursor.forEachElement { cursor in
                // A list loses the element; the value of a dictionary becomes null.
                var drops = isSet ? try isCollection(cursor) : false
                if !drops, !isPair, try cursor.kind() == .object { drops = try isLost(cursor, target) }
                if drops {
                    try cursor.skip()
                    count += 1
                    return
                }
                if !isFirst { out.append(UInt8(ascii: ",")) }
                isFirst = false
                try value(&cursor, target, isPairs: false, isKept: !isPair)
            }
            out.append(UInt8(ascii: "]"))
        default:
            let start = cursor.offset
            try cursor.skip()
            out.append(contentsOf: cursor.bytes[start..<cursor.offset])
        }
    }

    private func isCollection(_ cursor: JSONCursor) throws -> Bool {
        var look = cursor
        switch try look.kind() {
        case .array: return true
        case .object:
            var found = false
            try look.forEachMember { name, cursor in
                found = found || name == "$dict"
                try cursor.skip()
            }
            return found
        default: return false
        }
    }

    private mutating func string(_ text: String) {
        let collected = CollectedText()
        var buffer = JSONBuffer(collected.append)
        buffer.string(text)
        // The sink cannot fail.
        try? buffer.flush()
        out += collected.bytes
    }

    /// The object at the cursor is a link to what is not there, or an embedded object that is not there or is somebody else's.
    private mutating func isLost(_ cursor: JSONCursor, _ target: String?) throws -> Bool {
        var look = cursor
        var lost = false
        try look.forEachMember { name, cursor in
            if name == "$link" {
                var target: String?, key: Int64?
                try cursor.forEachElement { cursor in
                    if target == nil { target = try cursor.string() } else { key = try cursor.integer() }
                }
                if let target, let key { lost = !(known[ExactString(target)]?.contains(key) ?? false) }
            } else if name == "$embedded" {
                var key: Int64?
                try cursor.forEachMember { name, cursor in
                    if name == "_key" { key = try cursor.integer() } else { try cursor.skip() }
                }
                guard let key, let target, known[ExactString(target)]?.contains(key) ?? false else { return lost = true }
                if notesOwners { lost = !owned[ExactString(target), default: []].insert(key).inserted }
            } else {
                try cursor.skip()
            }
        }
        return lost
    }
}
