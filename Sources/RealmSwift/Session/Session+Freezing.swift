internal import SharedStore

extension Session {
    /// The session at its present version, for every thread. The same one again as long as it is referred to.
    func frozen() -> Session {
        if isFrozen { return self }
        checkConfinement()
        if writer != nil && !Session.freezesCommittedState {
            misuse("Cannot freeze a Realm or a collection within a write transaction: its changes are not committed yet.")
        }
        return reading {
            // Within a write transaction the version that it began with.
            if writer == nil { _ = try currentGroup() }
            guard let reader = currentReader else { throw FormatError(ref: 0, "no version to freeze") }
            if let frozen = reader.frozen?.session { return frozen }
            let frozen = try Session(
                origin: origin, configuration: configuration, schema: schema, classes: classes, confinement: .none,
                isFrozen: true, reader: origin.freeze(reader))
            reader.frozen = frozen.address
            return frozen
        }
    }

    /// The live session of the same file where the caller runs; it is opened where there is none.
    func thawed() -> Session {
        if !isFrozen { return self }
        if let target = Session.thawTarget, target.origin === origin { return target }
        return reading { try sibling(at: origin.cache.placeOfCaller) }
    }

    /// The live session of the same file at a place where the caller runs; it is opened where there is none.
    func sibling(at place: Confinement) throws -> Session {
        try origin.cache.session(at: place) {
            try Session(
                origin: origin, configuration: configuration, schema: schema, classes: classes, confinement: place,
                reader: origin.beginRead())
        }
    }
}
