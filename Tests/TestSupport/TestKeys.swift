import Foundation
import SharedStore

/// The key of tests that run twice: over plain files, and in a subclass, which has this key, over encrypted ones.
///
/// With REALM_TEST_ENCRYPTED in the environment the first form has it too.
public enum TestKeys {
    public static let test = try? EncryptionKey((0..<64).map { UInt8($0) })
    /// What a class has that says nothing of keys.
    public static let usual = ProcessInfo.processInfo.environment["REALM_TEST_ENCRYPTED"] == nil ? nil : test
}

extension TestProcess {
    /// A process that opens everything with this key, which is the test key or none (`TestParticipant/SessionCommands.swift`).
    public convenience init(key: EncryptionKey?) throws {
        try self.init(environment: key == nil ? [:] : ["REALM_TEST_PARTICIPANT_KEY": "1"])
    }
}
