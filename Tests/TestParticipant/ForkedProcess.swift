import Glibc

/// A child made by `fork`, which Swift does not offer.
enum ForkedProcess {
    private typealias Fork = @convention(c) () -> pid_t

    /// Runs `body` in a child and waits for its end.
    ///
    /// - Returns: the child's exit code, or the signal that ended it as a negative number.
    static func run(_ body: () -> Void) throws -> Int32 {
        guard let symbol = dlsym(nil, "fork") else { throw SessionCommands.CommandError("no fork") }
        let child = unsafeBitCast(symbol, to: Fork.self)()
        if child == 0 {
            body()
            _exit(0)
        }
        var status: Int32 = 0
        guard child > 0, waitpid(child, &status, 0) == child else { throw SessionCommands.CommandError("no child") }
        return status & 0x7F == 0 ? status >> 8 & 0xFF : -(status & 0x7F)
    }

    /// Ends this process by the signal that ended a child with `body`.
    static func endLike(_ body: () -> Void) throws {
        let end = try run(body)
        if end < 0 { kill(getpid(), -end) }
    }
}
