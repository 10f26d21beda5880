import Foundation
import SharedStore

func verifyFiles(_ paths: [String]) throws {
    for path in paths {
        let data = try Data(contentsOf: URL(fileURLWithPath: path))
        let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: data.count, alignment: 16)
        data.withUnsafeBytes { bytes.copyBytes(from: $0) }
        let report = try Verifier.verify(file: bytes)
        var r = report; r.findings = []
        print(URL(fileURLWithPath: path).lastPathComponent, r)
        for f in report.findings { print("   ", f) }
    }
}
try verifyFiles(Array(CommandLine.arguments.dropFirst()))
