import Glibc

// Two strings of a database are the same where their bytes are (file-format-2 6.1): "\u{E9}" and "e\u{301}" are two names and two
// keys. Swift's own comparison takes them for one, so `==` on `String`, sets of strings and dictionaries keyed by them are not
// for what comes from a file.

extension String {
    /// True where both have the same UTF-8, which is equality in the database; Swift's `==` is equality to the eye.
    @inline(__always)
    public func isSame(as other: String) -> Bool {
        if utf8.count != other.utf8.count { return false }
        var a = self, b = other
        return a.withUTF8 { p in b.withUTF8 { q in ValueOrder.equal(UnsafeRawBufferPointer(p), UnsafeRawBufferPointer(q)) } }
    }
}

extension Optional where Wrapped == String {
    /// True where both are nil, or both have the same UTF-8.
    public func isSame(as other: String?) -> Bool {
        guard let self, let other else { return (self == nil) == (other == nil) }
        return self.isSame(as: other)
    }
}

/// A string as an element of a set or a key of a dictionary, by its UTF-8.
public struct ExactString: Hashable, Comparable, Sendable {
    /// The text.
    public let text: String
    /// A text that is the same as another where its bytes are.
    public init(_ text: String) { self.text = text }

    public static func == (a: ExactString, b: ExactString) -> Bool { a.text.isSame(as: b.text) }
    /// Bytewise, as the database orders strings.
    public static func < (a: ExactString, b: ExactString) -> Bool { ValueOrder.compare(a.text, b.text) < 0 }

    public func hash(into hasher: inout Hasher) {
        var text = text
        text.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}
