internal import SharedStore

// Changes to managed collections. Each needs a write transaction; a value that does not fit stops the process.

extension CollectionHandle {
    /// Runs a change of the collection. Everything may have moved after it: backlinks of other tables too.
    private func change(_ body: (TableEditor) throws -> Void) {
        session.requireWriteTransaction()
        if isInvalidated { misuse("Access to invalidated collection: its owner was deleted or the Realm invalidated") }
        session.edit(identity.table, body)
    }

    /// The position in the file of the element that users see at `index`: they differ where a list holds links to objects that
    /// are gone.
    private func stored(_ index: Int) throws -> Int {
        guard let list = reader, list.elementType == .link, list.count != list.storedCount else { return index }
        return index == list.count ? list.storedCount : try list.storedPosition(index)
    }

    private func check(_ index: Int, below limit: Int) {
        if index < 0 || index >= limit { outOfBounds(index, limit) }
    }

    /// The class of the embedded objects that the collection holds; nil where it holds something else.
    private var embeddedType: SessionType? {
        guard identity.salts.isEmpty, let column = type.table()?.column(identity.column), column.type == .link,
            let target = session.type(column.oppositeTable)
        else { return nil }
        return target.isEmbedded ? target : nil
    }

    /// Of a collection that is a property itself.
    private var column: Column? { identity.salts.isEmpty ? type.table()?.column(identity.column) : nil }

    // MARK: Lists

    func insert(_ value: _Stored, at index: Int, _ policy: Realm.UpdatePolicy = .error) {
        session.requireWriteTransaction()
        check(index, below: count + 1)
        if let embeddedType {
            guard let object = session.newEmbedded(value, embeddedType) else {
                misuse("Cannot insert nil into a list of embedded objects")
            }
            var key = ObjectKey.null
            change { key = try $0.listInsertEmbedded(identity, stored(index)) }
            return session.fill(object, embeddedType, key, policy)
        }
        let prepared = session.prepare(value, policy)
        session.checkTarget(prepared, column)
        if prepared.collection != nil && identity.salts.count + 1 >= AnyRealmValue.depthMax { AnyRealmValue.refuseDepth() }
        change { try $0.listInsert(identity, stored(index), prepared.mixed) }
        fill(prepared, at: index)
    }

    /// Inserts many at once, which costs much less than one by one.
    func insert(contentsOf values: [_Stored], at index: Int) {
        if values.isEmpty { return }
        session.requireWriteTransaction()
        check(index, below: count + 1)
        let isPlain = values.allSatisfy { value in
            switch value.content {
            case .plain, .object: true
            case .input, .list, .dictionary: false
            }
        }
        if values.count < 2 || !isPlain || embeddedType != nil {
            for (offset, value) in values.enumerated() { insert(value, at: index + offset) }
            return
        }
        let column = column
        let elements = values.map { value in
            let prepared = session.prepare(value, .error)
            session.checkTarget(prepared, column)
            return prepared.mixed
        }
        change { try $0.listInsert(identity, stored(index), contentsOf: elements) }
    }

    func set(_ value: _Stored, at index: Int, _ policy: Realm.UpdatePolicy = .error) {
        session.requireWriteTransaction()
        check(index, below: count)
        if let embeddedType {
            guard let object = session.newEmbedded(value, embeddedType) else {
                misuse("Cannot put nil into a list of embedded objects")
            }
            var key = ObjectKey.null
            change { key = try $0.listSetEmbedded(identity, stored(index)) }
            return session.fill(object, embeddedType, key, policy)
        }
        let prepared = session.prepare(value, policy)
        session.checkTarget(prepared, column)
        if prepared.collection != nil && identity.salts.count + 1 >= AnyRealmValue.depthMax { AnyRealmValue.refuseDepth() }
        if prepared.collection != nil {
            // A collection that is there would be kept with its content.
            change { try $0.listSet(identity, stored(index), .null) }
        }
        change { try $0.listSet(identity, stored(index), prepared.mixed) }
        fill(prepared, at: index)
    }

    /// Puts the elements of a collection that was given into the empty one that stands at `index` now.
    private func fill(_ prepared: Session.Prepared, at index: Int) {
        guard let collection = prepared.collection else { return }
        session.fill(self.value(index), with: collection)
    }

    func remove(at index: Int) {
        session.requireWriteTransaction()
        check(index, below: count)
        change { try $0.listErase(identity, stored(index)) }
    }

