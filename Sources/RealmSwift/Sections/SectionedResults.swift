import Dispatch
import Foundation
internal import SharedStore

/// What `SectionedResults` and `ResultsSection` have in common.
public protocol RealmSectionedResult: RandomAccessCollection, Equatable, ThreadConfined {
    var count: Int { get }

    /// See `RealmCollection.observe(keyPaths:on:_:)`.
    func observe(keyPaths: [String]?, on queue: DispatchQueue?, _ block: @escaping (SectionedResultsChange<Self>) -> Void)
        -> NotificationToken

    /// The same on an actor, which the block is isolated to.
    func observe<A: Actor>(
        keyPaths: [String]?, on actor: A, _isolation: isolated (any Actor)?,
        _ block: @Sendable @escaping (isolated A, SectionedResultsChange<Self>) -> Void
    ) async -> NotificationToken
}

/// Results in sections: elements with equal keys stand together.
///
///     let byLetter = people.sectioned(by: { $0.name.prefix(1).uppercased() }, sortDescriptors: [SortDescriptor(keyPath: "name")])
///     for section in byLetter { print(section.key, section.count) }
///
/// Sections come in the order of the first element of each, elements keep their order. Live like the results; keys are made again
/// when the results have changed.
@frozen public struct SectionedResults<Key: _Persistable & Hashable, SectionElement: RealmCollectionValue>: RealmSectionedResult {
    public typealias Element = ResultsSection<Key, SectionElement>
    public typealias Index = Int

    let _reference: _SectionsReference<Key, SectionElement>
    var core: SectionsCore<Key, SectionElement> { _reference.core }

    init(_ core: SectionsCore<Key, SectionElement>) { _reference = _SectionsReference(core) }

    /// The keys in the order of the sections.
    public var allKeys: [Key] { core.current().map(\.key) }

    /// The number of sections.
    public var count: Int { core.current().count }
    /// Always 0.
    public var startIndex: Int { 0 }
    /// The number of sections.
    public var endIndex: Int { count }
    /// Nothing is checked before a section is read.
    public func index(after i: Int) -> Int { i + 1 }
    /// Nothing is checked before a section is read.
    public func index(before i: Int) -> Int { i - 1 }

    /// A position that is none stops the process.
    public subscript(_ index: Int) -> Element {
        let sections = core.current()
        guard sections.indices.contains(index) else { outOfBounds(index, sections.count) }
        return ResultsSection(core, sections[index].key)
    }

    /// - Parameter indexPath: the position of the section, and of the element in it.
    public subscript(_ indexPath: IndexPath) -> SectionElement { self[indexPath.section][indexPath.item] }

    /// Goes through the sections as they were when the iteration began.
    public func makeIterator() -> SectionedResultsIterator<Key, SectionElement> {
        SectionedResultsIterator(core.current().map { ResultsSection(core, $0.key) })
    }

    /// That of the results.
    public var realm: Realm? { core.results.realm }
    /// As of the results.
    public var isInvalidated: Bool { core.results.isInvalidated }
    /// As of the results.
    public var isFrozen: Bool { core.results.session.isFrozen }
    /// The sections as they are now, for every thread.
    public func freeze() -> SectionedResults { SectionedResults(core.frozen()) }
    /// The live sections; nil where what they were made of is gone.
    public func thaw() -> SectionedResults? { core.thawed().map { SectionedResults($0) } }

    /// True for the same sections object.
    public static func == (a: SectionedResults, b: SectionedResults) -> Bool { a.core === b.core }
}

extension SectionedResults: CustomStringConvertible {
    public var description: String {
        "SectionedResults<\(SectionElement._elementShape.elementName)> (\n"
            + map { Description.indent($0.description) }.joined(separator: ",\n") + "\n)"
    }
}

/// The elements of one key.
///
/// It stays that of its key: when the last element goes it is empty, and comes to life again with the next one.
@frozen public struct ResultsSection<Key: _Persistable & Hashable, T: RealmCollectionValue>: RealmSectionedResult {
    public typealias Element = T
    public typealias Index = Int

    let _reference: _SectionsReference<Key, T>
    var core: SectionsCore<Key, T> { _reference.core }
    /// What all elements of the section have in common.
    public let key: Key

