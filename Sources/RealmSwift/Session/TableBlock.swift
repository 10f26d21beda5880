internal import CShims
internal import SharedStore
import Synchronization

/// What the accessors of one class need at every access, in one place that is not reference counted.
///
/// Blocks belong to their session and live as long as it; every accessor retains the session. They change on the session's
/// thread only. Those of a frozen session are complete when the session is made, and never change.
///
/// `stamp` grows whenever rows of the table may have moved or gone: when the session advances, begins or ends a write
/// transaction, and at the changes that move rows. An accessor whose own stamp is the same has its row at hand. So one branch
/// tells whether an access may go on at once: stamp, thread and validity (a dead block's stamp fits no accessor).
struct TableBlock {
    var stamp: UInt64
    /// Number of the thread that the session belongs to; one that no thread has where something else decides, see `Confinement`.
    var thread: UInt64
    /// 0 for a frozen session, else all ones.
    var threadMask: UInt64
    /// The table of the version that the session is at; nil: not looked up yet since it advanced. Where an accessor's stamp fits,
    /// it is there.
    var table: Unmanaged<Table>?
    /// That of the table.
    var memory: Memory?
    /// By slot of the cluster leaf, for all slots that properties of the class have: what the quick ways of reading may find
    /// there.
    let kinds: UnsafeMutablePointer<CellKind>
    /// Likewise, the leaves that were read last.
    let leaves: KnownLeaves
    /// False in a write transaction and in a frozen session.
    var keepsLeaves = false
    /// By slot of the cluster leaf.
    var columns: UnsafeMutablePointer<Column?>
    var columnCount: Int
    let type: Unmanaged<SessionType>
    /// What changes the table in the running write transaction; nil: none is running, or nothing was changed yet. The type keeps
    /// it.
    var editor: Unmanaged<TableEditor>?
    /// Slot of the primary key, which does not change; -1 where there is none, and during a migration.
    let primaryKeySlot: Int
    /// The accessors with this block are invalid for good: their session was invalidated, or the creation of their objects
    /// undone.
    var isDead = false

    /// True where the access needs a closer look.
    @inline(__always)
    func needsCheck(_ objectStamp: UInt64) -> Bool {
        ((stamp ^ objectStamp) | ((thread ^ realm_present_thread_number()) & threadMask)) != 0
    }
}

/// What a column's leaf holds, where there is a quick way to read it.
enum CellKind: UInt8 {
    /// No column, or one that is read by way of its `Column`.
    case other
    case int, bool, float, double, string, timestamp, link
    case optionalInt, optionalBool, optionalFloat, optionalDouble, optionalString, optionalTimestamp

    init(_ column: Column) {
        if column.collection != nil || column.isEnumerated {
            self = .other
            return
        }
        switch column.type {
        case .int: self = column.isNullable ? .optionalInt : .int
        case .bool: self = column.isNullable ? .optionalBool : .bool
        case .float: self = column.isNullable ? .optionalFloat : .float
        case .double: self = column.isNullable ? .optionalDouble : .double
        case .string: self = column.isNullable ? .optionalString : .string
        case .timestamp: self = column.isNullable ? .optionalTimestamp : .timestamp
        case .link: self = .link
        default: self = .other
        }
    }
}

/// A property of a class as the session's file has it.
struct ManagedProperty {
    var property: Property
    /// The column; of linking objects the origin's column in the other table.
    var columnKey: ColumnKey
    /// Position of the column's leaf in the cluster; `computedSlots` and above for linking objects.
    var slot: Int
    /// Of linking objects the table of the origin.
    var originTable: TableKey = .null

    static let computedSlots = 0x8000

    var name: String { property.name }
    var isCollection: Bool { property.isArray || property.isSet || property.isMap }
}

