import COpenSSL
import Glibc
import SharedStore

/// What encryption costs: the same work over the same objects, plain and encrypted, in turns.
enum EncryptionBenchmark {
    static func run(_ place: Workplace, count: Int) throws {
        printTitle("Encryption: \(count) objects (primary key, int, string), encrypted beside plain")
        let key = try EncryptionKey.generate()
        let paths = [place.file("plain.realm"), place.file("encrypted.realm")]
        var making: [Double] = []
        for (path, key) in zip(paths, [nil, key]) {
            let store = try Store.open(path, options(key))
            making.append(
                try seconds {
                    try WriteBenchmarks.fill(store, count)
                })
            try store.close()
        }
        printLine("bulk insertion, encrypted", Double(count) / making[1], "objects/s", "\(ratio(making[0], making[1])) plain")

        // Cold: every page is decrypted once. The file itself is in the page cache, for both.
        let cold = try median(3) { try readAll(ImmutableFile(path: paths[1], key: key)) }
        let size = try Double(ImmutableFile(path: paths[1], key: key).fileSize)
        let cipher = try cipherRate()
        printLine("the cipher alone, AES-256-CBC and HMAC-SHA-224", cipher, "B/s")
        printLine("cold reading of all properties", size / cold, "B/s", "\(ratio(size / cold, cipher)) the cipher alone")

        let plain = try ImmutableFile(path: paths[0]), encrypted = try ImmutableFile(path: paths[1], key: key)
        try readAll(plain)
        try readAll(encrypted)
        var times: [[Double]] = [[], []]
        for _ in 0..<9 {
            times[0].append(try seconds { try readAll(plain) })
            times[1].append(try seconds { try readAll(encrypted) })
        }
        printLine(
            "warm reading of all properties, encrypted", Double(count) / middle(times[1]), "objects/s",
            "\(ratio(middle(times[0]), middle(times[1]))) plain")
        times = [[], []]
        for _ in 0..<9 {
            times[0].append(try seconds { try lookUp(plain, count) })
            times[1].append(try seconds { try lookUp(encrypted, count) })
        }
        printLine(
            "warm lookups by object key, encrypted", 100_000 / middle(times[1]), "/s",
            "\(ratio(middle(times[0]), middle(times[1]))) plain")

        try commits(paths, key, count)
    }

    /// Small and large commits, plain and encrypted in turns: synced as users have them, grouped, and without any sync. Beside
    /// them stands what the cipher alone takes for the pages that a commit has to encrypt: nobody can be faster than the plain
    /// commit and that.
    private static func commits(_ paths: [String], _ key: EncryptionKey, _ count: Int) throws {
        let page = 4096 / (try cipherRate(decrypting: false))
        printLine("encrypting and authenticating a page", 1 / page, "/s", "\(short(page))s each")
        var syncing = options(nil)
        syncing.durability = .full
        for (title, plainOptions, isGrouped) in [
            ("synced", syncing, false), ("in groups of 10", syncing, true), ("no syncs", options(nil), false),
        ] {
            var stores: [Store] = []
            for (path, key) in zip(paths, [nil, key]) {
                var options = plainOptions
                options.encryptionKey = key
                stores.append(try Store.open(path, options))
            }
            func pageCount() -> Int { (stores[1].participant?.file.backend as? EncryptedFile)?.writtenPageCount ?? 0 }
            for objects in [1, 1000] {
                let rounds = objects == 1 ? 400 : 60, before = pageCount()
                var times: [[Double]] = [[], []]
                for round in 0..<rounds {
                    for (i, store) in stores.enumerated() {
                        times[i].append(
                            try seconds {
                                if isGrouped {
                                    try changeInGroup(store, objects, round, count)
                                } else {
                                    try change(store, objects, round, count)
                                }
                            })
                    }
                }
                let commits = isGrouped ? 10.0 : 1.0
                let pages = Double(pageCount() - before) / Double(rounds) / commits
                let plain = middle(times[0]) / commits, encrypted = middle(times[1]) / commits, least = plain + pages * page
                printLine(
                    "commit of \(objects) changed, encrypted, \(title)", 1 / encrypted, "commits/s",
                    "\(ratio(plain, encrypted)) plain; \(short(pages))pages, the cipher alone allows \(ratio(plain, least)) plain"
                )
            }
            for store in stores { try store.close() }
        }
    }

