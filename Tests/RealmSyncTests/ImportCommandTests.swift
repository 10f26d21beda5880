import Foundation
import TestSupport
import XCTest

/// `import` of text without types: plain JSON objects, and CSV.
final class ImportCommandTests: XCTestCase {
    private let scratch = ScratchDirectory("Import")

    private func write(_ text: String, _ name: String) throws -> String {
        try Data(text.utf8).write(to: URL(fileURLWithPath: scratch.file(name)))
        return scratch.file(name)
    }

    private func classes(_ path: String) throws -> [String: [String: Any]] {
        let json = try XCTUnwrap(RealmSync("export", path).json() as? [String: Any])
        return try XCTUnwrap(json["classes"] as? [String: [String: Any]])
    }

    private func properties(_ description: [String: Any]?) throws -> [String] {
        try XCTUnwrap(description?["properties"] as? [[String: Any]]).map { property in
            let optional = property["optional"] as? Bool == true ? "?" : ""
            return
                "\(property["name"] ?? ""): \(property["collection"] as? String == "list" ? "list of " : "")\(property["type"] ?? "")\(optional)"
        }
    }

    func testPlainObjectsGetInferredTypes() throws {
        let text = """
            {"Person": [{"name": "Ann \\"A\\"", "age": 30, "height": 1.7, "tags": ["x", "y"], "extra": {"a": [1, null]}},
                        {"name": null, "age": 31, "height": 2, "tags": null, "isTall": true}], "Empty": []}
            """
        let path = scratch.file("plain.realm")
        let run = try RealmSync("import", write(text, "plain.json"), path)
        XCTAssertEqual(run.exitCode, 0, run.errors)
        let classes = try classes(path)
        XCTAssertEqual(Set(classes.keys), ["Person", "Empty"])
        XCTAssertEqual(
            try properties(classes["Person"]),
            ["name: string?", "age: int", "height: double", "tags: list of string", "extra: mixed?", "isTall: bool?"])
        let objects = try XCTUnwrap(classes["Person"]?["objects"] as? [[String: Any]])
        XCTAssertEqual(objects[0]["name"] as? String, "Ann \"A\"")
        XCTAssertEqual(objects.map { $0["age"] as? Int }, [30, 31])
        XCTAssertEqual(objects[0]["tags"] as? [String], ["x", "y"])
        XCTAssertEqual(objects[1]["tags"] as? [String], [])
        XCTAssertEqual(try RealmSync("verify", path).exitCode, 0)
        let again = try RealmSync("import", scratch.file("plain.json"), path)
        XCTAssertEqual(again.exitCode, 73, again.errors)
    }

    func testCommaSeparatedTextIsImportedAlsoFromAnotherNameAndIntoAnEncryptedFile() throws {
        let text = "id,name,score,ok,note\r\n1,\"Smith, \"\"J\"\"\",2.5,true,\r\n2,,3,false,7\r\n\r\n+3,\"two\nlines\",4,true,x"
        let path = scratch.file("t.realm"), key = scratch.file("key"), other = scratch.file("other.realm")
        let run = try RealmSync("import", write(text, "people.csv"), path)
        XCTAssertEqual(run.exitCode, 0, run.errors)
        let people = try classes(path)["people"]
        XCTAssertEqual(try properties(people), ["id: int", "name: string?", "score: double", "ok: bool", "note: string?"])
        let objects = try XCTUnwrap(people?["objects"] as? [[String: Any]])
        XCTAssertEqual(objects.map { $0["id"] as? Int }, [1, 2, 3])
        XCTAssertEqual(objects.map { $0["name"] as? String }, ["Smith, \"J\"", nil, "two\nlines"])
        XCTAssertEqual(objects.map { $0["ok"] as? Bool }, [true, false, true])
        XCTAssertEqual(objects.map { $0["note"] as? String }, [nil, "7", "x"])
        XCTAssertEqual(try RealmSync("verify", path).exitCode, 0)
        XCTAssertEqual(try RealmSync("keygen", key).exitCode, 0)
        let named = try RealmSync("import", write(text, "data.txt"), other, "--class", "Guest", "--key-file", key)
        XCTAssertEqual(named.exitCode, 0, named.errors)
        XCTAssertTrue(try RealmSync("export", other, "--key-file", key).output.contains("\"Guest\""))
        XCTAssertEqual(try RealmSync("export", other).exitCode, 65)
    }

    func testTextOfNoFormIsRefusedWithItsPlaceAndLeavesNothing() throws {
        let cases = [
            ("a.json", "{\"A\": 7}"), ("b.json", "[1]"), ("c.json", "{\"A\": [{]}"), ("d.csv", "a,b\n1\n"),
            ("e.csv", "a,a\n1,2\n"),
            ("f.json", ""), ("g.csv", "a\n\"x"), ("h.json", "{\"A\": [{\"x\": 1, \"x\": 2}]}"), ("i.csv", ""),
            ("j.json", "{\"A\":[{\"x\":" + String(repeating: "[", count: 200) + String(repeating: "]", count: 200) + "}]}"),
        ]
        for (name, text) in cases {
            let run = try RealmSync("import", write(text, name), scratch.file("no.realm"))
            XCTAssertEqual(run.exitCode, 65, "\(name): \(run.errors)")
            XCTAssertTrue(run.errors.contains("byte "), run.errors)
            XCTAssertEqual(
                try FileManager.default.contentsOfDirectory(atPath: scratch.path).filter { $0.hasPrefix("no.realm") }, [])
        }
        XCTAssertEqual(try RealmSync("import", scratch.file("missing.json"), scratch.file("no.realm")).exitCode, 66)
    }

