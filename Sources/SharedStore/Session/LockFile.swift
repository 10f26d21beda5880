import CShims
import Glibc
import Synchronization
import SystemCalls

/// The shared state of a session: the file `X.lock`, mapped once (coordination.md section 2).
///
/// ```
///   0 init_complete   1 mutex size   2 condvar size   3 commit_in_critical_phase   4 file format   5 history type   6 layout version (14)
///   8 durability   12 participants   16 latest version   24 initiator pid   32 number of versions   40 sync agent   44 history schema
///  48 write mutex · control mutex · list mutex · 3 unused condvars · new_commit_available · pick_next_writer
/// 408 next_ticket   412 next_served   416 page marker   424 write counter        (24 bytes later on aarch64, whose mutexes are larger)
/// 432 entries   436 allocating   440 newest   444 session mark   448 records of 40 bytes
/// ```
///
/// Invariants while anybody is attached (everybody holds a shared `flock` on the file):
/// * nobody initialises, truncates, renames or unlinks the file;
/// * file size >= recordsOffset + 40 * entries; entries never shrinks; newest < entries, allocating < entries;
/// * `participants`, `latest version`, `number of versions` change only under the control mutex, the list only under the list
/// mutex.
///
/// The mapping is 1 MiB from the beginning, far past the end of the file: pages become usable when anybody enlarges the file,
/// so nothing is ever mapped anew, and the mutexes keep one address (glibc's robust list points at them).
///
/// Crash argument: mutexes are robust, `flock` goes with the process, counters go with nobody. Which of the three protects a
/// thing decides what its user must heal; see `VersionList`, `WriteQueue` and `ParticipantRegister`.
///
/// *Session mark* (ours): the four bytes before the records are alignment padding of the layout, zeroed with the whole file when
/// a session is initialised and never looked at by others. We store a random number there as soon as the register of
/// participants can matter, so that a register entry of an earlier session is never applied to this one.
package final class LockFile: @unchecked Sendable {
    // Sendable: the mapping is shared with other processes anyway; every access is atomic or under one of its mutexes.

    package static let layoutVersion: UInt16 = 14
    package static let mappedByteCount = 1 << 20
    package static let recordByteCount = 40
    /// Records of a fresh list, and by how many it grows.
    package static let recordStep = 32
    package static let recordsOffset = Int(CSHIMS_LOCK_LIST_RECORDS.rawValue)
    /// Size of a fresh lock file: 1728 on x86-64, 1752 on aarch64.
    package static let initialByteCount = recordsOffset + recordStep * recordByteCount
    /// As many records as the mapping shows.
    package static let recordCountMax = (mappedByteCount - recordsOffset) / recordByteCount / recordStep * recordStep

    package let path: String
    package let descriptor: Int32
    package let base: UnsafeMutableRawPointer
    package let device: UInt64
    package let inode: UInt64
    /// Threads of this process that hold a mutex through this object, for the order checks of debug builds.
    /// Number of records that the file has been found to have room for.
    let checkedRecordCount = Atomic<UInt32>(0)
    private let hasClosed = Atomic<Bool>(false)
    /// True from the moment at which the mapping must not be touched any more.
    package var isClosed: Bool { hasClosed.load(ordering: .acquiring) }
    /// A writer has died, and we took the write mutex after it: what it wrote to the data file may not be synced.
    package let writerDied = Atomic<Bool>(false)
    let writeHolder = Atomic<Int64>(0), controlHolder = Atomic<Int64>(0), listHolder = Atomic<Int64>(0)

    init(path: String, descriptor: Int32, base: UnsafeMutableRawPointer, status: SystemCalls.Status) {
        self.path = path
        self.descriptor = descriptor
        self.base = base
        device = status.device
        inode = status.inode
    }

    /// The shared state of a session of one: the same thing, in memory that nobody else sees.
    static func inMemory(_ properties: Properties) throws -> LockFile {
        let path = "in-memory database"
        let descriptor = try SystemCalls.memoryFile(name: "realm.lock")
        do {
            try initialise(descriptor, path: path, properties)
            let base = try SystemCalls.map(
                length: mappedByteCount, protection: PROT_READ | PROT_WRITE, flags: MAP_SHARED, descriptor, path: path)
            return LockFile(
                path: path, descriptor: descriptor, base: base, status: try SystemCalls.status(descriptor, path: path))
        } catch {
            SystemCalls.close(descriptor)
            throw error
        }
    }

    /// Leaves the session: unmaps, then lets go of the `flock`. No thread may hold one of the mutexes.
    /// With `keepingMapping` a thread that may still be inside the mapping is spared a fault; the address space is lost.
    package func close(keepingMapping: Bool = false) {
        hasClosed.store(true, ordering: .releasing)
        if !keepingMapping { SystemCalls.unmap(base, length: LockFile.mappedByteCount) }
        SystemCalls.unlock(descriptor)
        SystemCalls.close(descriptor)
    }

    // MARK: Fields

    @inline(__always) func address(_ field: CShimsLockField) -> UnsafeMutableRawPointer { base + Int(field.rawValue) }

    package var isInitialised: Bool { CShims_load_u8(address(CSHIMS_LOCK_INIT_COMPLETE)) != 0 }
    package var sizeOfMutex: UInt8 { CShims_load_u8(address(CSHIMS_LOCK_SIZE_OF_MUTEX)) }
    package var sizeOfCondition: UInt8 { CShims_load_u8(address(CSHIMS_LOCK_SIZE_OF_CONDITION)) }
    package var storedLayoutVersion: UInt16 { CShims_load_u16(address(CSHIMS_LOCK_LAYOUT_VERSION)) }

    package var commitInCriticalPhase: Bool {
        get { CShims_load_u8(address(CSHIMS_LOCK_COMMIT_IN_CRITICAL_PHASE)) != 0 }
        set { CShims_store_u8(address(CSHIMS_LOCK_COMMIT_IN_CRITICAL_PHASE), newValue ? 1 : 0) }
    }
    package var fileFormat: UInt8 {
        get { CShims_load_u8(address(CSHIMS_LOCK_FILE_FORMAT)) }
        set { CShims_store_u8(address(CSHIMS_LOCK_FILE_FORMAT), newValue) }
    }
    package var historyType: Int8 {
        get { Int8(bitPattern: CShims_load_u8(address(CSHIMS_LOCK_HISTORY_TYPE))) }
        set { CShims_store_u8(address(CSHIMS_LOCK_HISTORY_TYPE), UInt8(bitPattern: newValue)) }
    }
    package var durability: UInt16 {
        get { CShims_load_u16(address(CSHIMS_LOCK_DURABILITY)) }
        set { CShims_store_u16(address(CSHIMS_LOCK_DURABILITY), newValue) }
    }
    package var historySchemaVersion: UInt16 {
        get { CShims_load_u16(address(CSHIMS_LOCK_HISTORY_SCHEMA)) }
        set { CShims_store_u16(address(CSHIMS_LOCK_HISTORY_SCHEMA), newValue) }
    }
    package var participantCount: UInt32 {
        get { CShims_load_u32(address(CSHIMS_LOCK_PARTICIPANT_COUNT)) }
        set { CShims_store_u32(address(CSHIMS_LOCK_PARTICIPANT_COUNT), newValue) }
    }
    package var latestVersion: UInt64 {
        get { CShims_load_u64(address(CSHIMS_LOCK_LATEST_VERSION)) }
        set { CShims_store_u64(address(CSHIMS_LOCK_LATEST_VERSION), newValue) }
    }
    package var initiatorProcess: UInt64 {
        get { CShims_load_u64(address(CSHIMS_LOCK_INITIATOR_PID)) }
        set { CShims_store_u64(address(CSHIMS_LOCK_INITIATOR_PID), newValue) }
    }
    package var numberOfVersions: UInt64 {
        get { CShims_load_u64(address(CSHIMS_LOCK_NUMBER_OF_VERSIONS)) }
        set { CShims_store_u64(address(CSHIMS_LOCK_NUMBER_OF_VERSIONS), newValue) }
    }
    package var nextTicket: UInt32 { CShims_load_u32(address(CSHIMS_LOCK_NEXT_TICKET)) }
    package var nextServed: UInt32 {
        get { CShims_load_u32(address(CSHIMS_LOCK_NEXT_SERVED)) }
        set { CShims_store_u32(address(CSHIMS_LOCK_NEXT_SERVED), newValue) }
    }
    /// Marker and counter of page writes in encrypted files (5.7).
    package var writingPageAddress: UnsafeMutableRawPointer { address(CSHIMS_LOCK_WRITING_PAGE) }
    package var writeCounterAddress: UnsafeMutableRawPointer { address(CSHIMS_LOCK_WRITE_COUNTER) }

    /// The session mark; 0 while there is none.
    package var sessionMark: UInt32 { CShims_load_u32(address(CSHIMS_LOCK_LIST_PADDING)) }

    /// The session mark, which is made now if there is none.
    package func makeSessionMark() -> UInt32 {
        var present: UInt32 = sessionMark
        if present != 0 { return present }
        let fresh = UInt32.random(in: 1...UInt32.max)
        return CShims_compare_exchange_u32(address(CSHIMS_LOCK_LIST_PADDING), &present, fresh) ? fresh : present
    }

    /// Called by an initiator, under the control mutex: entries of earlier sessions become void.
    package func clearSessionMark() { CShims_store_u32(address(CSHIMS_LOCK_LIST_PADDING), 0) }

    // MARK: Initialisation

    /// What the opener writes into a fresh lock file.
    package struct Properties: Equatable, Sendable {
        package var durability: Durability
        package var historyType: Int8
        package var historySchemaVersion: UInt16
        package init(durability: Durability, historyType: Int8, historySchemaVersion: UInt16) {
            self.durability = durability
            self.historyType = historyType
            self.historySchemaVersion = historySchemaVersion
        }
    }

    /// Fills the file behind `descriptor` with the initial values of 2.4. The caller holds the exclusive `flock`.
    static func initialise(_ descriptor: Int32, path: String, _ properties: Properties) throws {
        try SystemCalls.truncate(descriptor, to: 0, path: path)
        try SystemCalls.preallocate(descriptor, to: initialByteCount, path: path)
        let base = try SystemCalls.map(
            length: initialByteCount, protection: PROT_READ | PROT_WRITE, flags: MAP_SHARED, descriptor, path: path)
        defer { SystemCalls.unmap(base, length: initialByteCount) }
        func store<T: BitwiseCopyable>(_ value: T, _ field: CShimsLockField) {
            base.storeBytes(of: value, toByteOffset: Int(field.rawValue), as: T.self)
        }
        store(UInt8(CSHIMS_LOCK_MUTEX_SIZE), CSHIMS_LOCK_SIZE_OF_MUTEX)
        store(UInt8(CSHIMS_LOCK_CONDITION_SIZE), CSHIMS_LOCK_SIZE_OF_CONDITION)
        store(properties.historyType, CSHIMS_LOCK_HISTORY_TYPE)
        store(layoutVersion, CSHIMS_LOCK_LAYOUT_VERSION)
        store(properties.durability.rawValue, CSHIMS_LOCK_DURABILITY)
        store(properties.historySchemaVersion, CSHIMS_LOCK_HISTORY_SCHEMA)
        let code = CShims_lock_file_initialise_primitives(base)
        if code != 0 { throw SystemError(call: "pthread_mutex_init", code: code, path: path) }
        store(UInt32(recordStep), CSHIMS_LOCK_LIST_ENTRIES)
        store(UInt32.max, CSHIMS_LOCK_LIST_NEWEST)
        KillPoint.reach("lock-file.initialised")
        CShims_store_u8(base + Int(CSHIMS_LOCK_INIT_COMPLETE.rawValue), 1)
    }
}
