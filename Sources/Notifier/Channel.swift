import Glibc
import Synchronization
import SystemCalls

/// All that one process needs to listen to one database path: FIFO, watches, and the subscribers that share them.
///
/// Locks, outermost first: `setup` (held during system calls), `subscribers` (short). No closure of a caller
/// runs under either: what is to be delivered is collected, and delivered by the listener thread after the lock is released.
final class Channel: Sendable {
    let path: String
    let tag: UInt64
    private let listener: Listener
    private let options: Notifier.Options
    /// The database file and its folder by absolute path, so that a change of the working directory does not look like a
    /// deletion.
    private let filePath: String
    private let folderPath: String
    private let fileName: String
    private let noteName: String
    private let candidates: [String]

    private struct Setup {
        var isSetUp = false
        var createsFIFO = false
        var fifo: FIFO?
        var fifoIsPolled = false
        var fifoToken: InotifyWatches.Token?
        /// Nil where no file is there.
        var file: PathAnchor?
        var fileToken: InotifyWatches.Token?
        var folder: PathAnchor?
        var folderToken: InotifyWatches.Token?
        var warned: Set<Notifier.Warning.Kind> = []
        var hearsFIFO: Bool { fifo != nil && (fifoIsPolled || fifoToken != nil) }
    }

    /// How the last commits came.
    private struct Rhythm {
        var newsAt: Int64 = 0
        var newsInRow = 0
        /// Of looks by the clock.
        var interval: Int64 = 0

        /// Commits that follow each other within this time are in a row, which ends when there was none for so long.
        static let rowNanoseconds: Int64 = 10_000_000
        /// So many of them make us deaf.
        static let rowCount = 4
        /// The first look by the clock comes after the longest time divided by this; each next one after twice the time.
        static let steps: Int64 = 16
    }

    /// What is to be told once the lock is released.
    private struct News {
        var events: [Notifier.Event] = []
        var warnings: [Notifier.Warning] = []
        var fifoIsNew = false
    }

    private let setup = Mutex(Setup())
    private let closed = Atomic<Bool>(false)
    private let subscribers = Mutex<[Subscriber]>([])
    private let lookIsRequested = Atomic<Bool>(false)
    private let nextLook: Atomic<Int64>
    private let nextFileCheck: Atomic<Int64>
    private let intervalMilliseconds: Atomic<Int>
    /// See `Notifier.Options.busyMicroseconds`; the longest of all subscribers.
    private let busyNanoseconds = Atomic<Int64>(0)
    /// The FIFO is not listened to: commits follow each other, and are looked for by the clock.
    private let isDeaf = Atomic<Bool>(false)
    /// Used by the listener thread only.
    private let rhythm = Mutex(Rhythm())

    init(path: String, tag: UInt64, options: Notifier.Options, listener: Listener) {
        self.path = path
        self.tag = tag
        self.options = options
        self.listener = listener
        filePath = Self.absolute(path)
        folderPath = SystemCalls.parentDirectory(of: filePath)
        fileName = String(filePath[(filePath.lastIndex(of: "/").map(filePath.index(after:)) ?? filePath.startIndex)...])
        let name = SystemCalls.followingLinks(filePath)
        noteName = String(name[(name.lastIndex(of: "/").map(name.index(after:)) ?? name.startIndex)...]) + ".note"
        candidates = FIFOPath.candidates(database: path, fallbackDirectory: options.fallbackDirectory)
        intervalMilliseconds = Atomic(options.netMilliseconds)
        let next = Self.next(SystemCalls.monotonicNanoseconds(), options.netMilliseconds)
        nextLook = Atomic(next)
        nextFileCheck = Atomic(next)
    }

    private static func nanoseconds(_ milliseconds: Int) -> Int64 { Int64(milliseconds) * 1_000_000 }

    /// The next moment of an interval, the same for all channels that have it, so that one waking serves all of them.
    private static func next(_ now: Int64, _ milliseconds: Int) -> Int64 {
        let interval = max(1, nanoseconds(milliseconds))
        return interval > 60_000_000_000 ? now &+ interval : (now / interval + 1) * interval
    }

    private static func absolute(_ path: String) -> String {
        if path.hasPrefix("/") { return path }
        guard let directory = getcwd(nil, 0) else { return path }
        defer { free(directory) }
        return String(cString: directory) + "/" + path
    }

    // MARK: Subscribers

    /// True once the last subscriber has gone; a channel is not opened again.
    var isClosed: Bool { closed.load(ordering: .acquiring) }

