import Foundation
internal import SharedStore

/// A predicate as text with arguments, from whatever it was made.
enum PredicateFormat {
    /// Hands the text of a predicate out to whoever evaluates it with this object.
    final class Probe {
        var format: (text: String, arguments: [Any?])?
    }

    // MARK: Predicates

    /// A condition and the orderings that may stand behind it (query-language 11).
    ///
    /// - Parameter session: where the arguments that are objects must be.
    static func query(_ predicate: NSPredicate, _ session: Session) -> (
        predicate: QuerySyntax.Predicate, orderings: [QuerySyntax.Ordering]
    ) {
        if let text = format(of: predicate) {
            let query = parse(text.text, text.arguments, session)
            return (query.predicate, query.orderings)
        }
        return (syntax(predicate, session), [])
    }

    static func syntax(_ predicate: NSPredicate, _ session: Session) -> QuerySyntax.Predicate {
        if let compound = predicate as? NSCompoundPredicate {
            let parts = compound.subpredicates.map { syntax($0, session) }
            switch compound.compoundPredicateType {
            case .and: return parts.isEmpty ? .always(true) : .and(parts)
            case .or: return parts.isEmpty ? .always(false) : .or(parts)
            case .not: return .not(parts.first ?? .always(true))
            }
        }
        // What has no text of ours is `NSPredicate(value:)`; a block of somebody else's cannot be turned into a query.
        for value in [true, false] where predicate.isEqual(NSPredicate(value: value)) { return .always(value) }
        guard let text = format(of: predicate) else { misuse("Predicates with blocks cannot be used in queries") }
        let query = parse(text.text, text.arguments, session)
        if !query.orderings.isEmpty {
            misuse("A predicate within another one cannot sort, be distinct or have a limit: \"\(text.text)\"")
        }
        return query.predicate
    }

    /// Nil for predicates that were not made from a text.
    private static func format(of predicate: NSPredicate) -> (text: String, arguments: [Any?])? {
        if predicate is NSCompoundPredicate { return nil }
        let probe = Probe()
        _ = predicate.evaluate(with: probe)
        return probe.format
    }

    private static func parse(_ text: String, _ arguments: [Any?], _ session: Session) -> QuerySyntax {
        do {
            return try QuerySyntax(parsing: text, arguments: arguments.map { argument($0, session) })
        } catch let error as QueryError {
            misuse("Invalid predicate \"\(text)\": \(error.message) (at byte \(error.offset))")
        } catch {
            misuse("Invalid predicate \"\(text)\": \(error)")
        }
    }

    // MARK: Arguments

    private static func argument(_ value: Any?, _ session: Session) -> QueryArgument {
        guard let value = ValueInput.unwrap(value) else { return .value(.null) }
        if let region = value as? any GeoShape { return .region(region.region) }
        if let single = mixed(value, session) { return .value(single) }
        if let elements = ValueInput.elements(of: value) {
            return .list(
                elements.map { element in
                    guard let element = ValueInput.unwrap(element) else { return .null }
                    guard let mixed = mixed(element, session) else {
                        misuse("Invalid value '\(element)' of type '\(type(of: element))' in a predicate")
                    }
                    return mixed
                })
        }
        misuse("Invalid value '\(value)' of type '\(type(of: value))' in a predicate")
    }

    private static func mixed(_ value: Any, _ session: Session) -> Mixed? {
        if let object = ValueInput.object(value) { return link(object, session) }
        guard let stored = ValueInput.convertMixed(value) else { return nil }
        if let object = stored.object(as: ObjectBase.self) { return link(object, session) }
        return stored.plain
    }

    /// An object that is not in this file equals no object of it.
    private static func link(_ object: ObjectBase, _ session: Session) -> Mixed {
        guard let other = object.session, other.origin === session.origin, let type = object.managedType else {
            if object.session != nil { misuse("Object is managed by another Realm and cannot be used in a query") }
            return .link(session.type(named: object.schemaName)?.tableKey ?? .null, .null)
        }
        return .link(type.tableKey, ObjectKey(object.objectKey))
    }
}

extension NSPredicate {
    /// A predicate in the language of queries. `%@` stands for the next argument, `%K` for the next one as a key path.
    ///
    /// It can be used with the collections of this library only. What is wrong with the text shows when it is.
    public convenience init(format: String, _ args: Any?...) { self.init(format: format, argumentArray: args as [Any?]) }

    /// The same with the arguments as an array.
    public convenience init(format: String, argumentArray arguments: [Any]?) {
        self.init(format: format, argumentArray: (arguments ?? []).map { $0 as Any? })
    }

    convenience init(format: String, argumentArray arguments: [Any?]) {
        let text = PredicateText(text: format, arguments: arguments)
        self.init(block: { object, _ in
            guard let probe = object as? PredicateFormat.Probe else {
                misuse("The predicate \"\(text.text)\" can only be used with collections of a Realm")
            }
            probe.format = (text.text, text.arguments)
            return true
        })
    }
}

/// Captured by a block that Foundation calls sendable.
private struct PredicateText: @unchecked Sendable {
    // Sendable: as much as the values given by the caller; a predicate is used where it was made.
    var text: String
    var arguments: [Any?]
}
