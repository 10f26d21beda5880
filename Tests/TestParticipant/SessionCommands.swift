import Foundation
import Glibc
import SharedStore

/// Reads commands, one a line, from standard input, and answers each with one line that begins with "ok" or "error". Arguments
/// are separated by blanks; paths must not contain any. Ends in good order with the input.
func runSessionCommands(_ arguments: [String]) throws -> Int32 {
    while let line = readLine() {
        let words = line.split(separator: " ").map(String.init)
        guard let command = words.first else { continue }
        var answer: String
        do {
            let arguments = Array(words.dropFirst())
            answer =
                try SessionCommands.run(command, arguments) ?? LedgerCommands.run(command, arguments)
                ?? "error unknown command \(command)"
        } catch {
            answer = "error \(error)"
        }
        answer = answer.replacingOccurrences(of: "\n", with: " ") + "\n"
        let bytes = Array(answer.utf8)
        if write(1, bytes, bytes.count) != bytes.count { return 1 }
    }
    SessionCommands.closeAll()
    return 0
}

/// Commands about sessions: open, hold, lock, die.
enum SessionCommands {
    nonisolated(unsafe) static var participants: [Participant] = []
    nonisolated(unsafe) static var locks: [ReadLock] = []

    /// The key for whatever is opened: the test key where the environment says so (`TestSupport/TestKeys.swift`).
    static var key: EncryptionKey? {
        get throws { getenv("REALM_TEST_PARTICIPANT_KEY") == nil ? nil : try EncryptionKey((0..<64).map { UInt8($0) }) }
    }

    static var current: Participant {
        get throws {
            guard let last = participants.last else { throw CommandError("nothing is open") }
            return last
        }
    }

    struct CommandError: Error, CustomStringConvertible {
        let description: String
        init(_ text: String) { description = text }
    }

    /// Nil where the command is not one of these.
    static func run(_ command: String, _ arguments: [String]) throws -> String? {
        func number<T: LosslessStringConvertible>(_ index: Int, _ fallback: T) -> T {
            index < arguments.count ? T(arguments[index]) ?? fallback : fallback
        }
        switch command {
        // Names this process can be found by.
        case "pid": return "ok \(getpid())"
        case "die":
            kill(getpid(), SIGKILL)
            return nil
        // kill-at POINT [N]: SIGKILL when the N-th time the point is reached. stop-at: SIGSTOP. sleep-at POINT MILLISECONDS.
        case "kill-at", "stop-at", "sleep-at":
            #if DEBUG
            let point = arguments.first ?? ""
            let amount = number(1, 1)
            let counter = Counter()
            KillPoint.hook = { name in
                guard name == point else { return }
                if command == "sleep-at" { usleep(UInt32(amount) * 1000); return }
                counter.value += 1
                if counter.value == amount { kill(getpid(), command == "kill-at" ? SIGKILL : SIGSTOP) }
            }
            return "ok"
            #else
            return "error built without kill points"
            #endif
        // open PATH [durability=full] [history=2] [limit=seconds] [label=text] [create=0]
        case "open":
            participants.append(try Participant.open(arguments.first ?? "", try options(arguments.dropFirst())))
            let p = try current
            return
                "ok initiator=\(p.attachedAs.isInitiator) participants=\(p.lockFile.participantCount) warnings=\(p.warnings.count)"
        case "close":
            let p = try current
            try p.close(force: arguments.first == "force")
            participants.removeLast()
            return "ok"
        // live | frozen [VERSION]
        case "live", "frozen":
            let kind: VersionList.Kind = command == "live" ? .live : .frozen
            let lock = arguments.isEmpty ? try current.acquireNewest(kind) : try current.acquire(kind, version: number(0, 0))
            locks.append(lock)
            return "ok \(lock.snapshot.version) \(lock.snapshot.topRef) \(lock.snapshot.logicalSize)"
        case "release":
            for lock in locks { try current.release(lock) }
            locks = []
            return "ok"
        case "newest": return "ok \(try current.newestVersion())"
        case "counts":
            let file = try current.lockFile
            return
                "ok participants=\(file.participantCount) latest=\(file.latestVersion) tickets=\(file.nextTicket)/\(file.nextServed)"
        // lock | unlock write | control | list
        case "lock", "unlock":
            let mutexes: [String: SharedMutex] = ["write": .write, "control": .control, "list": .list]
            guard let mutex = mutexes[arguments.first ?? ""] else { return "error which mutex?" }
            if command == "unlock" {
                try current.lockFile.unlock(mutex)
                return "ok"
            }
            return "ok \(try current.lockFile.lock(mutex, try current.deadline))"
        // begin [SECONDS] | try-begin | end: the write queue alone.
        case "begin":
            let grant = try current.writeQueue.acquire(.after(.seconds(number(0, 10.0))))
            return "ok died=\(grant.previousHolderDied) flag=\(grant.clearedCriticalFlag)"
        case "try-begin": return try current.writeQueue.tryAcquire() == nil ? "ok busy" : "ok got"
        case "end":
            try current.writeQueue.release()
            return "ok"
        // publish N: N times, a version that has the tree of the one before; no data is written.
        case "publish":
            for _ in 0..<number(0, 1) { try publishUnchanged(try current) }
            return "ok \(try current.newestVersion())"
        // What other software does: wait-condition commit | writer sleeps on the condition variable; broadcast-condition does so
        // while it holds the mutex.
        case "wait-condition", "broadcast-condition":
            let p = try current
            let mutex: SharedMutex = arguments.first == "commit" ? .control : .write
            let condition: SharedCondition = arguments.first == "commit" ? .newCommit : .nextWriter
            let pointer = condition.address(p.lockFile).assumingMemoryBound(to: pthread_cond_t.self)
            try p.lockFile.lock(mutex, p.deadline)
            if command == "wait-condition" {
                // The test reads this line to know that we are about to sleep; the mutex keeps broadcasters out until we do.
                let bytes = Array("ok waiting\n".utf8)
                _ = write(1, bytes, bytes.count)
                _ = pthread_cond_wait(pointer, p.lockFile.mutexAddress(mutex).assumingMemoryBound(to: pthread_mutex_t.self))
            } else {
                pthread_cond_broadcast(pointer)
            }
            p.lockFile.unlock(mutex)
            return command == "wait-condition" ? "ok woken" : "ok"
        // spawn-sleep: a child program that outlives us; answers its pid.
        case "spawn-sleep":
            let child = Process()
            child.executableURL = URL(fileURLWithPath: "/bin/sleep")
            child.arguments = ["60"]
            child.standardOutput = FileHandle.nullDevice
            child.standardInput = FileHandle.nullDevice
            try child.run()
            return "ok \(child.processIdentifier)"
        // fork: a child that gives back all that it has inherited, and ends; answers how.
        case "fork":
            let end = try ForkedProcess.run {
                for lock in locks { try? current.release(lock) }
                for participant in participants { try? participant.close(force: true) }
                participants = []
            }
            return "ok \(end)"
        case "sweep": return "ok \(try current.sweepDeadParticipants())"
        case "status":
            let status = try current.status()
            let names = status.participants.map {
                "\($0.programName)/\($0.label)/\($0.isAlive)/\($0.pins.map { "\($0.version)\($0.isLive ? "L" : "F")" }.joined(separator: "+"))"
            }
            return "ok \(status.participantCount) \(names.joined(separator: " "))"
        // open-close PATH TIMES SEED: opens and closes at random moments.
        case "open-close":
            var state = UInt64(number(2, 1))
            func random(_ below: UInt64) -> UInt64 {
                state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                return (state >> 33) % below
            }
            for _ in 0..<number(1, 1) {
                let p = try Participant.open(arguments[0], try options(arguments.dropFirst(3)))
                usleep(UInt32(random(2000)))
                let lock = try p.acquireNewest(random(2) == 0 ? .live : .frozen)
                usleep(UInt32(random(2000)))
                p.release(lock)
                try p.close()
            }
            return "ok"
        case "delete": return "ok \(try StoreFiles.delete(arguments.first ?? ""))"
        // change-key PATH OLD NEW: keys by number, 0 for none (see RekeyingTests).
        case "change-key":
            func key(_ n: Int) throws -> EncryptionKey? {
                n == 0 ? nil : try EncryptionKey((0..<64).map { UInt8(truncatingIfNeeded: $0 * n + n) })
            }
            try StoreFiles.changeKey(arguments.first ?? "", from: key(number(1, 0)), to: key(number(2, 0)))
            return "ok"
        default: return nil
        }
    }

