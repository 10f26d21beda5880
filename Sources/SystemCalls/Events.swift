import CShims
import Glibc

/// The calls of the notifier: waiting for descriptors, counters to wait for, and FIFOs that never block.
///
/// What may fail often on a hot path (an empty FIFO) returns a negative `errno` here and throws nothing.
extension SystemCalls {
    /// Opens a name without opening the thing behind it: an anchor that keeps the inode's number from being used again.
    public static let openPathOnly: Int32 = 0o10000000

    /// A set of descriptors to wait for, empty; closed on exec.
    public static func makeEpoll() throws -> Descriptor {
        try SystemCallInterception.ask("epoll_create1")
        return Int32(try check("epoll_create1", "") { CShims_epoll_create() })
    }

    /// Asks to hear when `fd` becomes readable; `tag` comes back from `wait(epoll:...)`.
    /// With `edge`, only the change from empty to not empty is told, and nothing needs to be read.
    public static func add(_ fd: Descriptor, toEpoll epoll: Descriptor, edge: Bool, tag: UInt64) throws {
        try SystemCallInterception.ask("epoll_ctl", "", fd)
        _ = try check("epoll_ctl", "") { CShims_epoll_add(epoll, fd, edge ? 1 : 0, tag) }
    }

    /// A descriptor that is none of the set is no error.
    public static func remove(_ fd: Descriptor, fromEpoll epoll: Descriptor) { _ = CShims_epoll_remove(epoll, fd) }

    /// Waits until something is readable; returns how many of `tags` (at most 64) are filled, 0 after the timeout or a signal.
    public static func wait(epoll: Descriptor, tags: UnsafeMutableBufferPointer<UInt64>, timeoutMilliseconds: Int32) -> Int {
        max(0, Int(CShims_epoll_wait(epoll, tags.baseAddress, Int32(tags.count), timeoutMilliseconds)))
    }

    /// A counter that is readable while it is not 0; never blocks.
    public static func makeEventDescriptor() throws -> Descriptor {
        try SystemCallInterception.ask("eventfd2")
        return Int32(try check("eventfd2", "") { CShims_eventfd() })
    }

    /// Both ends of a new pipe.
    public static func makePipe() throws -> (reading: Descriptor, writing: Descriptor) {
        try SystemCallInterception.ask("pipe2")
        var ends: (Int32, Int32) = (-1, -1)
        _ = try check("pipe2", "") { CShims_pipe(&ends.0, &ends.1) }
        return ends
    }

    /// Makes an event descriptor readable.
    public static func signal(_ eventDescriptor: Descriptor) {
        var one: UInt64 = 1
        _ = CShims_write(eventDescriptor, &one, 8)
    }

    /// Makes an event descriptor unreadable again.
    public static func reset(_ eventDescriptor: Descriptor) {
        var count: UInt64 = 0
        _ = CShims_read(eventDescriptor, &count, 8)
    }

    /// One `read` of a descriptor that does not block: the number of bytes, or a negative `errno`.
    public static func readNonBlocking(_ fd: Descriptor, into buffer: UnsafeMutableRawBufferPointer, path: String) -> Int {
        if let code = SystemCallInterception.verdict("read", path, fd) { return -Int(code) }
        while true {
            let n = CShims_read(fd, buffer.baseAddress, buffer.count)
            if n != -Int64(EINTR) { return Int(n) }
        }
    }

    /// One `write` of one zero byte to a descriptor that does not block: 1, or a negative `errno`.
    public static func writeZeroByte(_ fd: Descriptor, path: String) -> Int {
        if let code = SystemCallInterception.verdict("write", path, fd) { return -Int(code) }
        var zero: UInt8 = 0
        while true {
            let n = CShims_write(fd, &zero, 1)
            if n != -Int64(EINTR) { return Int(n) }
        }
    }

    /// Bytes that a `read` would find now, or a negative `errno`.
    public static func pendingBytes(_ fd: Descriptor) -> Int { Int(CShims_pending_bytes(fd)) }

    /// Makes reads and writes return EAGAIN instead of waiting.
    public static func setNonBlocking(_ fd: Descriptor) throws {
        let flags = try check("fcntl", "") { CShims_fcntl(fd, F_GETFL, 0) }
        _ = try check("fcntl", "") { CShims_fcntl(fd, F_SETFL, flags | Int64(O_NONBLOCK)) }
    }

    /// Programs that are started from here do not have it.
    public static func setCloseOnExec(_ fd: Descriptor) throws {
        _ = try check("fcntl", "") { CShims_fcntl(fd, F_SETFD, Int64(FD_CLOEXEC)) }
    }

    /// Sets the times of a file to now, which watchers of its attributes hear.
    public static func touch(_ path: String) throws {
        try SystemCallInterception.ask("utimensat", path)
        _ = try check("utimensat", path) { CShims_touch(path) }
    }

    /// Called before a library makes a system call for us, so that tests can make that call fail too.
    public static func announce(_ name: String, path: String) throws {
        try SystemCallInterception.ask(name, path)
    }
}

extension SystemCallInterception {
    /// As `ask`, for calls that return their `errno`.
    @inline(__always)
    static func verdict(_ name: String, _ path: String, _ descriptor: Int32) -> Int32? {
        #if DEBUG
        return hook?(InterceptedCall(name: name, path: path, descriptor: descriptor, offset: 0, bytes: nil))
        #else
        return nil
        #endif
    }
}

extension SystemCalls {
    /// For a process that lives long and has many threads: what was needed once, for an image or a large step, goes back to the
    /// system when it is not needed any more, and is not kept in a heap for each thread. To be called before threads are started.
    public static func boundHeaps() { CShims_bound_heaps() }

    /// Whether this thread takes a processor from others when it wakes up, as threads do (false), or waits for one that is free
    /// or for its turn (true, SCHED_BATCH). Its share of the processor stays the same.
    ///
    /// - Returns: false where nothing was changed: it was so already, or somebody has given the thread another policy.
    @discardableResult
    public static func setWaitsForItsTurn(_ waits: Bool) -> Bool {
        let ordinary: Int32 = 0, batch: Int32 = 3
        guard sched_getscheduler(0) == (waits ? ordinary : batch) else { return false }
        var parameters = sched_param()
        return sched_setscheduler(0, waits ? batch : ordinary, &parameters) == 0
    }

    /// Lets this process have as many descriptors as its hard limit allows, the administrator's decision.
    public static func raiseDescriptorLimit() {
        var limit = rlimit()
        // RLIMIT_NOFILE has another type in each C library's headers.
        guard getrlimit(__rlimit_resource_t(7), &limit) == 0, limit.rlim_cur < limit.rlim_max else { return }
        limit.rlim_cur = limit.rlim_max
        _ = setrlimit(__rlimit_resource_t(7), &limit)
    }
}
