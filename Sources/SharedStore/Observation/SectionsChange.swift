/// What happened to a result that is cut into sections (api.md 18).
public struct SectionsChange: Sendable {
    /// An element by its section and its index there.
    public struct Place: Hashable, Comparable, Sendable {
        /// Among the sections of one state, from 0.
        public var section: Int
        /// Within the section, from 0.
        public var index: Int

        /// Neither number is checked against a result.
        public init(section: Int, index: Int) {
            self.section = section
            self.index = index
        }

        public static func < (a: Place, b: Place) -> Bool { (a.section, a.index) < (b.section, b.index) }
    }

    /// Ascending; in the old state. Elements of sections that vanished are not listed.
    public internal(set) var deletions: [Place] = []
    /// Ascending; in the new state. Elements of new sections are listed.
    public internal(set) var insertions: [Place] = []
    /// Ascending; in the old state. Their indices are the same in the new state.
    public internal(set) var modifications: [Place] = []
    /// In the old state.
    public internal(set) var deletedSections: [Int] = []
    /// In the new state.
    public internal(set) var insertedSections: [Int] = []
    /// The sections before and now.
    public internal(set) var old = Sections()
    /// The sections after the change.
    public internal(set) var new = Sections()

    /// No section came, went or has another content.
    public var isEmpty: Bool {
        deletions.isEmpty && insertions.isEmpty && modifications.isEmpty && deletedSections.isEmpty && insertedSections.isEmpty
    }

    /// What concerns the section with the key; nil if nothing does.
    public func only(_ key: AnyHashable) -> SectionsChange? {
        var result = SectionsChange()
        result.old = old
        result.new = new
        if let section = old.position(of: key) {
            result.deletions = deletions.filter { $0.section == section }
            result.modifications = modifications.filter { $0.section == section }
            result.deletedSections = deletedSections.filter { $0 == section }
        }
        if let section = new.position(of: key) {
            result.insertions = insertions.filter { $0.section == section }
            result.insertedSections = insertedSections.filter { $0 == section }
        }
        return result.isEmpty ? nil : result
    }
}

/// The sections of one state: they stand in the order in which their keys are first met.
public struct Sections: @unchecked Sendable {
    // Sendable: keys are plain values.
    /// In the order of the sections.
    public private(set) var keys: [AnyHashable] = []
    private var positions: [AnyHashable: Int] = [:]
    /// For each element of the result the place where it stands.
    public private(set) var places: [SectionsChange.Place] = []

    init() {}

    /// - Parameter elementKeys: the section key of each element of the result.
    init(_ elementKeys: [AnyHashable]) {
        var counts: [Int] = []
        places.reserveCapacity(elementKeys.count)
        for key in elementKeys {
            let section: Int
            if let known = positions[key] {
                section = known
            } else {
                section = keys.count
                positions[key] = section
                keys.append(key)
                counts.append(0)
            }
            places.append(SectionsChange.Place(section: section, index: counts[section]))
            counts[section] += 1
        }
    }

    /// The number of the section with the key; nil where no element has that key.
    public func position(of key: AnyHashable) -> Int? { positions[key] }
}

extension SectionsChange {
    /// - Parameter change: what happened to the positions of the result as a whole.
    init(_ change: CollectionChange, old: Sections, new: Sections) {
        self.old = old
        self.new = new
        let newOfOld = old.keys.map { new.position(of: $0) }
        for (section, position) in newOfOld.enumerated() where position == nil { deletedSections.append(section) }
        for (section, key) in new.keys.enumerated() where old.position(of: key) == nil { insertedSections.append(section) }

        var deleted: Set<Place> = [], inserted: Set<Place> = []
        // Marked as modified before, by the numbers of the new state, and now.
        var modifiedBefore: Set<Place> = [], modifiedNow: Set<Place> = []
        func delete(_ place: Place) { if newOfOld[place.section] != nil { deleted.insert(place) } }

        for i in change.deletions where i < old.places.count { delete(old.places[i]) }
        for i in change.insertions where i < new.places.count { inserted.insert(new.places[i]) }
        let modified = change.modificationsNew
        var i = 0
        for (j, after) in new.places.enumerated() where !change.insertions.contains(j) {
            while change.deletions.contains(i) { i += 1 }
            guard i < old.places.count else { break }
            let before = old.places[i]
            i += 1
            if modified.contains(j) {
                if let section = newOfOld[before.section] { modifiedBefore.insert(Place(section: section, index: before.index)) }
                modifiedNow.insert(after)
            } else if newOfOld[before.section] != after.section {
                delete(before)
                inserted.insert(after)
            }
        }
        let oldOfNew = new.keys.map { old.position(of: $0) }
        for place in modifiedBefore {
            guard let section = oldOfNew[place.section] else { continue }
            let before = Place(section: section, index: place.index)
            if modifiedNow.contains(place) { modifications.append(before) } else { deleted.insert(before) }
        }
        for place in modifiedNow where !modifiedBefore.contains(place) { inserted.insert(place) }
        deletions = deleted.sorted()
        insertions = inserted.sorted()
        modifications.sort()
    }
}