    /// False where the channel was closed meanwhile: the caller takes a new one.
    func add(_ subscriber: Subscriber, options: Notifier.Options) -> Bool {
        var news = News()
        let isOpen = setup.withLock { setup in
            if isClosed { return false }
            let createsNow = options.createsFIFO && !setup.createsFIFO
            if createsNow { setup.createsFIFO = true }
            if !setup.isSetUp {
                setup.isSetUp = true
                watchFolder(&setup, &news)
                if let file = try? PathAnchor(path: filePath) { adopt(file, &setup, &news) }
                openFIFO(&setup, create: options.createsFIFO, &news)
            } else if createsNow, setup.fifo == nil {
                openFIFO(&setup, create: true, &news)
            }
            updateInterval(setup)
            subscribers.withLock { $0.append(subscriber) }
            return true
        }
        if isOpen { busyNanoseconds.max(Int64(options.busyMicroseconds) * 1000, ordering: .relaxed) }
        if isOpen, options.lastSeenVersion != nil || news.fifoIsNew { requestLook() }
        news.warnings.forEach(options.onWarning)
        return isOpen
    }

    /// True where it was the last one, and the channel is closed now.
    func remove(_ subscriber: Subscriber) -> Bool {
        setup.withLock { setup in
            let wasLast = subscribers.withLock { subscribers in
                guard let index = subscribers.firstIndex(where: { $0 === subscriber }) else { return false }
                subscribers.remove(at: index)
                return subscribers.isEmpty
            }
            guard wasLast else { return false }
            closed.store(true, ordering: .releasing)
            dropFIFO(&setup)
            dropFile(&setup)
            dropFolder(&setup)
            return true
        }
    }

    var ways: Notifier.Ways {
        setup.withLock {
            Notifier.Ways(
                fifo: $0.fifo?.path, watchesFIFO: $0.fifoToken != nil || isDeaf.load(ordering: .relaxed),
                watchesFile: $0.fileToken != nil,
                watchesFolder: $0.folderToken != nil, netMilliseconds: intervalMilliseconds.load(ordering: .relaxed))
        }
    }

    // MARK: Looking; the listener thread

    /// Asks for a look by the listener thread; the caller wakes it.
    func requestLook() { lookIsRequested.store(true, ordering: .releasing) }

    var nextDueNanoseconds: Int64 { min(nextLook.load(ordering: .relaxed), nextFileCheck.load(ordering: .relaxed)) }

    /// True where there was something new for anybody.
    @discardableResult
    func look() -> Bool {
        var isNew = false
        for subscriber in subscribers.withLock({ $0 }) where subscriber.look() { isNew = true }
        return isNew
    }

    func lookIfDue(now: Int64) {
        if lookIsRequested.exchange(false, ordering: .acquiringAndReleasing) { look() }
        if now >= nextLook.load(ordering: .relaxed) {
            if isDeaf.load(ordering: .relaxed) {
                lookByTheClock(now)
            } else {
                nextLook.store(Self.next(now, intervalMilliseconds.load(ordering: .relaxed)), ordering: .relaxed)
                look()
            }
        }
        if now >= nextFileCheck.load(ordering: .relaxed) {
            nextFileCheck.store(Self.next(now, options.netMilliseconds), ordering: .relaxed)
            checkFiles()
        }
    }

    /// A byte was written to the FIFO.
    func hear(now: Int64) {
        guard look() else { return }
        let isBusy = rhythm.withLock { rhythm in
            rhythm.newsInRow = now - rhythm.newsAt < Rhythm.rowNanoseconds ? min(rhythm.newsInRow + 1, Rhythm.rowCount) : 0
            rhythm.newsAt = now
            return rhythm.newsInRow >= Rhythm.rowCount
        }
        if isBusy && busyNanoseconds.load(ordering: .relaxed) > 0 { stopListening(now) }
    }

    /// While commits follow each other nobody of us waits for the FIFO, neither by epoll nor by inotify: to wake somebody costs
    /// whoever commits more than the commit may.
    private func stopListening(_ now: Int64) {
        let isDone: Void? = setup.withLockIfAvailable { setup in
            guard let fifo = setup.fifo, setup.hearsFIFO, !isClosed else { return }
            if setup.fifoIsPolled { listener.remove(fifo) }
            setup.fifoIsPolled = false
            if let token = setup.fifoToken { InotifyWatches.shared.cancel(token) }
            setup.fifoToken = nil
            isDeaf.store(true, ordering: .relaxed)
        }
        guard isDone != nil, isDeaf.load(ordering: .relaxed) else { return }
        let interval = max(1_000_000, busyNanoseconds.load(ordering: .relaxed) / Rhythm.steps)
        rhythm.withLock { $0.interval = interval }
        nextLook.store(now + interval, ordering: .relaxed)
    }

