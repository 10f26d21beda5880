internal import SharedStore

/// A section core for clients that need not know what it is.
public final class _SectionsReference<Key: _Persistable & Hashable, Element: RealmCollectionValue> {
    let core: SectionsCore<Key, Element>
    init(_ core: SectionsCore<Key, Element>) { self.core = core }
}

/// Results, and the sections that they were last divided into.
///
/// Belongs to the place of its session; that of a frozen session is divided when it is made.
final class SectionsCore<Key: _Persistable & Hashable, Element: RealmCollectionValue> {
    struct Section {
        var key: Key
        /// Among the results.
        var positions: [Int]
    }

    let results: ResultsCore
    private let keyOf: (Element) -> Key
    @exclusivity(unchecked) private var sections: [Section] = []
    @exclusivity(unchecked) private var places: [Key: Int] = [:]
    /// Of the session's content when `sections` was made; 0: not yet.
    @exclusivity(unchecked) private var stamp: UInt64 = 0

    init(_ results: ResultsCore, _ keyOf: @escaping (Element) -> Key) {
        self.results = results
        self.keyOf = keyOf
        if results.session.isFrozen { divide() }
    }

    /// The sections as they are now.
    func current() -> [Section] {
        if results.session.isFrozen { return sections }
        results.session.checkConfinement()
        if stamp != results.session.contentStamp || results.isReleased { divide() }
        return sections
    }

    func section(_ key: Key) -> Section? {
        let sections = current()
        return places[key].map { sections[$0] }
    }

    func element(_ position: Int) -> Element { Element._from(results.value(position)) }

    private func divide() {
        var sections: [Section] = []
        var places: [Key: Int] = [:]
        let stamp = results.session.contentStamp
        for position in 0..<results.count {
            let key = keyOf(element(position))
            if let place = places[key] {
                sections[place].positions.append(position)
            } else {
                places[key] = sections.count
                sections.append(Section(key: key, positions: [position]))
            }
        }
        if results.session.contentStamp != stamp { misuse("The block that makes section keys must not change the Realm") }
        self.sections = sections
        self.places = places
        self.stamp = results.isReleased ? 0 : stamp
    }

    func frozen() -> SectionsCore { results.session.isFrozen ? self : SectionsCore(ResultsCore.frozen(results), keyOf) }

    func thawed() -> SectionsCore? {
        if !results.session.isFrozen { return self }
        return ResultsCore.thawed(results).map { SectionsCore($0, keyOf) }
    }
}
