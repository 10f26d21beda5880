import CInotifyTools
import CShims
import Glibc
import Synchronization
import SystemCalls

/// A descriptor that stays open as long as a watch on what it stands for.
protocol WatchAnchor: AnyObject, Sendable {
    var descriptor: SystemCalls.Descriptor { get }
}

extension FIFO: WatchAnchor {}

/// A descriptor without access, opened only to hold on to an inode: its number is not used again while this lives,
/// so a comparison of device and inode cannot be fooled by a quick deletion and creation.
final class PathAnchor: WatchAnchor {
    let descriptor: SystemCalls.Descriptor
    let status: SystemCalls.Status

    /// Follows symbolic links. Throws `SystemError`.
    init(path: String) throws {
        descriptor = try SystemCalls.open(path, SystemCalls.openPathOnly)
        do { status = try SystemCalls.status(descriptor, path: path) } catch {
            SystemCalls.close(descriptor)
            throw error
        }
    }

    deinit { SystemCalls.close(descriptor) }
}

/// The one owner of libinotifytools, whose state is global: its descriptor, its table of watches and its buffer of events.
///
/// Rules, and why:
/// - Every call of the library happens under `state`.
/// - An inode is watched once for the whole process, since inotify gives the same number for a second watch and the
///   library's table
///   does not bear that. Users of one inode are counted.
/// - A watch is asked for as `/proc/self/fd/N` of an anchor that stays open as long as the watch: that names the inode that
///   was looked at whatever happens to its path meanwhile, and the name is unique in the library's table of names.
/// - The library tells nobody its descriptor. It is found by a pipe that only we know: it is watched, and the
///   descriptor of inotify whose `fdinfo` lists the pipe's inode is the library's.
/// - The library waits by `select`, which cannot bear a descriptor of 1024 or more; inotify then counts as absent.
final class InotifyWatches: Sendable {
    static let shared = InotifyWatches()

    /// One user of one watch.
    struct Token: Hashable, Sendable {
        fileprivate let watch: Int32
        fileprivate let serial: UInt64
    }

    struct Occurrence: Sendable {
        /// The name inside a watched folder, empty for an event of the watched thing itself.
        var name: String
        /// The bits of inotify(7).
        var mask: UInt32
        /// Who watches the thing, as given to `watch`; empty where events were lost (IN_Q_OVERFLOW).
        var users: [UInt64]
        var eventsWereLost: Bool { mask & UInt32(IN_Q_OVERFLOW) != 0 }
    }

    private struct Identity: Hashable {
        var device: UInt64
        var inode: UInt64
    }

    private struct Watch {
        var identity: Identity
        var anchor: any WatchAnchor
        /// By serial of the token: whom to tell.
        var users: [UInt64: UInt64]
    }

    private struct State {
        var descriptor: SystemCalls.Descriptor?
        var failure: SystemError?
        var watches: [Int32: Watch] = [:]
        var numbers: [Identity: Int32] = [:]
        var nextSerial: UInt64 = 0
        /// Anchors of watches that the kernel ended (a file system was unmounted). The library keeps their names in its table,
        /// so their descriptors must not be used again. The kernel does not end a watch of an inode that we hold otherwise.
        var retired: [any WatchAnchor] = []
    }

    private let state = Mutex(State())

    private static let fifoMask = UInt32(IN_MODIFY | IN_ATTRIB)
    private static let fileMask = UInt32(IN_ATTRIB | IN_DELETE_SELF | IN_MOVE_SELF)
    private static let folderMask = UInt32(IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF)

    /// The descriptor that is readable while there are events. Throws where inotify is not to be had.
    func descriptor() throws -> SystemCalls.Descriptor {
        try state.withLock { try Self.start(&$0) }
    }

    /// Watches what `anchor` stands for; what is watched for follows from its kind (a FIFO: writes; a file: attributes, deletion,
    /// being moved; a folder: names that come and go). `user` comes back with every event.
    func watch(_ anchor: any WatchAnchor, path: String, user: UInt64) throws -> Token {
        try state.withLock { state in
            _ = try Self.start(&state)
            let status = try SystemCalls.status(anchor.descriptor, path: path)
            let identity = Identity(device: status.device, inode: status.inode)
            let serial = state.nextSerial
            state.nextSerial += 1
            if let number = state.numbers[identity] {
                state.watches[number]?.users[serial] = user
                return Token(watch: number, serial: serial)
            }
            try SystemCalls.announce("inotify_add_watch", path: path)
            let name = "/proc/self/fd/\(anchor.descriptor)"
            let mask = status.isFIFO ? Self.fifoMask : status.isDirectory ? Self.folderMask : Self.fileMask
            guard inotifytools_watch_file(name, Int32(bitPattern: mask)) != 0 else {
                throw SystemError(call: "inotify_add_watch", code: inotifytools_error(), path: path)
            }
            let number = inotifytools_wd_from_filename(name)
            guard number > 0 else { throw SystemError(call: "inotify_add_watch", code: EIO, path: path) }
            state.numbers[identity] = number
            state.watches[number] = Watch(identity: identity, anchor: anchor, users: [serial: user])
            return Token(watch: number, serial: serial)
        }
    }

