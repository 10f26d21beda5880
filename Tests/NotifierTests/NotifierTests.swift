import Foundation
@testable import Notifier
import Synchronization
import SystemCalls
import TestSupport
import XCTest

/// What the tests of one process need: a version to raise, and a record of what was heard.
final class Heard: Sendable {
    private let version = Atomic<UInt64>(1)
    private let events = Mutex<[Notifier.Event]>([])
    private let warnings = Mutex<[Notifier.Warning]>([])

    var newest: UInt64 { version.load(ordering: .acquiring) }
    func commit() { version.add(1, ordering: .acquiringAndReleasing) }
    func record(_ event: Notifier.Event) { events.withLock { $0.append(event) } }
    var all: [Notifier.Event] { events.withLock { $0 } }
    var kinds: [Notifier.Warning.Kind] { warnings.withLock { $0.map(\.kind) } }
    var texts: [String] { warnings.withLock { $0.map(\.description) } }

    /// Waits until an event satisfies the condition; false after ten seconds.
    func waits(for condition: (Notifier.Event) -> Bool) -> Bool { waits { self.all.contains(where: condition) } }

    func waits(until condition: () -> Bool) -> Bool {
        let limit = Date(timeIntervalSinceNow: TestTime.limit(10))
        while Date() < limit {
            if condition() { return true }
            usleep(500)
        }
        return condition()
    }

    /// A subscription with a slow look so rare that it cannot be what is heard by, unless the test says otherwise.
    func subscribe(_ path: String, netMilliseconds: Int = 3_600_000, _ change: (inout Notifier.Options) -> Void = { _ in })
        -> Subscription
    {
        var options = Notifier.Options(netMilliseconds: netMilliseconds, tightNetMilliseconds: netMilliseconds) {
            [self] warning in
            warnings.withLock { $0.append(warning) }
        }
        change(&options)
        return Notifier.shared.subscribe(path: path, options: options, newestVersion: { self.newest }, handler: record)
    }
}

final class NotifierTests: XCTestCase {
    private let scratch = ScratchDirectory("Notifier")
    private let heard = Heard()

    private func makeFile(_ name: String) throws -> String {
        let path = scratch.file(name)
        try Data("content".utf8).write(to: URL(fileURLWithPath: path))
        return path
    }

    private var descriptorCount: Int { (try? SystemCalls.names(inDirectory: "/proc/self/fd").count) ?? -1 }

    // MARK: Commits

    func testRingIsHeardByEverySubscription() throws {
        let path = try makeFile("a.realm")
        let second = Heard()
        let subscriptions = [heard.subscribe(path), second.subscribe(path)]
        let ringer = Ringer(path)
        XCTAssertTrue(ringer.hasFIFO)
        heard.commit()
        second.commit()
        second.commit()
        ringer.ring()
        XCTAssertTrue(heard.waits { $0 == .committed(version: 2) })
        XCTAssertTrue(second.waits { $0 == .committed(version: 3) })
        XCTAssertEqual(heard.kinds, [])
        withExtendedLifetime(subscriptions) {}
    }

    func testARingWithoutANewVersionIsNoEvent() throws {
        let path = try makeFile("a.realm")
        let subscription = heard.subscribe(path)
        let ringer = Ringer(path)
        for _ in 0..<50 { ringer.ring() }
        heard.commit()
        ringer.ring()
        XCTAssertTrue(heard.waits { $0 == .committed(version: 2) })
        XCTAssertEqual(heard.all, [.committed(version: 2)])
        withExtendedLifetime(subscription) {}
    }

    func testTheLastOfManyRingsIsHeard() throws {
        let path = try makeFile("a.realm")
        let subscription = heard.subscribe(path)
        let ringer = Ringer(path)
        for _ in 0..<10_000 {
            heard.commit()
            ringer.ring()
        }
        XCTAssertTrue(heard.waits { $0 == .committed(version: 10_001) })
        withExtendedLifetime(subscription) {}
    }

    /// Whoever commits again and again does not wake us each time.
    func testWhileCommitsFollowEachOtherNobodyListensToTheFIFOAndAfterwardsSomebodyDoes() throws {
        let path = try makeFile("a.realm")
        let before = InotifyWatches.shared.watchCount
        let subscription = heard.subscribe(path) { $0.busyMicroseconds = 5000 }
        let ringer = Ringer(path)
        let listening = InotifyWatches.shared.watchCount
        XCTAssertGreaterThan(listening, before)
        for _ in 0..<3 {
            XCTAssertTrue(
                heard.waits {
                    heard.commit()
                    ringer.ring()
                    return InotifyWatches.shared.watchCount < listening
                })
            let last = heard.newest
            XCTAssertTrue(heard.waits { $0 == .committed(version: last) })
            XCTAssertTrue(heard.waits { InotifyWatches.shared.watchCount == listening })
            heard.commit()
            ringer.ring()
            XCTAssertTrue(heard.waits { $0 == .committed(version: last + 1) })
        }
        XCTAssertTrue(subscription.ways.watchesFIFO)
        XCTAssertEqual(heard.kinds, [])
    }

