/// The bytes do not have the form that the format asks for: where, and what was found.
public struct FormatError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The position of the node (or of the header field) at fault, from the start of the decrypted file.
    public let ref: Int
    public let reason: String
    public init(ref: Int, _ reason: String) {
        self.ref = ref
        self.reason = reason
    }
    public var description: String { "damaged at byte \(ref): \(reason)" }
}
