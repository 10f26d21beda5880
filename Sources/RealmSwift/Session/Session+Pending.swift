internal import SharedStore

/// An object that has its row in the file, but not all of its values there.
struct PendingObject {
    /// Where the values come from.
    enum Source {
        /// An unmanaged object of which only those properties are missing that may bring other objects along.
        case planned(ObjectBase, AddingPlan)
        /// An unmanaged object.
        case object(ObjectBase)
        /// Values by name; those that are missing come from `sample`, an unmanaged instance with defaults.
        case values([String: Any?], sample: ObjectBase?, nested: Realm.UpdatePolicy, of: Session.Original?)
    }

    let type: SessionType
    let key: ObjectKey
    /// For values that are there already. What a new object gets is written in any case.
    let policy: Realm.UpdatePolicy
    let isNew: Bool
    let source: Source

    init(_ type: SessionType, _ key: ObjectKey, _ policy: Realm.UpdatePolicy, isNew: Bool, _ source: Source) {
        self.type = type
        self.key = key
        self.policy = isNew && policy == .modified ? .all : policy
        self.isNew = isNew
        self.source = source
    }
}

extension Session {
    /// How many objects, each reached from the one before, are written within each other. A chain of objects may have any length;
    /// a thread's stack has not.
    private static let depthMax = 64

    /// Writes the values of an object, and those of the objects that it leads to; where that goes too deep, when those are done
    /// that led here.
    func complete(_ pending: PendingObject) {
        note(pending, pending.key)
        if pendingDepth == Session.depthMax { return pendingObjects.append(pending) }
        pendingDepth += 1
        write(pending)
        while pendingDepth == 1, let next = pendingObjects.popLast() {
            // An update of its owner may have removed an embedded object in the meantime.
            let isThere = reading { try next.type.table()?.find(next.key) != nil }
            if isThere { write(next) } else { note(next, nil) }
        }
        pendingDepth -= 1
    }

    private func write(_ pending: PendingObject) {
        switch pending.source {
        case .planned(let object, let plan): writeOthers(object, plan, pending)
        case .object(let object): writeAll(object, pending)
        case .values(let given, let sample, let nested, _): write(given, sample: sample, nested: nested, pending)
        }
        note(pending, nil)
    }

    /// Whoever comes to the same object on the way links to this row; nil: not any more.
    private func note(_ pending: PendingObject, _ key: ObjectKey?) {
        switch pending.source {
        case .planned(let object, _), .object(let object): adding[ObjectIdentifier(object)] = key
        case .values(_, _, _, let original?): copies[original] = key
        case .values: break
        }
    }
}
