import CShims

/// A child made by `fork` while its parent had files open.
///
/// It has the parent's mappings and descriptors: what it counted out, unlocked or removed would be the parent's. And it has none
/// of the parent's threads, which own the write lock and listen. So what the child has inherited is never given back, and any use
/// of it stops the child with a message; reading from a version that was held before does no harm. A program that is started by
/// `exec` is no such child, and neither is one whose parent had not opened anything yet.
package enum ForkedChild {
    /// From the first file on that the process opens.
    static func watch() { CShims_watch_forks() }

    package static var isHere: Bool { CShims_is_forked() }

    /// Stops the child.
    package static func refuse() {
        if CShims_is_forked() {
            fatalError(
                "This process was made by fork() when its parent had Realm files open: it shares their locks and must not use them, nor open files. Fork before the first file is opened, or start a program."
            )
        }
    }
}
