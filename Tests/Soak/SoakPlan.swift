import Foundation
import Glibc

/// What a run does. The defaults are the short form.
struct SoakPlan {
    var commits = 3000
    var mirrors = 6
    /// Rounds of the comparison between files with and without a mirror, and commits to each of the files in each round.
    var rounds = 6
    var commitsInRound = 200
    var seed: UInt64 = 1
    /// Added to the niceness of the service and the server.
    var niceness = 0
    var onlyPace = false
    var parent = NSTemporaryDirectory()

    /// Of how many commits one piece of the work is; figures are taken after each.
    var piece: Int { max(100, commits / 100) }
    /// Pieces: the first tenth warms up, then everybody is stopped, killed and started again, then a disk is full, then there is peace.
    func phase(_ done: Int) -> Phase {
        switch done * 100 / max(1, commits) {
        case ..<10: .warmUp
        case ..<40: .restarts
        case ..<60: .fullDisk
        default: .peace
        }
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
