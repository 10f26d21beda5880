/// One step of a changeset (file-format-3 6.2). No values are logged, only places.
public enum ChangesetInstruction: Equatable, Sendable {
    case insertTable(TableKey)
    case eraseTable(TableKey)
    case renameTable(TableKey)
    case selectTable(TableKey)
    case createObject(ObjectKey)
    case removeObject(ObjectKey)
    case set(ColumnKey, ObjectKey)
    case insertColumn(ColumnKey)
    case eraseColumn(ColumnKey)
    case renameColumn(ColumnKey)
    /// Selects the collection of a property, or with salts the one nested below it; the salts are those of the
    /// enclosing Mixed elements, outermost first (file-format-3 6.3).
    case selectCollection(ColumnKey, ObjectKey, salts: [Int64])
    case collectionInsert(Int)
    case collectionSet(Int)
    case collectionMove(from: Int, to: Int)
    case collectionErase(Int)
    /// The number of elements before.
    case collectionClear(oldCount: Int)
    /// A Mixed column of the selected table links to that table for the first time.
    case typedLinkChange(ColumnKey, TableKey)
}

/// A changeset that cannot be parsed: where in its bytes, and why.
public struct ChangesetError: Error, Equatable, Sendable, CustomStringConvertible {
    /// Bytes from the beginning of the changeset.
    public let offset: Int
    /// What is wrong there, for people.
    public let reason: String
    public var description: String { "bad changeset at byte \(offset): \(reason)" }
}

/// The numbers of the instructions in the file. Those from 37 on that are marked legacy are parsed, never written.
enum ChangesetOpcode {
    static let insertTable: UInt8 = 1, eraseTable: UInt8 = 2, renameTable: UInt8 = 3, selectTable: UInt8 = 10
    static let createObject: UInt8 = 11, removeObject: UInt8 = 12, set: UInt8 = 13
    static let insertColumn: UInt8 = 20, eraseColumn: UInt8 = 21, renameColumn: UInt8 = 22
    static let selectCollection: UInt8 = 30, collectionInsert: UInt8 = 31, collectionSet: UInt8 = 32
    static let collectionMove: UInt8 = 33, collectionErase: UInt8 = 35, collectionClear: UInt8 = 36
    static let legacyDictionaryInsert: UInt8 = 37, legacyDictionarySet: UInt8 = 38, legacyDictionaryErase: UInt8 = 39
    static let legacySetInsert: UInt8 = 40, legacySetErase: UInt8 = 41, legacySetClear: UInt8 = 42
    static let typedLinkChange: UInt8 = 43, legacyDictionaryClear: UInt8 = 44, selectCollectionByPath: UInt8 = 45
}