    func move(from: Int, to: Int) {
        session.requireWriteTransaction()
        check(from, below: count)
        check(to, below: count)
        change { try $0.listMove(identity, from: stored(from), to: stored(to)) }
    }

    func swap(_ a: Int, _ b: Int) {
        session.requireWriteTransaction()
        check(a, below: count)
        check(b, below: count)
        change { try $0.listSwap(identity, stored(a), stored(b)) }
    }

    func removeAll() {
        session.requireWriteTransaction()
        change { try $0.clear(identity) }
    }

    // MARK: Sets

    func insertIntoSet(_ value: _Stored, _ policy: Realm.UpdatePolicy = .error) {
        session.requireWriteTransaction()
        let prepared = session.prepare(value, policy)
        session.checkTarget(prepared, column)
        if prepared.collection != nil { misuse("A MutableSet cannot hold lists and dictionaries") }
        change { _ = try $0.setInsert(identity, prepared.mixed) }
    }

    func removeFromSet(_ value: _Stored) {
        session.requireWriteTransaction()
        guard let mixed = session.comparable(value) else { return }
        change { _ = try $0.setErase(identity, mixed) }
    }

    // MARK: Dictionaries

    func set(_ value: _Stored, forKey key: String, _ policy: Realm.UpdatePolicy = .error) {
        session.requireWriteTransaction()
        MapKeys.check(key)
        if let embeddedType, !value.isNull {
            guard let object = session.newEmbedded(value, embeddedType) else {
                misuse("A map of embedded objects holds nothing else")
            }
            var new = ObjectKey.null
            change { new = try $0.dictionarySetEmbedded(identity, key) }
            return session.fill(object, embeddedType, new, policy)
        }
        let prepared = session.prepare(value, policy)
        session.checkTarget(prepared, column)
        if prepared.collection != nil && identity.salts.count + 1 >= AnyRealmValue.depthMax { AnyRealmValue.refuseDepth() }
        if prepared.collection != nil {
            change { _ = try $0.dictionarySet(identity, key, .null) }
        }
        change { _ = try $0.dictionarySet(identity, key, prepared.mixed) }
        if let collection = prepared.collection, let place = self.value(forKey: key) { session.fill(place, with: collection) }
    }

    func remove(key: String) {
        session.requireWriteTransaction()
        change { _ = try $0.dictionaryErase(identity, key) }
    }

    // MARK: Whole collections

    /// Replaces the elements. With `.modified` nothing is written where they are the same already.
    func replaceAll(_ values: [_Stored], _ policy: Realm.UpdatePolicy) {
        if policy == .modified, isEqual(values) { return }
        let values = independent(values)
        if count > 0 { removeAll() }
        if kind == .set {
            for value in values { insertIntoSet(value, policy) }
        } else {
            for (index, value) in values.enumerated() { insert(value, at: index, policy) }
        }
    }

    /// The values as they are before anything is removed: what is to be stored may be what is stored here.
    private func independent(_ values: [_Stored]) -> [_Stored] {
        guard let embeddedType else { return _Stored.detached(values) }
        return values.map { session.independent($0, embeddedType) }
    }

    private func isEqual(_ values: [_Stored]) -> Bool {
        guard let list = reader, list.count == values.count, embeddedType == nil else { return false }
        for (index, value) in values.enumerated() {
            guard let mixed = value.plain ?? linkOfManaged(value) else { return false }
            if kind == .set {
                if !contains(value) { return false }
            } else if reading({ try list.value(index) }) != mixed {
                return false
            }
        }
        return true
    }

    private func linkOfManaged(_ value: _Stored) -> Mixed? {
        guard case .object(let object) = value.content, object.session === session else { return nil }
        return session.comparable(value)
    }

    func replaceAll(_ entries: [(String, _Stored)], _ policy: Realm.UpdatePolicy) {
        let entries = Array(zip(entries.map(\.0), independent(entries.map(\.1))))
        if policy == .modified {
            let present = Set(keys()), wanted = Set(entries.map(\.0))
            for key in present.subtracting(wanted) { remove(key: key) }
            for (key, value) in entries {
                if let mixed = value.plain ?? linkOfManaged(value), self.value(forKey: key)?.plain == mixed { continue }
                set(value, forKey: key, policy)
            }
            return
        }
        if count > 0 { removeAll() }
        for (key, value) in entries { set(value, forKey: key, policy) }
    }
}
