import Foundation
import Glibc
@testable import SharedStore
import SystemCalls
import TestSupport
import XCTest

final class EncryptionTests: XCTestCase {
    func testGeometryIsThatOfTheDocument() {
        for (plain, file) in [
            (0, 4096), (1, 8192), (4096, 8192), (4097, 12288), (262_143, 270_336), (262_144, 270_336), (262_145, 274_432),
        ] {
            XCTAssertEqual(PageGeometry.fileSize(plain: plain), file)
        }
        for (file, plain) in [(0, 0), (4096, 0), (8192, 4096), (266_240, 262_144), (270_336, 262_144), (77_824, 73_728)] {
            XCTAssertEqual(PageGeometry.plainSize(fileSize: file), plain)
        }
    }

    private func key(_ first: UInt8) throws -> EncryptionKey { try EncryptionKey((0..<64).map { first &+ UInt8($0) }) }

    private func span(_ bytes: Int) throws -> UnsafeMutableRawPointer {
        try SystemCalls.map(length: bytes, protection: PROT_READ | PROT_WRITE, flags: MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)
    }

    func testGivenFileDecryptsToAHeaderAndFailsWithAnotherKey() throws {
        let path = Fixtures.core14 + "/encrypted.realm"
        let key = try EncryptionKey(FileManager.default.contents(atPath: Fixtures.core14 + "/encrypted.key")!)
        let fd = try SystemCalls.open(path, O_RDONLY)
        defer { SystemCalls.close(fd) }
        let base = try span(1 << 24)
        let pages = try EncryptedPages(descriptor: fd, path: path, key: key, base: base, byteCount: 1 << 24)
        try pages.prepare(0, 24)
        let header = FileHeader(base)
        XCTAssertEqual(header.mnemonic, FileHeader.mnemonic)
        XCTAssertEqual(header.liveFormat, 24)
        XCTAssertThrowsError(
            try EncryptedPages(descriptor: fd, path: path, key: self.key(3), base: base, byteCount: 1 << 24).prepare(0, 24)
        ) {
            XCTAssertEqual(($0 as? DecryptionError)?.reason, .authenticationFailed)
        }
    }

    /// Many pages are encrypted by two threads: they get the bytes that they get one by one.
    func testPagesOfALargeWriteAreTheSameAsThoseOfSmallOnes() throws {
        let scratch = ScratchDirectory()
        let count = 150, size = count * 4096
        var random = SplitMix(seed: 8)
        let contents = (0..<2).map { _ in (0..<size).map { _ in UInt8(truncatingIfNeeded: random.next()) } }
        func file(_ name: String, pagesAtATime: Int) throws -> Data {
            let fd = try SystemCalls.open(scratch.file(name), O_RDWR | O_CREAT)
            defer { SystemCalls.close(fd) }
            try SystemCalls.preallocate(fd, to: PageGeometry.fileSize(plain: size))
            let base = try span(1 << 20)
            let pages = try EncryptedPages(descriptor: fd, path: name, key: key(1), base: base, byteCount: 1 << 20)
            for bytes in contents {
                for at in stride(from: 0, to: size, by: pagesAtATime * 4096) {
                    try bytes[at..<min(size, at + pagesAtATime * 4096)].withUnsafeBytes { try pages.write($0, at: at) }
                    try pages.flush(alone: true)
                }
                pages.didSync()
            }
            return try Data(contentsOf: URL(fileURLWithPath: scratch.file(name)))
        }
        let small = try file("small", pagesAtATime: 1)
        XCTAssertEqual(try file("some", pagesAtATime: 17), small)
        XCTAssertEqual(try file("all", pagesAtATime: count), small)
    }

