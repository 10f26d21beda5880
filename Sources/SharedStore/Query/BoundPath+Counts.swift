/// How many: what a path that ends in `@count` or `@size` stands for.
extension BoundPath {
    func counts(into list: inout ValueList) throws {
        let isOfObjects = path.end == .objects
        let arrival = try follow(isOfObjects ? hops.count - 1 : hops.count)
        guard case .objects = arrival else {
            guard case .nullLink = arrival else {
                if path.end == .allLinks { list.items.append(.int(0)) }
                return
            }
            switch path.end {
            case .objects: break
            case .value(_, let nested): if nested.isEmpty { list.items.append(.null) }
            case .collection, .allLinks: list.items.append(.int(0))
            }
            return
        }
        if path.end == .allLinks {
            var sum = 0
            for key in keys {
                guard let row = try row(key) else { continue }
                for column in table.backlinkColumns { sum += try row.backlinkCount(column) }
            }
            list.items.append(.int(Int64(sum)))
            return
        }
        for key in keys {
            if isOfObjects {
                let hop = hops[hops.count - 1]
                guard let row = hops.count == 1 ? frame.row : try hop.table.find(key) else { continue }
                list.items.append(.int(Int64(try objectCount(hop, row))))
                continue
            }
            guard let row = try row(key) else { continue }
            switch path.end {
            case .value(_, let nested): try valueSizes(row, nested, into: &list.items)
            case .collection: if let size = try collectionSize(row) { list.items.append(.int(Int64(size))) }
            case .allLinks, .objects: break
            }
        }
    }

    private func objectCount(_ hop: Hop, _ row: ObjectRow) throws -> Int {
        switch hop.kind {
        case .link: try row.link(hop.column) == nil ? 0 : 1
        case .list: try row.list(hop.column).count
        case .set: try row.set(hop.column).count
        case .dictionary:
            // Nulls count as entries, except where the map of the class itself is counted.
            hops.count == 1 && hop.element == .all
                ? try linkCount(row.dictionary(hop.column)) : try row.dictionary(hop.column).count
        case .backlinks: try row.backlinkCount(hop.column)
        }
    }

    /// Entries of a map of objects that are not null.
    private func linkCount(_ dictionary: DictionaryReader) throws -> Int {
        var count = 0
        try dictionary.forEachEntry { _, leaf, position in
            if case .link = try run.storage.mixed(leaf, position) { count += 1 }
        }
        return count
    }

    /// Bytes of a string or of data, elements of a nested collection.
    private func valueSizes(_ row: ObjectRow, _ nested: [QueryPath.Nested], into items: inout [MixedView]) throws {
        guard let column else { return }
        if column.type != .mixed {
            items.append(BoundPath.size(try value(column, row)))
            return
        }
        try sizes(place(column, row), nested[...], into: &items)
    }

    private func sizes(_ place: MixedLeafPlace, _ steps: ArraySlice<QueryPath.Nested>, into items: inout [MixedView]) throws {
        switch (try run.storage.mixed(place.leaf, place.index), steps.first) {
        case (.list, nil): items.append(.int(Int64(try place.list().count)))
        case (.dictionary, nil): items.append(.int(Int64(try place.dictionary().count)))
        case (let value, nil): items.append(BoundPath.size(value))
        case (.list, let step?):
            let list = try place.list()
            let element: QueryPath.Element
            switch step {
            case .position(let n): element = .position(n)
            case .first: element = .first
            case .last: element = .last
            case .any: element = .all
            case .key, .keys: return
            }
            let start = element == .all ? 0 : BoundPath.position(element, list.count) ?? list.count
            try spend(element == .all ? list.count : 1)
            try run.storage.forEachElement(list, from: start) { _, place in
                if let place { try sizes(place, steps.dropFirst(), into: &items) }
                return element == .all
            }
        case (.dictionary, let step?):
            let dictionary = try place.dictionary()
            switch step {
            case .key(let key):
                guard let index = try dictionary.find(key) else {
                    if dictionary.count > 0, steps.count == 1 { items.append(.null) }
                    return
                }
                let (leaf, position) = try dictionary.leaf(index)
                try sizes(MixedLeafPlace(memory: place.memory, leaf: leaf, index: position), steps.dropFirst(), into: &items)
            case .any:
                try spend(dictionary.count)
                try dictionary.forEachEntry { _, leaf, position in
                    try sizes(MixedLeafPlace(memory: place.memory, leaf: leaf, index: position), steps.dropFirst(), into: &items)
                }
            case .keys, .position, .first, .last: return
            }
        default: return
        }
    }

    /// Elements of the collection, whichever element or key the path names.
    private func collectionSize(_ row: ObjectRow) throws -> Int? {
        guard let column else { return nil }
        switch column.collection {
        case .list: return try row.list(column).count
        case .set: return try row.set(column).count
        case .dictionary: return try row.dictionary(column).count
        case nil: return nil
        }
    }
}
