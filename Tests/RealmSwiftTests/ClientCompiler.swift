import Foundation
import TestSupport
import XCTest

/// Compiles programs that use the library as applications do, outside of the package.
enum ClientCompiler {
    static let products = ChildProcess.products.path
    /// What a program that is linked to the library needs where that is built for a sanitizer.
    static let sanitizing: [String] =
        switch TestTime.sanitizer {
        case nil: []
        case .address: ["-sanitize=address"]
        case .thread: ["-sanitize=thread"]
        }

    /// - Parameter arguments: for the compiler, besides where the library's modules are.
    /// - Throws: `XCTSkip` where there is no compiler in the path.
    static func compile(
        _ source: String, _ scratch: ScratchDirectory, _ arguments: [String], file: StaticString = #filePath, line: UInt = #line
    ) throws {
        let sources = Fixtures.packageRoot.appendingPathComponent("Sources").path
        try source.write(toFile: scratch.file("main.swift"), atomically: true, encoding: .utf8)
        let modules =
            ["COpenSSL", "CInotifyTools", "CDecimal", "CZstd", "CXXHash"].map { sources + "/" + $0 } + [
                products + "/CShims.build"
            ]
        let compiler = try ChildProcess(
            path: "/usr/bin/env",
            [
                "swiftc", "-swift-version", "6", scratch.file("main.swift"), "-I", products + "/Modules", "-I",
                sources + "/CShims/include",
            ]
                + modules.flatMap { ["-Xcc", "-fmodule-map-file=\($0)/module.modulemap"] } + arguments)
        let code = compiler.waitForEnd(seconds: 120)
        if code == 127 { throw XCTSkip("no swiftc in the path") }
        XCTAssertEqual(code, 0, compiler.errors, file: file, line: line)
    }

    /// The instructions of a function of an object file, with the symbols that they refer to; nil where there is no objdump.
    static func instructions(of function: String, in path: String) throws -> String? {
        let dump = try ChildProcess(path: "/usr/bin/env", ["objdump", "-dr", "--no-show-raw-insn", path])
        if dump.waitForEnd(seconds: 60) == 127 { return nil }
        let parts = dump.output.components(separatedBy: "\n\n")
        return parts.first {
            $0.contains("\(function)") && $0.contains(">:\n")
                && ($0.components(separatedBy: "\n").first { $0.hasSuffix(">:") }?.contains(function) ?? false)
        }
    }
}

/// What the compiler makes of `@Persisted` in the application's module: counts, not times.
final class PersistedCodeTests: XCTestCase {
    func testAnAccessIsALoadAndACallWithoutChecksAndCounting() throws {
        let scratch = ScratchDirectory()
        let source = """
            import RealmSwift
            public final class Probe: Object {
                @Persisted public var age: Int
                @Persisted public var name: String
                public var own: [Int] = []
            }
            public func readTheAge(_ probe: Probe) -> Int { probe.age }
            public func writeTheAge(_ probe: Probe, _ value: Int) { probe.age = value }
            public func increaseTheAge(_ probe: Probe) { probe.age += 1 }
            public func readTheName(_ probe: Probe) -> String { probe.name }
            """
        try ClientCompiler.compile(
            source, scratch, ["-O", "-parse-as-library", "-emit-object", "-module-name", "Probe", "-o", scratch.file("probe.o")])
        for (function, library) in [
            ("readTheAge", "_getInt"), ("writeTheAge", "_setInt"), ("increaseTheAge", "_setInt"), ("readTheName", "_getString"),
        ] {
            guard let text = try ClientCompiler.instructions(of: function, in: scratch.file("probe.o")) else {
                throw XCTSkip("no objdump, or nothing in it")
            }
            XCTAssertTrue(text.contains(library), text)
            for call in ["swift_beginAccess", "swift_getKeyPath", "swift_getAtKeyPath", "swift_setAtReferenceWritableKeyPath"] {
                XCTAssertFalse(text.contains(call), "\(function) calls \(call)")
            }
            if function == "readTheAge" { XCTAssertFalse(text.contains("swift_retain"), text) }
        }
    }
}
