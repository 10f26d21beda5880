internal import SharedStore

/// Brings the classes of a file to those of a configuration when it is opened. The rules and the work are the engine's
/// (`SchemaChanger`); here migration blocks get their objects.
enum SchemaMigration {
    /// The file whose migration block, or initial data block, runs in this thread: it cannot be opened before the block has
    /// ended.
    @TaskLocal static var runningFor: String?

    /// - Throws: `SchemaError` with every difference, where the version is not high enough.
    static func prepare(
        _ origin: any SessionOrigin, _ schema: Schema, _ classes: [ClassInfo], _ configuration: Realm.Configuration, path: String
    ) throws -> SchemaChanger.Outcome {
        let mode: SchemaChanger.Mode =
            configuration.readOnly ? .readOnly : configuration.deleteRealmIfMigrationNeeded ? .deleteIfNeeded : .automatic
        guard let store = (origin as? StoreOrigin)?.store else {
            _ = try SchemaChanger(schema.stored, version: configuration.schemaVersion, mode: .readOnly).decide(
                origin.beginRead().group.schema())
            return .unchanged
        }
        let changer = SchemaChanger(schema.stored, version: configuration.schemaVersion, mode: mode, repairsEmbedded: true)
        let reader = try store.beginRead()
        let decision = try changer.decide(reader.group.schema())
        reader.end()
        switch decision {
        case .fits: return .unchanged
        case .needsNewFile: return .needsNewFile
        case .create, .change, .migrate: break
        }
        Logger.log(.debug, .sdk) { "changing the schema of '\(path)': \(decision)" }
        let transaction = try store.beginWrite(deadline: .never)
        do {
            let old = try store.beginRead(transaction.baseVersion)
            defer { old.end() }
            let outcome = try changer.apply(to: transaction.editor, old: old.group) { context in
                // A file that others made, without a version, is brought up to date without asking.
                guard let block = configuration.migrationBlock, context.oldVersion != .max else { return }
                try migrate(block, context, origin, schema, configuration, path)
            }
            if outcome == .created, let block = configuration.initialDataBlock {
                try fill(block, transaction.editor, old.group, origin, schema, classes, configuration)
            }
            if outcome == .unchanged || outcome == .needsNewFile { transaction.rollback() } else { try transaction.commit() }
            return outcome
        } catch {
            if transaction.isOpen { transaction.rollback() }
            throw error
        }
    }

    private static func migrate(
        _ block: MigrationBlock, _ context: MigrationContext, _ origin: any SessionOrigin, _ schema: Schema,
        _ configuration: Realm.Configuration,
        _ path: String
    ) throws {
        let oldSchema = Schema(context.oldSchema.classes.map { ObjectSchema($0) })
        let oldReader = SessionReader(group: context.old, version: 0, pin: nil)
        let oldSession = try Session(
            origin: origin, configuration: configuration, schema: oldSchema, classes: [], confinement: .none, isFrozen: true,
            reader: oldReader)
        let newSession = try Session(
            origin: origin, configuration: configuration, schema: schema, classes: [], confinement: .here,
            isMigrating: true, writer: OpeningWriter(context.editor), reader: oldReader)
        let migration = Migration(context, oldSession: oldSession, newSession: newSession)
        defer { newSession.endWriting() }
        $runningFor.withValue(OriginRegistry.key(configuration)) { block(migration, context.oldVersion) }
        if let error = migration.error { throw error }
        if !newSession.migrationFailures.isEmpty {
            throw Realm.Error(.fail, newSession.migrationFailures.joined(separator: "\n"), path: path)
        }
    }

    /// The first data of a new file comes in the same transaction as its classes, so nobody ever sees one without the other.
    private static func fill(
        _ block: (Realm) -> Void, _ editor: GroupEditor, _ old: Group, _ origin: any SessionOrigin, _ schema: Schema,
        _ classes: [ClassInfo],
        _ configuration: Realm.Configuration
    ) throws {
        let reader = SessionReader(group: old, version: 0, pin: nil)
        let session = try Session(
            origin: origin, configuration: configuration, schema: schema, classes: classes, confinement: .here,
            writer: OpeningWriter(editor), reader: reader)
        $runningFor.withValue(OriginRegistry.key(configuration)) { block(Realm(session)) }
        session.endWriting()
    }
}

/// The write transaction of an opening, which ends it.
private final class OpeningWriter: SessionWriter {
    let editor: GroupEditor
    init(_ editor: GroupEditor) { self.editor = editor }
    var baseVersion: UInt64 { 0 }
    var isMovable: Bool { false }
    var othersWait: Bool { false }
    func watch(patience: Duration, _ expire: @escaping @Sendable () -> Void) {}
    func commit() throws -> SessionReader {
        misuse("A migration block or initial data block must not commit: the opening does that when it returns")
    }
    func commitWithoutSync() throws -> SessionReader { try commit() }
    func finish() throws {}
    func cancel() { misuse("A migration block or initial data block must not cancel its write transaction") }
}

extension Schema {
    /// The classes as files have them.
    var stored: SharedStore.Schema {
        SharedStore.Schema(
            version: -1,
            classes: objectSchema.map { type in
                SharedStore.ObjectSchema(
                    name: type.className, kind: type.isEmbedded ? .embedded : .topLevel,
                    primaryKey: type.primaryKeyProperty?.columnName,
                    properties: type.properties.filter { $0.type != .linkingObjects }.map { property in
                        PropertySchema(
                            name: property.columnName, type: property.columnType, collection: property.collectionKind,
                            isOptional: property.isNullableColumn, isIndexed: property.isIndexed,
                            objectType: property.objectClassName)
                    })
            })
    }
}

extension Property {
    var collectionKind: CollectionKind? {
        type == .linkingObjects ? nil : isArray ? .list : isSet ? .set : isMap ? .dictionary : nil
    }

    /// The nullable bit of the column (file-format-2 9.2).
    var isNullableColumn: Bool {
        switch (type, collectionKind) {
        case (.any, _), (.object, nil), (.object, .dictionary): true
        case (.object, _): false
        default: isOptional
        }
    }

    var columnType: ColumnType { _PropertyShape(type).columnType }
}
