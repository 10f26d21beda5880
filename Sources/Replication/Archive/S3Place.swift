import Glibc
import SystemCalls

/// An archive's place that is a bucket of S3, or of a store that speaks its language.
///
/// Objects of S3 are whole or not there, and a put that was answered is durable, so names need no detours. Conditions are
/// `If-None-Match: *` and `If-Match`; large objects go up in parts of 8 MiB, and are seen when the last call joins them.
///
/// What fails in passing (no connection, silence, a cut answer, 429 and 5xx) is tried again after growing, randomly spread
/// pauses. A put whose answer was lost may have been done: its repetition then finds its own condition broken, and the caller,
/// who knows the bytes, looks.
///
/// Some stores know no conditional puts and answer 501 (the S3 layer of OpenStack Swift). There we look first and put then, which
/// is not one step: of two archivers that look for the lease at the same moment both put theirs. So whoever has put the lease
/// waits a little, and has it if it is still his. Where a put is still under way after that time, two may hold it until one of
/// them renews; what they put bears the number of its version and the chain that leads to it, so a step of one never passes for
/// that of the other.
public final class S3Place: ArchivePlace {
    /// What signs requests (signature version 4).
    public struct Credentials: Sendable {
        /// Who asks; it is sent along.
        public var accessKey: String
        /// What signs; it is never sent.
        public var secretKey: String
        /// Goes along with keys that are lent for a time; nil for others.
        public var sessionToken: String?
        /// - Parameter sessionToken: nil for keys of one's own.
        public init(accessKey: String, secretKey: String, sessionToken: String? = nil) {
            self.accessKey = accessKey
            self.secretKey = secretKey
            self.sessionToken = sessionToken
        }
    }

    /// How the store is reached.
    public struct Options: Sendable {
        /// `https://host[:port]` of a store other than Amazon's; the bucket is then the first part of the path.
        public var endpoint: String?
        /// Part of what is signed; stores other than Amazon's mostly take any.
        public var region = "us-east-1"
        /// Nil for a bucket that everybody may use.
        public var credentials: Credentials?
        /// A request is made so often before it has failed.
        public var triesMax = 6
        /// The pause after a first failure; it doubles each time, up to 10 s.
        public var firstPause = Duration.milliseconds(100)
        /// A transfer in which nothing moves for so long has failed.
        public var silence = Duration.seconds(30)
        /// Where the store knows no conditions: so long after a lease was put nobody else may have put his.
        public var settling = Duration.seconds(1)
        /// Amazon's store, without credentials.
        public init() {}
    }

    /// Requests that were sent, repetitions included, by method.
    public private(set) var requestCounts: [String: Int] = [:]
    /// `s3://BUCKET/PREFIX`, as people write it.
    public let description: String
    private let prefix: String
    private let base: String
    private let client: HTTPClient
    private let options: Options
    /// False once the store has answered that it knows none.
    private var knowsConditions = true
    /// Called while a lease settles; for tests.
    var whileSettling: () throws -> Void = {}

    static let partByteCount = 8 << 20

    /// - Parameter address: `s3://bucket/prefix`.
    /// - Throws: `ArchivePlaceError.refused` where the address is none.
    public init(_ address: String, options: Options = Options()) throws {
        let parts = address.dropFirst("s3://".count).split(separator: "/", maxSplits: 1)
        guard address.hasPrefix("s3://"), let bucket = parts.first, Self.isName(bucket) else {
            throw ArchivePlaceError.refused(place: address, reason: "an address is s3://bucket/prefix")
        }
        var prefix = parts.count > 1 ? String(parts[1]) : ""
        while prefix.hasSuffix("/") { prefix.removeLast() }
        description = prefix.isEmpty ? "s3://\(bucket)" : "s3://\(bucket)/\(prefix)"
        self.prefix = prefix.isEmpty ? "" : prefix + "/"
        if let endpoint = options.endpoint {
            guard endpoint.hasPrefix("http://") || endpoint.hasPrefix("https://") else {
                throw ArchivePlaceError.refused(
                    place: address, reason: "the endpoint '\(endpoint)' must begin with https:// or http://")
            }
            var endpoint = endpoint
            while endpoint.hasSuffix("/") { endpoint.removeLast() }
            base = "\(endpoint)/\(bucket)/"
        } else {
            base = "https://\(bucket).s3.\(options.region).amazonaws.com/"
        }
        self.options = options
        let signer = options.credentials.map {
            HTTPClient.Signer(
                accessKey: $0.accessKey, secretKey: $0.secretKey, sessionToken: $0.sessionToken, region: options.region)
        }
        client = HTTPClient(signer: signer, silenceSeconds: max(1, Int(options.silence.components.seconds)))
    }