/// One class in one session: its place in the file and how accessors are made.
final class SessionType {
    // Unsafe: a session owns its types, and whoever works with one holds the session.
    unowned(unsafe) let session: Session
    let name: String
    /// Nil for a class that only the file knows.
    let info: ClassInfo?
    /// Null where the file has no table for the class, which a read-only file need not.
    let tableKey: TableKey
    let isEmbedded: Bool
    let properties: [ManagedProperty]
    let primaryKey: ManagedProperty?
    private(set) var block: UnsafeMutablePointer<TableBlock>
    /// Keeps the table that the block points to.
    private var tableOwner: Table?
    private var editorOwner: TableEditor?
    private let positions: [ExactString: Int]
    /// Blocks of before an invalidation, kept since accessors may still point to them.
    private var oldBlocks: [UnsafeMutablePointer<TableBlock>] = []
    /// An instance that others are copied from, see `makeUnplaced`; we hold one reference to it. Several threads may make the
    /// first accessor of a frozen session at once: the template that comes first is the one.
    private let template = Atomic<UnsafeRawPointer?>(nil)
    private let metadata: UnsafeRawPointer?
    private let instanceSize: Int
    private let alignMask: Int
    /// How unmanaged objects get into the file; nil where that needs the general way.
    private(set) lazy var addingPlan = AddingPlan(self)
    /// Accessors hold nothing but their place, so that one can be given another.
    let canReuseAccessors: Bool

    init(_ session: Session, name: String, info: ClassInfo?, tableKey: TableKey, isEmbedded: Bool, properties: [ManagedProperty])
    {
        self.session = session
        self.name = name
        self.info = info
        self.tableKey = tableKey
        self.isEmbedded = isEmbedded
        self.properties = properties
        primaryKey = session.isMigrating ? nil : properties.first { $0.property.isPrimaryKey }
        positions = Dictionary(
            properties.enumerated().map { (ExactString($1.name), $0) }, uniquingKeysWith: { first, _ in first })
        metadata = info.map { unsafeBitCast($0.type as AnyClass, to: UnsafeRawPointer.self) }
        instanceSize = info.map { ModelRuntime.instanceSize($0.type) } ?? 0
        alignMask = metadata.map { Int(realm_instance_align_mask($0)) } ?? 0
        canReuseAccessors = info?.isTriviallyCopied == true && !session.isFrozen && ModelRuntime.soleReferenceWord != 0
        block = UnsafeMutablePointer<TableBlock>.allocate(capacity: 1)
        block.initialize(to: SessionType.makeBlock(self, session))
    }

    private static func makeBlock(_ type: SessionType, _ session: Session) -> TableBlock {
        let slotCount = (type.properties.map(\.slot).filter { $0 < ManagedProperty.computedSlots }.max() ?? 0) + 1
        let kinds = UnsafeMutablePointer<CellKind>.allocate(capacity: slotCount)
        kinds.initialize(repeating: .other, count: slotCount)
        let thread = session.confinement.threadNumber
        return TableBlock(
            stamp: 1, thread: thread == 0 ? .max : thread, threadMask: session.isFrozen ? 0 : .max, table: nil, memory: nil,
            kinds: kinds, leaves: KnownLeaves(slotCount: slotCount), columns: UnsafeMutablePointer<Column?>.allocate(capacity: 1),
            columnCount: 0, type: Unmanaged.passUnretained(type),
            primaryKeySlot: type.primaryKey?.slot ?? -1)
    }

    deinit {
        forgetTemplate()
        for block in oldBlocks + [block] {
            block.pointee.kinds.deallocate()
            block.pointee.leaves.free()
            block.pointee.columns.deinitialize(count: block.pointee.columnCount)
            block.pointee.columns.deallocate()
            block.deinitialize(count: 1)
            block.deallocate()
        }
    }

    func property(_ name: String) -> ManagedProperty? { positions[ExactString(name)].map { properties[$0] } }

    // MARK: The table

    /// The table as it is now; nil where the file has none.
    @inline(__always)
    func table() -> Table? {
        if let table = block.pointee.table { return table._withUnsafeGuaranteedRef { $0 } }
        return reading { try loadTable() }
    }

