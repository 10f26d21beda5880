import COpenSSL
import CShims

/// Memory for keys and what is made of them: locked where the machine allows it, left out of core dumps, wiped when it is given
/// back.
package enum SecretMemory {
    /// What the cryptographic library allocates in `body` lies in such memory: the contexts of ciphers, which hold the key in
    /// clear.
    ///
    /// Nothing of it where the program, or another library, had set memory functions of its own before we were loaded.
    package static func within<Result>(_ body: () throws -> Result) rethrows -> Result {
        CShims_secrets_begin()
        defer { CShims_secrets_end() }
        return try body()
    }

    /// Whether `within` has that effect in this process.
    package static var coversLibrary: Bool { CShims_secrets_cover_library() }
}

/// Some bytes in such memory, at most 4096. Safe to use from any thread: they are written in `init` only.
package final class SecretBytes: @unchecked Sendable {
    // Sendable: see above.
    private let memory: UnsafeMutableRawBufferPointer
    private let isSecret: Bool

    /// - Parameter fill: writes the bytes, which are zeros before.
    package init(count: Int, _ fill: (UnsafeMutableRawBufferPointer) throws -> Void) rethrows {
        let secret = CShims_secret_allocate(count)
        isSecret = secret != nil
        // Where there are thousands of keys, the last ones lie in plain memory.
        memory = UnsafeMutableRawBufferPointer(start: secret ?? .allocate(byteCount: count, alignment: 16), count: count)
        memory.initializeMemory(as: UInt8.self, repeating: 0)
        try fill(memory)
    }

    deinit {
        OPENSSL_cleanse(memory.baseAddress, memory.count)
        if isSecret { CShims_secret_free(memory.baseAddress) } else { memory.deallocate() }
    }

    /// Lends the bytes to `body`; they must not be kept.
    package func withBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        try body(UnsafeRawBufferPointer(memory))
    }
}
