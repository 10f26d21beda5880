/// Why a page of an encrypted file cannot be read (file-format-3 8.5, 8.8).
public struct DecryptionError: Error, Equatable, Sendable, CustomStringConvertible {
    /// What was found in the page and its entry.
    public enum Reason: Equatable, Sendable {
        case neverWritten, outOfBounds, interruptedFirstWrite, authenticationFailed
        /// The two counters of the page's metadata do not follow each other, so one of them is damaged.
        case countersDisagree
        /// Another process kept writing the page for longer than this.
        case unstable(seconds: Int)

        /// There is nothing in the page that could be lost: who is about to write it takes it for zeros (file-format-3 8.5).
        var isOfAPageWithoutContent: Bool {
            switch self {
            case .neverWritten, .outOfBounds, .interruptedFirstWrite: true
            case .authenticationFailed, .countersDisagree, .unstable: false
            }
        }
    }
    /// The file.
    public let path: String
    /// Position of the page in the decrypted file, in bytes.
    public let position: Int
    /// What was found.
    public let reason: Reason

    public var description: String {
        switch reason {
        case .neverWritten: "\(path): decryption failed: page at \(position) has never been written to"
        case .outOfBounds:
            "\(path): decryption failed: page at \(position) is out of bounds; the file is cut off or not encrypted"
        case .interruptedFirstWrite:
            "\(path): decryption failed: page at \(position) failed the HMAC check, or its first write was interrupted"
        case .authenticationFailed:
            "\(path): decryption failed: page at \(position) failed the HMAC check; either the encryption key is incorrect or the data is corrupted"
        case .countersDisagree: "\(path): decryption failed: the metadata of the page at \(position) is damaged"
        case .unstable(let seconds):
            "\(path): decryption failed: unable to decrypt the page at \(position) after \(seconds) seconds"
        }
    }
}