    private func lookByTheClock(_ now: Int64) {
        let isNew = look()
        let (isOver, interval) = rhythm.withLock { rhythm in
            if isNew {
                rhythm.newsAt = now
                rhythm.interval = min(2 * rhythm.interval, max(1_000_000, busyNanoseconds.load(ordering: .relaxed)))
            }
            return (!isNew && now - rhythm.newsAt >= Rhythm.rowNanoseconds, rhythm.interval)
        }
        nextLook.store(now + interval, ordering: .relaxed)
        if isOver && listenAgain(now) {
            // What was committed before we listened.
            look()
        }
    }

    /// False where somebody subscribes or cancels at this moment: another time.
    private func listenAgain(_ now: Int64) -> Bool {
        var news = News()
        let isDone: Void? = setup.withLockIfAvailable { setup in
            isDeaf.store(false, ordering: .relaxed)
            if let fifo = setup.fifo, !isClosed {
                setup.fifoIsPolled = (try? listener.add(fifo, tag: tag)) != nil
                setup.fifoToken = watch(fifo, fifo.path, &setup, &news)
            }
            nextLook.store(Self.next(now, intervalMilliseconds.load(ordering: .relaxed)), ordering: .relaxed)
            updateInterval(setup)
        }
        rhythm.withLock { $0.newsInRow = 0 }
        news.warnings.forEach(options.onWarning)
        return isDone != nil
    }

    func handle(_ occurrence: InotifyWatches.Occurrence, now: Int64) {
        if !occurrence.name.isEmpty {
            if occurrence.name == fileName || occurrence.name == noteName { checkFiles(noteChanged: occurrence.name == noteName) }
        } else if occurrence.mask & UInt32(IN_MODIFY) != 0 {
            hear(now: now)
        } else {
            // The file was touched by a committer without a FIFO, or something happened to file, FIFO or folder.
            look()
            checkFiles()
        }
    }

    /// Compares what is at the paths with what was there, tells the difference, and listens to what is there now.
    func checkFiles(noteChanged: Bool = false) {
        var news = News()
        let wasChecked: Void? = setup.withLockIfAvailable { setup in
            guard setup.isSetUp, !isClosed else { return }
            checkFolder(&setup, &news)
            checkFile(&setup, &news)
            checkFIFO(&setup, noteChanged: noteChanged, &news)
            updateInterval(setup)
        }
        if wasChecked == nil {
            // Somebody subscribes or cancels at this moment; the next round is soon.
            nextFileCheck.store(SystemCalls.monotonicNanoseconds() + Self.nanoseconds(1), ordering: .relaxed)
            return
        }
        news.warnings.forEach(options.onWarning)
        for event in news.events {
            for subscriber in subscribers.withLock({ $0 }) { subscriber.deliver(event) }
        }
        if news.fifoIsNew { look() }
    }

    // MARK: The file

    private func checkFile(_ setup: inout Setup, _ news: inout News) {
        let status: SystemCalls.Status?
        do { status = try SystemCalls.status(path: filePath) } catch let error as SystemError {
            guard error.code == ENOENT || error.code == ENOTDIR else { return }
            status = nil
        } catch { return }

        guard let status else {
            if setup.file == nil { return }
            dropFile(&setup)
            news.events.append(.fileDeleted)
            return
        }
        if let old = setup.file {
            // The number of the held inode is read anew: some file systems change it as they like.
            let held = (try? SystemCalls.status(old.descriptor, path: filePath)) ?? old.status
            if held.device == status.device && held.inode == status.inode {
                if setup.fileToken == nil { watchFile(old, &setup, &news) }
                return
            }
        }
        guard let file = try? PathAnchor(path: filePath) else { return }
        let wasThere = setup.file != nil
        adopt(file, &setup, &news)
        news.events.append(wasThere ? .fileReplaced : .fileAppeared)
        if setup.fifo == nil { openFIFO(&setup, create: setup.createsFIFO, &news) }
    }

    private func adopt(_ file: PathAnchor, _ setup: inout Setup, _ news: inout News) {
        dropFile(&setup)
        setup.file = file
        watchFile(file, &setup, &news)
    }

