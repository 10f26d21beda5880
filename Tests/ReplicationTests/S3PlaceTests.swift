import Foundation
@testable import Replication
import SharedStore
import TestSupport
import XCTest

/// The place of an archive that is a bucket, against a server that fails as real ones do.
final class S3PlaceTests: ArchiveTestCase {
    private func bucketPlace(_ bucket: TinyBucket, _ address: String = "s3://b/backups/app", silence: Int = 1, tries: Int = 6)
        throws -> S3Place
    {
        var options = S3Place.Options()
        options.endpoint = bucket.endpoint
        options.credentials = .init(accessKey: "key", secretKey: "secret")
        options.firstPause = .milliseconds(1)
        options.silence = .seconds(silence)
        options.triesMax = tries
        options.settling = .milliseconds(1)
        return try S3Place(address, options: options)
    }

    func testObjectsGoInAndOutWithConditionsRangesAndPages() throws {
        let bucket = try TinyBucket()
        defer { bucket.stop() }
        let place = try bucketPlace(bucket)
        XCTAssertNil(try place.get("a", from: 0, count: 10))
        let tag = try place.put("a", Array("hello world".utf8), .absent)
        XCTAssertThrowsError(try place.put("a", [1], .absent)) { XCTAssertEqual($0 as? ArchivePlaceError, .conflict(name: "a")) }
        XCTAssertThrowsError(try place.put("a", [1], .matches("\"other\""))) {
            XCTAssertEqual($0 as? ArchivePlaceError, .conflict(name: "a"))
        }
        XCTAssertThrowsError(try place.put("none", [1], .matches(tag)))
        let part = try XCTUnwrap(try place.get("a", from: 6, count: 3))
        XCTAssertEqual(String(decoding: part.bytes, as: UTF8.self), "wor")
        XCTAssertEqual(part.totalByteCount, 11)
        XCTAssertEqual(try place.get("a", from: 6, count: 100)?.bytes.count, 5)
        XCTAssertEqual(try place.get("a", from: 11, count: 5)?.bytes, [])
        try place.put("a", [], .matches(try XCTUnwrap(try place.get("a", from: 0, count: 100)).tag))
        XCTAssertEqual(try place.get("a", from: 0, count: 5)?.bytes, [])
        for i in 0..<7 { try place.put("x/\(i)", [UInt8(i)], .always) }
        XCTAssertEqual(try place.list("x/"), (0..<7).map { "x/\($0)" })
        try place.delete("x/3")
        try place.delete("x/3")
        XCTAssertEqual(try place.list("").count, 7)
        XCTAssertTrue(bucket.names.allSatisfy { $0.hasPrefix("backups/app/") })
    }

    func testLargeObjectsGoUpInPartsAndLeftoversAreRemoved() throws {
        let bucket = try TinyBucket()
        defer { bucket.stop() }
        let place = try bucketPlace(bucket, silence: 20)
        let pattern = (0..<(1 << 16)).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
        var big: [UInt8] = []
        while big.count < S3Place.partByteCount * 2 { big += pattern + [UInt8(truncatingIfNeeded: big.count >> 16)] }
        let upload = try place.upload("big")
        for start in stride(from: 0, to: big.count, by: 3 << 20) {
            try upload.append(Array(big[start..<min(start + 3 << 20, big.count)]))
        }
        XCTAssertNil(try place.get("big", from: 0, count: 1), "nothing is to be seen before the end")
        try upload.finish()
        XCTAssertEqual(try place.get("big", from: 0, count: big.count + 5)?.bytes, big)
        XCTAssertEqual(bucket.served.filter { $0.query["partNumber"] != nil }.count, 3)
        let small = try place.upload("small")
        try small.append([1, 2, 3])
        try small.finish()
        XCTAssertEqual(try place.get("small", from: 0, count: 10)?.bytes, [1, 2, 3])
        // One is abandoned, one belongs to somebody who was killed.
        let abandoned = try place.upload("abandoned")
        try abandoned.append(big)
        XCTAssertEqual(bucket.openUploadCount, 1)
        abandoned.abandon()
        XCTAssertEqual(bucket.openUploadCount, 0)
        try place.upload("killed").append(big)
        XCTAssertEqual(bucket.openUploadCount, 1)
        try place.removeLeftovers()
        XCTAssertEqual(bucket.openUploadCount, 0)
    }

