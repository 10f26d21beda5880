import SharedStore
import SystemCalls

/// What the file itself says, without the session.
struct FileFacts {
    let format: Int
    let isStreaming: Bool
    let version: UInt64
    let fileSize: Int
    let logicalSize: Int
    let freeBytes: Int
    let freeBlockCount: Int
    let historyType: Int
    let schemaVersion: Int64
    let classCount: Int
    let objectCount: Int
    /// Those of them that are embedded in others.
    let embeddedCount: Int
    let isEncrypted: Bool

    init(_ file: ImmutableFile, _ group: Group, _ memory: Memory, _ snapshot: Snapshot, isEncryptedFile: Bool) throws {
        format = file.layout.format
        isStreaming = file.layout.isStreaming
        version = snapshot.version
        fileSize = try SystemCalls.status(path: file.path).size
        isEncrypted = isEncryptedFile
        logicalSize = snapshot.logicalSize
        historyType = try group.historyType()
        schemaVersion = try group.schemaVersion()
        let tables = try group.classTables()
        classCount = tables.count
        objectCount = tables.reduce(0) { $0 + $1.objectCount }
        embeddedCount = tables.reduce(0) { $0 + ($1.kind == .embedded ? $1.objectCount : 0) }
        (freeBytes, freeBlockCount) = try FileFacts.freeSpace(memory, snapshot.topRef)
    }

    /// Sum and number of the free blocks (file-format-3 2.1).
    private static func freeSpace(_ memory: Memory, _ topRef: Int) throws -> (Int, Int) {
        if topRef == 0 { return (0, 0) }
        let ref = try memory.node(topRef).optionalRef(TopSlot.freeLengths)
        if ref == 0 { return (0, 0) }
        let lengths = try memory.node(ref)
        var sum = 0
        for index in 0..<lengths.count {
            let (next, overflow) = sum.addingReportingOverflow(Int(lengths.unchecked(index)))
            if overflow { throw FormatError(ref: ref, "the lengths of the free list have no sum") }
            sum = next
        }
        return (sum, lengths.count)
    }

    private var historyText: String {
        switch historyType {
        case 0: "none"
        case 1: "out of realm"
        case 2: "local"
        case 3: "sync client"
        case 4: "sync server"
        default: "of unknown type \(historyType)"
        }
    }

    func add(to fields: inout FieldList) {
        fields.add("file format", "\(format)\(isStreaming ? ", streaming form" : "")\(isEncrypted ? ", encrypted" : "")")
        fields.add("version", "\(version)")
        fields.add("size", "\(Units.text(bytes: fileSize)) (\(fileSize) bytes)")
        fields.add("in use", "\(Units.text(bytes: logicalSize &- freeBytes)) of \(Units.text(bytes: logicalSize))")
        fields.add("free space", "\(Units.text(bytes: freeBytes)) in \(Text.count(freeBlockCount, "block"))")
        fields.add("history", historyText)
        fields.add("schema version", schemaVersion < 0 ? "none" : "\(schemaVersion)")
        let embedded = embeddedCount > 0 ? ", \(embeddedCount) of them embedded" : ""
        fields.add("classes", "\(classCount), with \(Text.count(objectCount, "object"))\(embedded)")
    }

    var members: [(String, JSONText)] {
        [
            ("format", .integer(format)), ("streaming", .bool(isStreaming)), ("encrypted", .bool(isEncrypted)),
            ("version", JSONText(version)), ("fileSize", .integer(fileSize)), ("logicalSize", .integer(logicalSize)),
            ("freeBytes", .integer(freeBytes)),
            ("freeBlocks", .integer(freeBlockCount)), ("historyType", .integer(historyType)),
            ("schemaVersion", .integer(Int(schemaVersion))), ("classes", .integer(classCount)),
            ("objects", .integer(objectCount)),
            ("embedded", .integer(embeddedCount)),
        ]
    }
}
