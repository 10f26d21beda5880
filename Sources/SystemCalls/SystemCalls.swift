import CShims
import Glibc

/// Every system call that the package makes, in one place.
///
/// `errno` is taken at once by the C side; EINTR is retried; EBADF is a programming error and traps;
/// everything else is thrown as `SystemError` with call and path.
public enum SystemCalls {
    public typealias Descriptor = Int32

    @inline(__always)
    static func check(_ name: String, _ path: @autoclosure () -> String, _ body: () -> Int64) throws -> Int64 {
        while true {
            let result = body()
            if result >= 0 { return result }
            let code = Int32(-result)
            if code == EINTR { continue }
            // EFAULT is no programming error: a mapped file that was cut meanwhile gives it.
            precondition(code != EBADF, "\(name): bad descriptor; it was closed while in use")
            throw SystemError(call: name, code: code, path: path())
        }
    }

    // MARK: Opening and closing

    /// Opens `path`; `O_CLOEXEC` is always added, so that child processes inherit nothing (coordination.md 3.9).
    public static func open(_ path: String, _ flags: Int32, mode: UInt32 = 0o644) throws -> Descriptor {
        try SystemCallInterception.ask("open", path)
        return Int32(try check("open", path) { CShims_open(path, flags | O_CLOEXEC, mode) })
    }

    /// As `open`; programs that are started from here have the descriptor too.
    public static func openForChildren(_ path: String, _ flags: Int32) throws -> Descriptor {
        try SystemCallInterception.ask("open", path)
        return Int32(try check("open", path) { CShims_open(path, flags, 0) })
    }

    /// Closes a descriptor. Errors are of no use to anybody here and are dropped.
    public static func close(_ fd: Descriptor) { _ = CShims_close(fd) }

    /// Another descriptor of the same open file, closed on exec.
    public static func duplicate(_ fd: Descriptor, path: String = "") throws -> Descriptor {
        try SystemCallInterception.ask("dup", path, fd)
        return Int32(try check("dup", path) { CShims_fcntl(fd, F_DUPFD_CLOEXEC, 0) })
    }

    // MARK: Status

    /// What stat(2) tells of a file, as far as anybody here asks.
    public struct Status: Sendable, Equatable {
        /// Bytes.
        public var size: Int
        /// With `inode` what identifies a file as long as it exists; both numbers may come back later.
        public var device: UInt64
        /// See `device`.
        public var inode: UInt64
        /// Kind of file and permission bits.
        public var mode: UInt32
        /// The number of the user.
        public var owner: UInt32
        /// The number of the group.
        public var group: UInt32
        /// How many names the file has.
        public var linkCount: Int
        /// Bytes on the disk, which are fewer than `size` where there are holes or compression.
        public var allocatedBytes: Int
        /// Since 1970.
        public var modifiedSeconds: Int
        /// Within the second.
        public var modifiedNanoseconds: Int
        public var isRegularFile: Bool { mode & S_IFMT == S_IFREG }
        public var isDirectory: Bool { mode & S_IFMT == S_IFDIR }
        public var isFIFO: Bool { mode & S_IFMT == S_IFIFO }
        public var isSymbolicLink: Bool { mode & S_IFMT == S_IFLNK }

        /// Of no file: all zero.
        public static var none: Status { Status(stat()) }

        init(_ s: stat) {
            size = Int(s.st_size)
            device = UInt64(s.st_dev)
            inode = UInt64(s.st_ino)
            mode = s.st_mode
            owner = s.st_uid
            group = s.st_gid
            linkCount = Int(s.st_nlink)
            allocatedBytes = Int(s.st_blocks) * 512
            modifiedSeconds = s.st_mtim.tv_sec
            modifiedNanoseconds = s.st_mtim.tv_nsec
        }
    }

