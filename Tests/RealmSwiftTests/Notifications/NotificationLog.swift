import RealmSwift

/// Keeps what an observer was told, in short.
final class NotificationLog<Change> {
    var entries: [Change] = []
    var token: NotificationToken?
}

enum Told: Equatable {
    case initial(Int)
    case update([Int], [Int], [Int])
    case keys([String], [String], [String])
    case change([String])
    case deleted
    case error
}

func told<C: RealmCollection>(_ change: RealmCollectionChange<C>) -> Told {
    switch change {
    case .initial(let collection): .initial(collection.count)
    case .update(_, let deletions, let insertions, let modifications): .update(deletions, insertions, modifications)
    case .error: .error
    }
}

func told<T>(_ change: ObjectChange<T>) -> Told {
    switch change {
    case .change(_, let properties): .change(properties.map(\.name))
    case .deleted: .deleted
    case .error: .error
    }
}