    private final class Counter { var value = 0 }

    private static func options(_ words: ArraySlice<String>) throws -> ParticipantOptions {
        var options = ParticipantOptions()
        options.encryptionKey = try SessionCommands.key
        for word in words {
            let pair = word.split(separator: "=", maxSplits: 1).map(String.init)
            guard pair.count == 2 else { throw CommandError("option \(word)?") }
            switch pair[0] {
            case "durability": options.durability = pair[1] == "memory" ? .memoryOnly : pair[1] == "unsafe" ? .unsafe : .full
            case "history": options.historyType = pair[1] == "0" ? .none : .inFile
            case "limit": options.waitLimit = .seconds(Double(pair[1]) ?? 1)
            case "label": options.label = pair[1]
            case "create": options.createsFile = pair[1] != "0"
            default: throw CommandError("option \(word)?")
            }
        }
        return options
    }

    /// A commit of nothing: all that a writer does to the lock file, nothing to the data file.
    private static func publishUnchanged(_ p: Participant) throws {
        let deadline = p.deadline
        _ = try p.writeQueue.acquire(deadline)
        defer { p.writeQueue.release() }
        let base = try p.acquireNewest(.live)
        defer { p.release(base) }
        let pinned = try p.lockFile.with(.list, deadline) { try VersionList(p.lockFile).purge() }
        p.lockFile.commitInCriticalPhase = true
        var next = base.snapshot
        next.version += 1
        try p.lockFile.with(.list, deadline) { try VersionList(p.lockFile).publish(next) }
        p.lockFile.commitInCriticalPhase = false
        KillPoint.reach("C8.before")
        try p.announce(version: next.version, numberOfVersions: pinned.versions.count + 1, deadline)
    }

    static func closeAll() {
        _ = try? LedgerCommands.run("ledger-rollback", [])
        _ = try? LedgerCommands.run("ledger-close", [])
        for participant in participants.reversed() { try? participant.close(force: true) }
        participants = []
    }
}