    private static func isName(_ text: Substring) -> Bool {
        (1...63).contains(text.utf8.count)
            && text.utf8.allSatisfy { $0 >= 48 && $0 < 58 || $0 >= 97 && $0 < 123 || $0 == 45 || $0 == 46 }
    }

    // MARK: Requests

    /// Letters, digits and `-._~` stand for themselves.
    private static func escape(_ text: String, keepingSlashes: Bool) -> String {
        var out = ""
        for byte in text.utf8 {
            switch byte {
            case 48...57, 65...90, 97...122, 45, 46, 95, 126: out.unicodeScalars.append(Unicode.Scalar(byte))
            case 47 where keepingSlashes: out.unicodeScalars.append("/")
            default: out += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
        }
        return out
    }

    private func url(_ name: String, _ query: String = "") -> String {
        base + Self.escape(prefix + name, keepingSlashes: true) + (query.isEmpty ? "" : "?" + query)
    }

    private static let answerByteCountMax = 16 << 20
    /// Where something short was asked for, the answer may still be an error with a long explanation.
    private static let errorByteCountMax = 65_536

    /// Sends until an answer comes that is one.
    private func request(
        _ method: String, _ url: String, headers: [String] = [], body: [UInt8] = [], range: ClosedRange<Int>? = nil,
        limit: Int = answerByteCountMax,
        takes answer: Int? = nil
    ) throws -> HTTPClient.Response {
        var pause = Double(options.firstPause.components.seconds) + Double(options.firstPause.components.attoseconds) / 1e18
        var reason = ""
        for attempt in 1...max(1, options.triesMax) {
            requestCounts[method, default: 0] += 1
            do {
                let response = try client.send(method, url, headers: headers, body: body, range: range, limit: limit)
                switch response.status {
                case let status where status == answer: return response
                case 408, 425, 429, 500...599: reason = "\(response.status) \(Self.code(response))"
                case 200...299, 304, 404, 409, 412, 416: return response
                case 300...399:
                    throw ArchivePlaceError.refused(
                        place: description, reason: "\(response.status): the bucket is in another region; name it with --region")
                default: throw ArchivePlaceError.refused(place: description, reason: "\(response.status) \(Self.code(response))")
                }
            } catch let failure as HTTPClient.Failure {
                guard failure.isTransient else { throw ArchivePlaceError.refused(place: description, reason: failure.reason) }
                reason = failure.reason
            }
            if attempt < options.triesMax {
                usleep(UInt32(pause * Double.random(in: 0.5...1) * 1e6))
                pause = min(10, pause * 2)
            }
        }
        throw ArchivePlaceError.unavailable(place: description, reason: "\(reason) (\(options.triesMax) tries)")
    }

    /// The code in the body of an error, for people.
    private static func code(_ response: HTTPClient.Response) -> String {
        let text = String(decoding: response.body.prefix(4096), as: UTF8.self)
        return [value("Code", in: text), value("Message", in: text)].compactMap { $0 }.joined(separator: ": ")
    }

    /// What stands between `<name>` and `</name>`, the first time.
    static func value(_ name: String, in text: some StringProtocol) -> String? { values(name, in: text, limit: 1).first }

    static func values(_ name: String, in text: some StringProtocol, limit: Int = Int.max) -> [String] {
        var out: [String] = []
        var rest = String(text)[...]
        while out.count < limit, let start = find("<\(name)>", in: rest) {
            let content = rest[start.upperBound...]
            guard let end = find("</\(name)>", in: content) else { break }
            out.append(unescape(content[..<end.lowerBound]))
            rest = content[end.upperBound...]
        }
        return out
    }

    private static func find(_ word: String, in text: Substring) -> Range<Substring.Index>? { text.firstRange(of: word) }

    private static func unescape(_ text: Substring) -> String {
        var out = String(text)
        for (name, character) in [
            ("&quot;", "\""), ("&lt;", "<"), ("&gt;", ">"), ("&apos;", "'"), ("&#34;", "\""), ("&amp;", "&"),
        ] {
            out = out.replacing(name, with: character)
        }
        return out
    }

    // MARK: The place

    /// The tag is the store's ETag.
    public func get(_ name: String, from offset: Int, count: Int) throws -> ArchiveRead? {
        if count <= 0 { return ArchiveRead(bytes: [], totalByteCount: 0, tag: "") }
        let end = offset.addingReportingOverflow(min(count, 1 << 40) - 1).partialValue
        let response = try request(
            "GET", url(name), range: offset...max(offset, end), limit: max(Self.errorByteCountMax, min(count, 1 << 40)))
        let tag = response.headers["etag"] ?? ""
        switch response.status {
        case 404:
            if Self.code(response).contains("NoSuchBucket") {
                throw ArchivePlaceError.refused(place: description, reason: "there is no such bucket")
            }
            return nil
        case 206:
            // "bytes 0-191/12345"
            guard let text = response.headers["content-range"], let total = text.split(separator: "/").last.flatMap({ Int($0) }),
                total >= 0,
                response.body.count == min(count, max(0, total - offset))
            else {
                throw ArchivePlaceError.badAnswer(
                    place: description, reason: "\(name): \(response.body.count) bytes for the range at \(offset)")
            }
            return ArchiveRead(bytes: response.body, totalByteCount: total, tag: tag)
        case 416:
            // Nothing at or behind the offset: the object is shorter, or empty.
            let total = response.headers["content-range"]?.split(separator: "/").last.flatMap { Int($0) } ?? offset
            return ArchiveRead(bytes: [], totalByteCount: total, tag: tag)
        case 200:
            return ArchiveRead(
                bytes: Array(response.body.dropFirst(offset).prefix(count)), totalByteCount: response.body.count, tag: tag)
        default: throw ArchivePlaceError.badAnswer(place: description, reason: "\(name): status \(response.status)")
        }
    }

    /// Where the store knows no conditions: a look, then the put (see the head of this class).
    @discardableResult
    public func put(_ name: String, _ bytes: [UInt8], _ condition: ArchivePutCondition) throws -> String {
        if condition != .always && !knowsConditions { return try putAfterLooking(name, bytes, condition) }
        var headers: [String] = []
        switch condition {
        case .always: break
        case .absent: headers.append("If-None-Match: *")
        case .matches(let tag): headers.append("If-Match: \(tag)")
        }
        let response = try request("PUT", url(name), headers: headers, body: bytes, takes: condition == .always ? nil : 501)
        switch response.status {
        case 501:
            knowsConditions = false
            return try putAfterLooking(name, bytes, condition)
        case 409, 412: throw ArchivePlaceError.conflict(name: name)
        case 404 where condition != .always && !Self.code(response).contains("NoSuchBucket"):
            throw ArchivePlaceError.conflict(name: name)
        case 404: throw ArchivePlaceError.refused(place: description, reason: "there is no such bucket")
        case 200...299: return response.headers["etag"] ?? ""
        default: throw ArchivePlaceError.badAnswer(place: description, reason: "\(name): status \(response.status)")
        }
    }

    private func putAfterLooking(_ name: String, _ bytes: [UInt8], _ condition: ArchivePutCondition) throws -> String {
        let found = try get(name, from: 0, count: 1)?.tag
        switch condition {
        case .always: break
        case .absent: if found != nil { throw ArchivePlaceError.conflict(name: name) }
        case .matches(let tag): if found != tag { throw ArchivePlaceError.conflict(name: name) }
        }
        let tag = try put(name, bytes, .always)
        if name != ArchiveNames.lease { return tag }
        usleep(
            UInt32(
                clamping: options.settling.components.seconds * 1_000_000 + options.settling.components.attoseconds
                    / 1_000_000_000_000))
        try whileSettling()
        guard try get(name, from: 0, count: 1)?.tag == tag else { throw ArchivePlaceError.conflict(name: name) }
        return tag
    }

    /// What is small goes up by one put, with the last piece.
    public func upload(_ name: String) throws -> any ArchiveUpload { Upload(self, name) }

    /// One request for each thousand names or so, as the store cuts its answers.
    public func list(_ prefix: String) throws -> [String] {
        var names: [String] = []
        var token: String?
        repeat {
            var query = "list-type=2&prefix=\(Self.escape(self.prefix + prefix, keepingSlashes: false))"
            if let token { query = "continuation-token=\(Self.escape(token, keepingSlashes: false))&" + query }
            let response = try request("GET", base + "?" + query)
            guard response.status == 200 else {
                throw ArchivePlaceError.badAnswer(place: description, reason: "a list with status \(response.status)")
            }
            let text = String(decoding: response.body, as: UTF8.self)
            names += Self.values("Key", in: text).filter { $0.hasPrefix(self.prefix) }.map {
                String($0.dropFirst(self.prefix.count))
            }
            token = Self.value("IsTruncated", in: text) == "true" ? Self.value("NextContinuationToken", in: text) : nil
        } while token != nil
        return names
    }

    /// A store answers alike whether there was something or not.
    public func delete(_ name: String) throws { _ = try request("DELETE", url(name)) }

    /// Uploads in parts that were never finished take room that nobody sees.
    public func removeLeftovers() throws {
        let query = "prefix=\(Self.escape(prefix, keepingSlashes: false))&uploads="
        // A store that cannot tell has none, or none that we could remove.
        guard let response = try? request("GET", base + "?" + query), response.status == 200 else { return }
        for text in Self.values("Upload", in: String(decoding: response.body, as: UTF8.self)) {
            guard let key = Self.value("Key", in: text), let number = Self.value("UploadId", in: text), key.hasPrefix(prefix)
            else { continue }
            _ = try? request(
                "DELETE", url(String(key.dropFirst(prefix.count)), "uploadId=\(Self.escape(number, keepingSlashes: false))"))
        }
    }

    /// An object in parts. What is small enough for one goes up by one put.
    private final class Upload: ArchiveUpload {
        private let place: S3Place
        private let name: String
        private var pending: [UInt8] = []
        private var number: String?
        private var tags: [String] = []

        init(_ place: S3Place, _ name: String) {
            self.place = place
            self.name = name
        }

        func append(_ bytes: [UInt8]) throws {
            pending += bytes
            var at = 0
            while pending.count - at >= S3Place.partByteCount {
                try putPart(Array(pending[at..<at + S3Place.partByteCount]))
                at += S3Place.partByteCount
            }
            pending.removeFirst(at)
        }

        private func escaped(_ number: String) -> String { S3Place.escape(number, keepingSlashes: false) }

        private func putPart(_ bytes: [UInt8]) throws {
            let upload: String
            if let number {
                upload = number
            } else {
                let response = try place.request("POST", place.url(name, "uploads="))
                guard response.status == 200,
                    let fresh = S3Place.value("UploadId", in: String(decoding: response.body, as: UTF8.self))
                else {
                    throw ArchivePlaceError.badAnswer(
                        place: place.description, reason: "\(name): no upload was begun, status \(response.status)")
                }
                upload = fresh
                number = fresh
            }
            let response = try place.request(
                "PUT", place.url(name, "partNumber=\(tags.count + 1)&uploadId=\(escaped(upload))"), body: bytes)
            guard response.status == 200, let tag = response.headers["etag"] else {
                throw ArchivePlaceError.badAnswer(
                    place: place.description, reason: "\(name): part \(tags.count + 1) with status \(response.status)")
            }
            tags.append(tag)
        }

        func finish() throws {
            guard let upload = number else {
                try place.put(name, pending, .always)
                return
            }
            if !pending.isEmpty { try putPart(pending) }
            pending = []
            var text = "<CompleteMultipartUpload>"
            for (index, tag) in tags.enumerated() {
                text += "<Part><PartNumber>\(index + 1)</PartNumber><ETag>\(tag)</ETag></Part>"
            }
            text += "</CompleteMultipartUpload>"
            let response = try place.request("POST", place.url(name, "uploadId=\(escaped(upload))"), body: Array(text.utf8))
            let answer = String(decoding: response.body, as: UTF8.self)
            if response.status == 404 {
                // The answer to the first try may have been lost: it is done where the object is there now.
                guard try place.get(name, from: 0, count: 1) != nil else {
                    throw ArchivePlaceError.unavailable(place: place.description, reason: "\(name): the upload is gone")
                }
            } else if response.status != 200 || answer.contains("<Error>") {
                // An error may come behind a status of 200, since joining takes long.
                throw ArchivePlaceError.unavailable(place: place.description, reason: "\(name): \(S3Place.code(response))")
            }
            number = nil
        }

        func abandon() {
            if let number { _ = try? place.request("DELETE", place.url(name, "uploadId=\(escaped(number))")) }
            number = nil
        }
    }
}
