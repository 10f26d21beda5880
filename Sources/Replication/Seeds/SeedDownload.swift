import CCurl
import Glibc
import SharedStore
import SystemCalls

/// Gets a file by its URL: `https://`, `http://` or `file://`, piece by piece, over one connection after the other. Not
/// thread-safe.
///
/// A transfer that breaks is tried again after a growing pause, and goes on where it broke if the server knows how and says that
/// the file is the same one (its ETag, or the time of its last change); what comes out is checked by whoever asked, so a server
/// that lies spoils only its own file.
final class SeedDownload {
    struct Options {
        /// Certificates of the authorities that are believed; nil for those of the system.
        var authorities: String?
        /// A transfer in which nothing moves for so long is broken.
        var silenceSeconds = 30
        /// So often a transfer that broke without bringing anything is tried again.
        var retriesMax = 4
        /// The pause before the first time; it doubles.
        var pauseMilliseconds = 500
    }

    private let handle: UnsafeMutableRawPointer
    private let options: Options
    /// The last file was put together from more than one answer.
    private(set) var wasResumed = false

    init(_ options: Options) throws {
        guard HTTPClient.isReady, let made = curl_easy_init() else {
            throw SeedError.unreachable(url: "", reason: "the HTTP library cannot be started")
        }
        handle = made
        self.options = options
    }

    deinit { curl_easy_cleanup(handle) }

    static let schemes = ["https", "http", "file"]

