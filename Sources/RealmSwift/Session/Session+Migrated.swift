internal import SharedStore

// A file that another program has migrated while this one had it open. What this program's classes need may be gone from it, so
// the session stays at the version that it is at: it can be read, and writing is an error.

extension Session {
    /// Whether the session may go to a version: all columns of its classes must be there.
    ///
    /// Columns come and go with another schema version only (`SchemaChanger`), so that is all that is looked at for most
    /// versions.
    /// - Throws: `Realm.Error.schemaMismatch`.
    func checkClasses(in reader: SessionReader) throws {
        let version = try reader.group.schemaVersion()
        if version == knownSchemaVersion { return }
        for type in allTypes where type.info != nil && type.tableKey != .null {
            let table = try reader.group.table(type.tableKey)
            let missing = type.properties.first { property in
                property.slot < ManagedProperty.computedSlots && !property.columnKey.isNull
                    && table?.column(property.columnKey) == nil
            }
            guard let missing else { continue }
            throw Realm.Error(
                .schemaMismatch,
                "Another program has migrated the Realm to schema version \(version), where the property "
                    + "'\(type.name).\(missing.name)' is not as this program knows it. This Realm stays at its version and can be read; to write, open it anew "
                    + "with the classes of that schema version.", path: configuration.fileURL?.path)
        }
        knownSchemaVersion = version
    }
}