    /// Each failed write leaves an entry that is ahead of its data; the next one must not leave it two ahead.
    func testAPageThatCouldNotBeWrittenAgainAndAgainHasTheContentOfBefore() throws {
        let scratch = ScratchDirectory()
        let path = scratch.file("pages"), position = 3 * 4096
        let fd = try SystemCalls.open(path, O_RDWR | O_CREAT)
        defer { SystemCalls.close(fd) }
        try SystemCalls.preallocate(fd, to: PageGeometry.fileSize(plain: 8 * 4096))
        let pages = try EncryptedPages(descriptor: fd, path: path, key: key(1), base: try span(1 << 20), byteCount: 1 << 20)
        func write(_ value: UInt8, _ count: Int) throws {
            try [UInt8](repeating: value, count: count).withUnsafeBytes { try pages.write($0, at: position) }
        }
        try write(1, 4096)
        try pages.flush(alone: true)
        pages.didSync()
        for value in UInt8(2)...5 {
            var count = 0
            SystemCallInterception.hook = { call in
                guard call.path == path, call.name.hasPrefix("pwrite") else { return nil }
                count += 1
                return count == 2 ? EIO : nil
            }
            defer { SystemCallInterception.hook = nil }
            try write(value, 4096)
            XCTAssertThrowsError(try pages.flush(alone: true))
            XCTAssertEqual(count, 2, "the entry was written, its data was not")
            pages.discard()
        }
        try write(9, 8)
        try pages.flush(alone: true)
        let base = try span(1 << 20)
        let reader = try EncryptedPages(descriptor: fd, path: path, key: key(1), base: base, byteCount: 1 << 20)
        try reader.prepare(position, position + 4096)
        let found = withExtendedLifetime(reader) { [UInt8](UnsafeRawBufferPointer(start: base + position, count: 4096)) }
        XCTAssertEqual(found, [UInt8](repeating: 9, count: 8) + [UInt8](repeating: 1, count: 4088))
    }

    /// What a torn write has left cannot be read, and need not be, where all of it is overwritten.
    func testAPageWhoseWriteWasTornCanBeOverwritten() throws {
        let scratch = ScratchDirectory()
        let path = scratch.file("pages"), position = 3 * 4096
        let fd = try SystemCalls.open(path, O_RDWR | O_CREAT)
        defer { SystemCalls.close(fd) }
        try SystemCalls.preallocate(fd, to: PageGeometry.fileSize(plain: 8 * 4096))
        let base = try span(1 << 20)
        let pages = try EncryptedPages(descriptor: fd, path: path, key: key(1), base: base, byteCount: 1 << 20)
        func write(_ value: UInt8) throws {
            try [UInt8](repeating: value, count: 4096).withUnsafeBytes { try pages.write($0, at: position) }
        }
        try write(1)
        try pages.flush(alone: true)
        pages.didSync()
        var count = 0
        SystemCallInterception.hook = { call in
            guard call.path == path, call.name.hasPrefix("pwrite") else { return nil }
            count += 1
            return count == 2 ? EIO : nil
        }
        defer { SystemCallInterception.hook = nil }
        try write(2)
        XCTAssertThrowsError(try pages.flush(alone: true))
        SystemCallInterception.hook = nil
        let torn = [UInt8](repeating: 0xA5, count: 1000)
        try torn.withUnsafeBytes { try SystemCalls.write(fd, $0, at: PageGeometry.filePosition(position), path: path) }
        pages.discard()
        try write(3)
        try pages.flush(alone: true)
        let readerBase = try span(1 << 20)
        let reader = try EncryptedPages(descriptor: fd, path: path, key: key(1), base: readerBase, byteCount: 1 << 20)
        try reader.prepare(position, position + 4096)
        let found = withExtendedLifetime(reader) { [UInt8](UnsafeRawBufferPointer(start: readerBase + position, count: 4096)) }
        XCTAssertEqual(found, [UInt8](repeating: 3, count: 4096))
    }