    /// - Parameter path: for errors, here and below.
    public static func status(_ fd: Descriptor, path: String = "") throws -> Status {
        try SystemCallInterception.ask("fstat", path, fd)
        var s = stat()
        _ = try check("fstat", path) { CShims_fstat(fd, &s) }
        return Status(s)
    }

    /// Follows symbolic links.
    public static func status(path: String) throws -> Status {
        try SystemCallInterception.ask("stat", path)
        var s = stat()
        _ = try check("stat", path) { CShims_stat(path, &s) }
        return Status(s)
    }

    /// Does not follow a symbolic link.
    public static func linkStatus(path: String) throws -> Status {
        try SystemCallInterception.ask("lstat", path)
        var s = stat()
        _ = try check("lstat", path) { CShims_lstat(path, &s) }
        return Status(s)
    }

    /// What `path` stands for where its last component is a symbolic link: the name that the chain of links ends at, whether
    /// something is there or not; else `path` itself. Links among the folders before it need not be followed: they lead to one
    /// folder.
    public static func followingLinks(_ path: String) -> String {
        var name = path
        for _ in 0..<linkChainMax {
            guard let target = linkTarget(name) else { return name }
            name = target.hasPrefix("/") ? target : parentDirectory(of: name) + "/" + target
        }
        return path
    }

    /// As many as the system follows.
    private static let linkChainMax = 40

