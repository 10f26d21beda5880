extension VerificationRun {
    func verifyTables(_ top: Node) throws {
        try enterAll(below: child(top, 0, "names"))
        try enterAll(below: child(top, 1, "tables"))
    }
    func verifyHistory(_ top: Node) throws {
        try enterAll(below: optionalChild(top, TopSlot.history, "history"))
    }
}
