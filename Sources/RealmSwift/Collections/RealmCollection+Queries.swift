import Foundation
internal import SharedStore

// What all collections of a Realm can be asked. Collections of unmanaged objects have no queries: they stop the process.

extension RealmCollection {
    // MARK: Finding

    /// The position of the first equal element, or nil. An object of another Realm stops the process.
    public func index(of object: Element) -> Int? {
        switch _core.form {
        case .unmanaged(let elements): return elements.firstIndex(of: object)
        case .managed(let handle): return handle.position(of: object._toStored())
        case .results(let core): return core.index(of: object._toStored())
        }
    }

    /// The position of the first element for which a predicate holds, nil where there is none.
    public func index(matching predicate: NSPredicate) -> Int? { first(of: filter(predicate)) }
    /// The position of the first element for which a predicate in the language of queries holds, see `filter`; nil where there is
    /// none.
    public func index(matching predicateFormat: String, _ args: Any...) -> Int? {
        first(of: filter(NSPredicate(format: predicateFormat, argumentArray: args as [Any?])))
    }

    private func first(of results: Results<Element>) -> Int? {
        guard let first = results.first else { return nil }
        return index(of: first)
    }

    // MARK: Filters

    /// The elements for which a predicate in the language of queries holds. `%@` stands for the next argument.
    ///
    /// `SORT(path DESC)`, `DISTINCT(path)` and `LIMIT(n)` may stand behind the condition. A text that cannot be read, an unknown
    /// property or a value of a wrong type stop the process.
    public func filter(_ predicateFormat: String, _ args: Any...) -> Results<Element> {
        filter(NSPredicate(format: predicateFormat, argumentArray: args as [Any?]))
    }

    /// The elements for which a predicate holds. One that was not made by `NSPredicate(format:)` or compounds of it stops the
    /// process.
    public func filter(_ predicate: NSPredicate) -> Results<Element> {
        let core = _core.results()
        core.requireObjects()
        let query = PredicateFormat.query(predicate, core.session)
        return Results(query.orderings.reduce(core.filtered(query.predicate)) { $0.ordered($1) })
    }

    // MARK: Order

    /// Sorted by key paths; the first one goes before the second.
    public func sorted<S: Sequence>(by sortDescriptors: S) -> Results<Element> where S.Element == SortDescriptor {
        let keys = sortDescriptors.map {
            QuerySyntax.SortKey(
                QuerySyntax.Path(names: $0.keyPath.split(separator: ".").map(String.init)), ascending: $0.ascending)
        }
        let core = _core.results()
        for key in keys { core.checkSortable(key.path) }
        return Results(keys.isEmpty ? core : core.ordered(.sort(keys)))
    }

    /// The first element of each combination of values of the given key paths.
    public func distinct<S: Sequence>(by keyPaths: S) -> Results<Element> where S.Element == String {
        let paths = keyPaths.map { path -> QuerySyntax.Path in
            if path.contains("@") { misuse("Distinct cannot be made by the collection operator in '\(path)'") }
            return QuerySyntax.Path(names: path.split(separator: ".").map(String.init))
        }
        return Results(_core.results().ordered(.distinct(paths)))
    }

    // MARK: Aggregates

    /// The least value of a property, nil where there is none.
    public func min<T: _HasPersistedType>(ofProperty property: String) -> T? where T.PersistedType: MinMaxType {
        _core.aggregate(.min, property, T.self)
    }
    /// The greatest value of a property, nil where there is none.
    public func max<T: _HasPersistedType>(ofProperty property: String) -> T? where T.PersistedType: MinMaxType {
        _core.aggregate(.max, property, T.self)
    }

    /// 0 where there is nothing to add.
    public func sum<T: _HasPersistedType>(ofProperty property: String) -> T where T.PersistedType: AddableType { sum(property) }
    /// The average of a property over the elements in which it is not null, nil where there is none.
    public func average<T: _HasPersistedType>(ofProperty property: String) -> T? where T.PersistedType: AddableType {
        _core.aggregate(.average, property, T.self)
    }

    fileprivate func sum<T>(_ property: String?) -> T {
        guard let sum = _core.aggregate(.sum, property, T.self) else {
            misuse("The sum of '\(property ?? "self")' cannot be had as '\(T.self)'")
        }
        return sum
    }
}

