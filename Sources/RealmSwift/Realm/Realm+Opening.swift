import Dispatch
import Foundation
internal import SharedStore
import Synchronization

extension Realm {
    /// Opens the Realm of the default configuration.
    public init(queue: DispatchQueue? = nil) throws { try self.init(configuration: .defaultConfiguration, queue: queue) }

    /// Opens a Realm for the current thread, or for a serial queue, on which the caller must run.
    ///
    /// - Throws: `Realm.Error`.
    public init(configuration: Configuration, queue: DispatchQueue? = nil) throws {
        var place = Confinement.here
        if let queue {
            guard let onQueue = Confinement.of(queue) else { misuse("Realm opened from incorrect dispatch queue.") }
            place = onQueue
        }
        self.init(try RealmOpening.session(configuration, at: place))
    }

    /// Opens the file at `fileURL`, otherwise with the default configuration.
    public init(fileURL: URL) throws {
        var configuration = Configuration.defaultConfiguration
        configuration.fileURL = fileURL
        try self.init(configuration: configuration)
    }

    // MARK: Asynchronously

    /// Whether an opening prepares the file before the actor is bothered. The name is that of the original, which also downloads.
    @frozen public enum OpenBehavior: Sendable {
        /// All of the work is done on the actor.
        case never
        /// Opening, migration and compaction are done on another thread first.
        case always
        /// As `always` where there is no file yet, else as `never`.
        case once
    }

    /// Opens a Realm for the main actor.
    ///
    /// - Throws: `Realm.Error`; `CancellationError` where the task was cancelled.
    @MainActor
    public init(configuration: Configuration = .defaultConfiguration, downloadBeforeOpen: OpenBehavior = .never) async throws {
        self.init(try await RealmOpening.session(configuration, on: MainActor.shared, downloadBeforeOpen))
    }

    /// Opens a Realm for an actor. It may be used by code that is isolated to the actor only.
    ///
    /// - Throws: `Realm.Error`; `CancellationError` where the task was cancelled.
    public init<A: Actor>(
        configuration: Configuration = .defaultConfiguration, actor: A, downloadBeforeOpen: OpenBehavior = .never
    ) async throws {
        self.init(try await RealmOpening.session(configuration, on: actor, downloadBeforeOpen))
    }

    /// Opens a Realm for the actor that the caller is isolated to.
    ///
    /// - Throws: `Realm.Error`; `CancellationError` where the task was cancelled.
    public static func open(
        configuration: Configuration = .defaultConfiguration, _isolation actor: isolated any Actor = #isolation,
        downloadBeforeOpen: OpenBehavior = .never
    ) async throws -> Realm {
        Realm(try await RealmOpening.session(configuration, on: actor, downloadBeforeOpen))
    }

    /// Opens a Realm on another thread, where a migration and a compaction take place too, then gives it to `callback`.
    ///
    /// - Parameter callbackQueue: the serial queue on which `callback` runs, and to which the Realm belongs.
    @discardableResult
    public static func asyncOpen(
        configuration: Configuration = .defaultConfiguration, callbackQueue: DispatchQueue = .main,
        callback: @escaping (Result<Realm, Swift.Error>) -> Void
    ) -> AsyncOpenTask {
        let task = AsyncOpenTask()
        let callback = Transfer(callback)
        DispatchQueue.global().async {
            if task.isCancelled { return }
            let prepared = Result { try RealmOpening.prepare(configuration) }
            callbackQueue.async {
                if task.isCancelled { return }
                // The file stays open until the session holds it.
                callback.value(
                    withExtendedLifetime(prepared) {
                        prepared.flatMap { _ in Result { try Realm(configuration: configuration, queue: callbackQueue) } }
                    })
            }
        }
        return task
    }

    /// An opening that is under way.
    @frozen public struct AsyncOpenTask: Sendable {
        @usableFromInline let flag: _CancellationFlag

        init() { flag = _CancellationFlag() }

        /// The callback will not run any more.
        public func cancel() { flag.isSet.store(true, ordering: .relaxed) }
        var isCancelled: Bool { flag.isSet.load(ordering: .relaxed) }
    }
}

/// A flag for clients that need not know what it is.
public final class _CancellationFlag: Sendable {
    let isSet = Atomic(false)
}

extension RealmOpening {
    /// The session of an actor.
    static func session(_ configuration: Realm.Configuration, on actor: isolated any Actor, _ behavior: Realm.OpenBehavior)
        async throws -> Session
    {
        try Task.checkCancellation()
        var prepared: Prepared?
        if behavior == .always || behavior == .once && !Realm.fileExists(for: configuration) {
            prepared = try await prepareElsewhere(configuration)
        }
        try Task.checkCancellation()
        return try withExtendedLifetime(prepared) { try session(configuration, at: .of(actor)) }
    }

    /// A thread of its own may wait, which one of the pool that runs tasks should not.
    private static func prepareElsewhere(_ configuration: Realm.Configuration) async throws -> Prepared {
        try await withCheckedThrowingContinuation { continuation in
            DispatchQueue.global().async { continuation.resume(with: Result { try prepare(configuration) }) }
        }
    }
}
