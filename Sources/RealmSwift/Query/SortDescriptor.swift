/// A key path to sort by, and a direction.
@frozen public struct SortDescriptor: Equatable, Sendable {
    public let keyPath: String
    /// False for the greatest first.
    public let ascending: Bool

    /// By a property, or by one of an object that a path of links leads to.
    public init(keyPath: String, ascending: Bool = true) {
        self.keyPath = keyPath
        self.ascending = ascending
    }

    /// The same with a key path in Swift; one that does not name a persisted property stops the process.
    public init<Element: ObjectBase>(keyPath: PartialKeyPath<Element>, ascending: Bool = true) {
        self.init(keyPath: _name(for: keyPath), ascending: ascending)
    }

    /// The same key path in the other direction.
    public func reversed() -> SortDescriptor { SortDescriptor(keyPath: keyPath, ascending: !ascending) }
}

extension SortDescriptor: CustomStringConvertible {
    public var description: String {
        "SortDescriptor (keyPath: \(keyPath), direction: \(ascending ? "ascending" : "descending"))"
    }
}

extension SortDescriptor: ExpressibleByStringLiteral {
    public typealias UnicodeScalarLiteralType = StringLiteralType
    public typealias ExtendedGraphemeClusterLiteralType = StringLiteralType
    /// Ascending.
    public init(stringLiteral value: StringLiteralType) { self.init(keyPath: value) }
}
