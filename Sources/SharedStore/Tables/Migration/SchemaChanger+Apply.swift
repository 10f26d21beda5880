/// How the changes are made (file-format-2 9.3, 9.4).
///
/// Order: new classes; changes to the columns of the others, but no removal; with a block: all primary keys become plain
/// properties, then the block; classes that are embedded no more; removed properties; classes that become embedded; primary keys,
/// which checks that they are unique; the version. A class that is embedded no more keeps its objects when the property that held
/// them goes.
extension SchemaChanger {
    /// Makes the changes in a write transaction that has changed nothing yet. The caller commits it, or rolls it back where this
    /// throws or returns `.unchanged` or `.needsNewFile`: somebody else may have changed the file before it was our turn.
    ///
    /// - Parameter old: the version that the transaction began with, for the migration block to read.
    public func apply(to editor: GroupEditor, old: Group, _ migration: ((MigrationContext) throws -> Void)? = nil) throws
        -> Outcome
    {
        let file = try editor.group.schema()
        let plan = try plan(file)
        switch plan.decision {
        case .fits: return .unchanged
        case .needsNewFile: return .needsNewFile
        case .create, .change, .migrate: break
        }
        // The table is the first one of a new file, with "no version" until the classes are there.
        if try editor.group.table(named: Group.metadataTableName) == nil { try editor.setSchemaVersion(-1) }
        let block = plan.decision == .migrate ? migration : nil
        if mode == .manual && plan.decision == .migrate {
            if let block { try run(block, context(editor, old, file)) }
            let missing = SchemaDifference.between(file: try editor.group.schema(), wanted: wanted)
            if !missing.isEmpty { throw SchemaError.incompleteMigration(missing) }
        } else {
            try change(editor, plan.differences, before: block != nil)
            if let block {
                let indexed = try releasePrimaryKeys(editor)
                try run(block, context(editor, old, file))
                try finish(editor, plan.differences)
                try dropExtraIndexes(editor, indexed)
            } else {
                try finish(editor, plan.differences)
            }
        }
        try editor.setSchemaVersion(Int64(bitPattern: version))
        return plan.decision == .create ? .created : block == nil ? .changed : .migrated
    }

    private func run(_ block: (MigrationContext) throws -> Void, _ context: MigrationContext) throws {
        try block(context)
        try context.checkRenamings()
    }

    private func context(_ editor: GroupEditor, _ old: Group, _ file: Schema) -> MigrationContext {
        MigrationContext(
            oldSchema: file, newSchema: wanted, oldVersion: UInt64(bitPattern: file.version), newVersion: version, old: old,
            editor: editor)
    }

    private func wantedClass(_ name: String) -> ObjectSchema {
        guard let type = wanted.objectSchema(named: name) else {
            preconditionFailure("a difference in a class that is not wanted")
        }
        return type
    }

    private func table(_ editor: GroupEditor, _ className: String) throws -> TableEditor {
        try editor.editor(named: Table.classPrefix + className)
    }

    // MARK: Before the block

    private func change(_ editor: GroupEditor, _ differences: [SchemaDifference], before hasBlock: Bool) throws {
        try createClasses(
            editor, differences.compactMap { if case .classAdded(let name) = $0 { wantedClass(name) } else { nil } })
        for case .typeChanged(_, let from, _) in differences {
            guard from.type == .link, let target = from.objectType else { continue }
            try changeKinds(editor, differences) { name, kind in kind != .embedded && ExactString(name) == ExactString(target) }
        }
        for difference in differences {
            switch difference {
            case .propertyAdded(let name, let property):
                try add(property, to: wantedClass(name), editor)
            case .typeChanged(let name, let from, let to):
                let table = try table(editor, name)
                try table.removeColumn(try table.column(named: from.name).key)
                try add(to, to: wantedClass(name), editor)
            case .madeRequired(let name, let property):
                let table = try table(editor, name)
                try table.removeColumn(try table.column(named: property).key)
                guard let wanted = wantedClass(name).property(named: property) else { continue }
                try add(wanted, to: wantedClass(name), editor)
            case .madeOptional(let name, let property):
                let table = try table(editor, name)
                let type = wantedClass(name)
                try table.makeNullable(try table.column(named: property))
                guard let wanted = type.property(named: property) else { continue }
                try table.setIndexes(
                    try table.column(named: property), wanted, isPrimaryKey: type.primaryKey.isSame(as: property))
            case .primaryKeyChanged(let name, let from?, _):
                let table = try table(editor, name)
                try table.setPrimaryKey(nil)
                // The index went with the key, even where the property is to have one of its own.
                guard let wanted = wantedClass(name).property(named: from), let column = table.table.column(named: from) else {
                    continue
                }
                try table.setIndexes(column, wanted, isPrimaryKey: false)
            case .indexAdded(let name, let property), .fullTextIndexAdded(let name, let property),
                .indexRemoved(let name, let property):
                let table = try table(editor, name)
                let type = wantedClass(name)
                guard let wanted = type.property(named: property) else { continue }
                try table.setIndexes(
                    try table.column(named: property), wanted, isPrimaryKey: type.primaryKey.isSame(as: property))
            case .classAdded, .propertyRemoved, .kindChanged, .primaryKeyChanged: break
            }
        }
    }

