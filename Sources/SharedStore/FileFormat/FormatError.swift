/// The bytes do not have the form that the format asks for: where, and what was found.
public struct FormatError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The position of the node (or of the header field) at fault, from the start of the decrypted file.
    public let ref: Int
    /// What was expected there and what was found, for people.
    public let reason: String
    /// - Parameter ref: where the node or the header field begins.
    public init(ref: Int, _ reason: String) {
        self.ref = ref
        self.reason = reason
    }
    public var description: String { "damaged at byte \(ref): \(reason)" }
}
