import Foundation
import Glibc
import Replication
import SharedStore
import SystemCalls

/// `TestParticipant archive SOURCE FOLDER COMMITS SEED CALL [key=test]`: commits to SOURCE and archives each version into FOLDER,
/// with whole images, merging and retention on the way; dies before its CALL-th system call that has to do with the folder.
///
/// Says "committed VERSION DIGEST" of the export of each version before the archiver sees it, "archived" when the archiver has
/// nothing left to do, and "done" at the end.
func runArchiveCommand(_ arguments: [String]) throws -> Int32 {
    guard arguments.count >= 5, let commits = Int(arguments[2]), let seed = UInt64(arguments[3]), let call = Int(arguments[4])
    else { return 64 }
    let source = arguments[0], folder = arguments[1]
    #if DEBUG
    // Only the archiver's thread makes calls on the folder.
    var left = call
    SystemCallInterception.hook = { intercepted in
        guard intercepted.path.hasPrefix(folder) else { return nil }
        left -= 1
        if left == 0 { kill(getpid(), SIGKILL) }
        return nil
    }
    #endif
    let key = arguments.last == "key=test" ? try EncryptionKey((0..<64).map { UInt8($0) }) : nil
    var storeOptions = StoreOptions()
    storeOptions.durability = .unsafe
    storeOptions.encryptionKey = key
    let store = try Store.open(source, storeOptions)
    var state = seed
    func random(_ limit: UInt64) -> UInt64 {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return (state >> 33) % limit
    }
    func commit() throws {
        try store.write { transaction in
            let table: TableEditor
            if try transaction.editor.group.table(ofClass: "Item") == nil {
                table = try transaction.editor.createTable("class_Item")
                try table.addColumn("number", .int)
                try table.addColumn("text", .string)
            } else {
                table = try transaction.editor.editor(named: "class_Item")
            }
            for _ in 0..<1 + random(4) {
                let key = try table.createObject()
                try table.set("number", of: key, to: .int(Int64(random(1000))))
                try table.set("text", of: key, to: .string(String(repeating: "x", count: Int(random(300)))))
            }
            for _ in 0..<random(4) where table.table.objectCount > 5 {
                guard let row = try table.table.object(at: Int(random(UInt64(table.table.objectCount)))) else { continue }
                try table.deleteObject(row.key)
            }
        }
        let reading = try store.beginRead()
        let hash = SHA256Hash()
        try JSONExporter.text(reading.group).withUnsafeBytes { hash.update($0) }
        say("committed \(reading.version) \(hash.finish())")
        reading.end()
    }
    var options = Archive.Options()
    options.pinGrace = .zero
    options.key = key
    options.keep = 8
    options.removalDelay = .zero
    options.snapshotInterval = .zero
    var done = 0
    var thrown: (any Error)?
    let archiver = Archiver(source: source, place: try FolderPlace(folder, creates: true), options: options) { _, milliseconds in
        if milliseconds < 1000 {
            if milliseconds > 0 { usleep(1000) }
            return nil
        }
        say("archived")
        if done == commits { return .stop }
        done += 1
        do { try commit() } catch {
            thrown = error
            return .stop
        }
        return nil
    }
    try commit()
    try archiver.run()
    if let thrown { throw thrown }
    try store.close()
    say("done")
    return 0
}

private func say(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }
