internal import SharedStore

/// Stops the process: the caller did what the documentation forbids. The message says what and, where it helps, what to do
/// instead.
///
/// In the original these are Objective-C exceptions, which Swift code cannot catch either.
@inline(never)
func misuse(_ message: @autoclosure () -> String, file: StaticString = #file, line: UInt = #line) -> Never {
    fatalError(message(), file: file, line: line)
}

/// Stops the process: the object is not there any more.
@inline(never)
func refuseGone(_ object: ObjectBase) -> Never {
    misuse(
        "Object has been deleted or invalidated. Where an object of the class '\(object.schemaName)' may be gone, look at its isInvalidated first."
    )
}

/// Stops the process: the open file is damaged or cannot be read any more, in a place where the API has no way to throw.
@inline(never)
func unreadable(_ error: any Error) -> Never {
    // What the caller wanted to store is too much; nothing is wrong with the file.
    if let error = error as? LimitError { misuse("Cannot be stored: \(error)") }
    let hint =
        ImmutableOrigin.isInUse
        ? " A file that is opened with readOnly must not be written to meanwhile: for one that others write leave readOnly out."
        : ""
    fatalError("The Realm file cannot be read: \(error).\(hint)")
}

/// Runs `body`; an error that it throws stops the process, see `unreadable`.
@inline(__always)
func reading<R>(_ body: () throws -> R) -> R {
    do { return try body() } catch { unreadable(error) }
}
