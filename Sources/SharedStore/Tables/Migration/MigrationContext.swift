/// What a migration block works with: the objects as they were, and the tables as they are to be.
///
/// While the block runs, new properties are there with their defaults, properties that are to go are still there, and no class of
/// the wanted schema has a primary key: those are plain properties, which may be set and for a while stand twice. They become
/// keys again, and must be unique, when the block has returned. Belongs to the thread of the write transaction, and to the time
/// of the block.
public final class MigrationContext {
    /// The classes that the file had.
    public let oldSchema: Schema
    /// The classes that it is to have.
    public let newSchema: Schema
    /// `UInt64.max` where the file had none.
    public let oldVersion: UInt64
    /// The schema version that the migration leads to.
    public let newVersion: UInt64
    /// The tables before the migration, to be read.
    public let old: Group
    /// The tables under way, to be changed. Old and new objects have the same keys.
    public let editor: GroupEditor
    /// Renamings to names that the wanted schema does not have, which must be renamed once more before the block ends.
    private var detours: [Detour] = []

    private struct Detour {
        var className: String
        /// As the file had it.
        var source: PropertySchema
        /// The last renaming.
        var from: String
        var to: String
    }

    init(oldSchema: Schema, newSchema: Schema, oldVersion: UInt64, newVersion: UInt64, old: Group, editor: GroupEditor) {
        self.oldSchema = oldSchema
        self.newSchema = newSchema
        self.oldVersion = oldVersion
        self.newVersion = newVersion
        self.old = old
        self.editor = editor
    }

    /// The editor of a class's table; nil where there is no such class.
    public func table(_ className: String) throws -> TableEditor? { try editor.classEditor(className) }

    // MARK: Objects

    /// Calls `body` for each object of a class: with the old and the new one for a class of both schemas, with only the new one
    /// for a new class or an object that the block made, with only the old one for a class that goes. Objects that are deleted
    /// meanwhile are left out, and so are those that are made. A class that neither has is no error.
    public func enumerateObjects(_ className: String, _ body: (_ old: ObjectRow?, _ new: ObjectKey?) throws -> Void) throws {
        let before = try old.table(named: Table.classPrefix + className)
        guard newSchema.objectSchema(named: className) != nil, let table = try table(className) else {
            try before?.forEachObject { try body($0, nil) }
            return
        }
        var keys: [ObjectKey] = []
        try table.table.forEachLeaf { leaf in for i in 0..<leaf.count { keys.append(leaf.key(i)) } }
        for key in keys where try table.table.find(key) != nil { try body(try before?.find(key), key) }
    }

    /// Makes an object with default values; a primary key is set like any other property.
    /// - Throws: `TableError.noSuchTable`.
    public func createObject(_ className: String) throws -> ObjectKey {
        guard let table = try table(className) else { throw TableError.noSuchTable(Table.classPrefix + className) }
        return try table.createObject()
    }

    /// Deletes an object of a class of the new schema.
    public func deleteObject(_ className: String, _ key: ObjectKey) throws {
        guard let table = try table(className) else { throw TableError.noSuchTable(Table.classPrefix + className) }
        try table.deleteObject(key)
    }

    /// Deletes all objects of a class, and the class itself where the wanted schema does not have it.
    ///
    /// - Returns: false where there is no such class.
    /// - Throws: `TableError.tableIsLinkedTo` where properties, also such as are about to go, link to a class that would go.
    public func deleteData(_ className: String) throws -> Bool {
        guard let table = try table(className) else { return false }
        if newSchema.objectSchema(named: className) == nil {
            try editor.removeTable(table.table.key)
        } else {
            try table.deleteAllObjects()
        }
        return true
    }

    // MARK: Properties

    /// Gives a property another name and keeps its values, which the change of schema alone would lose. Where the new property is
    /// optional and the old one was not, the values are kept too.
    ///
    /// A property may be renamed more than once, by way of names that the wanted schema does not have.
    ///
    /// - Parameters: the names in the file.
    /// - Throws: `SchemaError.renameRefused` where the class or a name is missing, the wanted schema still has the old one, the
    ///   types differ, or the new property is required and the old one was not.
    public func renameProperty(_ className: String, from: String, to: String) throws {
        func refused(_ reason: String) -> SchemaError { .renameRefused(class: className, from: from, to: to, reason: reason) }
        guard let oldClass = oldSchema.objectSchema(named: className) else { throw refused("the file has no such class") }
        guard let newClass = newSchema.objectSchema(named: className) else { throw refused("the class is not in the new schema") }
        let detour = detours.firstIndex { $0.className.isSame(as: className) && $0.to.isSame(as: from) }
        guard let source = detour.map({ detours[$0].source }) ?? oldClass.property(named: from), let table = try table(className),
            let column = table.table.column(named: from)
        else {
            throw refused("the file has no such property")
        }
        if newClass.property(named: from) != nil { throw refused("the new schema still has the old name") }
        let target = newClass.property(named: to)
        if let target, !source.hasSameType(as: target) {
            throw refused("the type changes from '\(source.typeName)' to '\(target.typeName)'")
        }
        if let target, source.columnIsNullable && !target.columnIsNullable {
            throw refused("the property was optional and is required now")
        }
        if let placeholder = table.table.column(named: to) {
            if target == nil || oldClass.property(named: to) != nil {
                throw refused("the file has a property of the new name already")
            }
            try table.removeColumn(placeholder.key)
        }
        try table.renameColumn(column.key, to: to)
        if let detour { detours.remove(at: detour) }
        guard let target else {
            detours.append(Detour(className: className, source: source, from: from, to: to))
            return
        }
        if target.columnIsNullable && !source.columnIsNullable { try table.makeNullable(try table.column(named: to)) }
        try table.setIndexes(try table.column(named: to), target, isPrimaryKey: newClass.primaryKey.isSame(as: to))
    }

    /// The block has returned.
    /// - Throws: `SchemaError.renameRefused` where a property was left with a name that the wanted schema does not have.
    func checkRenamings() throws {
        guard let detour = detours.first else { return }
        throw SchemaError.renameRefused(
            class: detour.className, from: detour.from, to: detour.to, reason: "the new schema has no property of the new name")
    }
}

extension GroupEditor {
    /// The editor of a class's table; nil where there is no such class.
    func classEditor(_ className: String) throws -> TableEditor? {
        try group.table(named: Table.classPrefix + className).map { try editor($0.key) }
    }
}
