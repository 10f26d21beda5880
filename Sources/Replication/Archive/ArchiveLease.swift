import Glibc
import SharedStore
import SystemCalls

/// The right to write to an archive: text in the object `lease`, replaced by conditional puts only.
///
/// It lapses by itself, and whoever comes then takes it over; it is also free where its holder was a process of this machine that
/// is gone. It is renewed before something is written and never for its own sake: an archiver that has nothing to do asks nothing
/// of the place, and finds out when it has whether somebody else was there meanwhile. A holder that was asleep past its time may
/// still be about to put a step: that is never replaced, so one of the two sees a conflict and ends.
///
/// Clocks of two machines differ, and may be set: a lease that lapses later than its duration from now was written by a clock that
/// is ahead, or ours was set back. Who waits sees by a clock of his own that it stays the same for its duration, and takes it then.
final class ArchiveLease {
    private let place: any ArchivePlace
    private let purpose: String
    private let duration: Duration
    private let token: String
    private var tag: String?
    private var renewAt: Int64 = 0
    /// What stood there when we last looked, and since when we have seen it unchanged.
    private var seen: (tag: String, since: Int64)?

    static let byteCountMax = 65_536

    init(_ place: any ArchivePlace, purpose: String, duration: Duration) {
        self.place = place
        self.purpose = purpose
        self.duration = duration
        token = String(UInt64.random(in: 0...UInt64.max), radix: 16)
    }

    private var nanoseconds: Int64 {
        duration.components.seconds * 1_000_000_000 + duration.components.attoseconds / 1_000_000_000
    }

    /// Takes the lease.
    ///
    /// - Throws: `ArchiveError.leaseHeld` where somebody else has it, `leaseLost` where it was ours.
    func acquire() throws {
        let found = try place.getAll(ArchiveNames.lease, limit: Self.byteCountMax)
        if let found {
            let text = Self.parse(found.bytes)
            if text["token"].map(String.init) != token, !Self.isFree(text), !hasLapsed(text, found.tag) { throw refusal(text) }
        }
        try put(found.map { .matches($0.tag) } ?? .absent)
    }

    /// Whether it stood there unchanged for its duration while we waited.
    private func hasLapsed(_ text: [Substring: Substring], _ tag: String) -> Bool {
        let now = SystemCalls.monotonicNanoseconds()
        if seen?.tag != tag { seen = (tag, now) }
        guard let seen else { return false }
        return now - seen.since >= Self.duration(text) ?? nanoseconds
    }

    private static func duration(_ text: [Substring: Substring]) -> Int64? {
        text["duration"].flatMap { Int64($0) }.flatMap { $0 >= 0 ? $0 : nil }
    }

    /// Holds the lease for what is about to be written.
    func renew() throws {
        if SystemCalls.monotonicNanoseconds() < renewAt { return }
        guard let tag else { return try acquire() }
        try put(.matches(tag))
    }

    private func put(_ condition: ArchivePutCondition) throws {
        let now = SystemCalls.monotonicNanoseconds()
        let bytes = Array(text(expires: SystemCalls.realTimeNanoseconds() + nanoseconds).utf8)
        do { tag = try place.put(ArchiveNames.lease, bytes, condition) } catch ArchivePlaceError.conflict {
            if let found = try place.getAll(ArchiveNames.lease, limit: Self.byteCountMax) {
                let there = Self.parse(found.bytes)
                guard there["token"].map(String.init) == token else { throw refusal(there) }
                // An answer that was lost on the way may have been a yes.
                tag = found.bytes == bytes ? found.tag : try place.put(ArchiveNames.lease, bytes, .matches(found.tag))
            } else {
                // Nobody has it: the place was emptied.
                tag = try place.put(ArchiveNames.lease, bytes, .absent)
            }
        }
        renewAt = now + nanoseconds / 2
    }

    private static let timeMark = ", for "

