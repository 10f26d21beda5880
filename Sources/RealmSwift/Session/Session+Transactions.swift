import Foundation
internal import SharedStore

extension Session {
    /// Waits for the right to write and goes to the newest version.
    ///
    /// - Parameter isMovable: the transaction may end on another thread of the session's place than this one.
    func beginWrite(isMovable: Bool = false) throws {
        checkWritable()
        // What was asked for asynchronously is in the queue before us, and could not begin while we wait.
        if let writer = try asyncWrites?.beginBeforeOthers() { return try begin(writer) }
        try begin(try origin.beginWrite(isMovable: isMovable))
    }

    /// Stops the process where no write transaction can begin.
    func checkWritable() {
        checkConfinement()
        if isFrozen { misuse("Can't perform transactions on a frozen Realm") }
        if configuration.readOnly { misuse("Can't perform transactions on read-only Realms.") }
        if writer != nil { misuse("The Realm is already in a write transaction") }
        if asyncWrites?.isRunningCompletion == true {
            misuse("Can't begin a write transaction inside the completion block of an asynchronous commit.")
        }
    }

    /// Goes on in a write transaction: first to the version that it begins with, of which observers are told.
    func begin(_ writer: any SessionWriter) throws {
        Logger.log(.trace, .transaction) { "write transaction begins at version \(writer.baseVersion)" }
        let old = currentReader
        if old?.version == writer.baseVersion {
            self.writer = writer
            forgetTables()
            observer?.sessionDidBeginWrite(self)
            return
        }
        do {
            let reader = try origin.beginRead(writer.baseVersion)
            try checkClasses(in: reader)
            self.writer = writer
            advance(to: reader)
        } catch {
            writer.cancel()
            throw error
        }
        observer?.session(self, didAdvanceFrom: old, by: .beganWrite)
    }

    /// Stops the process where an observer of another session is to be skipped.
    func check(skipped tokens: [NotificationToken]) {
        for case let token as ObserverToken in tokens where !token.mayBeSkipped(by: self) {
            misuse(
                "Incorrect Realm: only notifications for the Realm being modified can be skipped. Observers on other threads, queues and actors hear of every commit."
            )
        }
    }

    func commitWrite(skipping tokens: [NotificationToken] = []) throws {
        try commit(skipping: tokens) { try $0.commit() }
    }

    /// Commits in one of the ways that a writer has, and tells everybody.
    func commit(skipping tokens: [NotificationToken] = [], _ way: (any SessionWriter) throws -> SessionReader) throws {
        checkConfinement()
        guard let writer else { misuse("Can't commit a non-existing write transaction") }
        writeDownCursors()
        let old = currentReader
        // The transaction is over whether the commit succeeds or not: a failed one leaves the file as it was.
        do {
            let reader = try way(writer)
            forgetCreated()
            self.writer = nil
            advance(to: reader)
            Logger.log(.debug, .transaction) { "committed version \(reader.version)" }
        } catch let error as CommittedError {
            // Only the new version could not be read.
            forgetCreated()
            self.writer = nil
            writer.cancel()
            advance(to: try? origin.beginRead())
            origin.wakers.wakeAll(except: waker)
            asyncWrites?.ended(writer)
            throw error
        } catch {
            killCreated()
            self.writer = nil
            writer.cancel()
            advance(to: old)
            asyncWrites?.ended(writer)
            throw error
        }
        origin.wakers.wakeAll(except: waker)
        asyncWrites?.ended(writer)
        observer?.session(self, didAdvanceFrom: old, by: .commit(skipping: tokens))
    }

    func cancelWrite() {
        checkConfinement()
        guard let writer else { misuse("Can't cancel a non-existing write transaction") }
        writeDownCursors()
        Logger.log(.debug, .transaction) { "write transaction at version \(writer.baseVersion) undone" }
        killCreated()
        self.writer = nil
        writer.cancel()
        // The session is at the version that the transaction began with.
        forgetTables()
        asyncWrites?.ended(writer)
        observer?.sessionDidCancelWrite(self)
    }

