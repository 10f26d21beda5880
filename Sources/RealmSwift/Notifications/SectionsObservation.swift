import Dispatch
import Foundation
internal import SharedStore

extension SectionedResults {
    /// Calls `block` once with the sections as they are, then after every change. See `RealmCollection.observe(keyPaths:on:_:)`.
    public func observe(
        keyPaths: [String]? = nil, on queue: DispatchQueue? = nil,
        _ block: @escaping (SectionedResultsChange<SectionedResults>) -> Void
    ) -> NotificationToken {
        PlacedObservation.begin(
            self, on: queue, unavailable: { _ in },
            register: { sections, session in
                sections.core.observe(session, keyPaths) { change, isInitial in
                    if isInitial { return block(.initial(sections)) }
                    if let change { block(SectionedResultsChange(change, sections)) }
                }
            })
    }

    /// The same on an actor, which the block is isolated to.
    public func observe<A: Actor>(
        keyPaths: [String]? = nil, on actor: A, _isolation: isolated (any Actor)? = #isolation,
        _ block: @Sendable @escaping (isolated A, SectionedResultsChange<SectionedResults>) -> Void
    ) async -> NotificationToken {
        let request = PlacedObservation.request(
            self, unavailable: { _ in },
            register: { sections, session in
                sections.core.observe(session, keyPaths) { change, isInitial in
                    if isInitial { return PlacedObservation.call(block, actor, .initial(sections)) }
                    if let change { PlacedObservation.call(block, actor, SectionedResultsChange(change, sections)) }
                }
            })
        return await PlacedObservation.begin(request, on: actor)
    }
}

extension ResultsSection {
    /// Calls `block` once with the section as it is, then after every change of it, also when it vanishes and when its key comes
    /// back. Positions of sections are those among all sections.
    public func observe(
        keyPaths: [String]? = nil, on queue: DispatchQueue? = nil,
        _ block: @escaping (SectionedResultsChange<ResultsSection>) -> Void
    ) -> NotificationToken {
        PlacedObservation.begin(
            self, on: queue, unavailable: { _ in },
            register: { section, session in
                section.core.observe(session, keyPaths) { change, isInitial in
                    if isInitial { return block(.initial(section)) }
                    if let own = change?.only(section.key) { block(SectionedResultsChange(own, section)) }
                }
            })
    }

    /// The same on an actor, which the block is isolated to.
    public func observe<A: Actor>(
        keyPaths: [String]? = nil, on actor: A, _isolation: isolated (any Actor)? = #isolation,
        _ block: @Sendable @escaping (isolated A, SectionedResultsChange<ResultsSection>) -> Void
    ) async -> NotificationToken {
        let request = PlacedObservation.request(
            self, unavailable: { _ in },
            register: { section, session in
                section.core.observe(session, keyPaths) { change, isInitial in
                    if isInitial { return PlacedObservation.call(block, actor, .initial(section)) }
                    if let own = change?.only(section.key) {
                        PlacedObservation.call(block, actor, SectionedResultsChange(own, section))
                    }
                }
            })
        return await PlacedObservation.begin(request, on: actor)
    }
}

// MARK: For both

extension RealmSectionedResult {
    /// Calls the block with the whole first, and then with what has changed; see `RealmCollection.observe`.
    public func observe(
        keyPaths: [String]? = nil, on queue: DispatchQueue? = nil, _ block: @escaping (SectionedResultsChange<Self>) -> Void
    ) -> NotificationToken {
        observe(keyPaths: keyPaths, on: queue, block)
    }

    /// The same on an actor, which the block is isolated to.
    public func observe<A: Actor>(
        keyPaths: [String]? = nil, on actor: A, _isolation: isolated (any Actor)? = #isolation,
        _ block: @Sendable @escaping (isolated A, SectionedResultsChange<Self>) -> Void
    ) async -> NotificationToken {
        await observe(keyPaths: keyPaths, on: actor, _isolation: _isolation, block)
    }
}

extension RealmSectionedResult where Element: RealmSectionedResult, Element.Element: ObjectBase {
    /// As `observe(keyPaths:on:_:)` with names.
    public func observe(
        keyPaths: [PartialKeyPath<Element.Element>], on queue: DispatchQueue? = nil,
        _ block: @escaping (SectionedResultsChange<Self>) -> Void
    ) -> NotificationToken {
        observe(keyPaths: keyPaths.map { _name(for: $0) }, on: queue, block)
    }

    /// The same on an actor, which the block is isolated to, with key paths in Swift.
    public func observe<A: Actor>(
        keyPaths: [PartialKeyPath<Element.Element>], on actor: A, _isolation: isolated (any Actor)? = #isolation,
        _ block: @Sendable @escaping (isolated A, SectionedResultsChange<Self>) -> Void
    ) async -> NotificationToken {
        await observe(keyPaths: keyPaths.map { _name(for: $0) }, on: actor, _isolation: _isolation, block)
    }
}

extension RealmSectionedResult where Element: ObjectBase {
    /// As `observe(keyPaths:on:_:)` with names.
    public func observe(
        keyPaths: [PartialKeyPath<Element>], on queue: DispatchQueue? = nil,
        _ block: @escaping (SectionedResultsChange<Self>) -> Void
    ) -> NotificationToken {
        observe(keyPaths: keyPaths.map { _name(for: $0) }, on: queue, block)
    }

    /// The same on an actor, which the block is isolated to, with key paths in Swift.
    public func observe<A: Actor>(
        keyPaths: [PartialKeyPath<Element>], on actor: A, _isolation: isolated (any Actor)? = #isolation,
        _ block: @Sendable @escaping (isolated A, SectionedResultsChange<Self>) -> Void
    ) async -> NotificationToken {
        await observe(keyPaths: keyPaths.map { _name(for: $0) }, on: actor, _isolation: _isolation, block)
    }
}

extension SectionsCore {
    func observe(_ session: Session, _ keyPaths: [String]?, _ body: @escaping (SectionsChange?, _ isInitial: Bool) -> Void)
        -> Observation
    {
        let (subject, table) = results.observed()
        let paths = session.observedKeyPaths(keyPaths, of: table)
        let keys: (Group) -> [AnyHashable] = { [self] _ in elementKeys() }
        return SessionObservation.of(session).observe(.sections(of: subject, keys: keys), paths) { change in
            if case .sections(let sections) = change.content { return body(sections, change.isInitial) }
            if change.isInitial { body(nil, true) }
        }
    }

    /// The section key of each element of the results.
    private func elementKeys() -> [AnyHashable] {
        if results.isInvalidated { return [] }
        var keys: [AnyHashable?] = []
        for section in current() {
            let key = AnyHashable(section.key)
            for position in section.positions {
                while keys.count <= position { keys.append(nil) }
                keys[position] = key
            }
        }
        return keys.compactMap { $0 }
    }
}

extension SectionedResultsChange {
    init(_ change: SectionsChange, _ collection: Collection) {
        func paths(_ places: [SectionsChange.Place]) -> [IndexPath] {
            places.map { IndexPath(item: $0.index, section: $0.section) }
        }
        self = .update(
            collection, deletions: paths(change.deletions), insertions: paths(change.insertions),
            modifications: paths(change.modifications),
            sectionsToInsert: IndexSet(change.insertedSections), sectionsToDelete: IndexSet(change.deletedSections))
    }
}
