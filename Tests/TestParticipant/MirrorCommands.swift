import Foundation
import Glibc
import Replication
import SharedStore

/// `TestParticipant mirror SOURCE DEST [force] [kill-at=POINT[:N]] [stop-at=POINT] [grace=SECONDS] [certs=DIR,NAME] [key=BYTE]`:
/// follows SOURCE until its input ends or says "stop". One of the two may be at a server. With key=test both have the key of
/// `TestSupport/TestKeys.swift`.
///
/// `TestParticipant serve ROOT certs=DIR,NAME [listen=ADDR] [clients=FILE] [kill-at=POINT[:N]]`: serves, after "listening ADDR".
///
/// Commands on standard input: stop, reload, status. Answers: "status VERSION SOURCE-VERSION STEPS IMAGES", messages as "note
/// ...", and at the end "stopped", or "error ..." with exit code 1.
func runMirrorCommand(_ arguments: [String]) throws -> Int32 {
    guard arguments.count >= 2 else { return 64 }
    var options = Mirror.Options()
    options.checkInterval = 1
    options.onMessage = { say("note \($0)") }
    var wire = WireOptions()
    for word in arguments.dropFirst(2) {
        let pair = word.split(separator: "=", maxSplits: 1).map(String.init)
        switch pair[0] {
        case "force": options.force = true
        case "key":
            if pair[1] == "test" {
                options.sourceKey = try EncryptionKey((0..<64).map { UInt8($0) })
            } else {
                guard let byte = UInt8(pair[1]) else { return 64 }
                options.sourceKey = try EncryptionKey([UInt8](repeating: byte, count: 64))
            }
            options.destinationKey = options.sourceKey
        case "grace": options.pinGrace = .seconds(Int(pair[1]) ?? 0)
        case "certs": wire.tls = tlsSettings(pair[1])
        case "ssh": wire.sshProgram = [pair[1]]
        case "kill-at", "stop-at": setKillPoint(pair)
        default: return 64
        }
    }
    let input = Input()
    do {
        try MirrorRun.run(
            from: MirrorEndpoint(arguments[0]), to: MirrorEndpoint(arguments[1]), options: options, wire: wire,
            onStatus: { status in
                say("status \(status.version) \(status.sourceVersion ?? 0) \(status.stepCount) \(status.imageCount)")
            },
            control: { input.request($0, $1) })
    } catch {
        say("error \(error)")
        return 1
    }
    say("stopped")
    return 0
}

func runServeCommand(_ arguments: [String]) throws -> Int32 {
    guard let root = arguments.first else { return 64 }
    var options = MirrorServer.Options(root: root, tls: TLSSettings())
    options.address = "127.0.0.1:0"
    options.onMessage = { say("note \($0)") }
    for word in arguments.dropFirst() {
        let pair = word.split(separator: "=", maxSplits: 1).map(String.init)
        switch pair[0] {
        case "certs": options.tls = tlsSettings(pair[1])
        case "listen": options.address = pair[1]
        case "clients": options.rightsFile = pair[1]
        case "kill-at", "stop-at": setKillPoint(pair)
        default: return 64
        }
    }
    let input = Input()
    do {
        let server = try MirrorServer(options)
        say("listening \(server.addresses[0])")
        try server.run(onStatus: { say($0) }, control: { input.request($0, $1) })
    } catch {
        say("error \(error)")
        return 1
    }
    say("stopped")
    return 0
}

/// "DIR,NAME": the files of a certificate maker.
private func tlsSettings(_ text: String) -> TLSSettings {
    let parts = text.split(separator: ",").map(String.init)
    let base = parts[0] + "/" + (parts.count > 1 ? parts[1] : "client")
    return TLSSettings(certificates: .init(certificate: base + ".crt", key: base + ".key", authority: parts[0] + "/ca.crt"))
}

private func setKillPoint(_ pair: [String]) {
    #if DEBUG
    let place = pair[1].split(separator: ":").map(String.init)
    let signal = pair[0] == "kill-at" ? SIGKILL : SIGSTOP
    let counter = PointCounter(Int(place.count > 1 ? place[1] : "1") ?? 1)
    KillPoint.hook = { if $0 == place[0], counter.isLast() { kill(getpid(), signal) } }
    #endif
}

private func say(_ text: String) {
    let bytes = Array((text.replacingOccurrences(of: "\n", with: " ") + "\n").utf8)
    _ = write(1, bytes, bytes.count)
}

private final class PointCounter: @unchecked Sendable {
    // Sendable: guarded by the lock; a server passes points in several threads.
    private var left: Int
    private let lock = NSLock()
    init(_ count: Int) { left = count }
    func isLast() -> Bool {
        lock.lock()
        defer { lock.unlock() }
        left -= 1
        return left == 0
    }
}

/// Commands from standard input, a byte at a time so that none is read ahead of its `poll`.
private final class Input {
    private var line: [UInt8] = []

    func request(_ descriptors: [Int32], _ milliseconds: Int32) -> MirrorFollower.Request? {
        var requests = ([STDIN_FILENO] + descriptors).map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        guard poll(&requests, nfds_t(requests.count), milliseconds) > 0, requests[0].revents != 0 else { return nil }
        return next()
    }

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