    func testNothingIsImportedOtherwiseThanItStandsThere() throws {
        // (name, bytes): refused, with the place.
        let refused: [(String, [UInt8])] =
            [
                ("latin.json", Array("{\"A\":[{\"x\":\"a".utf8) + [0xFF] + Array("\"}]}".utf8)),
                ("latin.csv", Array("name\nM".utf8) + [0xFC] + Array("ller\n".utf8)),
            ]
            + [
                ("half.json", "{\"A\":[{\"x\":\"\\ud800\"}]}"), ("large.json", "{\"A\":[{\"x\":1e400}]}"),
                ("digits.json", "{\"A\":[{\"x\":12345678901234567890123}]}"),
                ("digits64.json", "{\"A\":[{\"x\":9223372036854775809}]}"),
                ("zero.json", "{\"A\":[{\"x\":01}]}"), ("point.json", "{\"A\":[{\"x\":1.}]}"),
                ("minus.json", "{\"A\":[{\"x\":1-2}]}"),
                ("twice.json", "{\"A\":[{\"x\":{\"k\":1,\"k\":2}}]}"), ("nameless.json", "{\"\":[{\"x\":1}]}"),
                (
                    "form.json",
                    "{\"classes\":{\"A\":{\"properties\":[{\"name\":\"x\",\"type\":\"int\"}],\"objects\":[{\"_key\":0,\"x\":1,\"x\":2}]}}}"
                ),
                (
                    "kind.json",
                    "{\"classes\":{\"A\":{\"properties\":[{\"name\":\"x\",\"type\":\"int\"}],\"objects\":[{\"_key\":0,\"x\":\"t\"}]}}}"
                ),
                (
                    "pairs.json",
                    "{\"classes\":{\"A\":{\"properties\":[{\"name\":\"x\",\"type\":\"int\",\"collection\":\"dictionary\"}],"
                        + "\"objects\":[{\"_key\":0,\"x\":{\"$dict\":[[\"a\",1],[\"a\",2]]}}]}}}"
                ),
                ("quotes.csv", "a,b\n\"x\"y,1\n"),
            ].map { ($0.0, Array($0.1.utf8)) }
        for (name, bytes) in refused {
            try Data(bytes).write(to: URL(fileURLWithPath: scratch.file(name)))
            let run = try RealmSync("import", scratch.file(name), scratch.file("no.realm"))
            XCTAssertEqual(run.exitCode, 65, "\(name): \(run.errors)")
            XCTAssertTrue(run.errors.contains("\(name): byte "), "\(name): \(run.errors)")
            XCTAssertEqual(
                try FileManager.default.contentsOfDirectory(atPath: scratch.path).filter { $0.hasPrefix("no.realm") }, [], name)
        }
        // Digits are kept where a number would lose them; all kinds of line ends end a line.
        let text = "zip,id,ratio,mixed\r\n01234,12345678901234567890,0.5,9007199254740993\r00501,7,2,0.5"
        let path = scratch.file("kept.realm")
        XCTAssertEqual(try RealmSync("import", write(text, "kept.csv"), path).exitCode, 0)
        let kept = try classes(path)["kept"]
        XCTAssertEqual(try properties(kept), ["zip: string", "id: string", "ratio: double", "mixed: string"])
        let rows = try XCTUnwrap(kept?["objects"] as? [[String: Any]])
        XCTAssertEqual(rows.map { $0["zip"] as? String }, ["01234", "00501"])
        XCTAssertEqual(rows.map { $0["id"] as? String }, ["12345678901234567890", "7"])
        XCTAssertEqual(rows.map { $0["mixed"] as? String }, ["9007199254740993", "0.5"])
        let numbers = scratch.file("numbers.realm")
        XCTAssertEqual(
            try RealmSync(
                "import", write("{\"A\":[{\"x\":9007199254740993,\"y\":-0},{\"x\":0.5,\"y\":0.5}]}", "numbers.json"), numbers
            ).exitCode, 0)
        let exported = try RealmSync("export", numbers).output
        XCTAssertEqual(try properties(classes(numbers)["A"]), ["x: mixed?", "y: double"])
        XCTAssertTrue(exported.contains("\"x\":9007199254740993") && exported.contains("{\"$double\":\"-0\"}"), exported)
    }

    func testWhatAKilledImportLeftIsClearedAwayByTheNextOne() throws {
        let path = scratch.file("a.realm"), left = path + ".part-1", other = path + ".part-none"
        for directory in [left, other] {
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
            try Data("half a file".utf8).write(to: URL(fileURLWithPath: directory + "/new.realm"))
        }
        XCTAssertEqual(try RealmSync("import", write("{\"A\":[{\"x\":1}]}", "a.json"), path).exitCode, 0)
        XCTAssertFalse(FileManager.default.fileExists(atPath: left))
        XCTAssertTrue(FileManager.default.fileExists(atPath: other), "that is none of ours")
    }
}