    /// Who holds it, without how long.
    static func nameOfHolder(_ text: String) -> String {
        var end = text.endIndex
        while let comma = text[..<end].lastIndex(of: ",") {
            if text[comma...].hasPrefix(timeMark) { return String(text[..<comma]) }
            end = comma
        }
        return text
    }

    private func refusal(_ text: [Substring: Substring]) -> ArchiveError {
        let holder = text["holder"].map(String.init) ?? "somebody who does not say who"
        let limit = Self.duration(text).map { $0 / 1_000_000_000 + 1 } ?? Int64.max
        let until = Self.seconds(text).map { $0 > 0 ? "\(Self.timeMark)\(min($0, limit)) s more unless renewed" : "" } ?? ""
        return tag == nil
            ? .leaseHeld(place: place.description, holder: holder + until) : .leaseLost(place: place.description, holder: holder)
    }

    /// Gives the lease back, so that nobody needs to wait. That this fails costs the next one the rest of the time.
    func release() {
        guard let tag else { return }
        _ = try? place.put(ArchiveNames.lease, Array(text(expires: 0).utf8), .matches(tag))
        self.tag = nil
    }

    private func text(expires: Int64) -> String {
        """
        realm-lease 1
        holder \(purpose) by process \(getpid()) on \(MirrorLock.hostName), since \(MirrorLock.timeText())
        token \(token)
        process \(ProcessMark.own)
        duration \(nanoseconds)
        expires \(expires)

        """
    }

    private static func parse(_ bytes: [UInt8]) -> [Substring: Substring] {
        var lines: [Substring: Substring] = [:]
        for line in Substring(String(decoding: bytes, as: UTF8.self)).split(separator: "\n") {
            let parts = line.split(separator: " ", maxSplits: 1)
            if parts.count == 2 { lines[parts[0]] = parts[1] }
        }
        return lines
    }

    private static func seconds(_ text: [Substring: Substring]) -> Int64? {
        text["expires"].flatMap { Int64($0) }.map { ($0 &- SystemCalls.realTimeNanoseconds()) / 1_000_000_000 }
    }

    private static func isFree(_ text: [Substring: Substring]) -> Bool {
        // What cannot be read was written by nobody who could be asked.
        guard let expires = text["expires"].flatMap({ Int64($0) }) else { return true }
        return expires <= SystemCalls.realTimeNanoseconds() || text["process"].map { ProcessMark.isGone(String($0)) } ?? false
    }
}

/// A process as others of the same machine recognise it: machine, name space of process numbers, number, time of start.
enum ProcessMark {
    static var own: String { mark(getpid()) ?? "unknown" }

    private static var world: String {
        let space = (try? SystemCalls.status(path: "/proc/self/ns/pid").inode) ?? 0
        return "\(MirrorLock.hostName.filter { $0 != " " }) \(space)"
    }

    private static func mark(_ pid: pid_t) -> String? {
        let path = "/proc/\(pid)/stat"
        guard let descriptor = try? SystemCalls.open(path, O_RDONLY) else { return nil }
        defer { SystemCalls.close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: 2048)
        guard let count = try? bytes.withUnsafeMutableBytes({ try SystemCalls.read(descriptor, into: $0, at: 0, path: path) })
        else { return nil }
        // The name may hold anything; behind its last parenthesis the 20th field is the time of start.
        let text = String(decoding: bytes[..<count], as: UTF8.self)
        guard let end = text.lastIndex(of: ")") else { return nil }
        let fields = text[end...].split(separator: " ")
        return fields.count > 20 ? "\(world) \(pid) \(fields[20])" : nil
    }

    /// True where the mark is of this machine and its process is not there any more.
    static func isGone(_ mark: String) -> Bool {
        let parts = mark.split(separator: " ")
        guard parts.count == 4, "\(parts[0]) \(parts[1])" == world, let pid = pid_t(parts[2]), pid > 0 else { return false }
        return self.mark(pid) != mark
    }
}
