import SystemCalls

#if DEBUG
// System calls can be intercepted in debug builds only.

/// Runs `body` once for each system call that it makes, and makes that call fail.
///
/// Round n lets the n-th selected call fail with an error, once; `body` must throw or cope. The sweep ends with the first round
/// in which no call is left to fail. `check` runs after each round, without faults: it looks whether everything is still sound.
///
/// - Parameters:
///   - codes: the errors, one a round, in turn.
///   - selects: the calls that count; all by default.
///   - roundsMax: a body that makes more calls than this is not swept to its end, which is an error.
///   - prepare: builds a fresh state before each round, without faults.
/// - Returns: the number of rounds in which a call failed.
@discardableResult
public func sweepFaults<State>(
    codes: [Int32], selects: @escaping (InterceptedCall) -> Bool = { _ in true }, roundsMax: Int = 2000,
    prepare: (_ round: Int) throws -> State,
    _ body: (State) throws -> Void, check: (State, _ error: (any Error)?) throws -> Void
) throws -> Int {
    for round in 0..<roundsMax {
        let state = try prepare(round)
        var calls = 0
        SystemCallInterception.hook = {
            guard selects($0) else { return nil }
            calls += 1
            return calls == round + 1 ? codes[round % codes.count] : nil
        }
        var thrown: (any Error)?
        do {
            defer { SystemCallInterception.hook = nil }
            try body(state)
        } catch { thrown = error }
        try check(state, thrown)
        if calls <= round { return round }
    }
    throw SweepError(roundsMax: roundsMax)
}

/// The same with one error for all rounds.
@discardableResult
public func sweepFaults<State>(
    code: Int32, selects: @escaping (InterceptedCall) -> Bool = { _ in true }, roundsMax: Int = 2000,
    prepare: (_ round: Int) throws -> State,
    _ body: (State) throws -> Void, check: (State, _ error: (any Error)?) throws -> Void
) throws -> Int {
    try sweepFaults(codes: [code], selects: selects, roundsMax: roundsMax, prepare: prepare, body, check: check)
}

/// Starts a process again and again that kills itself at its n-th step, n = 1, 2, ..., until one ends by itself.
///
/// - Parameters:
///   - start: starts the process for step n; by convention of the process the step is one of its arguments.
///   - check: looks at what the process left behind; `lines` is what it had said until then.
/// - Returns: the number of processes that were killed.
@discardableResult
public func sweepKills(
    roundsMax: Int = 2000, start: (_ step: Int) throws -> ChildProcess, check: (_ step: Int, _ lines: [String]) throws -> Void
) throws -> Int {
    for step in 1...roundsMax {
        let child = try start(step)
        guard let end = child.waitForEnd() else {
            child.signal(9)
            throw SweepError(roundsMax: step)
        }
        try check(step, child.output.split(separator: "\n").map(String.init))
        if end == 0 { return step - 1 }
        if end != -9 { throw ChildError(code: end, text: child.errors) }
    }
    throw SweepError(roundsMax: roundsMax)
}

public struct SweepError: Error, CustomStringConvertible {
    let roundsMax: Int
    public var description: String { "the sweep was not at its end after \(roundsMax) rounds, or a process hung" }
}

public struct ChildError: Error, CustomStringConvertible {
    let code: Int32
    let text: String
    public var description: String { "the process ended with \(code): \(text)" }
}
#endif