    private static func linkTarget(_ path: String) -> String? {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: Int(PATH_MAX) + 1) { buffer in
            guard let start = buffer.baseAddress else { return nil }
            let count = readlink(path, start, Int(PATH_MAX))
            if count <= 0 || count >= Int(PATH_MAX) { return nil }
            start[count] = 0
            return String(validatingCString: start)
        }
    }

    /// Throws unless the process, with the rights that it has now, may write to the file; EACCES or EROFS where it may not.
    public static func requireWritable(_ path: String) throws {
        try SystemCallInterception.ask("faccessat", path)
        _ = try check("faccessat", path) { CShims_may_write(path) }
    }

    // MARK: Reading and writing

    /// Reads until `buffer` is full or the file ends; returns the number of bytes read.
    public static func read(_ fd: Descriptor, into buffer: UnsafeMutableRawBufferPointer, at offset: Int, path: String = "")
        throws -> Int
    {
        var done = 0
        while done < buffer.count {
            try SystemCallInterception.ask("pread64", path, fd, offset + done)
            let n = try check("pread64", path) {
                CShims_pread(fd, buffer.baseAddress! + done, buffer.count - done, Int64(offset + done))
            }
            if n == 0 { break }
            done += Int(n)
        }
        return done
    }

    /// Writes all of `bytes`; a short write is continued.
    public static func write(_ fd: Descriptor, _ bytes: UnsafeRawBufferPointer, at offset: Int, path: String = "") throws {
        var done = 0
        while done < bytes.count {
            try SystemCallInterception.ask("pwrite64", path, fd, offset + done, UnsafeRawBufferPointer(rebasing: bytes[done...]))
            let n = try check("pwrite64", path) {
                CShims_pwrite(fd, bytes.baseAddress! + done, bytes.count - done, Int64(offset + done))
            }
            if n == 0 { throw SystemError(call: "pwrite64", code: EIO, path: path) }
            done += Int(n)
        }
    }

    /// One `read` at the descriptor's own position (pipes, sockets); 0 at the end.
    public static func readSome(_ fd: Descriptor, into buffer: UnsafeMutableRawBufferPointer, path: String = "") throws -> Int {
        try SystemCallInterception.ask("read", path, fd)
        return Int(try check("read", path) { CShims_read(fd, buffer.baseAddress, buffer.count) })
    }

    /// One `write` at the descriptor's own position (pipes, sockets).
    public static func writeSome(_ fd: Descriptor, _ bytes: UnsafeRawBufferPointer, path: String = "") throws -> Int {
        try SystemCallInterception.ask("write", path, fd, 0, bytes)
        return Int(try check("write", path) { CShims_write(fd, bytes.baseAddress, bytes.count) })
    }

    // MARK: Size and durability

    /// Sets the permission bits, whatever the process's mask says.
    public static func setMode(_ fd: Descriptor, _ mode: UInt32, path: String = "") throws {
        try SystemCallInterception.ask("fchmod", path, fd)
        _ = try check("fchmod", path) { fchmod(fd, mode) == 0 ? 0 : -Int64(errno) }
    }

    /// EPERM unless the process may give files away.
    public static func setOwner(_ fd: Descriptor, _ owner: UInt32, group: UInt32, path: String = "") throws {
        try SystemCallInterception.ask("fchown", path, fd)
        _ = try check("fchown", path) { fchown(fd, owner, group) == 0 ? 0 : -Int64(errno) }
    }

    /// Cuts the file or lengthens it by a hole. Not while others have mapped what is cut: their access ends with a signal.
    public static func truncate(_ fd: Descriptor, to size: Int, path: String = "") throws {
        try SystemCallInterception.ask("ftruncate", path, fd, size)
        _ = try check("ftruncate", path) { CShims_ftruncate(fd, Int64(size)) }
    }

    /// Makes the file at least `size` bytes long with real blocks behind every byte (file-format-3 2.7).
    ///
    /// Where the file system refuses the call (EINVAL, EPERM, EOPNOTSUPP, ENOSYS), zeros are written from the present end.
    public static func preallocate(_ fd: Descriptor, to size: Int, path: String = "") throws {
        let old = try status(fd, path: path).size
        if old >= size { return }
        do {
            try SystemCallInterception.ask("fallocate", path, fd, size)
            // Only the growth is asked for: file systems that share blocks would count the whole size as new.
            _ = try check("fallocate", path) { CShims_posix_fallocate(fd, Int64(old), Int64(size - old)) }
        } catch let error as SystemError where [EINVAL, EPERM, EOPNOTSUPP, ENOSYS].contains(error.code) {
            let zeros = [UInt8](repeating: 0, count: 4096)
            var at = old
            while at < size {
                let n = min(4096 - at % 4096, size - at)
                try zeros.withUnsafeBytes { try write(fd, UnsafeRawBufferPointer(rebasing: $0[..<n]), at: at, path: path) }
                at += n
            }
        }
    }

    /// `fdatasync`: data and the size needed to read it back.
    public static func syncData(_ fd: Descriptor, path: String = "") throws {
        try SystemCallInterception.ask("fdatasync", path, fd)
        _ = try check("fdatasync", path) { CShims_fdatasync(fd) }
    }

    /// `fsync`: data and all that is told of the file.
    public static func sync(_ fd: Descriptor, path: String = "") throws {
        try SystemCallInterception.ask("fsync", path, fd)
        _ = try check("fsync", path) { CShims_fsync(fd) }
    }

    /// Makes names in the directory that holds `path` durable. A file system that cannot sync directories (EINVAL) is left alone.
    public static func syncDirectory(of path: String) throws {
        let directory = parentDirectory(of: path)
        let fd = try open(directory, O_RDONLY | O_DIRECTORY)
        defer { close(fd) }
        do { try sync(fd, path: directory) } catch let error as SystemError where error.code == EINVAL {}
    }

    /// The directory part of a path: "/a/b" gives "/a", "b" gives ".".
    public static func parentDirectory(of path: String) -> String {
        guard let slash = path.utf8.lastIndex(of: UInt8(ascii: "/")) else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    // MARK: Memory

    /// - Parameters:
    ///   - fd: -1 for memory without a file.
    ///   - address: nil for one of the system's choice; with `MAP_FIXED` what was there is replaced.
    public static func map(
        length: Int, protection: Int32, flags: Int32, _ fd: Descriptor = -1, offset: Int = 0,
        at address: UnsafeMutableRawPointer? = nil, path: String = ""
    ) throws -> UnsafeMutableRawPointer {
        try SystemCallInterception.ask("mmap", path, fd, length)
        var out: UnsafeMutableRawPointer?
        _ = try check("mmap", path) { CShims_mmap(address, length, protection, flags, fd, Int64(offset), &out) }
        return out!
    }

    /// Failure is a programming error that costs address space; nothing is told.
    public static func unmap(_ address: UnsafeMutableRawPointer, length: Int) { _ = CShims_munmap(address, length) }

    /// - Parameter protection: `PROT_...` for whole pages.
    public static func protect(_ address: UnsafeMutableRawPointer, length: Int, _ protection: Int32) throws {
        _ = try check("mprotect", "") { CShims_mprotect(address, length, protection) }
    }

    /// Gives the pages of private memory back to the system; they read as zeros from then on. Failure costs memory only, and so
    /// does what is no whole page of this machine: that stays as it is.
    public static func discard(_ address: UnsafeMutableRawPointer, length: Int) {
        guard length > 0 else { return }
        let start = Int(bitPattern: address), pages = wholePages(start..<(start + length), pageSize: pageSize)
        if !pages.isEmpty { _ = CShims_madvise(address + (pages.lowerBound - start), pages.count, MADV_DONTNEED) }
    }

    /// The whole pages in a range of addresses. The kernel rounds a length up to its pages, of 16 or 64 KiB on some machines:
    /// what lies behind the end of the range would go too.
    public static func wholePages(_ range: Range<Int>, pageSize: Int) -> Range<Int> {
        let start = (range.lowerBound + pageSize - 1) & ~(pageSize - 1), end = range.upperBound & ~(pageSize - 1)
        return start..<max(start, end)
    }

    /// Core dumps leave this memory out, where the system can do so.
    public static func leaveOutOfDumps(_ address: UnsafeMutableRawPointer, length: Int) {
        if length > 0 { _ = CShims_madvise(address, length, 16 /* MADV_DONTDUMP */) }
    }

    /// A file in memory without a name, see memfd_create(2).
    public static func memoryFile(name: String) throws -> Descriptor {
        try SystemCallInterception.ask("memfd_create", name)
        return Int32(try check("memfd_create", name) { CShims_memory_file(name) })
    }

    /// Makes a file share the blocks of another one; false where the file system cannot.
    public static func clone(_ source: Descriptor, to target: Descriptor) -> Bool { CShims_ficlone(target, source) >= 0 }

    // MARK: Names

    /// Replaces what has the name `to`. Durable with `syncDirectory` only.
    public static func rename(_ from: String, to: String) throws {
        try SystemCallInterception.ask("rename", to, source: from)
        _ = try check("rename", to) { CShims_rename(from, to) }
    }

    /// Renames only if `to` does not exist; EEXIST otherwise.
    ///
    /// On file systems that can neither do this in one step nor have second names for a file, the absence is looked at before an
    /// ordinary rename: who makes a file of this name in between loses it. Callers hold a lock that keeps their own kind away.
    public static func renameExclusively(_ from: String, to: String) throws {
        try SystemCallInterception.ask("rename", to, source: from)
        _ = try check("rename", to) { CShims_rename_exclusive(from, to) }
    }

    /// The last way of `renameExclusively`.
    static func renameAfterLooking(_ from: String, to: String) throws {
        _ = try check("rename", to) { CShims_rename_after_looking(from, to) }
    }

    /// One more name for a file; EEXIST where `to` exists, EPERM where the file system has no hard links.
    public static func link(_ from: String, to: String) throws {
        try SystemCallInterception.ask("link", to, source: from)
        _ = try check("link", to) { CShims_link(from, to) }
    }

    /// Throws ENOENT where there is nothing.
    public static func unlink(_ path: String) throws {
        try SystemCallInterception.ask("unlink", path)
        _ = try check("unlink", path) { CShims_unlink(path) }
    }

    /// Throws ENOTEMPTY where it is not empty.
    public static func removeDirectory(_ path: String) throws {
        try SystemCallInterception.ask("rmdir", path)
        _ = try check("rmdir", path) { CShims_rmdir(path) }
    }

    /// Throws EEXIST where there is something of that name.
    public static func makeDirectory(_ path: String, mode: UInt32 = 0o755) throws {
        try SystemCallInterception.ask("mkdir", path)
        _ = try check("mkdir", path) { CShims_mkdir(path, mode) }
    }

    /// Throws EEXIST where there is something of that name.
    public static func makeFIFO(_ path: String, mode: UInt32 = 0o666) throws {
        try SystemCallInterception.ask("mknod", path)
        _ = try check("mknod", path) { CShims_mkfifo(path, mode) }
    }

    /// The names in a directory, without "." and "..", in bytewise order.
    public static func names(inDirectory path: String) throws -> [String] {
        guard let directory = opendir(path) else { throw SystemError(call: "opendir", code: errno, path: path) }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != "." && name != ".." { names.append(name) }
        }
        return names.sorted()
    }

    // MARK: Locks

    /// `flock` without waiting; false where somebody else holds a conflicting lock.
    public static func tryLock(_ fd: Descriptor, exclusive: Bool, path: String = "") throws -> Bool {
        do {
            try SystemCallInterception.ask("flock", path, fd)
            _ = try check("flock", path) { CShims_flock(fd, (exclusive ? LOCK_EX : LOCK_SH) | LOCK_NB) }
            return true
        } catch let error as SystemError where error.code == EWOULDBLOCK { return false }
    }

    /// The lock goes with the last descriptor of the open file anyway.
    public static func unlock(_ fd: Descriptor) { _ = CShims_flock(fd, LOCK_UN) }

    /// An open-file-description lock on the first byte, without waiting; false where somebody else holds it.
    /// It belongs to the descriptor's description, not to the process, and goes when that is closed for the last time.
    public static func tryDescriptionLock(_ fd: Descriptor, path: String = "") throws -> Bool {
        do {
            try SystemCallInterception.ask("fcntl", path, fd)
            _ = try check("fcntl", path) { CShims_ofd_lock(fd, 1, 0, 1) }
            return true
        } catch let error as SystemError where error.code == EAGAIN || error.code == EACCES { return false }
    }

    /// True where another description holds the lock of `tryDescriptionLock`; a descriptor for reading is enough to ask.
    public static func isDescriptionLocked(_ fd: Descriptor, path: String = "") throws -> Bool {
        try SystemCallInterception.ask("fcntl", path, fd)
        return try check("fcntl", path) { CShims_ofd_lock_holder_exists(fd, 0, 1) } != 0
    }

    // MARK: The machine

    /// Bytes of a page of memory.
    public static let pageSize = Int(sysconf(Int32(_SC_PAGESIZE)))

    /// Bytes that an unprivileged user may still write on the file system of `path`.
    public static func freeDiskBytes(path: String) throws -> Int {
        Int(try check("statvfs", path) { CShims_free_disk_bytes(path) })
    }

    /// Nanoseconds since 1970.
    public static func realTimeNanoseconds() -> Int64 { nanoseconds(CLOCK_REALTIME) }

    /// Nanoseconds of a clock that never jumps.
    public static func monotonicNanoseconds() -> Int64 { nanoseconds(CLOCK_MONOTONIC) }

    /// The same clock as it stood at the last tick, at most 10 ms ago: for what is asked several times in each commit, where the
    /// exact time takes longer to read than a mutex to lock.
    public static func coarseMonotonicNanoseconds() -> Int64 { nanoseconds(CLOCK_MONOTONIC_COARSE) }

    @inline(__always)
    private static func nanoseconds(_ clock: clockid_t) -> Int64 {
        var t = timespec()
        clock_gettime(clock, &t)
        return Int64(t.tv_sec) * 1_000_000_000 + Int64(t.tv_nsec)
    }
}
