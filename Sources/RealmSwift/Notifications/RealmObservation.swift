import Foundation

/// Told that a Realm has changed, or that it could.
public typealias NotificationBlock = (_ notification: Realm.Notification, _ realm: Realm) -> Void

extension Realm {
    /// What observers of a Realm are told.
    @frozen public enum Notification: String {
        /// The Realm shows another state than before: after each commit of its own, and when it advanced to a commit of others.
        case didChange = "RLMRealmDidChangeNotification"
        /// Others committed, and the Realm does not advance by itself (`autorefresh`): `refresh()` does.
        case refreshRequired = "RLMRealmRefreshRequiredNotification"
    }

    /// Calls `block` whenever the Realm has changed: at once after a commit on this Realm, and when it has advanced to a commit
    /// made elsewhere.
    ///
    /// - Returns: a token that must be kept as long as the block is to be called.
    public func observe(_ block: @escaping NotificationBlock) -> NotificationToken {
        SessionObservation.check(session)
        let token = ObserverToken()
        let session = session
        token.begin(SessionObservation.of(session).observeRealm { [unowned session] in block($0, Realm(session)) })
        return token
    }
}
