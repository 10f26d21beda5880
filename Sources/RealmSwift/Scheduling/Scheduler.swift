import Dispatch
import Foundation
internal import CShims
import Synchronization

/// Runs blocks, in order, at the place that a session is bound to.
///
/// - the main thread, queue or actor: by the main queue, which `RunLoop.main.run`, `dispatchMain` and an asynchronous main all
///   serve (`RunLoop.main.perform` never runs under the latter);
/// - a serial queue: by the queue;
/// - an actor: by one task that takes blocks from a stream; a task for each block would not keep their order;
/// - a thread: by its run loop, while that runs. `perform` alone does not wake a sleeping loop, so it is woken besides; and a
///   loop without any source would return at once, so it gets a timer that never fires.
///
/// Worker threads of libdispatch have no run loop of their own that anybody would run, so a session that is opened there without
/// naming the queue has no scheduler.
final class Scheduler: Sendable {
    private enum Way {
        case queue(DispatchQueue)
        case runLoop(LoopReference)
        case actor(ActorPump)
    }

    private let way: Way

    /// The scheduler of a place where the caller runs; nil where blocks cannot be delivered.
    init?(_ confinement: Confinement) {
        switch confinement {
        case .none: return nil
        case .main: way = .queue(.main)
        case .queue(let queue, _): way = .queue(queue)
        case .actor(let place):
            guard let actor = place.actor else { return nil }
            way = .actor(ActorPump(actor))
        case .thread:
            if !Scheduler.isOnPlainThread { return nil }
            guard let loop = LoopReference.current() else { return nil }
            way = .runLoop(loop)
        }
    }

    /// The queue that libdispatch names on a thread which runs none of its blocks: some global one, and not always the same.
    private static let queueOfPlainThreads: UInt = {
        let answer = Mutex<UInt>(0)
        let done = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            answer.withLock { $0 = UInt(bitPattern: realm_current_queue()) }
            done.signal()
        }
        done.wait()
        return answer.withLock { $0 }
    }()

    private static var isOnPlainThread: Bool { UInt(bitPattern: realm_current_queue()) == queueOfPlainThreads }

    deinit {
        switch way {
        case .queue: break
        case .runLoop(let loop): _ = loop.end()
        case .actor(let pump): pump.end()
        }
    }

    /// Whether blocks will be run as far as one can tell: the run loop of a thread must be running. Asked at the place itself.
    var isServed: Bool {
        if case .runLoop = way { return RunLoop.current.currentMode != nil }
        return true
    }

    /// The thread ends: its run loop will not run again. Gives the blocks that wait for it, to be dropped.
    func close() -> [@Sendable () -> Void] {
        if case .runLoop(let loop) = way { loop.end() } else { [] }
    }

    /// Runs `block` at the place, later. May be called from any thread. Where the place is gone, the block is dropped.
    func schedule(_ block: @escaping @Sendable () -> Void) {
        switch way {
        case .queue(let queue): queue.async(execute: block)
        case .runLoop(let loop): loop.perform(block)
        case .actor(let pump): pump.add(block)
        }
    }
}

/// The run loop of a thread, kept for waking it, until the thread ends.
private final class LoopReference: @unchecked Sendable {
    // Sendable: blocks may be added and the loop woken from any thread; the timer is only made and invalidated; the rest is
    // behind a lock.
    private struct State {
        var blocks: [@Sendable () -> Void] = []
        var isOver = false
    }
    private let state = Mutex(State())
    private let loop: RunLoop
    private let pointer: UnsafeMutableRawPointer
    private let timer: Timer

    static func current() -> LoopReference? {
        guard let pointer = realm_current_run_loop() else { return nil }
        return LoopReference(RunLoop.current, pointer)
    }

    private init(_ loop: RunLoop, _ pointer: UnsafeMutableRawPointer) {
        self.loop = loop
        self.pointer = pointer
        timer = Timer(fire: .distantFuture, interval: 0, repeats: false) { _ in }
        loop.add(timer, forMode: .common)
    }

    func perform(_ block: @escaping @Sendable () -> Void) {
        let isTaken = state.withLock { state in
            if !state.isOver { state.blocks.append(block) }
            return !state.isOver
        }
        if !isTaken { return }
        // Weakly: a loop that does not run again would keep itself.
        loop.perform(inModes: [.common]) { [weak self] in self?.runFirst() }
        realm_wake_run_loop(pointer)
    }

    private func runFirst() {
        let block = state.withLock { $0.blocks.isEmpty ? nil : $0.blocks.removeFirst() }
        block?()
    }

    func end() -> [@Sendable () -> Void] {
        timer.invalidate()
        return state.withLock { state in
            state.isOver = true
            defer { state.blocks = [] }
            return state.blocks
        }
    }
}

/// Runs blocks on an actor, one after another, as long as somebody else keeps the actor.
private final class ActorPump: Sendable {
    private let blocks: AsyncStream<@Sendable () -> Void>.Continuation

    init(_ actor: any Actor) {
        let (stream, continuation) = AsyncStream.makeStream(of: (@Sendable () -> Void).self)
        blocks = continuation
        Task.detached { [weak actor] in
            for await block in stream {
                guard let actor else { return }
                await ActorPump.run(block, on: actor)
            }
        }
    }

    private static func run(_ block: @Sendable () -> Void, on actor: isolated any Actor) { block() }

    func add(_ block: @escaping @Sendable () -> Void) { blocks.yield(block) }
    func end() { blocks.finish() }
}