extension RealmCollection where Element: ObjectBase {
    /// The least value of a property, nil where there is none.
    public func min<T: _HasPersistedType>(of keyPath: KeyPath<Element, T>) -> T? where T.PersistedType: MinMaxType {
        _core.aggregate(.min, _name(for: keyPath), T.self)
    }
    /// The greatest value of a property, nil where there is none.
    public func max<T: _HasPersistedType>(of keyPath: KeyPath<Element, T>) -> T? where T.PersistedType: MinMaxType {
        _core.aggregate(.max, _name(for: keyPath), T.self)
    }
    /// The sum of a property. 0 where there is nothing to add.
    public func sum<T: _HasPersistedType>(of keyPath: KeyPath<Element, T>) -> T where T.PersistedType: AddableType {
        sum(_name(for: keyPath))
    }
    /// The average of a property over the elements in which it is not null, nil where there is none.
    public func average<T: _HasPersistedType>(of keyPath: KeyPath<Element, T>) -> T? where T.PersistedType: AddableType {
        _core.aggregate(.average, _name(for: keyPath), T.self)
    }
}

extension RealmCollection where Element.PersistedType: MinMaxType {
    /// The least element, nil where there is none.
    public func min() -> Element? { _core.aggregate(.min, nil, Element.self) }
    /// The greatest element, nil where there is none.
    public func max() -> Element? { _core.aggregate(.max, nil, Element.self) }
}

extension RealmCollection where Element.PersistedType: AddableType {
    /// The sum of the elements. 0 where there is nothing to add.
    public func sum() -> Element { sum(nil) }
    /// The average of the elements that are not null, nil where there is none.
    public func average<T: _HasPersistedType>() -> T? where T.PersistedType: AddableType {
        _core.aggregate(.average, nil, T.self)
    }
}

extension RealmCollection where Element: KeypathSortable {
    /// Sorted by a property, or by one of an object that a path of links leads to. Equal elements keep their order.
    public func sorted(byKeyPath keyPath: String, ascending: Bool = true) -> Results<Element> {
        sorted(by: [SortDescriptor(keyPath: keyPath, ascending: ascending)])
    }

    /// Sorted by a property, or by one of an object that a path of links leads to. Equal elements keep their order.
    public func sorted<T: _HasPersistedType>(by keyPath: KeyPath<Element, T>, ascending: Bool = true) -> Results<Element>
    where T.PersistedType: SortableType, Element: ObjectBase {
        sorted(byKeyPath: _name(for: keyPath), ascending: ascending)
    }

    /// The first element of each combination of values of the given key paths.
    public func distinct<S: Sequence>(by keyPaths: S) -> Results<Element>
    where S.Element == PartialKeyPath<Element>, Element: ObjectBase {
        distinct(by: keyPaths.map { _name(for: $0) })
    }
}

extension RealmCollection where Element.PersistedType: SortableType {
    /// The elements in their order: nulls first, not-a-number before numbers, texts by their bytes.
    public func sorted(ascending: Bool = true) -> Results<Element> {
        sorted(by: [SortDescriptor(keyPath: "self", ascending: ascending)])
    }
    /// The elements without those that are equal to an earlier one.
    public func distinct() -> Results<Element> { distinct(by: ["self"]) }
}

extension ResultsCore {
    /// Stops the process where a key path does not exist or goes through a collection, with the message that people look for.
    func checkSortable(_ path: QuerySyntax.Path) {
        guard let type else { return }
        let names = path.steps.compactMap { step -> String? in if case .name(let name) = step { name } else { nil } }
        let text = names.joined(separator: ".")
        var current = type
        for (index, name) in names.enumerated() {
            guard
                let property = current.property(name)
                    ?? current.properties.first(where: { $0.property.columnName.isSame(as: name) })
            else {
                misuse("Cannot sort on key path '\(text)': property '\(current.name).\(name)' does not exist.")
            }
            if property.isCollection {
                misuse("Cannot sort on key path '\(text)': property '\(current.name).\(name)' is a collection.")
            }
            if index == names.count - 1 { break }
            guard property.property.type == .object, let target = session.type(named: property.property.objectClassName ?? "")
            else {
                misuse("Cannot sort on key path '\(text)': property '\(current.name).\(name)' is no link.")
            }
            current = target
        }
        if let last = names.last, current.property(last)?.property.type == .object {
            misuse("Cannot sort on key path '\(text)': property '\(current.name).\(last)' of type 'object' cannot be sorted on.")
        }
    }
}