    init(_ core: SectionsCore<Key, T>, _ key: Key) {
        _reference = _SectionsReference(core)
        self.key = key
    }

    /// The key: two sections of one result never have the same.
    public var id: Key { key }

    private var positions: [Int] { core.section(key)?.positions ?? [] }

    /// 0 where no element has the key any more.
    public var count: Int { positions.count }
    /// Always 0.
    public var startIndex: Int { 0 }
    /// The number of elements.
    public var endIndex: Int { count }
    /// Nothing is checked before an element is read.
    public func index(after i: Int) -> Int { i + 1 }
    /// Nothing is checked before an element is read.
    public func index(before i: Int) -> Int { i - 1 }

    /// A position that is none stops the process.
    public subscript(_ index: Int) -> T {
        let positions = positions
        guard positions.indices.contains(index) else { outOfBounds(index, positions.count) }
        return core.element(positions[index])
    }

    /// Goes through the elements as they were when the iteration began.
    public func makeIterator() -> SectionIterator<T> { SectionIterator(positions.map { core.element($0) }) }

    /// That of the results.
    public var realm: Realm? { core.results.realm }
    /// As of the results.
    public var isInvalidated: Bool { core.results.isInvalidated }
    /// As of the results.
    public var isFrozen: Bool { core.results.session.isFrozen }
    /// The section as it is now, for every thread.
    public func freeze() -> ResultsSection { ResultsSection(core.frozen(), key) }
    /// The live section; nil where what the results were made of is gone.
    public func thaw() -> ResultsSection? { core.thawed().map { ResultsSection($0, key) } }

    /// True for the same key of the same sections object.
    public static func == (a: ResultsSection, b: ResultsSection) -> Bool { a.core === b.core && a.key == b.key }
}

extension ResultsSection: Identifiable {}

extension ResultsSection: CustomStringConvertible {
    public var description: String {
        "\(key) (\n"
            + enumerated().map {
                "\t[\($0)] " + Description.indent(Description.text(ofAny: $1._toStored().dynamicValue)).dropFirst()
            }.joined(separator: ",\n") + "\n)"
    }
}

/// What happened to sections between two reports.
///
/// Positions of deletions and modifications are those before the change, of insertions those after it. A section that is gone is
/// in `sectionsToDelete` only; a new one is in `sectionsToInsert`, and its elements are insertions.
@frozen public enum SectionedResultsChange<Collection> {
    case initial(Collection)
    case update(
        Collection, deletions: [IndexPath], insertions: [IndexPath], modifications: [IndexPath], sectionsToInsert: IndexSet,
        sectionsToDelete: IndexSet)
}

public typealias RealmSectionedResultsChange = SectionedResultsChange

/// Goes through sections as they were when the iteration began.
@frozen public struct SectionedResultsIterator<Key: _Persistable & Hashable, Element: RealmCollectionValue>: IteratorProtocol {
    var rest: ArraySlice<ResultsSection<Key, Element>>
    init(_ sections: [ResultsSection<Key, Element>]) { rest = sections[...] }
    /// Nil behind the last section.
    public mutating func next() -> ResultsSection<Key, Element>? { rest.popFirst() }
}

public typealias RLMSectionedResultsIterator = SectionedResultsIterator

/// Goes through the elements of a section as they were when the iteration began.
@frozen public struct SectionIterator<Element: RealmCollectionValue>: IteratorProtocol {
    var rest: ArraySlice<Element>
    init(_ elements: [Element]) { rest = elements[...] }
    /// Nil behind the last element.
    public mutating func next() -> Element? { rest.popFirst() }
}

public typealias RLMSectionIterator = SectionIterator

extension IndexPath {
    /// The first number: which section.
    public var section: Int {
        get { self[0] }
        set { self[0] = newValue }
    }
    /// The second number: which element of the section.
    public var item: Int {
        get { self[1] }
        set { self[1] = newValue }
    }
    /// The same as `item`, as lists of user interfaces name it.
    public var row: Int {
        get { self[1] }
        set { self[1] = newValue }
    }
    /// The path of an element in a section.
    public init(item: Int, section: Int) { self.init(indexes: [section, item]) }
    /// The path of an element in a section.
    public init(row: Int, section: Int) { self.init(indexes: [section, row]) }
}
