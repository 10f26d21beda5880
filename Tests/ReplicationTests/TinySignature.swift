import Foundation
@testable import Replication

/// Signature version 4 of Amazon's stores, from the server's side: what a request must be signed with, computed from what has
/// arrived.
enum TinySignature {
    /// - Parameters:
    ///   - target: path and query as they stood in the first line of the request.
    ///   - secret: of whoever may ask.
    /// - Returns: why the request is refused; nil where its signature is right.
    static func flaw(in request: TinyBucket.Request, target: String, secret: String) -> String? {
        guard let text = request.headers["authorization"], text.hasPrefix("AWS4-HMAC-SHA256 ") else { return "not signed" }
        var fields: [String: String] = [:]
        for field in text.dropFirst("AWS4-HMAC-SHA256 ".count).components(separatedBy: ",") {
            let parts = field.trimmingCharacters(in: .whitespaces).split(separator: "=", maxSplits: 1).map(String.init)
            if parts.count == 2 { fields[parts[0]] = parts[1] }
        }
        guard let scope = fields["Credential"]?.split(separator: "/").map(String.init), scope.count == 5,
            let names = fields["SignedHeaders"],
            let signature = fields["Signature"], let date = request.headers["x-amz-date"],
            let hash = request.headers["x-amz-content-sha256"]
        else {
            return "something is missing in the signature"
        }
        if hash != hex(digest(request.body)) { return "the hash is of another body" }
        var signed = ""
        for name in names.split(separator: ";").map(String.init) {
            guard let value = request.headers[name] else { return "the header '\(name)' is signed and was not sent" }
            signed += "\(name):\(value)\n"
        }
        let parts = target.split(separator: "?", maxSplits: 1).map(String.init)
        let query =
            parts.count > 1
            ? parts[1].split(separator: "&").map { $0.contains("=") ? String($0) : $0 + "=" }.sorted().joined(separator: "&") : ""
        let canonical = [request.method, parts[0], query, signed, names, hash].joined(separator: "\n")
        let toSign = ["AWS4-HMAC-SHA256", date, scope[1...].joined(separator: "/"), hex(digest(Array(canonical.utf8)))].joined(
            separator: "\n")
        var key = Array(("AWS4" + secret).utf8)
        for part in scope[1...] { key = hmac(key, Array(part.utf8)) }
        return hex(hmac(key, Array(toSign.utf8))) == signature ? nil : "the signature does not match"
    }

    private static func digest(_ bytes: [UInt8]) -> [UInt8] {
        let hash = SHA256Hash()
        bytes.withUnsafeBytes { hash.update($0) }
        var out = [UInt8](repeating: 0, count: 32)
        out.withUnsafeMutableBytes { hash.finish().store(to: $0.baseAddress!) }
        return out
    }

    private static func hmac(_ key: [UInt8], _ message: [UInt8]) -> [UInt8] {
        let block =
            (key.count > 64 ? digest(key) : key) + [UInt8](repeating: 0, count: max(0, 64 - (key.count > 64 ? 32 : key.count)))
        return digest(block.map { $0 ^ 0x5C } + digest(block.map { $0 ^ 0x36 } + message))
    }

    private static func hex(_ bytes: [UInt8]) -> String { bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() }
}
