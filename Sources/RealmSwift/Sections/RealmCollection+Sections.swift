// How collections are divided into sections. Collections of unmanaged objects stop the process, as for all queries.

internal import SharedStore

extension RealmCollection {
    /// Sorted, and divided by a key that is made from each element.
    ///
    /// The key must follow from the element alone, and elements with equal keys should be neighbours after sorting: otherwise
    /// they are put where the first of them is.
    public func sectioned<Key: _Persistable & Hashable>(sortDescriptors: [SortDescriptor], _ keyBlock: @escaping (Element) -> Key)
        -> SectionedResults<Key, Element>
    {
        SectionedResults(SectionsCore(sorted(by: sortDescriptors).core, keyBlock))
    }

    /// Of values: sorted by themselves.
    public func sectioned<Key: _Persistable & Hashable>(by block: @escaping (Element) -> Key, ascending: Bool = true)
        -> SectionedResults<Key, Element>
    {
        sectioned(sortDescriptors: [SortDescriptor(keyPath: "self", ascending: ascending)], block)
    }

    /// Stops the process where the elements are not sorted first by what the key is made from.
    fileprivate func sectioned<Key: _Persistable & Hashable>(
        by keyPath: KeyPath<Element, Key>, madeFrom paths: [String], _ sortDescriptors: [SortDescriptor]
    ) -> SectionedResults<Key, Element> {
        guard let first = sortDescriptors.first else {
            misuse("There must be at least one SortDescriptor when using SectionedResults.")
        }
        if !paths.contains(where: { $0.isSame(as: first.keyPath) }) {
            let paths = paths.joined(separator: ", ")
            misuse("The section key path must match the primary sort descriptor: '\(paths)' and '\(first.keyPath)'.")
        }
        return sectioned(sortDescriptors: sortDescriptors) { $0[keyPath: keyPath] }
    }
}

extension RealmCollection where Element: ObjectBase {
    /// Sorted and divided by a property; or by a computed one, sorted by the persisted properties that it reads, in the order in
    /// which it reads them. Elements with equal keys that are no neighbours then are put where the first of them is.
    public func sectioned<Key: _Persistable & Hashable>(by keyPath: KeyPath<Element, Key>, ascending: Bool = true)
        -> SectionedResults<Key, Element>
    {
        let paths = Tracing.pathsBehind(keyPath, from: Element.self)
        return sectioned(by: keyPath, madeFrom: paths, paths.map { SortDescriptor(keyPath: $0, ascending: ascending) })
    }

    /// Divided by a property, or by a computed one, and sorted as told.
    ///
    /// - Parameter sortDescriptors: the first one must be that of the property, or of one that the computed property reads.
    public func sectioned<Key: _Persistable & Hashable>(by keyPath: KeyPath<Element, Key>, sortDescriptors: [SortDescriptor])
        -> SectionedResults<Key, Element>
    {
        sectioned(by: keyPath, madeFrom: Tracing.pathsBehind(keyPath, from: Element.self), sortDescriptors)
    }

    /// Sorted as told, and divided by what the block makes of each element. Without descriptors it stops the process.
    public func sectioned<Key: _Persistable & Hashable>(by block: @escaping (Element) -> Key, sortDescriptors: [SortDescriptor])
        -> SectionedResults<Key, Element>
    {
        if sortDescriptors.isEmpty { misuse("There must be at least one SortDescriptor when using SectionedResults.") }
        return sectioned(sortDescriptors: sortDescriptors, block)
    }
}

extension RealmCollection {
    /// Projections sorted and divided by a property.
    public func sectioned<Key: _Persistable & Hashable, O: ObjectBase>(by keyPath: KeyPath<Element, Key>, ascending: Bool = true)
        -> SectionedResults<Key, Element>
    where Element: Projection<O> {
        let name = _name(for: keyPath)
        return sectioned(by: keyPath, madeFrom: [name], [SortDescriptor(keyPath: name, ascending: ascending)])
    }

    /// - Parameter sortDescriptors: the first one must be that of the property.
    public func sectioned<Key: _Persistable & Hashable, O: ObjectBase>(
        by keyPath: KeyPath<Element, Key>, sortDescriptors: [SortDescriptor]
    ) -> SectionedResults<Key, Element>
    where Element: Projection<O> {
        sectioned(by: keyPath, madeFrom: [_name(for: keyPath)], sortDescriptors)
    }

    /// Projections sorted as told, and divided by what the block makes of each. Without descriptors it stops the process.
    public func sectioned<Key: _Persistable & Hashable, O: ObjectBase>(
        by block: @escaping (Element) -> Key, sortDescriptors: [SortDescriptor]
    ) -> SectionedResults<Key, Element>
    where Element: Projection<O> {
        if sortDescriptors.isEmpty { misuse("There must be at least one SortDescriptor when using SectionedResults.") }
        return sectioned(sortDescriptors: sortDescriptors, block)
    }
}
