/// Why a session went to another version.
enum SessionStep {
    /// A write transaction of its own was committed; observers with these tokens are not to be told.
    case commit(skipping: [NotificationToken])
    /// A write transaction began at a version that others have made. It runs while the observer is told, and has changed nothing
    /// yet.
    case beganWrite
    /// By `refresh`, or by itself after a commit of somebody else.
    case refresh
}

/// What wants to know where a session goes. Called at the session's place, after it has arrived.
protocol SessionObserver: AnyObject {
    /// - Parameter old: where the session was, still held; nil where it was at no version.
    func session(_ session: Session, didAdvanceFrom old: SessionReader?, by step: SessionStep)
    /// A write transaction began at the version where the session was; nothing was changed yet.
    func sessionDidBeginWrite(_ session: Session)
    /// A write transaction was undone.
    func sessionDidCancelWrite(_ session: Session)
    /// There is a newer version, to which the session does not go by itself.
    func sessionNeedsRefresh(_ session: Session)
    /// The session lets go of its version, which it is at still.
    func sessionWillBeInvalidated(_ session: Session)
    /// All objects and collections of the session were invalidated.
    func sessionWasInvalidated(_ session: Session)
    /// The thread of the session ends: nobody will be called any more.
    func sessionLostItsPlace(_ session: Session)
    /// Observers are being called.
    var isDelivering: Bool { get }
    /// Calls observers of what they were not told yet.
    func deliver()
}

extension SessionObserver {
    func sessionDidBeginWrite(_ session: Session) {}
    func sessionDidCancelWrite(_ session: Session) {}
    func sessionWillBeInvalidated(_ session: Session) {}
    func sessionLostItsPlace(_ session: Session) {}
    var isDelivering: Bool { false }
    func deliver() {}
}
