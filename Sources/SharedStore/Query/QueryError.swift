/// Why a query text, its arguments, or a query's parts were refused.
///
/// The kinds are a grouping for programs; `message` is for people, and `offset` points into the text.
public struct QueryError: Error, Equatable, Sendable, CustomStringConvertible {
    /// What is wrong, for programs.
    public enum Kind: String, Sendable, CaseIterable {
        /// The text is not a sentence of the language.
        case syntax
        /// A class, a property or a link to follow back does not exist.
        case property
        /// A key path that goes where it cannot: an index on something that has none, a quantifier without a collection.
        case path
        /// The two sides cannot be compared, or arithmetic meets something that is no number.
        case type
        /// The operator does not exist for the type of its left side.
        case operation = "operator"
        /// An argument is missing or of a type that cannot stand where it stands.
        case argument
        /// `@min`, `@max`, `@sum` or `@avg` where it is not possible.
        case aggregate
        case subquery
        /// SORT or DISTINCT by something that has no order.
        case ordering
        /// A literal outside the range of its type.
        case literal
        /// Full-text search that is not possible: no index, or nothing to search for.
        case text
        /// A region that is invalid, or a left side that is no point.
        case geo
    }
    /// What is wrong, for programs.
    public let kind: Kind
    /// What is wrong, for people.
    public let message: String
    /// Where in the text the trouble lies, in bytes of UTF-8 from its start.
    public let offset: Int

    /// An error at a place of the text, in bytes.
    public init(_ kind: Kind, _ message: String, at offset: Int = 0) {
        self.kind = kind
        self.message = message
        self.offset = offset
    }
    public var description: String { "\(message) (\(kind.rawValue), at byte \(offset))" }
}
