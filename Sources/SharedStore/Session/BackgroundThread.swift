import CShims
import Glibc
import SystemCalls

/// A thread of our own for work that may block or must be pinned to one thread. It takes no signals.
package enum BackgroundThread {
    /// Starts `body` on a new thread with a name of at most 15 characters, which debuggers and `top` show.
    package static func start(_ name: String, _ body: @escaping @Sendable () -> Void) throws {
        final class Box {
            let name: String
            let body: @Sendable () -> Void
            init(_ name: String, _ body: @escaping @Sendable () -> Void) {
                self.name = name
                self.body = body
            }
        }
        var all = sigset_t(), before = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_SETMASK, &all, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
        let box = Unmanaged.passRetained(Box(String(name.prefix(15)), body))
        var thread = pthread_t()
        let code = pthread_create(
            &thread, nil,
            { argument in
                guard let argument else { return nil }
                let box = Unmanaged<Box>.fromOpaque(argument).takeRetainedValue()
                CShims_set_thread_name(box.name)
                box.body()
                return nil
            }, box.toOpaque())
        if code != 0 {
            box.release()
            throw SystemError(call: "pthread_create", code: code)
        }
        pthread_detach(thread)
    }
}

/// A word on which threads of this process sleep until a bit is set, without a mutex.
final class WakeWord: @unchecked Sendable {
    // Sendable: the word is only touched atomically and lives as long as the object.
    private let word: UnsafeMutablePointer<UInt32>

    init() {
        word = .allocate(capacity: 1)
        word.initialize(to: 0)
    }
    deinit { word.deallocate() }

    /// Sets bits and wakes whoever sleeps.
    func set(_ bits: UInt32) {
        var old = CShims_load_u32(word)
        while !CShims_compare_exchange_u32(word, &old, old | bits) {}
        _ = CShims_futex_wake(word, Int32.max)
    }

    /// Takes all bits; sleeps at most `nanoseconds` where there are none.
    func take(waitingNanoseconds nanoseconds: Int64) -> UInt32 {
        let bits = CShims_exchange_u32(word, 0)
        if bits != 0 || nanoseconds <= 0 { return bits }
        _ = CShims_futex_wait(word, 0, nanoseconds)
        return CShims_exchange_u32(word, 0)
    }
}
