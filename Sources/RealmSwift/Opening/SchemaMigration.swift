internal import SharedStore

/// The changes of one migration, in the write transaction in which it runs.
struct SchemaMigration {
    let writer: any SessionWriter
    /// The version before, for migration blocks to read.
    let old: SessionReader
    let schema: Schema
    let classes: [ClassInfo]
    let configuration: Realm.Configuration
    let origin: any SessionOrigin
    let path: String

    init(_ writer: any SessionWriter, old: SessionReader, schema: Schema, classes: [ClassInfo], configuration: Realm.Configuration, origin: any SessionOrigin, path: String) {
        self.writer = writer
        self.old = old
        self.schema = schema
        self.classes = classes
        self.configuration = configuration
        self.origin = origin
        self.path = path
    }

    func run(_ plan: SchemaMigrator.Plan) throws {
        let tables = SchemaWriter(writer.editor)
        try tables.metadata()
        try tables.add(plan.differences.compactMap { if case .addTable(let type) = $0 { type } else { nil } })
        for difference in plan.differences {
            switch difference {
            case .addIndex(let type, let property): try tables.setIndex(property, of: type, true)
            case .removeIndex(let type, let property): try tables.setIndex(property, of: type, false)
            default: break
            }
        }
        try tables.setVersion(configuration.schemaVersion)
    }
}
