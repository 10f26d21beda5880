internal import SharedStore

/// Brings the classes of a file to those of a configuration when it is opened (file-format-2 9.4).
///
/// What may change without a higher schema version: new classes, indexes. Everything else needs one.
enum SchemaMigrator {
    enum Outcome {
        case fits
        /// The file must be deleted and made anew: `deleteRealmIfMigrationNeeded`.
        case needsNewFile
    }

    /// - Parameter origin: the file, open.
    /// - Throws: `Realm.Error.schemaMismatch` with every difference, where the version is not high enough.
    static func prepare(_ origin: any SessionOrigin, _ schema: Schema, _ classes: [ClassInfo], _ configuration: Realm.Configuration, path: String) throws -> Outcome {
        let reader = try origin.beginRead()
        var plan = try plan(reader.group, schema, configuration, path)
        if configuration.readOnly {
            let faults = plan.differences.filter { !$0.isHarmlessForReading }
            if !faults.isEmpty { throw mismatch(faults, path) }
            if plan.storedVersion != configuration.schemaVersion && plan.storedVersion != nil {
                throw Realm.Error(.schemaMismatch, "Read-only Realm has schema version \(plan.storedVersion ?? 0), not \(configuration.schemaVersion).", path: path)
            }
            return .fits
        }
        if plan.isEmpty { return .fits }
        if configuration.deleteRealmIfMigrationNeeded && plan.needsMigration { return .needsNewFile }
        try plan.check(configuration, path)

        // Another process may have done it while we waited: look again under the write lock.
        let writer = try origin.beginWrite()
        do {
            plan = try Self.plan(writer.group, schema, configuration, path)
            if plan.isEmpty {
                _ = try writer.cancel()
                return .fits
            }
            try plan.check(configuration, path)
            try SchemaMigration(writer, old: reader, schema: schema, classes: classes, configuration: configuration, origin: origin, path: path).run(plan)
        } catch {
            _ = try? writer.cancel()
            throw error
        }
        _ = try writer.commit()
        return .fits
    }

    struct Plan {
        var differences: [SchemaDifference]
        /// Nil: the file was never given classes.
        var storedVersion: UInt64?
        var version: UInt64
        var isEmpty: Bool { differences.isEmpty && storedVersion == version }
        var needsMigration: Bool {
            guard let storedVersion else { return differences.contains { !$0.isFree } }
            return storedVersion != version || differences.contains { !$0.isFree }
        }

        func check(_ configuration: Realm.Configuration, _ path: String) throws {
            guard let storedVersion else { return }
            if storedVersion > version {
                throw Realm.Error(.schemaMismatch, "Provided schema version \(version) is less than last set version \(storedVersion).", path: path)
            }
            let faults = differences.filter { !$0.isFree }
            if storedVersion == version && !faults.isEmpty { throw SchemaMigrator.mismatch(faults, path) }
        }
    }

    private static func plan(_ group: Group, _ schema: Schema, _ configuration: Realm.Configuration, _ path: String) throws -> Plan {
        let stored = try group.schema()
        return Plan(differences: SchemaComparison.differences(present: stored, wanted: schema),
                    storedVersion: stored.version == -1 ? nil : UInt64(bitPattern: stored.version), version: configuration.schemaVersion)
    }

    private static func mismatch(_ differences: [SchemaDifference], _ path: String) -> Realm.Error {
        Realm.Error(.schemaMismatch, "Migration is required due to the following errors:" + differences.map { "\n- " + $0.message }.joined(), path: path)
    }
}