    /// Looks the table up in the version that the session is at.
    @inline(never)
    func loadTable() throws -> Table? {
        guard tableKey != .null, let table = try session.currentGroup().table(tableKey) else { return nil }
        let count = (table.columns.map(\.key.leafIndex).max() ?? -1) + 2
        if block.pointee.columnCount < count {
            block.pointee.columns.deinitialize(count: block.pointee.columnCount)
            block.pointee.columns.deallocate()
            block.pointee.columns = UnsafeMutablePointer<Column?>.allocate(capacity: count)
            block.pointee.columns.initialize(repeating: nil, count: count)
            block.pointee.columnCount = count
        }
        for slot in 0..<block.pointee.columnCount { block.pointee.columns[slot] = nil }
        for column in table.columns { block.pointee.columns[column.key.leafIndex + 1] = column }
        for property in properties where property.slot < ManagedProperty.computedSlots {
            // A column that came in the place of the one that was there when the session was made has another key.
            let column = block.pointee.columns[property.slot].flatMap { $0.key == property.columnKey ? $0 : nil }
            block.pointee.kinds[property.slot] = column.map { CellKind($0) } ?? .other
        }
        tableOwner = table
        // This runs again after each step from one version to another and into and out of a write transaction.
        block.pointee.keepsLeaves = session.writer == nil && !session.isFrozen
        block.pointee.memory = table.memory
        block.pointee.table = Unmanaged.passUnretained(table)
        return table
    }

    /// What changes the table in the running write transaction. Stops the process where there is none, or off the session's
    /// place.
    @inline(__always)
    func editor() -> TableEditor {
        // Whoever checks nothing else relies on this to tell the place.
        if let editor = block.pointee.editor, !block.pointee.needsCheck(block.pointee.stamp) {
            return editor._withUnsafeGuaranteedRef { $0 }
        }
        return loadEditor()
    }

    @inline(never)
    private func loadEditor() -> TableEditor {
        session.requireWriteTransaction()
        guard let writer = session.writer else { misuse("Cannot modify managed objects outside of a write transaction.") }
        let editor = reading { try writer.editor.editor(tableKey) }
        editorOwner = editor
        block.pointee.editor = Unmanaged.passUnretained(editor)
        return editor
    }

    /// Rows may have moved: every accessor looks for its own again.
    @inline(__always)
    func bump() { block.pointee.stamp &+= 1 }

    /// The session is at another version.
    func forgetTable() {
        block.pointee.stamp &+= 1
        block.pointee.editor = nil
        editorOwner = nil
        block.pointee.table = nil
        block.pointee.memory = nil
        tableOwner = nil
    }

    /// All accessors become invalid, for good.
    func replaceBlock() {
        block.pointee.stamp = .max
        block.pointee.isDead = true
        block.pointee.editor = nil
        editorOwner = nil
        block.pointee.table = nil
        block.pointee.memory = nil
        tableOwner = nil
        oldBlocks.append(block)
        block = UnsafeMutablePointer<TableBlock>.allocate(capacity: 1)
        block.initialize(to: SessionType.makeBlock(self, session))
        forgetTemplate()
    }

    /// The block of accessors that are invalid while the others live.
    private lazy var deadBlock: UnsafeMutablePointer<TableBlock> = {
        let block = UnsafeMutablePointer<TableBlock>.allocate(capacity: 1)
        block.initialize(to: SessionType.makeBlock(self, session))
        block.pointee.stamp = .max
        block.pointee.isDead = true
        oldBlocks.append(block)
        return block
    }()

    /// Makes one accessor invalid for good.
    func kill(_ object: ObjectBase) { object.block = deadBlock }

    // MARK: Accessors

    /// An accessor of the class for an object that may or may not exist.
    func makeAccessor(_ key: ObjectKey) -> ObjectBase {
        let object = makeUnplaced()
        place(object, key)
        if info?.hasLegacyProperties == true { bindLegacyProperties(object) }
        return object
    }

    /// An accessor for a row that was found in the version that the session is at: one of `spares` that is free, or a new one.
    @inline(__always)
    func accessor(_ row: ObjectRow, _ spares: inout SpareAccessors) -> ObjectBase {
        guard let object = spares.take(block) else { return newAccessor(row, &spares) }
        object.objectKey = row.key.rawValue
        object.cluster = row.cluster
        object.rowIndex = row.index
        object.stamp = block.pointee.stamp
        return object
    }

