import Foundation
import Glibc
import SharedStore

/// What a core dump of this process would hold of its private memory: mappings without a file, but for those that were taken out.
enum DumpedMemory {
    private static let chunkByteCount = 1 << 20

    private static func ranges() throws -> [Range<UInt>] {
        var ranges: [Range<UInt>] = []
        var present: Range<UInt>?
        var isUsed = false
        for line in try String(contentsOfFile: "/proc/self/smaps", encoding: .utf8).split(separator: "\n") {
            let words = line.split(separator: " ", omittingEmptySubsequences: true)
            if let first = words.first, !first.hasSuffix(":") {
                let ends = first.split(separator: "-").compactMap { UInt($0, radix: 16) }
                let isAnonymous =
                    words.count < 6 || words[5].hasPrefix("[heap") || words[5].hasPrefix("[stack") || words[5].hasPrefix("[anon")
                present =
                    ends.count == 2 && isAnonymous && words[1].hasPrefix("r") && words[1].hasSuffix("p") ? ends[0]..<ends[1] : nil
            } else if line.hasPrefix("Rss:") {
                isUsed = words.count > 1 && words[1] != "0"
            } else if line.hasPrefix("VmFlags:"), let range = present, isUsed, !words.contains("dd") {
                ranges.append(range)
            }
        }
        return ranges
    }

    /// Bytes that are looked at.
    static func byteCount() throws -> Int { try ranges().reduce(0) { $0 + $1.count } }

    /// How often a quarter of the key is found, as bytes or as hex digits, counted once a place.
    static func count(_ key: EncryptionKey?) throws -> Int {
        guard let key else { return 0 }
        let memory = open("/proc/self/mem", O_RDONLY)
        guard memory >= 0 else { throw SessionCommands.CommandError("no /proc/self/mem") }
        defer { close(memory) }
        let overlap = 32
        // What is read here must not be found here, nor what is looked for.
        let size = chunkByteCount + overlap
        guard let buffer = mmap(nil, size + 128, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), buffer != MAP_FAILED
        else { return -1 }
        madvise(buffer, size + 128, 16)
        defer { munmap(buffer, size + 128) }
        let digits = UnsafeRawBufferPointer(start: buffer + size, count: 128)
        key.withBytes { bytes in
            for (i, byte) in bytes.enumerated() {
                for (j, digit) in [byte >> 4, byte & 15].enumerated() {
                    (buffer + size).storeBytes(of: digit < 10 ? 48 + digit : 87 + digit, toByteOffset: 2 * i + j, as: UInt8.self)
                }
            }
        }
        var found = 0
        for range in try ranges() {
            var at = range.lowerBound
            while at < range.upperBound {
                let wanted = min(chunkByteCount + overlap, Int(range.upperBound - at))
                let count = pread(memory, buffer, wanted, Int(bitPattern: at))
                if count > 0 { found += key.withBytes { parts($0, buffer, count) } + parts(digits, buffer, count) }
                at += UInt(chunkByteCount)
            }
        }
        return found
    }

    private static func parts(_ key: UnsafeRawBufferPointer, _ buffer: UnsafeMutableRawPointer, _ count: Int) -> Int {
        guard let start = key.baseAddress else { return 0 }
        let length = key.count / 4
        var found = 0
        for part in 0..<4 {
            let wanted = start + length * part, first = Int32(wanted.load(as: UInt8.self))
            var at = 0
            while at + length <= count, let hit = memchr(buffer + at, first, count - at - length + 1) {
                if memcmp(hit, wanted, length) == 0 { found += 1 }
                at = hit - buffer + 1
            }
        }
        return found
    }
}
