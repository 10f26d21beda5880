import CCurl

/// Requests to one server over HTTP, signed as S3 wants it, one at a time over a connection that is kept.
///
/// Nothing is sent while there is no request. Not thread-safe.
final class HTTPClient {
    struct Response {
        var status = 0
        /// By name in lower case.
        var headers: [String: String] = [:]
        var body: [UInt8] = []
    }

    /// Who may ask, and for which region the signature is.
    struct Signer {
        var accessKey: String
        var secretKey: String
        var sessionToken: String?
        var region: String
    }

    private let handle: UnsafeMutableRawPointer
    private let signer: Signer?
    private let silenceSeconds: Int
    static let isReady: Bool = CCurl_global_init() == CURLE_OK

    /// - Parameter silenceSeconds: a transfer in which nothing moves for so long is given up.
    init(signer: Signer?, silenceSeconds: Int) {
        guard Self.isReady, let made = curl_easy_init() else {
            preconditionFailure(
                "the HTTP library cannot be started; the machine is out of memory, or the library is another one than was built with"
            )
        }
        handle = made
        self.signer = signer
        self.silenceSeconds = silenceSeconds
    }

    deinit { curl_easy_cleanup(handle) }

    /// What comes in.
    private final class Sink {
        var response = Response()
        let limit: Int
        var isTooLarge = false
        init(limit: Int) { self.limit = limit }
    }

    /// Why no answer came.
    struct Failure: Error, CustomStringConvertible {
        let reason: String
        /// The same request may succeed later.
        let isTransient: Bool
        var description: String { reason }
    }

    /// Sends a request and waits for the answer.
    ///
    /// - Parameter limit: a longer body is refused.
    /// - Throws: `Failure` where no whole answer came.
    func send(
        _ method: String, _ url: String, headers: [String] = [], body: [UInt8] = [], range: ClosedRange<Int>? = nil, limit: Int
    ) throws -> Response {
        // Keeps the connection, forgets the last request.
        curl_easy_reset(handle)
        CCurl_set_text(handle, CURLOPT_URL, url)
        CCurl_set_text(handle, CURLOPT_CUSTOMREQUEST, method)
        CCurl_set_long(handle, CURLOPT_NOSIGNAL, 1)
        CCurl_set_text(handle, CURLOPT_PROTOCOLS_STR, "http,https")
        CCurl_set_long(handle, CURLOPT_CONNECTTIMEOUT, min(silenceSeconds, 10))
        CCurl_set_long(handle, CURLOPT_LOW_SPEED_LIMIT, 1)
        CCurl_set_long(handle, CURLOPT_LOW_SPEED_TIME, silenceSeconds)
        CCurl_set_long(handle, CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
        if let range { CCurl_set_text(handle, CURLOPT_RANGE, "\(range.lowerBound)-\(range.upperBound)") }
        if method == "HEAD" { CCurl_set_long(handle, CURLOPT_NOBODY, 1) }
        // Large bodies are announced, and sent whether the server says that it expects them or not. To switch that off by an
        // empty header would be signed as one, and sent to nobody: servers that check signatures then refuse every request.
        CCurl_set_long(handle, CURLOPT_EXPECT_100_TIMEOUT_MS, 1)
        var lines = headers
        if let signer {
            CCurl_set_text(handle, CURLOPT_AWS_SIGV4, "aws:amz:\(signer.region):s3")
            CCurl_set_text(handle, CURLOPT_USERNAME, signer.accessKey)
            CCurl_set_text(handle, CURLOPT_PASSWORD, signer.secretKey)
            if let token = signer.sessionToken { lines.append("x-amz-security-token: \(token)") }
            let hash = SHA256Hash()
            body.withUnsafeBytes { hash.update($0) }
            lines.append("x-amz-content-sha256: \(hash.finish())")
        }
        if !body.isEmpty || method == "PUT" || method == "POST" { lines.append("Content-Type: application/octet-stream") }
        var list: UnsafeMutablePointer<curl_slist>?
        for line in lines { list = curl_slist_append(list, line) }
        defer { curl_slist_free_all(list) }
        CCurl_set_headers(handle, list)
        let sink = Sink(limit: limit)
        CCurl_set_sinks(
            handle,
            { bytes, size, count, context in
                guard let bytes, let context else { return 0 }
                let sink = Unmanaged<Sink>.fromOpaque(context).takeUnretainedValue()
                if size * count > sink.limit - sink.response.body.count {
                    sink.isTooLarge = true
                    return 0
                }
                sink.response.body.append(contentsOf: UnsafeRawBufferPointer(start: bytes, count: size * count))
                return size * count
            },
            { bytes, size, count, context in
                guard let bytes, let context else { return 0 }
                let line = String(decoding: UnsafeRawBufferPointer(start: bytes, count: size * count), as: UTF8.self)
                let sink = Unmanaged<Sink>.fromOpaque(context).takeUnretainedValue()
                // An answer before the last one (100 Continue) is forgotten.
                if line.hasPrefix("HTTP/") { sink.response.headers = [:] }
                if let colon = line.firstIndex(of: ":"), sink.response.headers.count < 100 {
                    let value = line[line.index(after: colon)...].drop { $0 == " " }.prefix {
                        $0 != "\r" && $0 != "\n" && $0 != "\r\n"
                    }
                    sink.response.headers[line[..<colon].lowercased()] = String(value)
                }
                return size * count
            }, Unmanaged.passUnretained(sink).toOpaque())
        let code: CURLcode = withExtendedLifetime(sink) {
            body.withUnsafeBytes { bytes in
                if method == "PUT" || method == "POST" {
                    CCurl_set_size(handle, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(bytes.count))
                    CCurl_set_bytes(handle, bytes.baseAddress ?? UnsafeRawPointer(handle))
                }
                return curl_easy_perform(handle)
            }
        }
        if sink.isTooLarge { throw Failure(reason: "an answer of more than \(limit) bytes", isTransient: false) }
        guard code == CURLE_OK else {
            let isFinal = [
                CURLE_URL_MALFORMAT, CURLE_UNSUPPORTED_PROTOCOL, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE,
            ].contains(code)
            throw Failure(reason: String(cString: curl_easy_strerror(code)), isTransient: !isFinal)
        }
        sink.response.status = Int(CCurl_response_code(handle))
        return sink.response
    }
}