    func testPagesWrittenByOneAreReadByAnotherAndTornWritesFallBack() throws {
        let scratch = ScratchDirectory()
        let path = scratch.file("pages")
        let fd = try SystemCalls.open(path, O_RDWR | O_CREAT)
        defer { SystemCalls.close(fd) }
        let plain = 70 * 4096
        try SystemCalls.preallocate(fd, to: PageGeometry.fileSize(plain: plain))
        let writer = try EncryptedPages(descriptor: fd, path: path, key: key(1), base: try span(1 << 20), byteCount: 1 << 20)
        let readerBase = try span(1 << 20)
        let reader = try EncryptedPages(descriptor: fd, path: path, key: key(1), base: readerBase, byteCount: 1 << 20)
        var model = [UInt8](repeating: 0, count: plain)
        var written = Set<Int>()
        var random = SplitMix(seed: 5)
        for _ in 0..<200 {
            let at = Int(random.next() % UInt64(plain - 6000)), n = 1 + Int(random.next() % 6000)
            let bytes = (0..<n).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            try bytes.withUnsafeBytes { try writer.write($0, at: at) }
            model.replaceSubrange(at..<at + n, with: bytes)
            for p in (at >> 12)...((at + n - 1) >> 12) { written.insert(p) }
            try writer.flush()
            reader.invalidate()
            for p in written.prefix(8) {
                try reader.prepare(p << 12, (p << 12) + 4096)
                XCTAssertEqual(memcmp(readerBase + (p << 12), Array(model[(p << 12)..<(p << 12) + 4096]), 4096), 0)
            }
        }
        XCTAssertEqual(try reader.plainSize(), plain)

        // A newer entry whose data never landed: the previous seal still opens the page.
        let page = written.first!
        var entry = [UInt8](repeating: 0, count: 64)
        _ = try entry.withUnsafeMutableBytes { try SystemCalls.read(fd, into: $0, at: PageGeometry.entryPosition(page: page)) }
        let torn = [UInt8](repeating: 0xEE, count: 32) + entry[..<32]
        try torn.withUnsafeBytes { try SystemCalls.write(fd, $0, at: PageGeometry.entryPosition(page: page)) }
        reader.invalidate()
        try reader.prepare(page << 12, (page << 12) + 4096)
        XCTAssertEqual(memcmp(readerBase + (page << 12), Array(model[(page << 12)..<(page << 12) + 4096]), 4096), 0)

        // One flipped bit of data is noticed.
        var byte = [UInt8](repeating: 0, count: 1)
        let other = written.sorted().last { $0 != page }!
        let position = PageGeometry.filePosition(other << 12) + 77
        _ = try byte.withUnsafeMutableBytes { try SystemCalls.read(fd, into: $0, at: position) }
        byte[0] ^= 4
        try byte.withUnsafeBytes { try SystemCalls.write(fd, $0, at: position) }
        let fresh = try EncryptedPages(descriptor: fd, path: path, key: key(1), base: try span(1 << 20), byteCount: 1 << 20)
        XCTAssertThrowsError(try fresh.prepare(other << 12, (other << 12) + 8))
    }

    /// A reader that maps a larger span does not write for the writer, and a file may outgrow the span in one transaction.
    func testALargerSpanLeavesGatheredPagesAloneAndTheFileMayOutgrowEverySpan() throws {
        let scratch = ScratchDirectory()
        let path = scratch.file("grows")
        let file = EncryptedFile(descriptor: try SystemCalls.open(path, O_RDWR | O_CREAT), path: path, key: try key(2))
        try file.preallocate(to: 64 << 10)
        _ = try file.map(at: try span(64 << 10), length: 64 << 10)
        func bytes(_ value: UInt8, _ count: Int = 5000) -> [UInt8] { [UInt8](repeating: value, count: count) }
        var writes = 0
        #if DEBUG
        SystemCallInterception.hook = { call in
            if call.name == "pwrite64" { writes += 1 }
            return nil
        }
        defer { SystemCallInterception.hook = nil }
        #endif
        try bytes(1).withUnsafeBytes { try file.write($0, at: 4096) }
        _ = try file.map(at: try span(1 << 20), length: 1 << 20)
        XCTAssertEqual(writes, 0, "mapping writes nothing")
        try bytes(2, 100).withUnsafeBytes { try file.write($0, at: 4100) }
        try file.flush()
        #if DEBUG
        XCTAssertEqual(writes, 2, "both entries, both pages")
        #endif
        // Beyond both spans, together with a page that waits in one of them.
        try file.preallocate(to: 4 << 20)
        try bytes(3).withUnsafeBytes { try file.write($0, at: 8192) }
        try bytes(4).withUnsafeBytes { try file.write($0, at: 3 << 20) }
        try file.flush()
        try file.syncData()
        try bytes(5, 10).withUnsafeBytes { try file.write($0, at: 0) }
        try file.flush()
        for (position, value) in [(0, UInt8(5)), (8192, 3), (8192 + 4999, 3), (3 << 20, 4), ((3 << 20) + 4999, 4)] {
            var byte = [UInt8](repeating: 0, count: 1)
            _ = try byte.withUnsafeMutableBytes { try file.read(into: $0, at: position) }
            XCTAssertEqual(byte, [value], "\(position)")
        }
        file.close()
        let other = EncryptedFile(descriptor: try SystemCalls.open(path, O_RDWR), path: path, key: try key(2))
        var all = bytes(0, 5000)
        _ = try all.withUnsafeMutableBytes { try other.read(into: $0, at: 3 << 20) }
        XCTAssertEqual(all, bytes(4))
        _ = try all.withUnsafeMutableBytes { try other.read(into: $0, at: 4096) }
        XCTAssertEqual(all[..<4096].map { Int($0) }.reduce(0, +), 4 * 1 + 100 * 2 + 3992 * 1 + 0 * 1)
        XCTAssertThrowsError(try bytes(1).withUnsafeBytes { try other.write($0, at: Int.max - 3) })
    }

