import Foundation
@testable import SharedStore
import XCTest

/// What a session does with an engine of observers: keeps a version, goes to newer ones, commits, and lets callbacks be called.
final class ObservationSession {
    let store: Store
    let engine = ObservationEngine()
    private(set) var reading: ReadTransaction
    private(set) var writing: WriteTransaction?
    /// A version ahead of the session that observers were brought to.
    private var ahead: ReadTransaction?

    init(_ store: Store) throws {
        self.store = store
        reading = try store.beginRead()
    }

    /// What a read would see.
    var group: Group { writing?.group ?? reading.group }
    /// Where observers are.
    private var observed: ReadTransaction { ahead ?? reading }

    /// Brings observers to the newest version; the session stays.
    func process() throws {
        let next = try store.beginRead()
        if next.version == observed.version { return }
        try bringObservers(to: next)
        ahead = next
    }

    private func bringObservers(to next: ReadTransaction) throws {
        let history = try HistoryReader(memory: next.group.memory, topRef: next.snapshot.topRef, version: next.version)
        try engine.advance(from: observed.group, to: next.group) {
            try history.forEachChangeset(since: self.observed.version, $0)
        }
    }

    private func go(to next: ReadTransaction) throws {
        if next.version > observed.version { try bringObservers(to: next) }
        ahead = nil
        reading = next
    }

    /// A turn of the run loop, or `refresh()`.
    func refresh() throws {
        if writing != nil { return }
        try go(to: try store.beginRead())
        try deliver()
    }

    func deliver() throws { try engine.deliver(group) }

    func begin() throws {
        let writing = try store.beginWrite()
        try go(to: try store.beginRead(writing.baseVersion))
        self.writing = writing
        try deliver()
    }

    func commit(skipping: [Observer.Callback] = []) throws {
        let writing = try XCTUnwrap(writing)
        let old = reading
        reading = try writing.commitAndRead()
        self.writing = nil
        let history = try HistoryReader(memory: reading.group.memory, topRef: reading.snapshot.topRef, version: reading.version)
        try history.forEachChangeset(since: old.version) { engine.noteCommit($0, skipping: skipping) }
    }

    func cancel() {
        writing?.rollback()
        writing = nil
    }

    /// True in a write transaction that changed something: nothing new can be observed then.
    var hasChanges: Bool { writing.map { !$0.editor.changes.isEmpty } ?? false }
}
