/// Changes the objects of a file that was written with other classes. See `Realm.Configuration.migrationBlock`.
public typealias MigrationBlock = @Sendable (_ migration: Migration, _ oldSchemaVersion: UInt64) -> Void
/// An object of the old or the new schema, by property names.
public typealias MigrationObject = DynamicObject

/// What a migration block works with: the tables of the file before and after.
public final class Migration {
    /// The classes that the file has.
    public let oldSchema: Schema
    /// The classes that it is to have.
    public let newSchema: Schema

    init(oldSchema: Schema, newSchema: Schema) {
        self.oldSchema = oldSchema
        self.newSchema = newSchema
    }
}