    /// The counter is XORed to the first bytes of a page: where these change in the same way, the writer must leave a counter
    /// out, or the page would have the ciphertext of before; readers must bear it, and no other gap.
    func testACounterThatWouldRepeatTheCiphertextIsLeftOutAndReadersBearIt() throws {
        let scratch = ScratchDirectory()
        let path = scratch.file("pages")
        let fd = try SystemCalls.open(path, O_RDWR | O_CREAT)
        defer { SystemCalls.close(fd) }
        try SystemCalls.preallocate(fd, to: PageGeometry.fileSize(plain: 4096))
        let writer = try EncryptedPages(descriptor: fd, path: path, key: key(1), base: try span(1 << 20), byteCount: 1 << 20)
        var page = [UInt8](repeating: 0x31, count: 4096)
        func write(_ first: UInt8) throws {
            page[0] = first
            try page.withUnsafeBytes { try writer.write($0, at: 0) }
            try writer.flush()
        }
        func entry() throws -> PageEntry {
            try withUnsafeTemporaryAllocation(byteCount: 64, alignment: 8) { buffer in
                _ = try SystemCalls.read(fd, into: buffer, at: 0)
                return PageEntry(try XCTUnwrap(buffer.baseAddress))
            }
        }
        func read() throws -> [UInt8] {
            let base = try span(1 << 20)
            try EncryptedPages(descriptor: fd, path: path, key: key(1), base: base, byteCount: 1 << 20).prepare(0, 4096)
            return Array(UnsafeRawBufferPointer(start: base, count: 4096))
        }
        try write(0x31)
        XCTAssertEqual(try entry().current.iv, 1)
        // Counters 1 and 2 differ by 3.
        try write(0x31 ^ 3)
        XCTAssertEqual(try entry().current.iv, 3)
        XCTAssertEqual(try read(), page)
        try write(0x55)
        XCTAssertEqual(try entry().current.iv, 4)
        var bad = try entry()
        bad.current.iv = 5
        try withUnsafeTemporaryAllocation(byteCount: 64, alignment: 8) { buffer in
            bad.store(to: try XCTUnwrap(buffer.baseAddress))
            try SystemCalls.write(fd, UnsafeRawBufferPointer(buffer), at: 0)
        }
        XCTAssertThrowsError(try read()) { XCTAssertEqual(($0 as? DecryptionError)?.reason, .countersDisagree) }
    }

