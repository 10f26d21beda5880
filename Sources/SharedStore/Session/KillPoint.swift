/// Named places at which tests stop or kill a process, to see that the others survive it. Exists in debug builds only.
package enum KillPoint {
    #if DEBUG
    /// Called with the name of each place that is passed. Set before other threads run, and never changed while they do.
    nonisolated(unsafe) package static var hook: ((String) -> Void)?
    @inline(__always) package static func reach(_ name: String) { hook?(name) }
    #else
    @inline(__always) package static func reach(_ name: @autoclosure () -> String) {}
    #endif
}
