#if DEBUG
import Synchronization
#endif

/// What a test sees of a system call before it happens.
public struct InterceptedCall {
    /// The name of the call, as in section 2 of the manual.
    public let name: String
    /// The path, where the call has one.
    public let path: String
    /// The descriptor, or -1.
    public let descriptor: Int32
    /// The file position of a read or write, the new size of a truncation, else 0.
    public let offset: Int
    /// The bytes of a write, else nil. Valid only during the call of the hook.
    public let bytes: UnsafeRawBufferPointer?
    /// Of a call with two paths the first one (`path` is the second), else empty.
    public var source = ""
}

/// Lets tests watch every system call, make it fail, or kill the process before it.
///
/// The hook is asked before each call: nil lets it happen, a number makes it fail with that `errno`.
/// It exists in debug builds only; a release build has no trace of it on any path.
public enum SystemCallInterception {
    #if DEBUG
    private struct Hook: @unchecked Sendable {
        // Sendable: it is called on every thread that makes a call; a hook that is about one thread must ask which it is on.
        var body: ((InterceptedCall) -> Int32?)?
    }
    private static let current = Mutex(Hook())
    private static let isSet = Atomic<Bool>(false)

    /// May be set while other threads make calls. A call that has begun may still ask the hook of before.
    public static var hook: ((InterceptedCall) -> Int32?)? {
        get { isSet.load(ordering: .acquiring) ? current.withLock { $0 }.body : nil }
        set {
            let new = Hook(body: newValue)
            // What the old one holds on to must go outside of the lock: its end may make calls.
            let old = current.withLock { hook in
                defer { hook = new }
                isSet.store(new.body != nil, ordering: .releasing)
                return hook
            }
            withExtendedLifetime(old) {}
        }
    }

    @inline(__always)
    static func ask(
        _ name: String, _ path: String = "", _ descriptor: Int32 = -1, _ offset: Int = 0, _ bytes: UnsafeRawBufferPointer? = nil,
        source: String = ""
    ) throws {
        guard let hook else { return }
        let call = InterceptedCall(name: name, path: path, descriptor: descriptor, offset: offset, bytes: bytes, source: source)
        if let code = hook(call) { throw SystemError(call: name, code: code, path: path) }
    }
    #else
    @inline(__always)
    static func ask(
        _ name: @autoclosure () -> String, _ path: @autoclosure () -> String = "", _ descriptor: Int32 = -1, _ offset: Int = 0,
        _ bytes: UnsafeRawBufferPointer? = nil, source: @autoclosure () -> String = ""
    ) throws {}
    #endif
}
