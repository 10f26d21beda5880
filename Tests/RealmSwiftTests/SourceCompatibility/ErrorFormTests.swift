import Foundation
import RealmSwift
import TestSupport
import XCTest

/// What applications do with errors of the library.
final class ErrorFormTests: FileTestCase {
    private func message(_ code: Realm.Error.Code) -> String { "\(code.rawValue)" }
    private func generic<Code: RawRepresentable & Hashable>(_ code: Code) -> Int where Code.RawValue == Int { code.rawValue }

    private struct Failure {
        var code: Realm.Error.Code
        var url: URL?
        init(_ error: Realm.Error) {
            code = error.code
            url = error.fileURL
        }
    }

    private enum LayerError: Error { case realm(Realm.Error.Code), other(any Error) }

    private func wrapped(_ error: any Error) -> LayerError {
        switch error {
        case let error as Realm.Error: .realm(error.code)
        default: .other(error)
        }
    }

    private var missing: Realm.Configuration {
        var configuration = fileConfiguration("missing.realm")
        configuration.readOnly = true
        return configuration
    }

    func testTheCodeOfAnErrorIsACodeWhoeverIsGivenIt() throws {
        let missing = missing
        let error = try XCTUnwrap(realmError(try Realm(configuration: missing)))
        let code = error.code
        XCTAssertEqual(message(code), "5")
        XCTAssertEqual(message(error.code), "5")
        XCTAssertEqual(generic(error.code), 5)
        XCTAssertEqual(Failure(error).code, .fileNotFound)
        if case .realm(.fileNotFound) = wrapped(error) {} else { XCTFail("\(error)") }
        let isKnown: Bool =
            switch code {
            case .fileNotFound: true
            case .fail, .fileAccess: false
            default: false
            }
        XCTAssertTrue(isKnown)
        XCTAssertTrue([Realm.Error.Code.fileNotFound, .fileExists].contains(error.code))
        XCTAssertTrue(Set([Realm.Error.fileNotFound]).contains(code))
        XCTAssertTrue(error.code == .fileNotFound && error.code != Realm.Error.fail && code == Realm.Error.Code(rawValue: 5))
        let codes = [error].map(\.code)
        XCTAssertEqual(codes, [.fileNotFound])
        XCTAssertEqual([error].first?.code, .fileNotFound)
        XCTAssertEqual(Realm.Error(error.code).code, error.code)
        let result = Result<Void, Realm.Error>.failure(error)
        if case .failure(let error) = result { XCTAssertEqual(error.code, .fileNotFound) }
        // The number, for logs and for those who know only that it is an error of the system's kind.
        XCTAssertEqual(error.errorCode, 5)
        XCTAssertEqual((error as NSError).code, 5)
        XCTAssertEqual((error as any Error as NSError).code, Realm.Error.fileNotFound.rawValue)
        XCTAssertEqual(error.errorUserInfo[NSFilePathErrorKey] as? String, error.fileURL?.path)
    }

    func testAnErrorIsCaughtInEveryForm() {
        let missing = missing
        func open() throws { _ = try Realm(configuration: missing) }
        var caught: [String] = []
        do { try open() } catch let error as Realm.Error where error.code == .fileNotFound { caught.append("where") } catch {}
        do { try open() } catch Realm.Error.fileNotFound { caught.append("static") } catch {}
        do { try open() } catch Realm.Error.fileExists, Realm.Error.fileNotFound { caught.append("several") } catch {}
        do { try open() } catch let error as NSError where error.domain == "io.realm" && error.code == 5 {
            caught.append("NSError")
        } catch {}
        do { try open() } catch let error as NSError where error.code == Realm.Error.Code.fileNotFound.rawValue {
            caught.append("number")
        } catch {}
        do { try open() } catch {
            if let error = error as? Realm.Error, error.code == .fileNotFound { caught.append("cast") }
            if (error as NSError).code == Realm.Error.fileNotFound.rawValue { caught.append("bridged") }
            if case Realm.Error.fileNotFound = error { caught.append("pattern") }
        }
        XCTAssertEqual(
            caught, ["where", "static", "several", "NSError", "number", "cast", "bridged", "pattern"])
    }
}
