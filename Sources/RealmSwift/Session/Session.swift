import Dispatch
import Foundation
internal import CShims
internal import SharedStore
import Synchronization

/// What a `Realm` refers to: one reader, and now and then writer, of a file, bound to a thread, a queue or an actor.
///
/// A live session is at one version of the file until it advances: by `refresh`, by beginning a write transaction, or by
/// itself when another commit was heard of. A frozen session stays at its version and may be used from every thread.
final class Session: @unchecked Sendable {
    // Sendable: a live session is used at its place only, which every entry checks; a frozen one is complete when it is made.
    // What other threads may read (configuration, schema, confinement) never changes.
    let configuration: Realm.Configuration
    let schema: Schema
    let classes: [ClassInfo]
    let confinement: Confinement
    /// By which others find the session without keeping it.
    let address = SessionAddress()
    /// Nil for a live session.
    let frozenFrom: SessionOrigin?
    /// Where versions come from and write transactions go to.
    let origin: SessionOrigin
    /// What is bound to the version that the session is at; nil: nothing was read yet, or the session was invalidated.
    @exclusivity(unchecked) private var reader: SessionReader?
    /// The running write transaction.
    @exclusivity(unchecked) var writer: SessionWriter?
    /// By slot of the table.
    @exclusivity(unchecked) private(set) var types: [SessionType?] = []
    @exclusivity(unchecked) private var typesByName: [ExactString: SessionType] = [:]
    /// The class that was asked for last.
    @exclusivity(unchecked) var recentType: SessionType?
    @exclusivity(unchecked) private(set) var isClosed = false
    /// How often the session let go of its version, so that results know whether they are of before.
    @exclusivity(unchecked) private(set) var releaseCount = 0
    /// The session of the new objects of a migration: their primary keys are ordinary properties.
    let isMigrating: Bool
    /// What the migration block did wrong.
    @exclusivity(unchecked) var migrationFailures: [String] = []
    /// Classes of before `rebind`, which accessors may still point to.
    @exclusivity(unchecked) private var formerTypes: [SessionType] = []
    /// Counts the changes of the running write transaction and the versions, so that results know when to run again.
    @exclusivity(unchecked) var contentStamp: UInt64 = 1
    /// Iterations over all objects of a class, which want to know before objects come or go; see `ObjectCursor`.
    @exclusivity(unchecked) var cursors: [Unmanaged<ObjectCursor>] = []
    /// Objects that the running write transaction made, to be invalidated where it is undone.
    @exclusivity(unchecked) var createdAccessors: [ObjectBase] = []
    /// The same, without keeping them alive: since the last `Realm` of the session went, see `lastRealmEnds`.
    @exclusivity(unchecked) var looseAccessors: [WeakObject] = []
    /// So many may be there before those that are gone are looked for.
    @exclusivity(unchecked) var looseCountMax = 64
    /// The values of `Realm` that there are.
    let realmCount = Atomic(0)
    /// Objects that are being added, with their keys: cycles of links end here.
    @exclusivity(unchecked) var adding: [ObjectIdentifier: ObjectKey] = [:]
    /// Objects whose values wait, and how many are written within each other; see `complete`.
    @exclusivity(unchecked) var pendingObjects: [PendingObject] = []
    @exclusivity(unchecked) var pendingDepth = 0
    @exclusivity(unchecked) var copies: [Original: ObjectKey] = [:]
    @exclusivity(unchecked) private var cachedQuerySchema: GroupQuerySchema?
    @exclusivity(unchecked) var autorefresh = true
    /// By which others tell the session of commits; nil where it can only be asked: frozen, read-only, on a thread without run
    /// loop.
    @exclusivity(unchecked) private(set) var waker: SessionWaker?
    /// The schema version of the file when all columns of the classes were last found; nil: not looked at since the opening.
    @exclusivity(unchecked) var knownSchemaVersion: Int64?
    /// Whether it was said that the session cannot go on, since another program has migrated the file.
    @exclusivity(unchecked) var saidThatItStays = false
    /// Told where the session goes; see `SessionObserver`.
    @exclusivity(unchecked) var observer: (any SessionObserver)?
    /// Asynchronous write transactions; nil: there never was one.
    @exclusivity(unchecked) var asyncWrites: AsyncWrites?

    /// - Parameters:
    ///   - writer: a write transaction that is the caller's to end, in which the session works; see `endWriting`.
    ///   - reader: a version to begin with.
    init(
        origin: SessionOrigin, configuration: Realm.Configuration, schema: Schema, classes: [ClassInfo], confinement: Confinement,
        isFrozen: Bool = false, isMigrating: Bool = false, writer: (any SessionWriter)? = nil, reader: SessionReader
    ) throws {
        self.origin = origin
        self.configuration = configuration
        self.schema = schema
        self.classes = classes
        self.confinement = confinement
        frozenFrom = isFrozen ? origin : nil
        self.reader = reader
        self.writer = writer
        self.isMigrating = isMigrating
        try bind(classes)
        if isFrozen { for type in allTypes { _ = try type.loadTable() } }
        address.set(self)
        if isFrozen || writer != nil || configuration.readOnly { return }
        if let scheduler = Scheduler(confinement) {
            let waker = SessionWaker(self, scheduler)
            self.waker = waker
            _ = origin.wakers.add(waker)
            if case .thread = confinement { ThreadEnd.close(waker) }
            origin.listen(since: reader.version)
        }
    }