    /// One of `spares` that is free; its place is that of another object.
    @inline(__always)
    func spareAccessor(_ spares: inout SpareAccessors) -> ObjectBase? { spares.take(block) }

    @inline(never)
    private func newAccessor(_ row: ObjectRow, _ spares: inout SpareAccessors) -> ObjectBase {
        let object = makeAccessor(row)
        if canReuseAccessors { spares.keep(object) }
        return object
    }

    /// An accessor for a row that was found. What frozen sessions have is asked by several threads at once, which may not share
    /// `SpareAccessors`, not even empty ones.
    func makeAccessor(_ row: ObjectRow) -> ObjectBase {
        let object = makeUnplaced()
        place(object, row)
        if info?.hasLegacyProperties == true { bindLegacyProperties(object) }
        return object
    }

    /// The same for an object that may or may not exist.
    func accessor(_ key: ObjectKey, _ spares: inout SpareAccessors) -> ObjectBase {
        if let object = spares.take(block) {
            object.objectKey = key.rawValue
            object.stamp = 0
            return object
        }
        let object = makeAccessor(key)
        if canReuseAccessors { spares.keep(object) }
        return object
    }

    private func bindLegacyProperties(_ object: ObjectBase) {
        guard let info, object.isPlaced else { return }
        for property in properties where property.property.index >= 0 {
            let declared = info.properties[property.property.index]
            declared.wrapper.manage(at: object.address(declared.offset), of: object, slot: UInt16(property.slot))
        }
    }

    /// A new instance that refers to no object yet.
    @inline(__always)
    private func makeUnplaced() -> ObjectBase {
        guard let info, let metadata else { return DynamicObject() }
        if !info.isTriviallyCopied { return makeByInitializer(info) }
        // The template holds nothing that is counted, so its bytes are a complete object.
        let template = template.load(ordering: .acquiring) ?? makeTemplate(info)
        return Unmanaged<ObjectBase>.fromOpaque(template)._withUnsafeGuaranteedRef {
            ModelRuntime.copy($0, metadata, instanceSize, alignMask)
        }
    }

    @inline(never)
    private func makeTemplate(_ info: ClassInfo) -> UnsafeRawPointer {
        let made = Unmanaged.passRetained(makeByInitializer(info)), ours = UnsafeRawPointer(made.toOpaque())
        let (isFirst, present) = template.compareExchange(expected: nil, desired: ours, ordering: .acquiringAndReleasing)
        guard !isFirst, let present else { return ours }
        made.release()
        return present
    }

    private func forgetTemplate() {
        guard let old = template.exchange(nil, ordering: .acquiringAndReleasing) else { return }
        Unmanaged<ObjectBase>.fromOpaque(old).release()
    }

    private func makeByInitializer(_ info: ClassInfo) -> ObjectBase {
        let object = ModelRuntime.makeSample(info.type)
        for property in properties where property.property.index >= 0 {
            let declared = info.properties[property.property.index]
            declared.wrapper.setManaged(at: object.address(declared.offset), slot: UInt16(property.slot))
        }
        return object
    }

    func makeDynamicAccessor(_ key: ObjectKey) -> ObjectBase {
        let object = DynamicObject()
        place(object, key)
        return object
    }

    /// Ties an accessor to an object of the file.
    @inline(__always)
    func place(_ object: ObjectBase, _ key: ObjectKey) {
        object.block = block
        object.session = session
        object.objectKey = key.rawValue
        object.stamp = 0
        if session.isFrozen { object.locateFrozen() }
    }

    /// Ties an accessor to an object of which the row is known.
    @inline(__always)
    func place(_ object: ObjectBase, _ row: ObjectRow) {
        object.block = block
        object.session = session
        object.objectKey = row.key.rawValue
        object.cluster = row.cluster
        object.rowIndex = row.index
        object.stamp = block.pointee.stamp
    }

    /// Whether accessors of the class are instances of what the caller wants to see.
    @inline(__always)
    func makes(_ wanted: ObjectBase.Type) -> Bool { metadata == unsafeBitCast(wanted as AnyClass, to: UnsafeRawPointer.self) }
}