    func testTheListenerLeavesTheByteForOthers() throws {
        let path = try makeFile("a.realm")
        let subscription = heard.subscribe(path)
        heard.commit()
        Ringer(path).ring()
        XCTAssertTrue(heard.waits { $0 == .committed(version: 2) })
        let fifo = try SystemCalls.open(path + ".note", O_RDWR | O_NONBLOCK)
        defer { SystemCalls.close(fifo) }
        XCTAssertEqual(SystemCalls.pendingBytes(fifo), 1)
        withExtendedLifetime(subscription) {}
    }

    /// A commit without a ring, by a program that knows no FIFO, is found by the slow look.
    func testACommitWithoutARingIsFoundByTheSlowLook() throws {
        let subscription = heard.subscribe(try makeFile("a.realm"), netMilliseconds: 5)
        heard.commit()
        XCTAssertTrue(heard.waits { $0 == .committed(version: 2) })
        withExtendedLifetime(subscription) {}
    }

    func testWhatWasCommittedBeforeSubscribingIsToldToWhoKnowsAnOlderVersion() throws {
        let path = try makeFile("a.realm")
        heard.commit()
        let subscription = heard.subscribe(path) { $0.lastSeenVersion = 1 }
        XCTAssertTrue(heard.waits { $0 == .committed(version: 2) })
        withExtendedLifetime(subscription) {}
    }

    // MARK: Files

    func testReplacementDeletionAndAppearanceAreTold() throws {
        let path = try makeFile("a.realm")
        let subscription = heard.subscribe(path)
        XCTAssertTrue(subscription.ways.watchesFile && subscription.ways.watchesFolder && subscription.ways.watchesFIFO)
        let copy = try makeFile("copy")
        XCTAssertEqual(rename(copy, path), 0)
        XCTAssertTrue(heard.waits { $0 == .fileReplaced })
        XCTAssertEqual(unlink(path), 0)
        XCTAssertTrue(heard.waits { $0 == .fileDeleted })
        _ = try makeFile("a.realm")
        XCTAssertTrue(heard.waits { $0 == .fileAppeared })
        XCTAssertEqual(heard.all, [.fileReplaced, .fileDeleted, .fileAppeared])
    }

    func testReplacementThroughASymbolicLinkIsTold() throws {
        let target = try makeFile("target")
        let folder = scratch.file("folder")
        XCTAssertEqual(mkdir(folder, 0o755), 0)
        XCTAssertEqual(symlink(target, folder + "/a.realm"), 0)
        let subscription = heard.subscribe(folder + "/a.realm")
        XCTAssertEqual(rename(try makeFile("copy"), target), 0)
        XCTAssertTrue(heard.waits { $0 == .fileReplaced })
        withExtendedLifetime(subscription) {}
    }

    func testAFileThatComesWithItsFolderIsFound() throws {
        let folder = scratch.file("later")
        let subscription = heard.subscribe(folder + "/a.realm", netMilliseconds: 5)
        XCTAssertFalse(subscription.ways.watchesFolder)
        XCTAssertEqual(mkdir(folder, 0o755), 0)
        _ = try makeFile("later/a.realm")
        XCTAssertTrue(heard.waits { $0 == .fileAppeared })
        XCTAssertTrue(heard.waits { subscription.ways.watchesFolder && subscription.ways.fifo != nil })
        heard.commit()
        Ringer(folder + "/a.realm").ring()
        XCTAssertTrue(heard.waits { $0 == .committed(version: 2) })
    }

    func testARemovedFIFOIsMadeAnewForThoseWhoComeLater() throws {
        let path = try makeFile("a.realm")
        let ringer = Ringer(path)
        let subscription = heard.subscribe(path)
        XCTAssertEqual(unlink(path + ".note"), 0)
        XCTAssertTrue(heard.waits { (try? SystemCalls.status(path: path + ".note").isFIFO) == true })
        heard.commit()
        Ringer(path).ring()
        XCTAssertTrue(heard.waits { $0 == .committed(version: 2) })
        // A ringer that holds the removed FIFO finds the new one at its next look.
        heard.commit()
        XCTAssertTrue(
            heard.waits {
                ringer.ring()
                usleep(20_000)
                return heard.all.contains(.committed(version: 3))
            })
        withExtendedLifetime(subscription) {}
    }

