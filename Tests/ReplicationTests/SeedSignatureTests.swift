import Foundation
@testable import Replication
import SystemCalls
import TestSupport
import XCTest

/// Who has made a seed.
final class SeedSignatureTests: XCTestCase {
    private func bytes(_ hex: String) -> [UInt8] {
        let digits = Array(hex.utf8)
        return stride(from: 0, to: digits.count, by: 2).compactMap {
            UInt8(String(decoding: digits[$0...$0 + 1], as: UTF8.self), radix: 16)
        }
    }

    /// RFC 8032 section 7.1, tests 1 to 3.
    func testKeysAndSignaturesAreThoseOfTheStandard() throws {
        for (secret, known, message, signature) in [
            (
                "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
                "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
                "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
            ),
            (
                "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
                "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
                "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
            ),
            (
                "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
                "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025", "af82",
                "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a"
            ),
        ] {
            let key = try SeedSigningKey(raw: bytes(secret))
            XCTAssertEqual(try key.verifyingKey.raw, bytes(known))
            XCTAssertEqual(try key.sign(bytes(message)), bytes(signature))
            let verifying = try SeedVerifyingKey(raw: bytes(known))
            XCTAssertTrue(verifying.verify(bytes(message), bytes(signature)))
            XCTAssertFalse(verifying.verify(bytes(message) + [0], bytes(signature)))
        }
    }

    func testEachByteOfASignatureCounts() throws {
        let scratch = ScratchDirectory("SeedSignature", inMemory: true)
        let path = scratch.file("seed")
        try Data("the content of a seed".utf8).write(to: URL(fileURLWithPath: path))
        let key = try SeedSigningKey.generate(), verifying = try key.verifyingKey
        let made = try SeedSignature.make(path, name: "a name.realm", time: 1_700_000_000, with: key)
        let text = Array(made.text.utf8)
        XCTAssertEqual(try SeedSignature(text: text, place: "s"), made)
        try made.check([verifying], place: "s")
        try made.check(contentOf: path)
        var refusals = 0
        for place in text.indices {
            for bit in [0, 5] as [UInt8] {
                var copy = text
                copy[place] ^= 1 << bit
                XCTAssertThrowsError(try SeedSignature(text: copy, place: "s").check([verifying], place: "s"), "byte \(place)") {
                    error in
                    switch error {
                    case SeedError.badSignatureFile, SeedError.notTrusted: refusals += 1
                    default: XCTFail("byte \(place): \(error)")
                    }
                }
            }
        }
        XCTAssertEqual(refusals, 2 * text.count)
        for count in 0..<text.count { XCTAssertThrowsError(try SeedSignature(text: Array(text[..<count]), place: "s")) }
        XCTAssertThrowsError(try SeedSignature(text: text + [10], place: "s"))
        XCTAssertThrowsError(try SeedSignature(text: [UInt8](repeating: 65, count: 1 << 20), place: "s"))
        try Data("the content of another".utf8).write(to: URL(fileURLWithPath: path))
        XCTAssertThrowsError(try made.check(contentOf: path))
    }

    func testNamesAreTakenFromAddresses() {
        XCTAssertEqual(SeedFetch.lastPart(of: "https://h/a/b.realm"), "b.realm")
        XCTAssertEqual(SeedFetch.lastPart(of: "https://h/a/b%20c.realm?x=/y#z/w"), "b c.realm")
        XCTAssertEqual(SeedFetch.lastPart(of: "file:///a/100%"), "100%")
    }
}
