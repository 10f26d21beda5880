internal import SharedStore

/// Brings the classes of a file to those of a configuration when it is opened. The rules and the work are the engine's
/// (`SchemaChanger`); here migration blocks get their objects.
enum SchemaMigration {
    /// - Throws: `SchemaError` with every difference, where the version is not high enough.
    static func prepare(_ origin: any SessionOrigin, _ schema: Schema, _ configuration: Realm.Configuration, path: String) throws -> SchemaChanger.Outcome {
        let mode: SchemaChanger.Mode = configuration.readOnly ? .readOnly : configuration.deleteRealmIfMigrationNeeded ? .deleteIfNeeded : .automatic
        guard let store = (origin as? StoreOrigin)?.store else {
            _ = try SchemaChanger(schema.stored, version: configuration.schemaVersion, mode: .readOnly).decide(origin.beginRead().group.schema())
            return .unchanged
        }
        return try SchemaChanger.open(store, schema.stored, version: configuration.schemaVersion, mode: mode, repairsEmbedded: true) { context in
            // A file that others made, without a version, is brought up to date without asking.
            guard let block = configuration.migrationBlock, context.oldVersion != .max else { return }
            try run(block, context, origin, schema, configuration, path)
        }
    }

    private static func run(_ block: MigrationBlock, _ context: MigrationContext, _ origin: any SessionOrigin, _ schema: Schema, _ configuration: Realm.Configuration, _ path: String) throws {
        let oldSchema = Schema(context.oldSchema.classes.map { ObjectSchema($0) })
        let oldReader = SessionReader(group: context.old, version: 0, pin: nil)
        let oldSession = try Session(origin: origin, configuration: configuration, schema: oldSchema, classes: [], confinement: .none, isFrozen: true, reader: oldReader)
        let newSession = try Session(origin: origin, configuration: configuration, schema: schema, classes: [], confinement: .here,
                                     migrating: ContextWriter(context), reader: oldReader)
        let migration = Migration(context, oldSession: oldSession, newSession: newSession)
        defer { newSession.endMigration() }
        block(migration, context.oldVersion)
        if let error = migration.error { throw error }
        if !newSession.migrationFailures.isEmpty { throw Realm.Error(.fail, newSession.migrationFailures.joined(separator: "\n"), path: path) }
    }
}

/// The write transaction of a migration, which the engine ends.
private final class ContextWriter: SessionWriter {
    let editor: GroupEditor
    init(_ context: MigrationContext) { editor = context.editor }
    var baseVersion: UInt64 { 0 }
    var isMovable: Bool { false }
    var othersWait: Bool { false }
    func commit() throws -> SessionReader { misuse("A migration block must not commit: the opening does that when it returns") }
    func commitWithoutSync() throws -> SessionReader { try commit() }
    func finish() throws {}
    func cancel() { misuse("A migration block must not cancel its write transaction") }
}

extension Schema {
    /// The classes as files have them.
    var stored: SharedStore.Schema {
        SharedStore.Schema(version: -1, classes: objectSchema.map { type in
            SharedStore.ObjectSchema(
                name: type.className, kind: type.isEmbedded ? .embedded : .topLevel, primaryKey: type.primaryKeyProperty?.columnName,
                properties: type.properties.filter { $0.type != .linkingObjects }.map { property in
                    PropertySchema(name: property.columnName, type: property.columnType, collection: property.collectionKind,
                                   isOptional: property.isNullableColumn, isIndexed: property.isIndexed, objectType: property.objectClassName)
                })
        })
    }
}

extension Property {
    var collectionKind: CollectionKind? { type == .linkingObjects ? nil : isArray ? .list : isSet ? .set : isMap ? .dictionary : nil }

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