    /// - Throws: `SeedError.badURL`.
    static func check(_ url: String) throws {
        guard let end = url.firstRange(of: "://")?.lowerBound, schemes.contains(url[..<end].lowercased()) else {
            throw SeedError.badURL(
                url: url, reason: "is no address of a file; there are \(schemes.map { $0 + "://" }.joined(separator: ", "))")
        }
        guard url.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else {
            throw SeedError.badURL(url: url, reason: "there are blanks or control characters in the address")
        }
    }

    /// What a transfer brings, until it is over.
    private final class Transfer {
        let limit: Int
        let take: (UnsafeRawBufferPointer) throws -> Void
        let startOver: () throws -> Void
        let isHTTP: Bool
        /// Bytes that are there.
        var byteCount = 0
        /// Of the answer that comes in.
        var status = 0
        var headers: [String: String] = [:]
        /// Where the bytes of this answer belong; -1 until the first of them.
        var isPlaced = false
        /// What the whole file has, if the server says.
        var total: Int?
        /// What stays the same as long as the file does.
        var validator: String?
        var failure: (any Error)?
        var isTooLarge = false

        init(
            limit: Int, isHTTP: Bool, take: @escaping (UnsafeRawBufferPointer) throws -> Void,
            startOver: @escaping () throws -> Void
        ) {
            self.limit = limit
            self.isHTTP = isHTTP
            self.take = take
            self.startOver = startOver
        }

        /// Bytes of the body; false ends the transfer.
        func receive(_ bytes: UnsafeRawBufferPointer) -> Bool {
            do {
                if !isPlaced { try place() }
                // The text of an error is of no use.
                if isHTTP && status != 200 && status != 206 { return true }
                if bytes.count > limit - byteCount {
                    isTooLarge = true
                    return false
                }
                try take(bytes)
                byteCount += bytes.count
                return true
            } catch {
                failure = error
                return false
            }
        }

        private func place() throws {
            isPlaced = true
            if isHTTP && status != 200 && status != 206 { return }
            if status == 206, let (first, all) = contentRange(), first == byteCount {
                total = all
                return
            }
            if byteCount > 0 {
                try startOver()
                byteCount = 0
            }
            total = status == 206 ? nil : headers["content-length"].flatMap { Int($0) }
            if let total, total > limit {
                isTooLarge = true
                throw SeedError.tooLarge(url: "", limit: limit)
            }
        }

        /// Of "bytes 100-199/200".
        private func contentRange() -> (first: Int, total: Int?)? {
            guard let text = headers["content-range"], text.hasPrefix("bytes ") else { return nil }
            let parts = text.dropFirst(6).split(whereSeparator: { $0 == "-" || $0 == "/" })
            guard parts.count == 3, let first = Int(parts[0]) else { return nil }
            return (first, Int(parts[2]))
        }
    }

    /// Gets the file.
    ///
    /// - Parameters:
    ///   - limit: of its bytes.
    ///   - take: given the bytes in order.
    ///   - startOver: forget all that was taken; it begins anew.
    /// - Throws: `SeedError`, and what the closures throw.
    func get(
        _ url: String, limit: Int, take: @escaping (UnsafeRawBufferPointer) throws -> Void, startOver: @escaping () throws -> Void
    ) throws {
        try Self.check(url)
        let isHTTP = !url.lowercased().hasPrefix("file:")
        let transfer = Transfer(limit: limit, isHTTP: isHTTP, take: take, startOver: startOver)
        var failures = 0
        wasResumed = false
        while true {
            let before = transfer.byteCount
            guard let problem = try attempt(url, transfer) else { return }
            // What moves, if slowly, may take as long as it takes.
            failures = transfer.byteCount > before ? 1 : failures + 1
            if failures > options.retriesMax { throw problem }
            usleep(UInt32(min(options.pauseMilliseconds << (failures - 1), 30_000)) * 1000)
        }
    }

    /// One request. Nil where all is there; else why not, where it may be tried again.
    private func attempt(_ url: String, _ transfer: Transfer) throws -> SeedError? {
        curl_easy_reset(handle)
        CCurl_set_text(handle, CURLOPT_URL, url)
        CCurl_set_long(handle, CURLOPT_NOSIGNAL, 1)
        CCurl_set_text(handle, CURLOPT_PROTOCOLS_STR, "https,http,file")
        // Who asked for a file of this machine, or for one with TLS, is not led elsewhere.
        CCurl_set_text(handle, CURLOPT_REDIR_PROTOCOLS_STR, url.lowercased().hasPrefix("https:") ? "https" : "https,http")
        CCurl_set_long(handle, CURLOPT_FOLLOWLOCATION, 1)
        CCurl_set_long(handle, CURLOPT_MAXREDIRS, 5)
        CCurl_set_long(handle, CURLOPT_CONNECTTIMEOUT, min(options.silenceSeconds, 15))
        CCurl_set_long(handle, CURLOPT_LOW_SPEED_LIMIT, 1)
        CCurl_set_long(handle, CURLOPT_LOW_SPEED_TIME, options.silenceSeconds)
        CCurl_set_text(handle, CURLOPT_USERAGENT, "realm-sync")
        if let authorities = options.authorities { CCurl_set_text(handle, CURLOPT_CAINFO, authorities) }
        var list: UnsafeMutablePointer<curl_slist>?
        defer { curl_slist_free_all(list) }
        let begin = transfer.byteCount
        wasResumed = begin > 0
        if begin > 0, transfer.isHTTP, let validator = transfer.validator {
            CCurl_set_text(handle, CURLOPT_RANGE, "\(begin)-")
            list = curl_slist_append(list, "If-Range: \(validator)")
            CCurl_set_headers(handle, list)
        }
        (transfer.status, transfer.headers, transfer.isPlaced, transfer.failure) = (0, [:], false, nil)
        CCurl_set_sinks(
            handle,
            { bytes, size, count, context in
                guard let bytes, let context else { return 0 }
                let transfer = Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
                return transfer.receive(UnsafeRawBufferPointer(start: bytes, count: size * count)) ? size * count : 0
            },
            { bytes, size, count, context in
                guard let bytes, let context else { return 0 }
                let transfer = Unmanaged<Transfer>.fromOpaque(context).takeUnretainedValue()
                // Of a file there come headers too, which nobody sent.
                if !transfer.isHTTP { return size * count }
                let line = String(decoding: UnsafeRawBufferPointer(start: bytes, count: size * count), as: UTF8.self)
                if line.hasPrefix("HTTP/") {
                    // The last answer counts.
                    transfer.headers = [:]
                    transfer.status = line.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
                } else if let colon = line.firstIndex(of: ":"), transfer.headers.count < 100 {
                    let value = line[line.index(after: colon)...].drop { $0 == " " }.prefix {
                        $0 != "\r" && $0 != "\n" && $0 != "\r\n"
                    }
                    transfer.headers[line[..<colon].lowercased()] = String(value)
                }
                return size * count
            }, Unmanaged.passUnretained(transfer).toOpaque())
        let code = withExtendedLifetime(transfer) { curl_easy_perform(handle) }
        if transfer.isTooLarge { throw SeedError.tooLarge(url: url, limit: transfer.limit) }
        if let failure = transfer.failure { throw failure }
        let isWhole = transfer.status == 200 || transfer.status == 206 || !transfer.isHTTP
        if isWhole {
            // A weak ETag says less than is asked for here.
            transfer.validator =
                transfer.headers["etag"].flatMap { $0.hasPrefix("W/") ? nil : $0 } ?? transfer.headers["last-modified"]
        }
        if code == CURLE_FILE_COULDNT_READ_FILE { throw OpenError.fileNotFound(path: url) }
        if code != CURLE_OK {
            let reason = String(cString: curl_easy_strerror(code))
            let isFinal = [
                CURLE_URL_MALFORMAT, CURLE_UNSUPPORTED_PROTOCOL, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE,
                CURLE_TOO_MANY_REDIRECTS,
            ].contains(code)
            let problem = SeedError.unreachable(url: url, reason: reason)
            if isFinal { throw problem }
            return problem
        }
        guard isWhole else {
            // The range cannot be had: another file, or all of it is there already.
            if transfer.status == 416, begin > 0 {
                try transfer.startOver()
                (transfer.byteCount, transfer.validator) = (0, nil)
                return SeedError.refused(url: url, status: 416)
            }
            let problem = SeedError.refused(url: url, status: transfer.status)
            if [408, 429, 500, 502, 503, 504].contains(transfer.status) { return problem }
            throw problem
        }
        // An answer without a body.
        if !transfer.isPlaced, begin > 0 {
            try transfer.startOver()
            transfer.byteCount = 0
        }
        if let total = transfer.total, transfer.byteCount < total {
            return SeedError.unreachable(url: url, reason: "the file ended before its length")
        }
        return nil
    }
}
