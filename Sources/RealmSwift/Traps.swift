/// Stops the process: the caller did what the documentation forbids. The message says what and, where it helps, what to do
/// instead.
///
/// In the original these are Objective-C exceptions, which Swift code cannot catch either.
@inline(never)
func misuse(_ message: @autoclosure () -> String, file: StaticString = #file, line: UInt = #line) -> Never {
    fatalError(message(), file: file, line: line)
}

/// Stops the process: the open file is damaged or cannot be read any more, in a place where the API has no way to throw.
@inline(never)
func unreadable(_ error: any Error) -> Never {
    fatalError("The Realm file cannot be read: \(error)")
}

/// Runs `body`; an error that it throws stops the process, see `unreadable`.
@inline(__always)
func reading<R>(_ body: () throws -> R) -> R {
    do { return try body() } catch { unreadable(error) }
}