    deinit {
        address.clear()
        guard let writer, !isMigrating, !ForkedChild.isHere else { return }
        Logger.log(.warn, .transaction) { "A Realm went while it was in a write transaction: its changes are undone." }
        writer.cancel()
    }

    var isFrozen: Bool { frozenFrom != nil }

    // MARK: Classes

    /// Finds the tables and columns of the classes of the schema, and of all others that the file has.
    private func bind(_ classes: [ClassInfo]) throws {
        let group = try currentGroup()
        let infos = Dictionary(classes.map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
        for objectSchema in schema.objectSchema {
            let table = try group.table(ofClass: objectSchema.className)
            // What is to become embedded by a migration is so at its end: until then objects may be made by themselves and be
            // linked to.
            let isEmbedded = isMigrating && table != nil ? table?.kind == .embedded : objectSchema.isEmbedded
            adopt(
                SessionType(
                    self, name: objectSchema.className, info: infos[objectSchema.className], tableKey: table?.key ?? .null,
                    isEmbedded: isEmbedded, properties: try properties(of: objectSchema, table, group)))
        }
        for table in try group.classTables() where typesByName[ExactString(table.className ?? "")] == nil {
            let objectSchema = try ObjectSchema(group.objectSchema(table))
            adopt(
                SessionType(
                    self, name: objectSchema.className, info: nil, tableKey: table.key, isEmbedded: table.kind == .embedded,
                    properties: try properties(of: objectSchema, table, group)))
        }
    }

    /// Finds tables and columns again, after a migration changed them.
    func rebind() {
        writeDownCursors()
        for type in allTypes { type.forgetTable() }
        formerTypes += allTypes
        types = []
        typesByName = [:]
        recentType = nil
        cachedQuerySchema = nil
        contentChanged()
        reading { try bind(classes) }
    }

    /// The write transaction goes on without the session.
    func endWriting() {
        writer = nil
        close()
    }

    private func adopt(_ type: SessionType) {
        typesByName[ExactString(type.name)] = type
        guard type.tableKey != .null else { return }
        while types.count <= type.tableKey.slot { types.append(nil) }
        types[type.tableKey.slot] = type
    }

    private func properties(of objectSchema: ObjectSchema, _ table: Table?, _ group: Group) throws -> [ManagedProperty] {
        try objectSchema.properties.enumerated().map { index, property in
            if property.type == .linkingObjects {
                let origin = try group.table(ofClass: property.objectClassName ?? "")
                let originSchema = schema[property.objectClassName ?? ""]
                let name = originSchema?[property.originProperty ?? ""]?.columnName ?? property.originProperty ?? ""
                return ManagedProperty(
                    property: property, columnKey: origin?.column(named: name)?.key ?? .null,
                    slot: ManagedProperty.computedSlots + index, originTable: origin?.key ?? .null)
            }
            let key = table?.column(named: property.columnName)?.key ?? .null
            return ManagedProperty(property: property, columnKey: key, slot: key.isNull ? 0 : key.leafIndex + 1)
        }
    }

    var allTypes: some Collection<SessionType> { typesByName.values }

    @inline(__always)
    func type(_ table: TableKey) -> SessionType? { table.slot < types.count ? types[table.slot] : nil }

    func type(named name: String) -> SessionType? { typesByName[ExactString(name)] }

    /// The class of a model; stops the process where the schema does not have it.
    func requireType(_ model: ObjectBase.Type) -> SessionType {
        guard let type = typesByName[ExactString(model.className())], type.info?.type == model else {
            misuse(
                "Object type '\(model.className())' is not managed by the Realm. If using a custom `objectClasses` / `objectTypes` array in your configuration, add `\(model.className())` to the list of `objectClasses` / `objectTypes`."
            )
        }
        return type
    }

    /// The classes as queries see them: properties by their Swift names too, and linking objects.
    func querySchema() throws -> GroupQuerySchema {
        if let cachedQuerySchema { return cachedQuerySchema }
        var names = try GroupQuerySchema(currentGroup())
        for type in allTypes where type.tableKey != .null {
            for property in type.properties where !property.property.columnName.isSame(as: property.name) {
                try names.addAlias(property.name, for: property.property.columnName, of: type.name)
            }
        }
        for type in allTypes where type.tableKey != .null {
            for property in type.properties where property.slot >= ManagedProperty.computedSlots && !property.columnKey.isNull {
                try names.addLinkingObjects(
                    property.name, of: type.name, from: property.property.objectClassName ?? "",
                    property: property.property.originProperty ?? "")
            }
        }
        // Frozen sessions are shared by threads and make theirs each time.
        if !isFrozen { cachedQuerySchema = names }
        return names
    }

    // MARK: Versions

    /// The tables as they are now: those of the write transaction, or of the version that the session is at.
    func currentGroup() throws -> Group {
        if let writer { return writer.group }
        if let reader { return reader.group }
        if isClosed { misuse("The Realm was closed") }
        let reader = try origin.beginRead()
        self.reader = reader
        return reader.group
    }

    var currentReader: SessionReader? { reader }

    /// Goes to another version.
    func advance(to reader: SessionReader?) {
        writeDownCursors()
        self.reader = reader
        contentChanged()
        for type in allTypes { type.forgetTable() }
    }

    /// Tables have to be looked up again, and rows found.
    func forgetTables() {
        contentChanged()
        for type in allTypes { type.forgetTable() }
    }

    /// Called before objects come or go, and before the session leaves its version.
    @inline(__always)
    func writeDownCursors() {
        if !cursors.isEmpty { writeDownAllCursors() }
    }

    @inline(never)
    private func writeDownAllCursors() {
        let present = cursors
        cursors = []
        for cursor in present { cursor._withUnsafeGuaranteedRef { $0.writeDownKeys() } }
    }

    func contentChanged() { contentStamp &+= 1 }

    /// Rows of any table may have moved.
    func bumpAll() {
        contentChanged()
        for case let type? in types { type.bump() }
    }

    /// Lets go of the version; all accessors become invalid.
    func releaseVersion() {
        writeDownCursors()
        observer?.sessionWillBeInvalidated(self)
        for type in allTypes { type.replaceBlock() }
        reader = nil
        releaseCount += 1
        contentChanged()
        observer?.sessionWasInvalidated(self)
    }

    /// Nothing was read since the session let go of the version at which its release count was the given one.
    @inline(__always)
    func isReleased(since count: Int) -> Bool { releaseCount != count && reader == nil }

    func close() {
        releaseVersion()
        isClosed = true
    }

    // MARK: Checks

    func checkConfinement() {
        ForkedChild.refuse()
        if !confinement.isHere {
            misuse(
                "Realm accessed from incorrect thread. It belongs to \(confinement.name), where it was opened: open one here, and pass a ThreadSafeReference, a primary key or a frozen object."
            )
        }
    }

    func requireWriteTransaction() {
        checkConfinement()
        if isFrozen { misuse("Cannot modify frozen objects: use thaw() to get a live one within a write transaction.") }
        if writer == nil {
            misuse("Cannot modify managed objects outside of a write transaction.")
        }
    }

    // MARK: Objects

    /// An accessor for an object of the file, of the class that the caller wants to see.
    func object(_ table: TableKey, _ key: ObjectKey, as wanted: ObjectBase.Type) -> ObjectBase? {
        if key.rawValue < 0 { return nil }
        guard let type = type(table) else { return nil }
        if wanted == DynamicObject.self { return type.makeDynamicAccessor(key) }
        return type.makeAccessor(key)
    }

    func link(_ table: TableKey, _ key: Int64) -> _Stored { _Stored(.link(table, ObjectKey(key)), in: self) }

    /// A Swift value as it would be stored, for comparing; nil for what cannot be in this file.
    func comparable(_ stored: _Stored) -> Mixed? {
        switch stored.content {
        case .plain(let mixed): return mixed
        case .object(let object):
            guard let session = object.session else { return nil }
            if session !== self {
                if session.origin === origin { return object.managedType.map { .link($0.tableKey, ObjectKey(object.objectKey)) } }
                misuse("Object is managed by another Realm")
            }
            return object.managedType.map { .link($0.tableKey, ObjectKey(object.objectKey)) }
        case .list, .dictionary, .input: return nil
        }
    }
}

extension ObjectSchema {
    /// A class as a file has it.
    init(_ stored: SharedStore.ObjectSchema) {
        let properties = stored.properties.compactMap { property -> Property? in
            guard let type = PropertyType(property.type) else { return nil }
            let collection: _PropertyShape.Collection? =
                switch property.collection {
                case .list: .list
                case .set: .set
                case .dictionary: .map
                case nil: nil
                }
            return Property(
                name: property.name, type: type, collection: collection, isOptional: property.isOptional,
                isIndexed: property.isIndexed, isPrimaryKey: stored.primaryKey.isSame(as: property.name),
                objectClassName: property.objectType)
        }
        self.init(
            className: stored.name, objectClass: DynamicObject.self, isEmbedded: stored.isEmbedded, properties: properties,
            primaryKey: stored.primaryKey)
    }
}