    func testAnArchiveSurvivesWhatServersDo() throws {
        let bucket = try TinyBucket()
        defer { bucket.stop() }
        let place = try bucketPlace(bucket)
        let store = try makeSource()
        var random = SplitMix(seed: 81)
        bucket.misbehave { number, _ in
            switch number % 23 {
            case 3: .status(500)
            case 7: .status(503)
            case 11: .cutBody
            case 15: .close
            case 19: .doneButClosed
            default: number == 60 ? .silence : .none
            }
        }
        let status = try follow(place, archiveOptions { $0.keep = 50 }, commits: 80) { _ in try self.commit(store, &random) }
        XCTAssertEqual(status?.version, exports.keys.max())
        try store.close()
        let listings = bucket.served.filter { $0.query["list-type"] != nil }
        XCTAssertTrue(
            listings.allSatisfy { $0.query["prefix"]?.contains("images") == true }, "an archiver lists images, when it begins")
        XCTAssertLessThan(listings.count, 12)
        let reader = try ArchiveReader(place, key: key)
        let history = try reader.history()
        XCTAssertGreaterThanOrEqual(history.count, 50)
        for entry in history where entry.sequence % 7 == 0 { try assertRestores(reader, entry, verifies: false) }
        try assertRestores(reader, try reader.newest())
        for (a, b) in zip(history, history.dropFirst()) { XCTAssertEqual(a.sequence + 1, b.sequence, "no hole") }
        print("seed 81: \(place.requestCounts) requests for 80 commits and some restores")
    }

    /// The S3 layer of OpenStack Swift is such a store.
    func testAStoreThatKnowsNoConditionsHasThemLookedAtByUs() throws {
        let bucket = try TinyBucket()
        defer { bucket.stop() }
        let isConditional: @Sendable (TinyBucket.Request) -> Bool = {
            $0.headers["if-match"] != nil || $0.headers["if-none-match"] != nil
        }
        bucket.misbehave { _, request in isConditional(request) ? .status(501) : .none }
        let place = try bucketPlace(bucket), other = try bucketPlace(bucket)
        let tag = try place.put("a", [1], .absent)
        for condition in [ArchivePutCondition.absent, .matches("\"other\"")] {
            XCTAssertThrowsError(try place.put("a", [2], condition)) {
                XCTAssertEqual($0 as? ArchivePlaceError, .conflict(name: "a"))
            }
        }
        XCTAssertThrowsError(try place.put("none", [1], .matches(tag))) {
            XCTAssertEqual($0 as? ArchivePlaceError, .conflict(name: "none"))
        }
        try place.put("a", [3], .matches(tag))
        XCTAssertEqual(try place.get("a", from: 0, count: 5)?.bytes, [3])
        XCTAssertEqual(bucket.served.count(where: isConditional), 1, "it is asked once whether it knows conditions")
        // Somebody else has seen no lease either, and puts his a moment later.
        place.whileSettling = { try other.put(ArchiveNames.lease, [2], .always) }
        XCTAssertThrowsError(try place.put(ArchiveNames.lease, [1], .absent)) {
            XCTAssertEqual($0 as? ArchivePlaceError, .conflict(name: ArchiveNames.lease))
        }
        try place.delete(ArchiveNames.lease)
        place.whileSettling = {}

        let store = try makeSource()
        var random = SplitMix(seed: 83)
        var refused = false
        try follow(place, commits: 20) { number in
            try self.commit(store, &random)
            guard number == 9 else { return }
            XCTAssertThrowsError(try self.archiveOnce(self.bucketPlace(bucket))) {
                guard case ArchiveError.leaseHeld = $0 else { return XCTFail("\($0)") }
                refused = true
            }
        }
        XCTAssertTrue(refused)
        try store.close()
        let reader = try ArchiveReader(place, key: key)
        let history = try reader.history()
        XCTAssertEqual(history.count, 21)
        for entry in history { try assertRestores(reader, entry, verifies: false) }
    }

    func testAServerThatStaysDownIsReportedAfterBoundedTries() throws {
        let bucket = try TinyBucket()
        let place = try bucketPlace(bucket, tries: 3)
        bucket.misbehave { _, _ in .status(503) }
        XCTAssertThrowsError(try place.get("a", from: 0, count: 1)) {
            guard case ArchivePlaceError.unavailable(_, let reason) = $0 else { return XCTFail("\($0)") }
            XCTAssertTrue(reason.contains("503") && reason.contains("3 tries"), reason)
        }
        XCTAssertEqual(bucket.served.count, 3)
        bucket.stop()
        XCTAssertThrowsError(try bucketPlace(bucket, tries: 2).get("a", from: 0, count: 1)) {
            guard case ArchivePlaceError.unavailable = $0 else { return XCTFail("\($0)") }
        }
    }

    func testWhatIsRefusedIsNotTriedAgain() throws {
        let bucket = try TinyBucket()
        defer { bucket.stop() }
        var options = S3Place.Options()
        options.endpoint = bucket.endpoint
        options.credentials = .init(accessKey: "stranger", secretKey: "x")
        XCTAssertThrowsError(try S3Place("s3://b/x", options: options).get("a", from: 0, count: 1)) {
            XCTAssertTrue("\($0)".contains("403 AccessDenied"), "\($0)")
        }
        XCTAssertEqual(bucket.served.count, 1)
        XCTAssertThrowsError(try bucketPlace(bucket, "s3://other/x").get("a", from: 0, count: 1)) {
            XCTAssertTrue("\($0)".contains("no such bucket"), "\($0)")
        }
        for address in ["s3://", "s3://UPPER/x", "http://b/x"] { XCTAssertThrowsError(try S3Place(address)) }
    }
}
