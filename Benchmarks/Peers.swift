import CLMDB
import CSQLite
import Glibc

/// SQLite in WAL mode doing the same work, through its C interface with prepared statements.
final class SQLitePeer {
    private var database: OpaquePointer?
    private var insert: OpaquePointer?
    private var lookup: OpaquePointer?
    private var update: OpaquePointer?

    init(_ path: String, isSynchronous: Bool) {
        precondition(sqlite3_open(path, &database) == SQLITE_OK, "SQLite cannot make \(path)")
        run("PRAGMA journal_mode=WAL")
        run("PRAGMA synchronous=\(isSynchronous ? "FULL" : "OFF")")
        run("CREATE TABLE IF NOT EXISTS item (id INTEGER PRIMARY KEY, age INTEGER, name TEXT)")
        sqlite3_prepare_v2(database, "INSERT INTO item VALUES (?,?,?)", -1, &insert, nil)
        sqlite3_prepare_v2(database, "SELECT age FROM item WHERE id=?", -1, &lookup, nil)
        sqlite3_prepare_v2(database, "UPDATE item SET age=? WHERE id=?", -1, &update, nil)
    }

    deinit {
        for statement in [insert, lookup, update] { sqlite3_finalize(statement) }
        sqlite3_close(database)
    }

    func run(_ sql: String) { sqlite3_exec(database, sql, nil, nil, nil) }

    func insert(_ id: Int64, _ age: Int64, _ name: String) {
        sqlite3_bind_int64(insert, 1, id)
        sqlite3_bind_int64(insert, 2, age)
        sqlite3_bind_text(insert, 3, name, -1, unsafeBitCast(-1, to: sqlite3_destructor_type.self))
        sqlite3_step(insert)
        sqlite3_reset(insert)
    }

    func age(_ id: Int64) -> Int64 {
        sqlite3_bind_int64(lookup, 1, id)
        sqlite3_step(lookup)
        defer { sqlite3_reset(lookup) }
        return sqlite3_column_int64(lookup, 0)
    }

    func setAge(_ id: Int64, _ age: Int64) {
        sqlite3_bind_int64(update, 1, age)
        sqlite3_bind_int64(update, 2, id)
        sqlite3_step(update)
        sqlite3_reset(update)
    }

    /// Goes through the rows of a query: the sum of its first column and, of a second one, of its numbers or the lengths of its
    /// texts.
    func sum(_ sql: String) -> Int64 {
        var statement: OpaquePointer?
        sqlite3_prepare_v2(database, sql, -1, &statement, nil)
        defer { sqlite3_finalize(statement) }
        let isWide = sqlite3_column_count(statement) > 1
        var sum: Int64 = 0
        while sqlite3_step(statement) == SQLITE_ROW {
            sum &+= sqlite3_column_int64(statement, 0)
            if !isWide { continue }
            if sqlite3_column_type(statement, 1) == SQLITE_TEXT {
                sum &+= Int64(String(cString: sqlite3_column_text(statement, 1)).utf8.count)
            } else {
                sum &+= sqlite3_column_int64(statement, 1)
            }
        }
        return sum
    }

    func number(_ sql: String) -> Int64 {
        var statement: OpaquePointer?
        sqlite3_prepare_v2(database, sql, -1, &statement, nil)
        sqlite3_step(statement)
        defer { sqlite3_finalize(statement) }
        return sqlite3_column_int64(statement, 0)
    }
}

/// LMDB doing the same work: keys of 8 bytes, values of age and name.
final class LMDBPeer {
    private var environment: OpaquePointer?
    private var handle: MDB_dbi = 0
    private var transaction: OpaquePointer?

    init(_ path: String, isSynchronous: Bool) {
        mdb_env_create(&environment)
        mdb_env_set_mapsize(environment, 4 << 30)
        let flags = UInt32(MDB_NOSUBDIR) | (isSynchronous ? 0 : UInt32(MDB_NOSYNC))
        precondition(mdb_env_open(environment, path, flags, 0o644) == 0, "LMDB cannot make \(path)")
        begin()
        mdb_dbi_open(transaction, nil, UInt32(MDB_INTEGERKEY), &handle)
        commit()
    }

    deinit { mdb_env_close(environment) }

    func begin(readOnly: Bool = false) { mdb_txn_begin(environment, nil, readOnly ? UInt32(MDB_RDONLY) : 0, &transaction) }
    func commit() { mdb_txn_commit(transaction) }

    func put(_ id: Int64, _ age: Int64, _ name: String) {
        var id = id
        var bytes = [UInt8](repeating: 0, count: 8)
        bytes.withUnsafeMutableBytes { $0.storeBytes(of: age, as: Int64.self) }
        bytes += Array(name.utf8)
        withUnsafeMutableBytes(of: &id) { k in
            bytes.withUnsafeMutableBytes { v in
                var key = MDB_val(mv_size: 8, mv_data: k.baseAddress), value = MDB_val(mv_size: v.count, mv_data: v.baseAddress)
                mdb_put(transaction, handle, &key, &value, 0)
            }
        }
    }

    func age(_ id: Int64) -> Int64 {
        var id = id
        return withUnsafeMutableBytes(of: &id) { k in
            var key = MDB_val(mv_size: 8, mv_data: k.baseAddress), value = MDB_val()
            guard mdb_get(transaction, handle, &key, &value) == 0 else { return -1 }
            return value.mv_data.load(as: Int64.self)
        }
    }

    func sumOfAges() -> Int64 {
        var cursor: OpaquePointer?
        mdb_cursor_open(transaction, handle, &cursor)
        defer { mdb_cursor_close(cursor) }
        var key = MDB_val(), value = MDB_val()
        var sum: Int64 = 0
        while mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0 { sum &+= value.mv_data.load(as: Int64.self) }
        return sum
    }
}
