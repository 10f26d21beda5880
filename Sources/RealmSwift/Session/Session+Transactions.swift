internal import SharedStore

extension Session {
    /// Waits for the right to write and goes to the newest version.
    func beginWrite() throws {
        checkConfinement()
        if isFrozen { misuse("Can't perform transactions on a frozen Realm") }
        if configuration.readOnly { misuse("Can't perform transactions on read-only Realms.") }
        if writer != nil { misuse("The Realm is already in a write transaction") }
        writer = try origin.beginWrite()
        forgetTables()
    }

    func commitWrite() throws {
        checkConfinement()
        guard let writer else { misuse("Can't commit a non-existing write transaction") }
        // The transaction is over whether the commit succeeds or not: a failed one leaves the file as it was.
        defer { createdAccessors.removeAll() }
        do {
            let reader = try writer.commit()
            self.writer = nil
            advance(to: reader)
        } catch {
            killCreated()
            self.writer = nil
            advance(to: try? writer.cancel())
            throw error
        }
    }

    func cancelWrite() {
        checkConfinement()
        guard let writer else { misuse("Can't cancel a non-existing write transaction") }
        killCreated()
        self.writer = nil
        advance(to: reading { try writer.cancel() })
    }

    /// Objects whose creation is undone stay invalid, whatever gets their keys later.
    private func killCreated() {
        for object in createdAccessors { object.managedType?.kill(object) }
        createdAccessors.removeAll()
    }

    /// Goes to the newest version. True if there was a newer one.
    func refresh() -> Bool {
        checkConfinement()
        if isFrozen || writer != nil { return false }
        if configuration.readOnly { misuse("Read-only Realms do not change and cannot be refreshed.") }
        return reading {
            let reader = try origin.beginRead()
            if let present = currentReader, present.version == reader.version { return false }
            advance(to: reader)
            return true
        }
    }

    /// Lets go of the version: objects and lists become invalid, results empty.
    func invalidate() {
        checkConfinement()
        if isFrozen { return close() }
        if writer != nil { cancelWrite() }
        if currentReader != nil { releaseVersion() }
    }
}
