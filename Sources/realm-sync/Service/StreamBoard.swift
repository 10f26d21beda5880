import Replication
import SharedStore
import SystemCalls

/// What is known of a stream, read by many and written by its thread. Moments are of the clock that never jumps unless they are
/// called time.
struct StreamBoard: Sendable {
    enum Phase: String, Sendable {
        case starting
        /// A whole image is on its way.
        case copying
        case following
        /// Something is in the way that may go by itself.
        case waiting
        /// Idle, outside the source's session.
        case left
        /// It has ended with an error and will be begun again.
        case failed
        case stopped
        /// The source is gone from its folder; the copy stays.
        case vanished
    }

    var phase = Phase.starting
    var version: UInt64?, sourceVersion: UInt64?
    /// When source and destination were last known to be equal.
    var proven: Int64?
    var started = SystemCalls.monotonicNanoseconds()
    /// The last sign of life of the thread, and the last question.
    var answered = SystemCalls.monotonicNanoseconds(), asked: Int64 = 0
    /// Asleep, since there was nothing to do at `answered`.
    private(set) var isParked = false
    var progress: Mirror.Progress?
    var waitsFor: String?
    var writeAmplification: Double?
    /// Of the present run.
    private var stepCount = 0, byteCount = 0, imageCount = 0
    /// Of runs before it.
    private var stepsBefore = 0, bytesBefore = 0, imagesBefore = 0
    var lastError: String?
    var lastErrorTime: Int64?
    var lastSuccessTime: Int64?
    var failuresInRow = 0, failureCount = 0
    var nextTry: Int64?
    /// The present run has come to be equal.
    var hasSucceeded = false
    /// A failure was told and no recovery since.
    var isFailureTold = false
    private var successVersion: UInt64?

    var wantsStop = false, wantsReload = false, wantsReport = false
    var isEnded = false

    /// What a look from outside has found, for when the thread does not answer.
    var probe: Probe?
    var isProbing = false

    struct Probe: Sendable {
        var sourceVersion: UInt64?
        var behindByteCount: Int?
    }

    var totals: (steps: Int, bytes: Int, images: Int) {
        (stepsBefore + stepCount, bytesBefore + byteCount, imagesBefore + imageCount)
    }

    /// A new run counts from zero again.
    mutating func carryOver() {
        (stepsBefore, bytesBefore, imagesBefore) = totals
        (stepCount, byteCount, imageCount) = (0, 0, 0)
    }

    /// - Returns: what happened, and whether this is the first time that it is equal since a start or failure.
    mutating func take(_ report: StreamJob.Report, at now: Int64) -> (event: ServiceStream.Event?, began: Bool) {
        answered = now
        probe = nil
        sourceVersion = report.sourceVersion ?? sourceVersion
        if let known = report.version, known != 0 || version == nil { version = known }
        (stepCount, byteCount, imageCount) = (report.stepCount, report.byteCount, report.imageCount)
        writeAmplification = report.writeAmplification
        waitsFor = report.waitsFor
        if let seconds = report.secondsBehind, seconds < 1e9 {
            proven = max(proven ?? .min, now - Int64(max(0, seconds) * 1e9))
        }
        if !report.isCurrent {
            if report.waitsFor != nil {
                phase = .waiting
                lastError = report.waitsFor
                lastErrorTime = SystemCalls.realTimeNanoseconds()
            } else if hasSucceeded {
                phase = .following
            }
            return (nil, false)
        }
        let began = !hasSucceeded && phase != .left
        progress = nil
        phase = .following
        if report.isEqual { proven = now }
        hasSucceeded = true
        failuresInRow = 0
        lastSuccessTime = SystemCalls.realTimeNanoseconds()
        let isNew = successVersion != report.version
        successVersion = report.version
        if isFailureTold {
            isFailureTold = false
            return (.recovery, began)
        }
        return (isNew ? .success : nil, began)
    }

    /// Seconds since source and destination were known to be equal; 0 while they are.
    ///
    /// The proof is what counts, not the lack of news: a thread that hangs in a call, and a peer that is frozen, prove nothing.
    func lagSeconds(at now: Int64) -> Double {
        if phase == .vanished { return 0 }
        if isEqualNow { return 0 }
        return Double(max(0, now - (proven ?? started))) / 1e9
    }

    /// Asleep or just asked, and equal then.
    private var isEqualNow: Bool {
        switch phase {
        case .left: true
        case .following: waitsFor == nil && sourceVersion == version && (isParked || answered >= asked) && probeAgrees
        default: false
        }
    }

    /// It sleeps, having nothing to do.
    mutating func park() { isParked = true }

    /// It was asleep until now; as long as it was, both sides were equal, as far as anybody could know.
    mutating func wake(at now: Int64) {
        if isParked && isEqualNow { proven = now }
        isParked = false
    }

    /// Its thread is neither asleep nor has it given a sign of life for so long, and nobody has asked it since.
    func isSilent(for nanoseconds: Int64, at now: Int64) -> Bool {
        !isParked && !isEnded && answered >= asked && now - answered > nanoseconds
    }

    private var probeAgrees: Bool { probe?.sourceVersion.map { $0 <= version ?? 0 } ?? true }

    var lagVersions: UInt64? {
        guard let version else { return nil }
        let source = max(sourceVersion ?? 0, probe?.sourceVersion ?? 0)
        return source > version ? source - version : 0
    }
}
