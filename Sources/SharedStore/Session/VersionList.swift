import CShims
import SystemCalls

/// The list of versions at the end of the lock file: which are reachable, and how many read locks hold each (coordination.md 2.2,
/// 4).
///
/// Record (40 bytes): `0 version · 8 logical file size · 16 top ref · 24 live locks · 28 frozen locks · 32 full locks · 36
/// padding`. Version 0 alone makes a record free; `allocating` and `newest` are indexes, `newest` is all ones while the list is
/// empty.
///
/// Invariants between commits, for whoever holds the list mutex:
/// * `allocating == newest`, else the writer that made the difference is dead and the record at `allocating` is half-made;
/// * the record at `newest` is the newest version; a record without locks that is not the newest may vanish at the next commit;
/// * a count is only changed by whoever owns the lock that it counts (the register of participants gives back what the dead of
/// our own making have owned).
///
/// Crash argument: `publish` writes `allocating`, then the record, then `newest`. Each prefix is a valid list: until `newest` is
/// stored nobody looks at the record, and the next publisher uses the same record again. `grow` stores `entries` last: before
/// that the file is merely longer than it needs to be.
///
/// All methods want the list mutex held, and treat the contents as untrusted: an index or size that cannot be is
/// `SessionError.unusable`.
package struct VersionList {
    let file: LockFile

    package init(_ file: LockFile) { self.file = file }

    package enum Kind: Int, Sendable {
        /// An ordinary transaction: keeps data and history from its version on.
        case live
        /// A frozen transaction: keeps the data, not the history.
        case frozen
        var countOffset: Int { self == .live ? 24 : 28 }
    }

    static let none = UInt32.max

    // MARK: Fields

    package var allocating: UInt32 {
        get { CShims_load_u32(file.address(CSHIMS_LOCK_LIST_ALLOCATING)) }
        nonmutating set { _ = CShims_exchange_u32(file.address(CSHIMS_LOCK_LIST_ALLOCATING), newValue) }
    }
    /// Index of the newest record; an atomic load that needs no lock.
    package var newest: UInt32 {
        get { CShims_load_u32(file.address(CSHIMS_LOCK_LIST_NEWEST)) }
        nonmutating set { CShims_store_u32(file.address(CSHIMS_LOCK_LIST_NEWEST), newValue) }
    }

    /// The capacity, checked against the size of the file where it has grown since we last looked.
    package func capacity() throws -> Int {
        let entries = CShims_load_u32(file.address(CSHIMS_LOCK_LIST_ENTRIES))
        if entries == file.checkedRecordCount.load(ordering: .relaxed) { return Int(entries) }
        if entries < LockFile.recordStep || Int(entries) > LockFile.recordCountMax {
            throw unusable(
                "the version list claims \(entries) entries, possible are \(LockFile.recordStep) to \(LockFile.recordCountMax)")
        }
        let needed = LockFile.recordsOffset + Int(entries) * LockFile.recordByteCount
        let size = try SystemCalls.status(file.descriptor, path: file.path).size
        if size < needed { throw unusable("\(entries) entries need \(needed) bytes, the file has \(size)") }
        file.checkedRecordCount.store(entries, ordering: .relaxed)
        return Int(entries)
    }

    @inline(__always)
    private func unchecked(_ index: Int) -> UnsafeMutableRawPointer {
        file.base + LockFile.recordsOffset + index * LockFile.recordByteCount
    }

    private func record(_ index: UInt32) throws -> UnsafeMutableRawPointer {
        let capacity = try capacity()
        if index >= capacity { throw unusable("index \(index) in a version list of \(capacity) entries") }
        return unchecked(Int(index))
    }

    private func unusable(_ reason: String) -> SessionError { .unusable(path: file.path, reason: reason) }

    /// One record, copied.
    package struct Record: Equatable, Sendable {
        package var index: UInt32
        package var snapshot: Snapshot
        package var live: UInt32, frozen: UInt32, full: UInt32
    }

    private func copy(_ index: Int) throws -> Record? {
        let p = unchecked(index)
        let version = CShims_load_u64(p)
        if version == 0 { return nil }
        let size = CShims_load_u64(p + 8), top = CShims_load_u64(p + 16)
        // Top 0 belongs to an empty database, whose size is its header's.
        if size > UInt64(Int.max) || size < UInt64(FileHeader.byteCount) || top & 7 != 0 || top >= size {
            throw unusable("version \(version) has its top at \(top) in a file of \(size) bytes")
        }
        return Record(
            index: UInt32(index), snapshot: Snapshot(version: version, topRef: Int(top), logicalSize: Int(size)),
            live: CShims_load_u32(p + 24), frozen: CShims_load_u32(p + 28), full: CShims_load_u32(p + 32))
    }

    // MARK: Looking

    /// The record of the newest version.
    package func newestRecord() throws -> Record {
        let index = newest
        _ = try record(index)
        guard let found = try copy(Int(index)) else { throw unusable("the newest entry of the version list is free") }
        return found
    }

    /// The newest version, without the mutex: for whoever wants to know whether to look. 0 where that cannot be told at this
    /// moment, since the record was given to another version meanwhile, or the list is damaged.
    package var newestVersionHint: UInt64 {
        let index = newest
        guard let capacity = try? capacity(), index < capacity else { return 0 }
        return CShims_load_u64(unchecked(Int(index)))
    }

    /// All records in use, in the order of the list.
    package func records() throws -> [Record] {
        try (0..<capacity()).compactMap { try copy($0) }
    }

    /// How many versions are in use: held by somebody, or the newest.
    package func countInUse() throws -> Int {
        let newest = newest
        return try records().count { $0.index == newest || $0.live > 0 || $0.frozen > 0 || $0.full > 0 }
    }

    // MARK: Read locks

    /// Adds one lock on the newest version.
    package func acquireNewest(_ kind: Kind) throws -> Record {
        let found = try newestRecord()
        add(1, kind, Int(found.index))
        return found
    }

    /// Adds one lock on a version that somebody holds, or that is the newest.
    /// - Throws: `badVersion` where it may vanish at any time, or has.
    package func acquire(_ kind: Kind, version: UInt64) throws -> Record {
        let newestIndex = newest
        for index in 0..<(try capacity()) where CShims_load_u64(unchecked(index)) == version && version != 0 {
            guard let found = try copy(index) else { break }
            // What only frozen locks hold has no history any more, so it cannot be read live.
            let isHeld = found.live > 0 || (kind == .frozen && found.frozen > 0)
            if index != Int(newestIndex) && !isHeld { break }
            add(1, kind, index)
            return found
        }
        throw SessionError.badVersion(path: file.path, version: version)
    }

    /// Takes away one lock that the caller owns. The record stays, even without locks; only commits free records.
    package func release(_ kind: Kind, index: UInt32) throws {
        _ = try record(index)
        add(-1, kind, Int(index))
    }

    /// Takes away a lock of a dead participant, if the record still is of that version and has a lock to give back.
    package func giveBack(_ kind: Kind, index: UInt32, version: UInt64) throws {
        guard try Int(index) < capacity(), version != 0, CShims_load_u64(unchecked(Int(index))) == version else { return }
        add(-1, kind, Int(index))
    }

    private func add(_ change: Int32, _ kind: Kind, _ index: Int) {
        let p = unchecked(index) + kind.countOffset
        let count = CShims_load_u32(p)
        // A count of 0 to be lowered, or a full one to be raised, was damaged by somebody: it is left as it is.
        if change < 0 ? count == 0 : count == UInt32.max { return }
        CShims_store_u32(p, count &+ UInt32(bitPattern: change))
    }

    // MARK: Commit

    /// Forgets all versions and enters one: what an initiator does (3.4 step 15). Nobody else is attached.
    package func reset(to snapshot: Snapshot) throws {
        let capacity = try capacity()
        newest = VersionList.none
        allocating = 0
        (file.base + LockFile.recordsOffset).initializeMemory(
            as: UInt8.self, repeating: 0, count: capacity * LockFile.recordByteCount)
        try publish(snapshot)
    }

    /// Makes `snapshot` the newest version. The caller holds the write mutex, or is the initiator.
    package func publish(_ snapshot: Snapshot) throws {
        var index = allocating
        if index == newest {
            index = try freeIndex()
            KillPoint.reach("publish.before-allocating")
            allocating = index
        }
        let p = try record(index)
        KillPoint.reach("publish.after-allocating")
        CShims_store_u32(p + 24, 0)
        CShims_store_u32(p + 28, 0)
        CShims_store_u32(p + 32, 0)
        CShims_store_u64(p + 16, UInt64(snapshot.topRef))
        CShims_store_u64(p + 8, UInt64(snapshot.logicalSize))
        CShims_store_u64(p, snapshot.version)
        KillPoint.reach("publish.before-newest")
        newest = index
        KillPoint.reach("publish.after-newest")
    }

    private func freeIndex() throws -> UInt32 {
        let capacity = try capacity()
        for index in 0..<capacity where CShims_load_u64(unchecked(index)) == 0 { return UInt32(index) }
        let grown = capacity + LockFile.recordStep
        if grown > LockFile.recordCountMax { throw SessionError.tooManyVersions(path: file.path, limit: capacity, holders: "") }
        try SystemCalls.preallocate(
            file.descriptor, to: LockFile.recordsOffset + grown * LockFile.recordByteCount, path: file.path)
        // An earlier growth may have been cut short after the file was enlarged; what is there now is zero or was never used.
        unchecked(capacity).initializeMemory(as: UInt8.self, repeating: 0, count: LockFile.recordStep * LockFile.recordByteCount)
        CShims_fence()
        KillPoint.reach("publish.before-entries")
        CShims_store_u32(file.address(CSHIMS_LOCK_LIST_ENTRIES), UInt32(grown))
        file.checkedRecordCount.store(UInt32(grown), ordering: .relaxed)
        return UInt32(capacity)
    }

    /// Drops what nobody holds (4.4). The caller holds the write mutex and a live lock on the newest version of its own.
    package func purge() throws -> PinnedVersions {
        let newestIndex = newest, half = allocating
        if half != newestIndex {
            let p = try record(half)
            CShims_store_u64(p, 0)
            for offset in [24, 28, 32] { CShims_store_u32(p + offset, 0) }
        }
        // Mostly only the first few records are in use.
        var end = 0
        var oldestFull = UInt64.max
        for index in 0..<(try capacity()) {
            let version = CShims_load_u64(unchecked(index))
            if version == 0 { continue }
            end = index + 1
            if CShims_load_u32(unchecked(index) + 32) > 0 { oldestFull = min(oldestFull, version) }
        }
        var pinned: [PinnedVersion] = []
        pinned.reserveCapacity(4)
        var newestIsThere = false
        for index in 0..<end where isReachable(index, newestIndex, oldestFull) {
            guard let record = try copy(index) else { continue }
            let isNewest = record.index == newestIndex
            newestIsThere = newestIsThere || isNewest
            // The newest is never dropped; the writer's own live lock on it says the same.
            let isLive = record.live > 0 || record.snapshot.version >= oldestFull || isNewest
            pinned.append(PinnedVersion(snapshot: record.snapshot, isLive: isLive))
        }
        guard newestIsThere else { throw unusable("the newest entry of the version list is free") }
        if pinned.count > 1 { pinned.sort { $0.snapshot.version < $1.snapshot.version } }
        let oldest = pinned[0].snapshot.version
        var droppedYoungerEntry = false
        for index in 0..<end {
            let p = unchecked(index)
            let version = CShims_load_u64(p)
            if version == 0 || isReachable(index, newestIndex, oldestFull) { continue }
            if version > oldest { droppedYoungerEntry = true }
            CShims_store_u64(p, 0)
            CShims_store_u64(p + 8, UInt64.max)
            CShims_store_u64(p + 16, UInt64.max)
        }
        return PinnedVersions(versions: pinned, droppedYoungerEntry: droppedYoungerEntry)
    }

    /// A record that is in use: held by somebody, or the newest (4.4).
    private func isReachable(_ index: Int, _ newest: UInt32, _ oldestFull: UInt64) -> Bool {
        let p = unchecked(index)
        let version = CShims_load_u64(p)
        if version == 0 { return false }
        return index == newest || CShims_load_u32(p + 24) > 0 || CShims_load_u32(p + 28) > 0 || version >= oldestFull
    }
}