    // MARK: Where the FIFO cannot be

    func testARegularFileInThePlaceOfTheFIFOIsNamedAndGotAround() throws {
        let path = try makeFile("a.realm")
        _ = try makeFile("a.realm.note")
        let fallback = scratch.file("fifos")
        XCTAssertEqual(mkdir(fallback, 0o755), 0)
        let subscription = heard.subscribe(path) { $0.fallbackDirectory = fallback }
        XCTAssertEqual(heard.kinds, [.fifoElsewhere])
        XCTAssertTrue(heard.texts[0].contains(path + ".note"), heard.texts[0])
        XCTAssertEqual(subscription.ways.fifo, fallback + "/realm_\(FIFOPath.hash(of: path)).note")
        heard.commit()
        Ringer(path, options: Notifier.Options(fallbackDirectory: fallback)).ring()
        XCTAssertTrue(heard.waits { $0 == .committed(version: 2) })
    }

    /// Without any FIFO a ringer touches the file: subscribers in other processes hear that by inotify, see NotifierProcessTests.
    func testWithoutAnyFIFOTheFileIsTouched() throws {
        try XCTSkipUnless(FIFOPath.temporaryDirectory == nil, "TMPDIR is set, so there is always a FIFO")
        let path = try makeFile("a.realm")
        _ = try makeFile("a.realm.note")
        let subscription = heard.subscribe(path)
        XCTAssertEqual(heard.kinds, [.noFIFO])
        XCTAssertNil(subscription.ways.fifo)
        let ringer = Ringer(path, options: Notifier.Options(onWarning: { _ in }))
        XCTAssertFalse(ringer.hasFIFO)
        heard.commit()
        ringer.ring()
        XCTAssertTrue(heard.waits { $0 == .committed(version: 2) })
    }

    func testAReadOnlySubscriptionMakesNoFile() throws {
        let path = try makeFile("a.realm")
        let subscription = heard.subscribe(path) { $0.createsFIFO = false }
        XCTAssertNil(subscription.ways.fifo)
        XCTAssertEqual(heard.kinds, [])
        XCTAssertEqual(try SystemCalls.names(inDirectory: scratch.path), ["a.realm"])
        // Once a writer has come, its FIFO is used.
        let ringer = Ringer(path)
        XCTAssertTrue(heard.waits { subscription.ways.fifo == path + ".note" })
        heard.commit()
        ringer.ring()
        XCTAssertTrue(heard.waits { $0 == .committed(version: 2) })
    }

    // MARK: The three ways to listen

    func testAsynchronousSequenceGivesEveryKindOfEventAndEndsWithTheSubscription() async throws {
        let path = try makeFile("a.realm")
        let subscription = heard.subscribe(path)
        let task = Task {
            var events: [Notifier.Event] = []
            for await event in subscription.events {
                events.append(event)
                if event == .fileDeleted { subscription.cancel() }
            }
            return events
        }
        let ringer = Ringer(path)
        heard.commit()
        ringer.ring()
        XCTAssertTrue(heard.waits { $0 == .committed(version: 2) })
        XCTAssertEqual(unlink(path), 0)
        let events = await task.value
        XCTAssertEqual(events.last, .fileDeleted)
        XCTAssertTrue(events.dropLast().allSatisfy { $0 == .committed(version: 2) }, "\(events)")
    }

    func testASequenceThatBeginsLateBeginsWithTheNewestVersion() async throws {
        let path = try makeFile("a.realm")
        let subscription = heard.subscribe(path)
        heard.commit()
        Ringer(path).ring()
        XCTAssertTrue(heard.waits { $0 == .committed(version: 2) })
        var iterator = subscription.events.makeAsyncIterator()
        let first = await iterator.next()
        XCTAssertEqual(first, .committed(version: 2))
        subscription.cancel()
        let second = await iterator.next()
        XCTAssertNil(second)
    }

    func testACancelledTaskEndsItsSequence() async throws {
        let subscription = heard.subscribe(try makeFile("a.realm"))
        let task = Task { for await _ in subscription.events {} }
        task.cancel()
        await task.value
        withExtendedLifetime(subscription) {}
    }

    func testADescriptorBecomesReadableWithAnEventAndQuietAfterTakingIt() throws {
        let path = try makeFile("a.realm")
        let subscription = heard.subscribe(path)
        var request = pollfd(fd: try subscription.eventDescriptor(), events: Int16(POLLIN), revents: 0)
        XCTAssertEqual(poll(&request, 1, 0), 0)
        let ringer = Ringer(path)
        heard.commit()
        ringer.ring()
        XCTAssertEqual(poll(&request, 1, 10_000), 1)
        XCTAssertEqual(subscription.takeEvents(), [.committed(version: 2)])
        XCTAssertEqual(poll(&request, 1, 0), 0)
        subscription.cancel()
        XCTAssertEqual(poll(&request, 1, 0), 1)
        XCTAssertEqual(subscription.takeEvents(), [])
    }

