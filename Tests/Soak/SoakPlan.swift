import Foundation
import Glibc

/// What a run does. The defaults are the short form.
struct SoakPlan {
    var commits = 3000
    var mirrors = 6
    /// Rounds of the comparison between files with and without a mirror; each takes some 25 seconds.
    var rounds = 1
    var seed: UInt64 = 1
    /// Added to the niceness of the service and the server.
    var niceness = 0
    var onlyPace = false
    /// How often the small disk becomes full, with peace after each time.
    var fullDisks = 1
    var parent = NSTemporaryDirectory()

    /// Of how many commits one piece of the work is; figures are taken after each.
    var piece: Int { max(100, commits / 100) }
    /// The first tenth warms up, then everybody is stopped, killed and started again; of what is left a third of each round goes
    /// by with a full disk, the rest of it in peace.
    func phase(_ done: Int) -> (phase: Phase, round: Int) {
        let share = Double(done) / Double(max(1, commits))
        if share < 0.1 { return (.warmUp, 0) }
        if share < 0.4 { return (.restarts, 0) }
        let rounds = Double(max(1, fullDisks)), at = (share - 0.4) / 0.6 * rounds
        let round = min(max(1, fullDisks) - 1, Int(at))
        return (at - Double(round) < 1 / 3 ? .fullDisk : .peace, round)
    }

    enum Phase: String { case warmUp = "warm-up", restarts, fullDisk = "full disk", peace }
}

/// A target of the source, of one of three kinds.
struct SoakTarget {
    enum Kind: Equatable { case folder, wire, archive }
    let name: String
    let kind: Kind
    /// Where it is on this machine.
    let path: String

    /// Seven of ten in folders, two over the wire, one archive; one of each at least.
    static func make(_ count: Int, folder: String, served: String) -> [SoakTarget] {
        (0..<count).map { i in
            switch i % 10 {
            case 3, 7: SoakTarget(name: "wire-\(i)", kind: .wire, path: "\(served)/copy-\(i).realm")
            case 5: SoakTarget(name: "archive-\(i)", kind: .archive, path: "\(folder)/copy-\(i).archive")
            default: SoakTarget(name: "folder-\(i)", kind: .folder, path: "\(folder)/copy-\(i).realm")
            }
        }
    }
}