    /// First all tables with their primary keys, then the other columns, so that links find their targets.
    private func createClasses(_ editor: GroupEditor, _ types: [ObjectSchema]) throws {
        for type in types {
            let table = try editor.createTable(Table.classPrefix + type.name, kind: type.kind)
            if let name = type.primaryKey, let key = type.property(named: name) {
                try table.addPrimaryKeyColumn(name, key.type, isNullable: key.columnIsNullable)
            }
        }
        for type in types {
            for property in type.properties where !type.primaryKey.isSame(as: property.name) {
                try add(property, to: type, editor)
            }
        }
    }

    /// Adds the column of a property, and its index.
    private func add(_ property: PropertySchema, to type: ObjectSchema, _ editor: GroupEditor) throws {
        let table = try table(editor, type.name)
        let target = try property.type == .link ? self.table(editor, property.objectType ?? "").table.key : nil
        let column = try table.addColumn(property.name, property.type, property.columnAttributes, target: target)
        try table.setIndexes(column, property, isPrimaryKey: type.primaryKey.isSame(as: property.name))
    }

    /// Makes the primary keys of all wanted classes plain properties, so that the block may set them and they may stand twice for
    /// a while. They keep their indexes: it is cheaper to keep them in step than to make them anew.
    ///
    /// - Returns: the columns that were given the indexed attribute for that.
    private func releasePrimaryKeys(_ editor: GroupEditor) throws -> [(className: String, column: ColumnKey)] {
        var given: [(className: String, column: ColumnKey)] = []
        for type in wanted.sortedClasses {
            guard let table = try editor.classEditor(type.name), let key = table.table.primaryKeyColumn else { continue }
            if !key.attributes.contains(.indexed) && table.isIndexed(key) {
                try table.setAttributes(key, key.attributes.union(.indexed))
                given.append((type.name, key.key))
            }
            try table.setPrimaryKey(nil)
        }
        return given
    }

    // MARK: After the block

    private func finish(_ editor: GroupEditor, _ differences: [SchemaDifference]) throws {
        try changeKinds(editor, differences) { _, kind in kind != .embedded }
        for case .propertyRemoved(let name, let property) in differences {
            let table = try table(editor, name)
            // Gone where the block has renamed it.
            if let column = table.table.column(named: property) { try table.removeColumn(column.key) }
        }
        try changeKinds(editor, differences) { _, kind in kind == .embedded }
        for type in wanted.sortedClasses {
            // Absent where an embedded class was left out.
            guard let table = try editor.classEditor(type.name) else { continue }
            let column = try type.primaryKey.map { try table.column(named: $0) }
            do { try table.setPrimaryKey(column?.key) } catch TableError.duplicatePrimaryKey(_, let value) {
                throw SchemaError.duplicatePrimaryKey(class: type.name, property: type.primaryKey ?? "", value: value)
            }
        }
    }

    /// Gives those classes their new kind that the condition holds for.
    private func changeKinds(
        _ editor: GroupEditor, _ differences: [SchemaDifference], where isMeant: (_ className: String, _ kind: TableKind) -> Bool
    ) throws {
        for case .kindChanged(let name, _, let kind) in differences where isMeant(name, kind) {
            do { try table(editor, name).setKind(kind, repairing: repairsEmbedded) } catch TableError.badLinkTarget(
                _, _, let reason)
            {
                throw SchemaError.notOwnedOnce(class: name, reason: reason)
            }
        }
    }

    private func dropExtraIndexes(_ editor: GroupEditor, _ columns: [(className: String, column: ColumnKey)]) throws {
        for (className, key) in columns {
            // Absent where the block has removed class or column.
            guard let table = try editor.classEditor(className), table.table.column(key) != nil else { continue }
            try table.removeIndex(key)
        }
    }
}

extension TableEditor {
    /// Gives a column the indexes of a property, and no other. Full text wins where both are asked for: a column has one index.
    /// That of a primary key comes and goes with the key.
    func setIndexes(_ column: Column, _ property: PropertySchema, isPrimaryKey: Bool) throws {
        if isPrimaryKey {
            if column.attributes.contains(.fullTextIndexed) { try removeIndex(column.key) }
        } else if property.isFullTextIndexed {
            try addIndex(column.key, fullText: true)
        } else if property.isIndexed {
            try addIndex(column.key)
        } else {
            try removeIndex(column.key)
        }
    }

    /// Lets a column hold null, and its collections hold nulls: a new column takes over the values, the name and being the
    /// primary key.
    func makeNullable(_ old: Column) throws {
        precondition(!old.isNullable && old.type != .link, "the column can hold null already, or never can")
        let name = table.name(of: old)
        let isPrimaryKey = table.primaryKeyColumn?.key == old.key
        let new = try addColumn(
            "__temporary", old.type, old.attributes.intersection([.list, .set, .dictionary]).union(.nullable))
        var keys: [ObjectKey] = []
        try table.forEachLeaf { leaf in for i in 0..<leaf.count { keys.append(leaf.key(i)) } }
        for key in keys {
            if old.collection == nil {
                guard let row = try table.find(key) else { throw noSuchObject(key) }
                try set(new, of: key, to: try row.value(old), isDefault: true)
            } else {
                try copyElements(identity(old, of: key), to: identity(new, of: key))
            }
        }
        try removeColumn(old.key)
        try renameColumn(new.key, to: name)
        if isPrimaryKey { try setPrimaryKey(new.key) }
    }
}