    func testPendingEventsAreBoundedAndCommitsAreSummedUp() {
        var pending = PendingEvents()
        for version in 1...100 { pending.append(.committed(version: UInt64(version))) }
        XCTAssertEqual(pending.takeAll(), [.committed(version: 100)])
        for _ in 0..<100 {
            pending.append(.fileDeleted)
            pending.append(.fileAppeared)
        }
        XCTAssertEqual(pending.takeAll().count, 64)
    }

    // MARK: Ending

    func testAfterCancellingNothingIsCalled() throws {
        let path = try makeFile("a.realm")
        let ringer = Ringer(path)
        for _ in 0..<200 {
            let isOver = Atomic<Bool>(false)
            let wasCalledLate = Atomic<Bool>(false)
            let counter = Atomic<UInt64>(1)
            let subscription = Notifier.shared.subscribe(
                path: path,
                newestVersion: {
                    if isOver.load(ordering: .acquiring) { wasCalledLate.store(true, ordering: .releasing) }
                    return counter.load(ordering: .acquiring)
                },
                handler: { _ in
                    usleep(100)
                    if isOver.load(ordering: .acquiring) { wasCalledLate.store(true, ordering: .releasing) }
                })
            counter.add(1, ordering: .acquiringAndReleasing)
            ringer.ring()
            subscription.cancel()
            isOver.store(true, ordering: .releasing)
            ringer.ring()
            XCTAssertFalse(wasCalledLate.load(ordering: .acquiring))
        }
    }

    func testAHandlerMayCancelItsOwnSubscription() throws {
        let watchesOfOthers = InotifyWatches.shared.watchCount
        let path = try makeFile("a.realm")
        let own = Mutex<Subscription?>(nil)
        let calls = Atomic<Int>(0)
        let subscription = Notifier.shared.subscribe(
            path: path, newestVersion: { [heard] in heard.newest },
            handler: { _ in
                calls.add(1, ordering: .acquiringAndReleasing)
                own.withLock { $0 }?.cancel()
            })
        own.withLock { $0 = subscription }
        heard.commit()
        Ringer(path).ring()
        XCTAssertTrue(heard.waits { calls.load(ordering: .acquiring) == 1 })
        XCTAssertTrue(heard.waits { InotifyWatches.shared.watchCount == watchesOfOthers })
        own.withLock { $0 = nil }
    }

    /// Fifty thousand openings and closings while commits arrive: nothing is used after it was closed (that would trap), and
    /// neither descriptors nor watches are left behind.
    func testOpeningAndClosingFiftyThousandTimesLeavesNothingBehind() throws {
        let watchesOfOthers = InotifyWatches.shared.watchCount
        let path = try makeFile("a.realm")
        heard.subscribe(path).cancel()
        let before = descriptorCount
        let isOver = Atomic<Bool>(false)
        let other = Thread { [heard] in
            let ringer = Ringer(path)
            while !isOver.load(ordering: .acquiring) {
                heard.commit()
                ringer.ring()
                usleep(200)
            }
        }
        other.start()
        for _ in 0..<50_000 {
            let subscription = Notifier.shared.subscribe(
                path: path, newestVersion: { [heard] in heard.newest }, handler: { _ in })
            subscription.cancel()
        }
        isOver.store(true, ordering: .releasing)
        XCTAssertTrue(heard.waits { other.isFinished })
        XCTAssertEqual(InotifyWatches.shared.watchCount, watchesOfOthers)
        XCTAssertTrue(heard.waits { self.descriptorCount <= before }, "\(descriptorCount) descriptors, \(before) before")
    }

    /// One inode under several names is one watch, and stays watched until its last user has gone.
    func testTwoPathsOfOneFileShareItsWatch() throws {
        let watchesOfOthers = InotifyWatches.shared.watchCount
        let path = try makeFile("a.realm")
        let first = heard.subscribe(path)
        let count = InotifyWatches.shared.watchCount
        let other = Heard()
        let second = other.subscribe(scratch.path + "/./a.realm")
        XCTAssertEqual(InotifyWatches.shared.watchCount, count)
        first.cancel()
        XCTAssertEqual(rename(try makeFile("copy"), path), 0)
        XCTAssertTrue(other.waits { $0 == .fileReplaced })
        second.cancel()
        XCTAssertEqual(InotifyWatches.shared.watchCount, watchesOfOthers)
    }
}
