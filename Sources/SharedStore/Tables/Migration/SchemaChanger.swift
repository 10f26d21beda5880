/// Brings the classes of a file to those that a program wants when it opens the file (file-format-2 9.3, 9.4).
///
/// All changes are made in one write transaction: whoever else has the file open sees the old classes or the new ones, and an
/// error, a throwing migration block or the death of the process leave the file as it was.
public struct SchemaChanger {
    /// What may be done to the file.
    public enum Mode: Sendable {
        /// New classes and indexes at any time, everything else with a higher version.
        case automatic
        /// Nothing is written, and nobody else writes: the version must be the wanted one.
        case readOnly
        /// Nothing is written by us; others may go on with other versions.
        case liveReadOnly
        /// As `automatic`, but where a migration would be needed the file is to be deleted and made anew.
        case deleteIfNeeded
        /// The schema only grows: whatever others want besides is left as it is, whatever the version. Embedded classes that
        /// nobody links to are left out.
        case additiveDiscovered
        /// As `additiveDiscovered`, for classes that were named one by one: an embedded class that nobody links to is an error.
        case additiveExplicit
        /// The migration block makes all changes itself.
        case manual
    }

    /// What is to be done with a file.
    public enum Decision: Equatable, Sendable {
        /// Nothing.
        case fits
        /// The file has no classes yet: they are made, no block is called.
        case create
        /// Changes that go without a block.
        case change
        /// Changes with a block.
        case migrate
        /// The file is to be deleted and made anew.
        case needsNewFile
    }

    /// What was done with a file.
    public enum Outcome: Equatable, Sendable {
        /// The file was left as it is.
        case unchanged
        case created
        /// Changed without a migration block.
        case changed
        /// The migration block ran.
        case migrated
        /// Nothing was done: the caller is to delete the file, which nobody else may have open, and to open it again.
        case needsNewFile
    }

    /// The classes that the file is to have.
    public let wanted: Schema
    /// The schema version that the file is to have.
    public let version: UInt64
    /// Which changes may be made, and how.
    public let mode: Mode
    /// Where a class becomes embedded, objects without an owner are deleted, and shared ones replaced by copies, one for each
    /// owner; otherwise such objects are an error.
    public let repairsEmbedded: Bool

    /// - Parameters:
    ///   - wanted: property names are those in the file; `wanted.version` does not count.
    ///   - version: the program's version of the schema; `UInt64.max` means "none" in files and cannot be asked for.
    public init(_ wanted: Schema, version: UInt64, mode: Mode = .automatic, repairsEmbedded: Bool = false) {
        precondition(version != .max, "the schema version UInt64.max stands for files without a version; use another one")
        self.wanted = wanted
        self.version = version
        self.mode = mode
        self.repairsEmbedded = repairsEmbedded
    }

    // MARK: Opening

    /// Does everything for a store: looks, waits for the right to write only where something must be written, looks again,
    /// changes, commits.
    ///
    /// - Parameter migration: called once, where a file with classes has a lower version. It must not keep the context.
    /// - Throws: `SchemaError`; what the block throws; what reading and committing may throw. Nothing was changed then.
    public static func open(
        _ store: Store, _ wanted: Schema, version: UInt64, mode: Mode = .automatic, repairsEmbedded: Bool = false,
        migration: ((MigrationContext) throws -> Void)? = nil
    ) throws -> Outcome {
        let changer = SchemaChanger(wanted, version: version, mode: mode, repairsEmbedded: repairsEmbedded)
        let reader = try store.beginRead()
        let decision = try changer.decide(reader.group.schema())
        reader.end()
        switch decision {
        case .fits: return .unchanged
        case .needsNewFile: return .needsNewFile
        case .create, .change, .migrate: break
        }
        let transaction = try store.beginWrite()
        do {
            let old = try store.beginRead(transaction.baseVersion)
            defer { old.end() }
            let outcome = try changer.apply(to: transaction.editor, old: old.group, migration)
            if outcome == .unchanged || outcome == .needsNewFile { transaction.rollback() } else { try transaction.commit() }
            return outcome
        } catch {
            if transaction.isOpen { transaction.rollback() }
            throw error
        }
    }

    // MARK: Deciding

    /// What is to be done with a file that has these classes.
    /// - Throws: `SchemaError` where the file cannot be opened like this.
    public func decide(_ file: Schema) throws -> Decision {
        try plan(file).decision
    }

    struct Plan {
        var decision: Decision
        /// Those that are to be dealt with.
        var differences: [SchemaDifference] = []
    }

    func plan(_ file: Schema) throws -> Plan {
        try validate()
        let differences = SchemaDifference.between(file: file, wanted: wanted)
        let fileVersion: UInt64? = file.version == -1 ? nil : UInt64(bitPattern: file.version)
        switch mode {
        case .readOnly, .liveReadOnly:
            if mode == .readOnly, let fileVersion, fileVersion != version {
                throw SchemaError.versionDiffers(file: fileVersion, wanted: version)
            }
            let faults = differences.filter { !$0.isHarmlessForReading }
            if !faults.isEmpty { throw SchemaError.notReadable(faults) }
            return Plan(decision: .fits)
        case .additiveDiscovered, .additiveExplicit:
            let faults = differences.filter { !$0.isAdditive }
            if !faults.isEmpty { throw SchemaError.notAdditive(faults) }
            let unreachable = mode == .additiveDiscovered ? wanted.unreachableEmbeddedClasses() : []
            let changes = differences.filter {
                if case .classAdded(let name) = $0 { return !unreachable.contains(ExactString(name)) }
                if case .propertyRemoved = $0 { return false }
                return true
            }
            if changes.isEmpty && fileVersion == version { return Plan(decision: .fits) }
            return Plan(decision: fileVersion == nil && file.isEmpty ? .create : .change, differences: changes)
        case .automatic, .deleteIfNeeded, .manual:
            return try plan(file, fileVersion, differences)
        }
    }

    private func plan(_ file: Schema, _ fileVersion: UInt64?, _ differences: [SchemaDifference]) throws -> Plan {
        let faults = differences.filter { !$0.isFree }
        guard let fileVersion else {
            // No version, as in files of programs without an object layer: what is there counts as older than any version.
            if mode == .manual && !file.isEmpty { return Plan(decision: .migrate, differences: differences) }
            if !faults.isEmpty {
                return Plan(decision: mode == .deleteIfNeeded ? .needsNewFile : .migrate, differences: differences)
            }
            return Plan(decision: file.isEmpty ? .create : .change, differences: differences)
        }
        if mode == .deleteIfNeeded && (fileVersion != version || !faults.isEmpty) {
            return Plan(decision: .needsNewFile, differences: differences)
        }
        if fileVersion > version { throw SchemaError.versionTooLow(file: fileVersion, wanted: version) }
        if fileVersion < version { return Plan(decision: .migrate, differences: differences) }
        if differences.isEmpty { return Plan(decision: .fits) }
        if mode == .manual { throw SchemaError.migrationRequired(differences) }
        if !faults.isEmpty { throw SchemaError.migrationRequired(faults) }
        return Plan(decision: .change, differences: differences)
    }

    private func validate() throws {
        var problems = wanted.problems()
        if mode == .additiveExplicit {
            problems += wanted.unreachableEmbeddedClasses().sorted().map { .unreachableEmbedded($0.text) }
        }
        if !problems.isEmpty { throw SchemaError.invalidSchema(problems) }
    }
}

extension Schema {
    /// No program has put classes of its own into the file (file-format-2 9.1).
    var isEmpty: Bool { classes.allSatisfy { $0.name.hasPrefix("__") } }
}
