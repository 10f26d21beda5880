/// Changes as an asynchronous sequence: what an observer is told, one element for each call.
///
///     for await change in birds.changes() { ... }
///
/// The collections and objects in the elements are frozen. So the positions of a change fit the collection that comes with it
/// however late the loop takes it, and the loop may run anywhere; `thaw()` gives the live ones. Elements that nobody has taken
/// keep their versions of the file, so a loop that does not keep pace lets the file grow. The observation ends with the loop, and
/// with the task.
public struct RealmChangeSequence<Change>: AsyncSequence {
    public typealias Element = Change
    public typealias Failure = Never

    private let stream: AsyncStream<Transfer<Change>>

    /// - Parameters:
    ///   - frozen: the change that is passed on, and whether it is the last one.
    init<Seen>(
        _ observe: (@escaping (Seen) -> Void) -> NotificationToken, frozen: @escaping (Seen) -> (change: Change, isLast: Bool)
    ) {
        stream = AsyncStream { continuation in
            let token = observe { seen in
                let passed = frozen(seen)
                continuation.yield(Transfer(passed.change))
                if passed.isLast { continuation.finish() }
            }
            continuation.onTermination = { _ in token.invalidate() }
        }
    }

    /// Each change goes to one iterator of the sequence only; make one.
    public func makeAsyncIterator() -> Iterator { Iterator(base: stream.makeAsyncIterator()) }

    /// Waits for one change after the other; a change that comes meanwhile is kept.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate var base: AsyncStream<Transfer<Change>>.Iterator

        /// Nil after what is observed is gone, and for a task that was cancelled.
        public mutating func next() async -> Change? { await base.next()?.value }
        /// As `next()`, without leaving the actor.
        public mutating func next(isolation actor: isolated (any Actor)?) async -> Change? {
            await base.next(isolation: actor)?.value
        }
    }
}

extension ThreadConfined {
    /// What is gone cannot be frozen; it is given as it is.
    fileprivate var frozenIfValid: Self { isInvalidated ? self : freeze() }
}

extension RealmCollectionChange where CollectionType: ThreadConfined {
    /// What is passed on, and whether it is the last one.
    fileprivate var frozen: (change: Self, isLast: Bool) {
        switch self {
        case .initial(let collection): (.initial(collection.frozenIfValid), false)
        case .update(let collection, let deletions, let insertions, let modifications):
            (.update(collection.frozenIfValid, deletions: deletions, insertions: insertions, modifications: modifications), false)
        case .error: (self, true)
        }
    }
}

extension RealmMapChange where Collection: ThreadConfined {
    fileprivate var frozen: (change: Self, isLast: Bool) {
        switch self {
        case .initial(let map): (.initial(map.frozenIfValid), false)
        case .update(let map, let deletions, let insertions, let modifications):
            (.update(map.frozenIfValid, deletions: deletions, insertions: insertions, modifications: modifications), false)
        case .error: (self, true)
        }
    }
}

extension SectionedResultsChange where Collection: ThreadConfined {
    fileprivate var frozen: (change: Self, isLast: Bool) {
        switch self {
        case .initial(let sections): (.initial(sections.frozenIfValid), false)
        case .update(let sections, let deletions, let insertions, let modifications, let sectionsToInsert, let sectionsToDelete):
            (
                .update(
                    sections.frozenIfValid, deletions: deletions, insertions: insertions, modifications: modifications,
                    sectionsToInsert: sectionsToInsert, sectionsToDelete: sectionsToDelete), false
            )
        }
    }
}

extension RealmCollection {
    /// The calls of `observe(keyPaths:on:_:)` as a sequence. Call it where the collection belongs.
    public func changes(keyPaths: [String]? = nil) -> RealmChangeSequence<RealmCollectionChange<Self>> {
        RealmChangeSequence({ observe(keyPaths: keyPaths, $0) }, frozen: \.frozen)
    }
}

extension RealmKeyedCollection {
    /// The calls of `observe(keyPaths:on:_:)` as a sequence. Call it where the map belongs.
    public func changes(keyPaths: [String]? = nil) -> RealmChangeSequence<RealmMapChange<Self>> {
        RealmChangeSequence({ observe(keyPaths: keyPaths, $0) }, frozen: \.frozen)
    }
}

extension SectionedResults {
    /// The calls of `observe(keyPaths:on:_:)` as a sequence. Call it where the results belong.
    public func changes(keyPaths: [String]? = nil) -> RealmChangeSequence<SectionedResultsChange<SectionedResults>> {
        RealmChangeSequence({ observe(keyPaths: keyPaths, $0) }, frozen: \.frozen)
    }
}

extension ResultsSection {
    /// The calls of `observe(keyPaths:on:_:)` as a sequence. Call it where the section belongs.
    public func changes(keyPaths: [String]? = nil) -> RealmChangeSequence<SectionedResultsChange<ResultsSection>> {
        RealmChangeSequence({ observe(keyPaths: keyPaths, $0) }, frozen: \.frozen)
    }
}

extension ProjectedCollection {
    /// The calls of `observe(keyPaths:on:_:)` as a sequence. Call it where the collection belongs.
    public func changes(keyPaths: [String]? = nil) -> RealmChangeSequence<RealmCollectionChange<ProjectedCollection>> {
        RealmChangeSequence({ observe(keyPaths: keyPaths, $0) }, frozen: \.frozen)
    }
}

extension ThreadConfined where Self: Object {
    /// The calls of `observe(keyPaths:on:_:)` as a sequence, which ends when the object is deleted. Call it where the object
    /// belongs.
    public func changes(keyPaths: [String]? = nil) -> RealmChangeSequence<ObjectChange<Self>> {
        RealmChangeSequence(
            { (block: @escaping (ObjectChange<Self>) -> Void) in observe(keyPaths: keyPaths, block) },
            frozen: { change in
                switch change {
                case .change(let object, let properties): (.change(object.frozenIfValid, properties), false)
                case .deleted, .error: (change, true)
                }
            })
    }
}
