import Foundation
import Glibc
import Replication
import SharedStore

/// `TestParticipant mirror SOURCE DEST [force] [kill-at=POINT[:N]] [stop-at=POINT] [grace=SECONDS]`: follows SOURCE until its input
/// ends or says "stop".
///
/// Commands on standard input: stop, reload, status. Answers: "status VERSION SOURCE-VERSION STEPS IMAGES", messages as "note ...", and
/// at the end "stopped", or "error ..." with exit code 1.
func runMirrorCommand(_ arguments: [String]) throws -> Int32 {
    guard arguments.count >= 2 else { return 64 }
    var options = Mirror.Options()
    options.checkInterval = 1
    options.onMessage = { say("note \($0)") }
    for word in arguments.dropFirst(2) {
        let pair = word.split(separator: "=", maxSplits: 1).map(String.init)
        switch pair[0] {
        case "force": options.force = true
        case "grace": options.pinGrace = .seconds(Int(pair[1]) ?? 0)
        case "kill-at", "stop-at":
            #if DEBUG
            let place = pair[1].split(separator: ":").map(String.init)
            let signal = pair[0] == "kill-at" ? SIGKILL : SIGSTOP
            let counter = PointCounter(Int(place.count > 1 ? place[1] : "1") ?? 1)
            KillPoint.hook = { if $0 == place[0], counter.isLast() { kill(getpid(), signal) } }
            #endif
        default: return 64
        }
    }
    let input = Input()
    let follower = MirrorFollower(source: arguments[0], destination: arguments[1], options: options, onStatus: { status in
        say("status \(status.version) \(status.sourceVersion ?? 0) \(status.stepCount) \(status.imageCount)")
    }, control: { descriptors, milliseconds in
        var requests = ([STDIN_FILENO] + descriptors).map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        guard poll(&requests, nfds_t(requests.count), milliseconds) > 0, requests[0].revents != 0 else { return nil }
        return input.next()
    })
    do { try follower.run() } catch {
        say("error \(error)")
        return 1
    }
    say("stopped")
    return 0
}

private func say(_ text: String) {
    let bytes = Array((text.replacingOccurrences(of: "\n", with: " ") + "\n").utf8)
    _ = write(1, bytes, bytes.count)
}

private final class PointCounter {
    private var left: Int
    init(_ count: Int) { left = count }
    func isLast() -> Bool {
        left -= 1
        return left == 0
    }
}

/// Commands from standard input, a byte at a time so that none is read ahead of its `poll`.
private final class Input {
    private var line: [UInt8] = []

    func next() -> MirrorFollower.Request? {
        var byte: UInt8 = 0
        while read(STDIN_FILENO, &byte, 1) == 1 {
            if byte != UInt8(ascii: "\n") {
                line.append(byte)
                continue
            }
            defer { line = [] }
            switch String(decoding: line, as: UTF8.self) {
            case "stop": return .stop
            case "reload": return .reload
            case "status": return .status
            default: return nil
            }
        }
        return .stop
    }
}
