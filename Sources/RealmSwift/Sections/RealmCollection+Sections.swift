// How collections are divided into sections. Collections of unmanaged objects stop the process, as for all queries.

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

    /// Stops the process where the elements are not sorted by the key first.
    fileprivate func sectioned<Key: _Persistable & Hashable>(
        by keyPath: KeyPath<Element, Key>, named name: String, _ sortDescriptors: [SortDescriptor]
    ) -> SectionedResults<Key, Element> {
        guard let first = sortDescriptors.first else {
            misuse("There must be at least one SortDescriptor when using SectionedResults.")
        }
        if first.keyPath != name {
            misuse("The section key path must match the primary sort descriptor: '\(name)' and '\(first.keyPath)'.")
        }
        return sectioned(sortDescriptors: sortDescriptors) { $0[keyPath: keyPath] }
    }
}

extension RealmCollection where Element: ObjectBase {
    /// Sorted and divided by a property.
    public func sectioned<Key: _Persistable & Hashable>(by keyPath: KeyPath<Element, Key>, ascending: Bool = true)
        -> SectionedResults<Key, Element>
    {
        let name = _name(for: keyPath)
        return sectioned(by: keyPath, named: name, [SortDescriptor(keyPath: name, ascending: ascending)])
    }

    /// - Parameter sortDescriptors: the first one must be that of the property.
    public func sectioned<Key: _Persistable & Hashable>(by keyPath: KeyPath<Element, Key>, sortDescriptors: [SortDescriptor])
        -> SectionedResults<Key, Element>
    {
        sectioned(by: keyPath, named: _name(for: keyPath), sortDescriptors)
    }

    public func sectioned<Key: _Persistable & Hashable>(by block: @escaping (Element) -> Key, sortDescriptors: [SortDescriptor])
        -> SectionedResults<Key, Element>
    {
        if sortDescriptors.isEmpty { misuse("There must be at least one SortDescriptor when using SectionedResults.") }
        return sectioned(sortDescriptors: sortDescriptors, block)
    }
}

extension RealmCollection {
    public func sectioned<Key: _Persistable & Hashable, O: ObjectBase>(by keyPath: KeyPath<Element, Key>, ascending: Bool = true)
        -> SectionedResults<Key, Element>
    where Element: Projection<O> {
        let name = _name(for: keyPath)
        return sectioned(by: keyPath, named: name, [SortDescriptor(keyPath: name, ascending: ascending)])
    }

    public func sectioned<Key: _Persistable & Hashable, O: ObjectBase>(
        by keyPath: KeyPath<Element, Key>, sortDescriptors: [SortDescriptor]
    ) -> SectionedResults<Key, Element>
    where Element: Projection<O> {
        sectioned(by: keyPath, named: _name(for: keyPath), sortDescriptors)
    }

    public func sectioned<Key: _Persistable & Hashable, O: ObjectBase>(
        by block: @escaping (Element) -> Key, sortDescriptors: [SortDescriptor]
    ) -> SectionedResults<Key, Element>
    where Element: Projection<O> {
        if sortDescriptors.isEmpty { misuse("There must be at least one SortDescriptor when using SectionedResults.") }
        return sectioned(sortDescriptors: sortDescriptors, block)
    }
}