    private static func options(_ key: EncryptionKey?) -> StoreOptions {
        var options = ReadBenchmarks.options()
        options.encryptionKey = key
        return options
    }

    private static func middle(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }

    private static func readAll(_ file: ImmutableFile) throws {
        guard let table = try file.group.table(ofClass: "Item"), let id = table.column(named: "id"),
            let age = table.column(named: "age"),
            let name = table.column(named: "name")
        else { return }
        var sum: Int64 = 0, bytes = 0
        try table.forEachLeaf { leaf in
            let ids = try leaf.leaf(IntLeaf.self, id), ages = try leaf.leaf(IntLeaf.self, age),
                names = try leaf.leaf(StringLeaf.self, name)
            for i in 0..<leaf.count {
                sum &+= ids.unchecked(i) &+ ages.unchecked(i)
                bytes &+= try names.bytes(i)?.count ?? 0
            }
        }
        keep(sum)
        keep(bytes)
    }

    private static func lookUp(_ file: ImmutableFile, _ count: Int) throws {
        guard let table = try file.group.table(ofClass: "Item"), let age = table.column(named: "age") else { return }
        var sum: Int64 = 0, k: Int64 = 1
        for _ in 0..<100_000 {
            k = (k &* 48_271) % Int64(count)
            if let row = try table.find(ObjectKey(k)) { sum &+= try row.int(age) }
        }
        keep(sum)
    }

    /// Ten commits that share the syncs.
    private static func changeInGroup(_ store: Store, _ objects: Int, _ round: Int, _ count: Int) throws {
        let transaction = try store.beginWrite()
        for i in 0..<10 {
            try change(transaction, objects, 10 * round + i, count)
            try transaction.commitAndContinue(syncing: false)
        }
        try transaction.sync()
        transaction.rollback()
    }

    private static func change(_ store: Store, _ objects: Int, _ round: Int, _ count: Int) throws {
        try store.write { try change($0, objects, round, count) }
    }

    private static func change(_ transaction: WriteTransaction, _ objects: Int, _ round: Int, _ count: Int) throws {
        let items = try transaction.editor.editor(named: "class_Item")
        let age = try items.column(named: "age")
        for i in 0..<objects { try items.setInt(age, of: ObjectKey(Int64((round &* 7919 &+ i) % count)), to: Int64(round)) }
    }

    /// Bytes that the library decrypts (or encrypts) and authenticates in a second, in pages of 4 KiB as we ask it to.
    private static func cipherRate(decrypting: Bool = true) throws -> Double {
        var key = [UInt8](repeating: 7, count: 32), iv = [UInt8](repeating: 9, count: 16)
        var page = [UInt8](repeating: 1, count: 4096), out = [UInt8](repeating: 0, count: 4096 + 16),
            tag = [UInt8](repeating: 0, count: 64)
        let context = EVP_CIPHER_CTX_new()
        defer { EVP_CIPHER_CTX_free(context) }
        EVP_CipherInit_ex(context, EVP_aes_256_cbc(), nil, &key, &iv, decrypting ? 0 : 1)
        EVP_CIPHER_CTX_set_padding(context, 0)
        let pages = 20_000
        let time = median(3) {
            for i in 0..<pages {
                page[0] = UInt8(truncatingIfNeeded: i)
                var length: Int32 = 0, tagLength: UInt32 = 0
                HMAC(EVP_sha224(), &key, 32, &page, 4096, &tag, &tagLength)
                EVP_CipherInit_ex(context, nil, nil, nil, &iv, -1)
                EVP_CipherUpdate(context, &out, &length, &page, 4096)
            }
        }
        keep(out)
        return Double(pages) * 4096 / time
    }
}
