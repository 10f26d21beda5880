/// Conventions of the object layer (file-format-2 9.1).
extension GroupEditor {
    /// The version of the schema, in the one row of the table `metadata`, which is made if it is missing.
    public func setSchemaVersion(_ version: Int64) throws {
        let name = "metadata"
        let editor: TableEditor
        if try group.table(named: name) != nil {
            editor = try self.editor(named: name)
        } else {
            editor = try createTable(name)
            try editor.addColumn("version", .int)
        }
        let column = try editor.column(named: "version")
        let key = try editor.table.object(at: 0)?.key ?? editor.createObject()
        try editor.set(column, of: key, to: .int(version))
    }
}
