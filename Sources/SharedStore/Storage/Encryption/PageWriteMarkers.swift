/// What a session offers to the pages of a file that several processes encrypt (file-format-3 section 9): the two fields
/// of the lock file. Without a session (immutable files, copies) there are no markers.
///
/// Every write of a page, whoever's, moves the counter, once before it and once after: where it stands still, no page has
/// changed.
public protocol PageWriteMarkers: AnyObject, Sendable {
    /// False when the session was left: the words say nothing any more.
    var areInUse: Bool { get }
    /// Plain position of the page being written + 1, or 0.
    var writingPage: UInt64 { get }
    var writeCounter: UInt64 { get }
    func beginPageWrite(position: Int)
    func endPageWrite()
}
