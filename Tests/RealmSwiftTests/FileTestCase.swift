import Foundation
import RealmSwift
import RealmSwiftTestModels
import Synchronization
import TestSupport
import XCTest

/// Tests with Realms in files, in a folder of their own.
class FileTestCase: XCTestCase {
    let scratch = ScratchDirectory()

    func url(_ name: String = "a.realm") -> URL { URL(fileURLWithPath: scratch.file(name)) }

    func fileConfiguration(_ name: String = "a.realm", _ types: [ObjectBase.Type] = RealmTestCase.types) -> Realm.Configuration {
        Realm.Configuration(fileURL: url(name), encryptionKey: TestKeys.usualData, objectTypes: types)
    }

    /// The error that `body` throws, which must be one of the library.
    func realmError<R>(_ body: @autoclosure () throws -> R, line: UInt = #line) -> Realm.Error? {
        do {
            _ = try body()
            XCTFail("nothing was thrown", line: line)
        } catch let error as Realm.Error { return error } catch { XCTFail("\(error)", line: line) }
        return nil
    }

    /// Makes a file with some dogs, which nobody has open afterwards.
    func makeFile(_ configuration: Realm.Configuration, dogs: Int = 1) {
        onThread {
            let realm = try! Realm(configuration: configuration)
            try! realm.write { for number in 0..<dogs { realm.add(Dog(name: "Dog \(number)", age: number)) } }
        }
    }
}

/// Runs a program of another process that uses the object API: see `Tests/TestParticipant/RealmCommands.swift`.
func runRealmCommand(_ arguments: [String], environment: [String: String] = [:]) throws -> String {
    let process = try ChildProcess(product: "TestParticipant", ["realm"] + arguments, environment: environment)
    let code = process.waitForEnd()
    if code != 0 { XCTFail("realm \(arguments.first ?? "") ended with \(code.map(String.init) ?? "nothing"): \(process.errors)") }
    return process.output.trimmingCharacters(in: .newlines)
}