    /// Objects whose creation is undone stay invalid, whatever gets their keys later.
    private func killCreated() {
        for object in createdAccessors { object.managedType?.kill(object) }
        for case let object? in looseAccessors.map(\.object) { object.managedType?.kill(object) }
        forgetCreated()
    }

    private func forgetCreated() {
        createdAccessors.removeAll()
        looseAccessors.removeAll()
    }

    /// The last value of `Realm` goes. Unless somebody has an object or a collection, the session goes with it, and its write
    /// transaction with that: the objects that the transaction has made, of which the session keeps the accessors, must not keep
    /// it, and with it the write lock, alive.
    func lastRealmEnds() {
        guard !isFrozen, confinement.isHere, writer != nil, !createdAccessors.isEmpty else { return }
        if looseAccessors.count >= looseCountMax {
            looseAccessors.removeAll { $0.object == nil }
            looseCountMax = max(64, 2 * looseAccessors.count)
        }
        looseAccessors.append(contentsOf: createdAccessors.map { WeakObject($0) })
        createdAccessors.removeAll()
    }

    // MARK: Advancing

    /// Goes to the newest version. True if there was a newer one.
    func refresh() -> Bool {
        checkConfinement()
        if isFrozen || writer != nil { return false }
        if configuration.readOnly { misuse("Read-only Realms do not change and cannot be refreshed.") }
        // An observer sees the state that it is told of.
        if observer?.isDelivering == true { return false }
        let isNewer = reading { try advanceToNewest() }
        observer?.deliver()
        return isNewer
    }

    private func advanceToNewest() throws -> Bool {
        let old = currentReader
        if let old, try origin.newestVersion() == old.version { return false }
        let reader = try origin.beginRead()
        if old?.version == reader.version { return false }
        do { try checkClasses(in: reader) } catch let error as Realm.Error {
            if !saidThatItStays { Logger.log(.error, .sdk) { error.localizedDescription } }
            saidThatItStays = true
            return false
        }
        advance(to: reader)
        observer?.session(self, didAdvanceFrom: old, by: .refresh)
        return true
    }

    /// Somebody else may have committed; called by the waker.
    func hearOfCommit() {
        if isClosed || writer != nil || observer?.isDelivering == true { return }
        guard let reader = currentReader else {
            // Whatever is read next is read from the newest version.
            if observer != nil && autorefresh { _ = try? advanceToNewest() }
            return
        }
        // What fails here will fail again where the caller can be told.
        if autorefresh {
            _ = try? advanceToNewest()
        } else if let newest = try? origin.newestVersion(), newest > reader.version {
            observer?.sessionNeedsRefresh(self)
        }
    }

    /// The thread that the session belongs to ends, and calls this as its last act: what is left of the session can be used
    /// nowhere.
    func placeEnds() {
        if let writer {
            Logger.log(.warn, .transaction) { "A thread ended in a write transaction: its changes are undone." }
            self.writer = nil
            writer.cancel()
        }
        let writes = asyncWrites
        asyncWrites = nil
        writes?.placeEnds()
        observer?.sessionLostItsPlace(self)
        observer = nil
        close()
    }

    /// Lets go of the version: objects and lists become invalid, results empty.
    func invalidate() {
        checkConfinement()
        if isFrozen { return close() }
        if configuration.readOnly { misuse("Read-only Realms do not change and cannot be invalidated.") }
        if writer != nil { cancelWrite() }
        if currentReader != nil { releaseVersion() }
    }
}

/// An object that may go.
struct WeakObject {
    private(set) weak var object: ObjectBase?
    init(_ object: ObjectBase) { self.object = object }
}

extension Confinement {
    /// Whether a transaction that begins here, and that the caller ends by itself, may end on another thread.
    ///
    /// Queues and actors have no thread of their own. Nor has the main actor once a program with an asynchronous main has
    /// suspended for the first time, and such a program runs in a task from the start.
    var mayChangeThread: Bool {
        switch self {
        case .none, .thread: false
        case .main: !Thread.isMainThread || withUnsafeCurrentTask { $0 != nil }
        case .queue, .actor: true
        }
    }
}
