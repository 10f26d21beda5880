import Foundation
import Glibc
import SharedStore
import SystemCalls

/// The key of tests that run twice: over plain files, and in a subclass, which has this key, over encrypted ones.
///
/// With REALM_TEST_ENCRYPTED in the environment the first form has it too, and so have all tests that say nothing of keys but for
/// those that look at the bytes of a file or count the calls that are made to it.
public enum TestKeys {
    public static let test = try? EncryptionKey((0..<64).map { UInt8($0) })
    /// What a class has that says nothing of keys.
    public static let usual = ProcessInfo.processInfo.environment["REALM_TEST_ENCRYPTED"] == nil ? nil : test
    /// The same as the object API takes it.
    public static let usualData = usual == nil ? nil : Data((0..<64).map { UInt8($0) })

    /// Makes a private copy of a plain file that has the usual key. Its space is packed where there is one.
    public static func copy(_ given: String, to path: String) throws {
        try FileManager.default.copyItem(atPath: given, toPath: path)
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: path)
        if let usual { try StoreFiles.changeKey(path, from: nil, to: usual) }
    }

    /// `DatabaseFile.open` with the usual key.
    public static func openFile(_ path: String, writable: Bool, create: Bool = false) throws -> DatabaseFile {
        guard let usual else { return try DatabaseFile.open(path, writable: writable, create: create) }
        let descriptor = try SystemCalls.open(path, (writable ? O_RDWR : O_RDONLY) | (create ? O_CREAT : 0))
        return try DatabaseFile(backend: EncryptedFile(descriptor: descriptor, path: path, key: usual))
    }
}

extension TestProcess {
    /// A process that opens everything with this key, which is the test key or none (`TestParticipant/SessionCommands.swift`).
    public convenience init(key: EncryptionKey?) throws {
        try self.init(environment: key == nil ? [:] : ["REALM_TEST_PARTICIPANT_KEY": "1"])
    }
}
