import SharedStore

extension Store {
    /// What `body` finds in the newest version, which is held while it looks.
    public func look<Result>(_ body: (ReadTransaction) throws -> Result) throws -> Result {
        let transaction = try beginRead()
        defer { transaction.end() }
        return try body(transaction)
    }
}