    /// A page that is overwritten as a whole is not taken for torn because somebody else wrote it since we read it.
    func testAPageThatOthersWroteMeanwhileKeepsItsCountersGrowing() throws {
        let scratch = ScratchDirectory()
        let path = scratch.file("pages")
        let fd = try SystemCalls.open(path, O_RDWR | O_CREAT)
        defer { SystemCalls.close(fd) }
        try SystemCalls.preallocate(fd, to: PageGeometry.fileSize(plain: 4096))
        let a = try EncryptedPages(descriptor: fd, path: path, key: key(1), base: try span(1 << 20), byteCount: 1 << 20)
        let b = try EncryptedPages(descriptor: fd, path: path, key: key(1), base: try span(1 << 20), byteCount: 1 << 20)
        for (counter, writer) in [a, b, a, b, b, a].enumerated() {
            writer.invalidate()
            let page = (0..<4096).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ counter &* 11) }
            try page.withUnsafeBytes { try writer.write($0, at: 0) }
            try writer.flush()
            var found = [UInt8](repeating: 0, count: 8)
            _ = try found.withUnsafeMutableBytes { try SystemCalls.read(fd, into: $0, at: 0) }
            XCTAssertEqual(found.withUnsafeBytes { $0.loadUnaligned(as: UInt32.self) }, UInt32(counter + 1))
        }
    }

    /// The layout is that of pages of 4 KiB wherever a file comes from. Machines with greater pages make files longer than their
    /// content, by pages that were never written; and a metadata page at the end, with no page behind it, may be there or not.
    func testFilesOfMachinesWithGreaterPagesAreReadWrittenAndVerified() throws {
        let scratch = ScratchDirectory()
        var options = StoreOptions()
        options.encryptionKey = try key(9)
        options.durability = .unsafe
        for pageSize in [4096, 16_384, 65_536, 64 * 4096] {
            for hasTrailingMetadata in [true, false] {
                let path = scratch.file("\(pageSize)-\(hasTrailingMetadata).realm")
                let store = try Store.open(path, options)
                try store.write { transaction in
                    let table = try transaction.editor.createTable("class_Thing")
                    try table.addColumn("text", .string)
                    for i in 0..<50 {
                        try table.set("text", of: table.createObject(), to: .string(String(repeating: "\(i) ", count: 40)))
                    }
                }
                let before = try store.look { try JSONExporter.text($0.group) }
                try store.close()
                let plain = PageGeometry.plainSize(fileSize: try SystemCalls.status(path: path).size)
                let longer = (plain + pageSize - 1) / pageSize * pageSize
                var size = PageGeometry.fileSize(plain: longer)
                if !hasTrailingMetadata && size % PageGeometry.blockByteCount == PageGeometry.pageByteCount {
                    size -= PageGeometry.pageByteCount
                }
                XCTAssertEqual(PageGeometry.plainSize(fileSize: size), longer)
                XCTAssertEqual(truncate(path, size), 0)
                XCTAssertEqual(try JSONExporter.text(ImmutableFile(path: path, key: options.encryptionKey).group), before)
                let again = try Store.open(path, options)
                XCTAssertEqual(try again.look { try JSONExporter.text($0.group) }, before)
                for i in 0..<20 {
                    try again.write { transaction in
                        let table = try transaction.editor.editor(named: "class_Thing")
                        for _ in 0..<20 {
                            try table.set("text", of: table.createObject(), to: .string(String(repeating: "\(i)", count: 900)))
                        }
                    }
                }
                let after = try again.look { try JSONExporter.text($0.group) }
                try again.close()
                let file = try ImmutableFile(path: path, key: options.encryptionKey)
                XCTAssertEqual(try JSONExporter.text(file.group), after)
                XCTAssertTrue(try Verifier.verify(file).isSound)
                XCTAssertEqual(try file.group.table(named: "class_Thing")?.objectCount, 450)
            }
        }
    }

    /// Where the session's counter stands still nothing is looked at again; where somebody else has written, everything is.
    func testPagesAreCheckedAgainOnlyAfterSomebodyElseHasWritten() throws {
        let scratch = ScratchDirectory()
        let path = scratch.file("pages"), size = 1 << 20
        let fd = try SystemCalls.open(path, O_RDWR | O_CREAT)
        defer { SystemCalls.close(fd) }
        try SystemCalls.preallocate(fd, to: PageGeometry.fileSize(plain: 4 * 4096))
        let markers = Markers(), base = try span(size), otherBase = try span(size)
        let ours = try EncryptedPages(descriptor: fd, path: path, key: key(1), base: base, byteCount: size, markers: markers)
        let others = try EncryptedPages(
            descriptor: fd, path: path, key: key(1), base: otherBase, byteCount: size, markers: markers)
        func write(_ pages: EncryptedPages, _ value: UInt8, _ page: Int) throws {
            pages.invalidate()
            try [UInt8](repeating: value, count: 4096).withUnsafeBytes { try pages.write($0, at: page << 12) }
            try pages.flush()
        }
        var reads = 0
        #if DEBUG
        SystemCallInterception.hook = { call in
            if call.name == "pread64" { reads += 1 }
            return nil
        }
        defer { SystemCallInterception.hook = nil }
        #endif
        func value(_ page: Int) throws -> UInt8 {
            ours.invalidate()
            try ours.prepare(page << 12, (page + 1) << 12)
            return base.load(fromByteOffset: ((page + 1) << 12) - 1, as: UInt8.self)
        }
        for page in 0..<3 { try write(ours, UInt8(page + 1), page) }
        reads = 0
        for _ in 0..<5 { for page in 0..<3 { XCTAssertEqual(try value(page), UInt8(page + 1)) } }
        try write(ours, 9, 1)
        XCTAssertEqual(try value(1), 9)
        XCTAssertEqual(reads, 0, "our own writes disturb nothing")
        try write(others, 20, 1)
        reads = 0
        XCTAssertEqual(try value(1), 20)
        XCTAssertEqual(try value(0), 1)
        #if DEBUG
        XCTAssertGreaterThan(reads, 0)
        #endif
        // A writer that died in a page, and one that is in the middle of it: nothing is taken for granted.
        markers.beginPageWrite(position: 4096)
        _ = try value(1)
        reads = 0
        _ = try value(1)
        #if DEBUG
        XCTAssertGreaterThan(reads, 0)
        #endif
        markers.endPageWrite()
        // The session was left.
        XCTAssertEqual(try value(2), 3)
        markers.areInUse = false
        reads = 0
        _ = try value(2)
        #if DEBUG
        XCTAssertGreaterThan(reads, 0)
        #endif
    }

    private final class Markers: PageWriteMarkers, @unchecked Sendable {
        // Sendable: used by one thread.
        var areInUse = true
        var writingPage: UInt64 = 0
        var writeCounter: UInt64 = 0
        func beginPageWrite(position: Int) {
            writingPage = UInt64(position) + 1
            writeCounter += 1
        }
        func endPageWrite() {
            writeCounter += 1
            writingPage = 0
        }
    }

    #if DEBUG
    /// A writer that stands still half through a page, for as long as a busy machine may make it, spoils no read: neither of who
    /// knew of a writer, nor of who knew of none.
    func testAPageThatSomebodyIsInTheMiddleOfWritingIsWaitedFor() throws {
        for isExpected in [true, false] {
            let scratch = ScratchDirectory(), size = 1 << 20
            let path = scratch.file("pages")
            let fd = try SystemCalls.open(path, O_RDWR | O_CREAT)
            defer { SystemCalls.close(fd) }
            try SystemCalls.preallocate(fd, to: PageGeometry.fileSize(plain: 2 * 4096))
            let markers = Markers(), base = try span(size)
            let writer = try EncryptedPages(descriptor: fd, path: path, key: key(1), base: try span(size), byteCount: size)
            for value in [1, 2, 3] as [UInt8] {
                for page in 0..<2 {
                    try [UInt8](repeating: value, count: 4096).withUnsafeBytes { try writer.write($0, at: page << 12) }
                }
                try writer.flush()
                writer.didSync()
            }
            let reader = try EncryptedPages(
                descriptor: fd, path: path, key: key(1), base: base, byteCount: size, markers: markers)
            // Quiet looks, until the reader believes that nobody writes.
            for _ in 0..<8 {
                reader.invalidate()
                try reader.prepare(0, 4096)
                markers.writeCounter += isExpected ? 1 : 0
            }
            let place = PageGeometry.filePosition(4096)
            var whole = [UInt8](repeating: 0, count: 4096)
            _ = try whole.withUnsafeMutableBytes { try SystemCalls.read(fd, into: $0, at: place) }
            let half = [UInt8](repeating: 0xA5, count: 2048)
            _ = half.withUnsafeBytes { pwrite(fd, $0.baseAddress, 2048, place) }
            if isExpected { markers.beginPageWrite(position: 4096) }
            var reads = 0
            SystemCallInterception.hook = { call in
                guard call.name == "pread64" else { return nil }
                reads += 1
                if reads == 1, !isExpected { markers.beginPageWrite(position: 4096) }
                if reads == 150 {
                    _ = whole.withUnsafeBytes { pwrite(fd, $0.baseAddress, 4096, place) }
                    markers.endPageWrite()
                }
                return nil
            }
            defer { SystemCallInterception.hook = nil }
            reader.invalidate()
            try reader.prepare(4096, 8192)
            XCTAssertGreaterThanOrEqual(reads, 150)
            XCTAssertEqual(base.load(fromByteOffset: 4096, as: UInt8.self), 3)
            // The marker of a page that is damaged for good, and of a writer that is no more, ends the reading too.
            SystemCallInterception.hook = nil
            _ = half.withUnsafeBytes { pwrite(fd, $0.baseAddress, 2048, place) }
            markers.beginPageWrite(position: 0)
            reader.giveBack(4096, 8192)
            reader.invalidate()
            XCTAssertThrowsError(try reader.prepare(4096, 8192))
        }
    }
    #endif

    /// A page in use that was written once and is damaged is no page whose first write was interrupted: nobody writes over it.
    func testADamagedPageThatWasWrittenOnceIsNotTakenForOneWithoutContent() throws {
        let scratch = ScratchDirectory()
        let path = scratch.file("pages"), size = 1 << 20
        let fd = try SystemCalls.open(path, O_RDWR | O_CREAT)
        defer { SystemCalls.close(fd) }
        try SystemCalls.preallocate(fd, to: PageGeometry.fileSize(plain: 2 * 4096))
        func pages() throws -> EncryptedPages {
            try EncryptedPages(descriptor: fd, path: path, key: key(1), base: try span(size), byteCount: size)
        }
        let writer = try pages()
        try [UInt8](repeating: 7, count: 4096).withUnsafeBytes { try writer.write($0, at: 4096) }
        try writer.flush()
        var good = [UInt8](repeating: 0, count: PageGeometry.fileSize(plain: 2 * 4096))
        _ = try good.withUnsafeMutableBytes { try SystemCalls.read(fd, into: $0, at: 0) }
        let entry = PageGeometry.entryPosition(page: 1), data = PageGeometry.filePosition(4096)
        func attempt(_ change: (inout [UInt8]) -> Void) throws -> DecryptionError.Reason? {
            var bytes = good
            change(&bytes)
            try bytes.withUnsafeBytes { try SystemCalls.write(fd, $0, at: 0) }
            let pages = try pages()
            do { try [1, 2, 3].withUnsafeBytes { try pages.write($0, at: 4096 + 100) } } catch let error as DecryptionError {
                return error.reason
            }
            return nil
        }
        XCTAssertNil(try attempt { _ in })
        XCTAssertEqual(try attempt { $0[entry] ^= 1 }, .countersDisagree)  // the counter becomes 0: "never written"
        XCTAssertEqual(try attempt { $0[entry] ^= 2 }, .countersDisagree)
        XCTAssertEqual(try attempt { $0[entry + 9] ^= 16 }, .authenticationFailed)
        XCTAssertEqual(try attempt { $0[data + 2000] ^= 1 }, .authenticationFailed)
        // What a power cut leaves of a first write: nothing, or not all sectors.
        XCTAssertNil(try attempt { $0.replaceSubrange(data..<data + 4096, with: [UInt8](repeating: 0, count: 4096)) })
        XCTAssertNil(try attempt { $0.replaceSubrange(data + 3584..<data + 4096, with: [UInt8](repeating: 0, count: 512)) })
        XCTAssertNil(try attempt { $0.replaceSubrange(entry..<entry + 64, with: [UInt8](repeating: 0, count: 64)) })
    }

    /// Neither the key nor what the cryptographic library makes of it (its key schedule begins with the key), nor the digits of a
    /// key that came as text.
    func testNoPartOfAKeyStandsInMemoryThatACoreDumpWouldShow() throws {
        try XCTSkipIf(
            TestTime.sanitizer != nil, "a sanitizer has memory in its own way: what is freed stays, or no dump shows it")
        let scratch = ScratchDirectory()
        let digits = (0..<64).map { _ in String(format: "%02x", UInt8.random(in: 0...255)) }.joined()
        let file = scratch.file("digits")
        _ = FileManager.default.createFile(
            atPath: file, contents: Data((digits + "\n").utf8), attributes: [.posixPermissions: 0o600])
        for way in ["key=fresh", "key-file=\(file)", "key-env=REALM_TEST_DIGITS"] {
            let process = try TestProcess(environment: way.hasPrefix("key-env") ? ["REALM_TEST_DIGITS": digits] : [:])
            XCTAssertEqual(process.ask("ledger-open \(scratch.file("\(way.prefix(6)).realm")) \(way)"), "ok")
            XCTAssertEqual(process.ask("ledger-setup"), "ok 2")
            XCTAssertEqual(process.ask("ledger-commit 5 1"), "ok 5")
            XCTAssertEqual(process.ask("ledger-check"), "ok 7 5")
            let found = process.ask("ledger-find-key").split(separator: " ")
            XCTAssertEqual(found.prefix(2).joined(separator: " "), "ok 0", "\(way): \(found)")
            XCTAssertGreaterThan(found.count > 3 ? Int(found[3]) ?? 0 : 0, 100, "too little memory was looked at")
            process.finish()
        }
    }

    func testKeysComeFromFilesAndVariablesAndAreNeverPrinted() throws {
        let scratch = ScratchDirectory()
        let raw = scratch.file("raw"), hex = scratch.file("hex"), bad = scratch.file("bad")
        let bytes = (0..<64).map { UInt8($0 * 3) }
        _ = FileManager.default.createFile(atPath: raw, contents: Data(bytes), attributes: [.posixPermissions: 0o600])
        let digits = bytes.map { String(format: "%02x", $0) }.joined()
        _ = FileManager.default.createFile(
            atPath: hex, contents: Data((digits + "\n").utf8), attributes: [.posixPermissions: 0o600])
        _ = FileManager.default.createFile(atPath: bad, contents: Data("short".utf8), attributes: [.posixPermissions: 0o600])
        let expected = try EncryptionKey(bytes)
        XCTAssertTrue(try EncryptionKey.read(file: raw).equals(expected))
        XCTAssertTrue(try EncryptionKey.read(file: hex).equals(expected))
        XCTAssertThrowsError(try EncryptionKey.read(file: bad)) { XCTAssertEqual($0 as? EncryptionKeyError, .notAKeyFile(bad)) }
        chmod(raw, 0o640)
        XCTAssertThrowsError(try EncryptionKey.read(file: raw)) {
            XCTAssertEqual($0 as? EncryptionKeyError, .readableByOthers(path: raw, mode: 0o640))
        }
        XCTAssertNoThrow(try EncryptionKey.read(file: raw, allowReadableByOthers: true))
        setenv("REALM_TEST_KEY", digits, 1)
        XCTAssertTrue(try EncryptionKey.read(environment: "REALM_TEST_KEY").equals(expected))
        XCTAssertThrowsError(try EncryptionKey.read(environment: "REALM_NO_SUCH_KEY"))
        // White space may stand anywhere; another digit, a sign or nothing at all may not.
        for (text, isKey) in [
            (digits.uppercased(), true), (" \(digits)\r\n", true), (digits.prefix(64) + "\n" + digits.suffix(64), true),
            (digits + "0", false), (String(digits.dropLast()), false), (digits.dropLast() + "g", false), ("", false),
            ("0x" + digits.dropLast(2), false),
        ] as [(String, Bool)] {
            setenv("REALM_TEST_KEY", text, 1)
            XCTAssertEqual((try? EncryptionKey.read(environment: "REALM_TEST_KEY"))?.equals(expected) ?? false, isKey, text)
        }
        XCTAssertThrowsError(try EncryptionKey([1, 2, 3])) { XCTAssertEqual($0 as? EncryptionKeyError, .wrongLength(3)) }
        XCTAssertThrowsError(try EncryptionKey(bytes + [0])) { XCTAssertEqual($0 as? EncryptionKeyError, .wrongLength(65)) }
        XCTAssertFalse(
            "\(expected) \(String(reflecting: expected)) \(Mirror(reflecting: expected).children.count)".contains("3, 6"))
    }
}
