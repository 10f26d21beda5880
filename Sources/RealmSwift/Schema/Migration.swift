import Foundation
internal import SharedStore

/// Changes the objects of a file that was written with other classes. See `Realm.Configuration.migrationBlock`.
///
/// It runs once, when a file with a lower schema version is first opened, and must not use other Realms of the same file.
public typealias MigrationBlock = @Sendable (_ migration: Migration, _ oldSchemaVersion: UInt64) -> Void
/// An object of the old or the new schema, by property names.
public typealias MigrationObject = DynamicObject
/// Nil where the class is not in the old or not in the new schema.
public typealias MigrationObjectEnumerateBlock = (_ oldObject: MigrationObject?, _ newObject: MigrationObject?) -> Void

/// What a migration block works with: the objects of the file before and after.
///
/// Added properties are there and hold their defaults; removed ones can be read from the old objects. Primary keys may be
/// changed; at the end they must be unique.
public final class Migration {
    /// The classes that the file has, with the names of columns.
    public let oldSchema: Schema
    /// The classes that it is to have.
    public let newSchema: Schema
    private let oldSession: Session
    private let newSession: Session
    private let context: MigrationContext
    /// The first mistake that the block made: it is thrown by the opening.
    private(set) var error: (any Error)?

    init(_ context: MigrationContext, oldSession: Session, newSession: Session) {
        oldSchema = oldSession.schema
        newSchema = newSession.schema
        self.context = context
        self.oldSession = oldSession
        self.newSession = newSession
    }

    private func attempt(_ body: () throws -> Void) {
        do { try body() } catch {
            if self.error == nil { self.error = error }
        }
    }

    /// Calls `block` with every object of a class. Objects that the block deletes meanwhile are left out.
    public func enumerateObjects(ofType typeName: String, _ block: MigrationObjectEnumerateBlock) {
        let old = oldSession.type(named: typeName), new = newSession.type(named: typeName)
        attempt {
            try context.enumerateObjects(typeName) { oldRow, newKey in
                block(
                    oldRow.flatMap { old?.makeDynamicAccessor($0.key) as? DynamicObject },
                    newKey.flatMap { new?.makeDynamicAccessor($0) as? DynamicObject })
            }
        }
    }

    /// Makes an object of the new schema.
    @discardableResult
    public func create(_ typeName: String, value: Any = [Any]()) -> MigrationObject {
        guard newSchema[typeName] != nil, let type = newSession.type(named: typeName) else {
            misuse("Object type '\(typeName)' is not in the new schema of the migration.")
        }
        return unsafeDowncast(type.makeDynamicAccessor(newSession.create(type, value, .error)), to: DynamicObject.self)
    }

    /// Deletes an object of the new classes.
    public func delete(_ object: MigrationObject) { newSession.delete(object) }

    /// Deletes all objects of a class, and the class itself where the new schema does not have it.
    ///
    /// - Returns: false where the file has no such class.
    @discardableResult
    public func deleteData(forType typeName: String) -> Bool {
        var existed = false
        attempt { existed = try context.deleteData(typeName) }
        newSession.rebind()
        return existed
    }

    /// Lets a property keep its values under another name. The old name is the one in the file.
    public func renameProperty(onType typeName: String, from oldName: String, to newName: String) {
        let newColumn = newSchema[typeName]?[newName]?.columnName ?? newName
        attempt { try context.renameProperty(typeName, from: oldName, to: newColumn) }
        newSession.rebind()
    }
}