    private func watchFile(_ file: PathAnchor, _ setup: inout Setup, _ news: inout News) {
        setup.fileToken = watch(file, filePath, &setup, &news)
    }

    private func dropFile(_ setup: inout Setup) {
        if let token = setup.fileToken { InotifyWatches.shared.cancel(token) }
        setup.fileToken = nil
        setup.file = nil
    }

    // MARK: The folder

    private func checkFolder(_ setup: inout Setup, _ news: inout News) {
        if let folder = setup.folder, let status = try? SystemCalls.status(path: folderPath) {
            let held = (try? SystemCalls.status(folder.descriptor, path: folderPath)) ?? folder.status
            if setup.folderToken != nil && held.device == status.device && held.inode == status.inode { return }
        }
        dropFolder(&setup)
        watchFolder(&setup, &news)
    }

    private func watchFolder(_ setup: inout Setup, _ news: inout News) {
        guard let folder = try? PathAnchor(path: folderPath) else { return }
        setup.folder = folder
        setup.folderToken = watch(folder, folderPath, &setup, &news)
    }

    private func dropFolder(_ setup: inout Setup) {
        if let token = setup.folderToken { InotifyWatches.shared.cancel(token) }
        setup.folderToken = nil
        setup.folder = nil
    }

    // MARK: The FIFO

    private func checkFIFO(_ setup: inout Setup, noteChanged: Bool, _ news: inout News) {
        if let fifo = setup.fifo {
            let isFallback = fifo.path != candidates.first
            if !fifo.isStale && !(isFallback && noteChanged) {
                if setup.fifoToken == nil, !isDeaf.load(ordering: .relaxed) {
                    setup.fifoToken = watch(fifo, fifo.path, &setup, &news)
                }
                return
            }
            dropFIFO(&setup)
            // Where the database has gone too, no new FIFO is left behind.
            openFIFO(&setup, create: setup.createsFIFO && setup.file != nil, &news)
        } else {
            openFIFO(&setup, create: noteChanged && setup.createsFIFO && setup.file != nil, &news)
        }
    }

    private func openFIFO(_ setup: inout Setup, create: Bool, _ news: inout News) {
        let opening = FIFO.open(candidates: candidates, create: create)
        guard let fifo = opening.fifo else {
            if create {
                let interval = options.tightNetMilliseconds
                let instead = "the newest version is looked at every \(interval) ms"
                warn(.noFIFO(path: path, failures: opening.failures, instead: instead), &setup, &news)
            }
            return
        }
        setup.fifo = fifo
        isDeaf.store(false, ordering: .relaxed)
        setup.fifoIsPolled = (try? listener.add(fifo, tag: tag)) != nil
        setup.fifoToken = watch(fifo, fifo.path, &setup, &news)
        news.fifoIsNew = true
        if create, !opening.failures.isEmpty {
            warn(.fifoElsewhere(path: path, failures: opening.failures, used: fifo.path), &setup, &news)
        }
    }

    private func dropFIFO(_ setup: inout Setup) {
        if let token = setup.fifoToken { InotifyWatches.shared.cancel(token) }
        setup.fifoToken = nil
        if let fifo = setup.fifo, setup.fifoIsPolled { listener.remove(fifo) }
        setup.fifoIsPolled = false
        setup.fifo = nil
    }

    // MARK: Ways and warnings

    private func watch(
        _ anchor: any WatchAnchor, _ path: String, _ setup: inout Setup, _ news: inout News
    ) -> InotifyWatches.Token? {
        do {
            try listener.listenToInotify()
            return try InotifyWatches.shared.watch(anchor, path: path, user: tag)
        } catch let error as SystemError {
            warn(.noWatches(path: self.path, error: error, intervalMilliseconds: options.netMilliseconds), &setup, &news)
        } catch {}
        return nil
    }

    private func warn(_ warning: Notifier.Warning, _ setup: inout Setup, _ news: inout News) {
        if setup.warned.insert(warning.kind).inserted { news.warnings.append(warning) }
    }

    private func updateInterval(_ setup: Setup) {
        // Nobody commits to a file that is not there.
        let isTight = !setup.hearsFIFO && !isDeaf.load(ordering: .relaxed) && setup.file != nil
        let interval = isTight ? options.tightNetMilliseconds : options.netMilliseconds
        if intervalMilliseconds.exchange(interval, ordering: .relaxed) != interval {
            nextLook.store(Self.next(SystemCalls.monotonicNanoseconds(), interval), ordering: .relaxed)
        }
    }
}
