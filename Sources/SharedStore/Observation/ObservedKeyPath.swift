/// A path of properties from an object, with which an observer says what it wants to hear of (file-format-3 6.8).
public struct ObservedKeyPath: Hashable, Sendable {
    /// One property on the way.
    public struct Step: Hashable, Sendable {
        /// The class of the object that has the property.
        public var table: TableKey
        /// The column; of linking objects that of the links, in the class where they come from.
        public var column: ColumnKey
        /// Of linking objects the class where the links come from.
        public var origin: TableKey?

        /// - Parameter origin: for linking objects only, the class of `column`.
        public init(table: TableKey, column: ColumnKey, origin: TableKey? = nil) {
            self.table = table
            self.column = column
            self.origin = origin
        }
    }

    /// From the observed class on; none for a path that leads nowhere.
    public var steps: [Step]

    /// The steps are not checked against a schema: each must begin at the class to which the one before leads.
    public init(steps: [Step]) { self.steps = steps }

    /// Reads names separated by dots. An empty text is a path that leads nowhere: nothing is heard by it.
    ///
    /// - Throws: `ObservedKeyPathError` for a name that the class does not have, and for a way on behind something that is no
    ///   link.
    public init(_ text: String, of table: TableKey, schema: some QuerySchema) throws {
        steps = []
        if text.isEmpty { return }
        var next: TableKey? = table
        var before = ""
        for part in text.split(separator: ".", omittingEmptySubsequences: false) {
            let name = String(part)
            guard let present = next, let type = schema.queryClass(present) else {
                throw ObservedKeyPathError.noLink(path: text, property: before)
            }
            guard let property = type.property(name) else {
                throw ObservedKeyPathError.unknown(path: text, property: name, className: type.name)
            }
            steps.append(
                Step(table: present, column: property.column, origin: property.isLinkingObjects ? property.table : nil))
            next = property.type == .link ? property.target : nil
            before = name
        }
    }
}

/// A key path that does not fit the classes of the file.
public enum ObservedKeyPathError: Error, Hashable, Sendable, CustomStringConvertible {
    case unknown(path: String, property: String, className: String)
    case noLink(path: String, property: String)

    public var description: String {
        switch self {
        case .unknown(let path, let property, let className):
            "key path '\(path)': '\(property)' is not a valid property in \(className)"
        case .noLink(let path, let property): "key path '\(path)': '\(property)' is no link, so nothing can follow it"
        }
    }
}