    /// Ends one user's interest; safe where the watch has ended by itself.
    func cancel(_ token: Token) {
        state.withLock { state in
            guard var watch = state.watches[token.watch], watch.users.removeValue(forKey: token.serial) != nil else { return }
            if !watch.users.isEmpty {
                state.watches[token.watch] = watch
                return
            }
            state.watches[token.watch] = nil
            state.numbers[watch.identity] = nil
            // Before the anchor closes: the name in the library's table must stay unique.
            _ = inotifytools_remove_watch_by_wd(token.watch)
        }
    }

    /// Takes the events that have come, without waiting, and at most `limit` of them.
    func take(limit: Int = 4096) -> [Occurrence] {
        state.withLock { state in
            guard state.descriptor != nil else { return [] }
            var occurrences: [Occurrence] = []
            // Not inotifytools_next_event(0), which waits for ever.
            while occurrences.count < limit, let event = inotifytools_next_events(0, 1) {
                let number = event.pointee.wd
                let mask = event.pointee.mask
                if mask & UInt32(IN_Q_OVERFLOW) != 0 {
                    occurrences.append(Occurrence(name: "", mask: mask, users: []))
                    continue
                }
                guard let watch = state.watches[number] else { continue }
                // The name, ended by a zero byte, stands behind the structure.
                let text = UnsafeRawPointer(event).advanced(by: MemoryLayout<inotify_event>.size)
                let name = event.pointee.len > 0 ? String(cString: text.assumingMemoryBound(to: CChar.self)) : ""
                occurrences.append(Occurrence(name: name, mask: mask, users: Array(watch.users.values)))
                if mask & UInt32(IN_IGNORED) != 0 {
                    state.watches[number] = nil
                    state.numbers[watch.identity] = nil
                    state.retired.append(watch.anchor)
                }
            }
            return occurrences
        }
    }

    /// Watches in use, for tests.
    var watchCount: Int { state.withLock { $0.watches.count } }

    // MARK: Finding the library's descriptor

    private static func start(_ state: inout State) throws -> SystemCalls.Descriptor {
        if let descriptor = state.descriptor { return descriptor }
        if let failure = state.failure { throw failure }
        do {
            try SystemCalls.announce("inotify_init1", path: "")
            guard inotifytools_initialize() != 0 else { throw SystemError(call: "inotify_init1", code: inotifytools_error()) }
            do {
                let descriptor = try findDescriptor()
                try SystemCalls.setCloseOnExec(descriptor)
                state.descriptor = descriptor
                return descriptor
            } catch {
                inotifytools_cleanup()
                throw error
            }
        } catch let error as SystemError {
            state.failure = error
            throw error
        }
    }

    private static func findDescriptor() throws -> SystemCalls.Descriptor {
        let ends = try SystemCalls.makePipe()
        defer {
            SystemCalls.close(ends.reading)
            SystemCalls.close(ends.writing)
        }
        let name = "/proc/self/fd/\(ends.reading)"
        let inode = String(try SystemCalls.status(ends.reading).inode, radix: 16)
        guard inotifytools_watch_file(name, Int32(IN_MODIFY)) != 0 else {
            throw SystemError(call: "inotify_add_watch", code: inotifytools_error(), path: name)
        }
        defer { _ = inotifytools_remove_watch_by_wd(inotifytools_wd_from_filename(name)) }
        for entry in try SystemCalls.names(inDirectory: "/proc/self/fdinfo") {
            guard let descriptor = Int32(entry), let text = contents(of: "/proc/self/fdinfo/\(entry)") else { continue }
            let isOurs = text.split(separator: "\n").contains { $0.hasPrefix("inotify wd:") && $0.contains(" ino:\(inode) ") }
            guard isOurs else { continue }
            // select(2) has no bit for a greater number, and the C library ends the process that tries.
            guard descriptor < 1024 else { throw SystemError(call: "inotify_init1", code: EMFILE) }
            return descriptor
        }
        throw SystemError(call: "inotify_init1", code: ENOSYS, path: "/proc/self/fdinfo")
    }

    private static func contents(of path: String) -> String? {
        guard let descriptor = try? SystemCalls.open(path, O_RDONLY) else { return nil }
        defer { SystemCalls.close(descriptor) }
        var text: [UInt8] = []
        return withUnsafeTemporaryAllocation(byteCount: 4096, alignment: 16) { buffer in
            while true {
                guard let count = try? SystemCalls.readSome(descriptor, into: buffer) else { return nil }
                if count == 0 { return String(decoding: text, as: UTF8.self) }
                text.append(contentsOf: buffer[..<count])
            }
        }
    }
}
