import Foundation
import TestSupport
import XCTest

/// export, schema, status, verify, query: what they show of the given files.
final class ReadingCommandTests: XCTestCase {
    private let scratch = ScratchDirectory("ReadingCommands")
    private func given(_ name: String) -> String { scratch.copy(ofGiven: name) }

    func testExportIsTheGivenJSON() throws {
        for name in ["relationships", "nested-mixed", "compact-copy"] {
            let expected = try ExactJSON(parsing: Array(Data(contentsOf: URL(fileURLWithPath: given(name + ".json")))))
            for style in [[], ["--lines"]] {
                let child = try ChildProcess(product: "realm-sync", ["export", given(name + ".realm")] + style)
                XCTAssertEqual(child.waitForEnd(seconds: 60), 0, child.errors)
                XCTAssertEqual(try ExactJSON(parsing: Array(child.output.utf8)), expected, name)
                XCTAssertTrue(child.output.hasSuffix("}\n"))
            }
        }
    }

    func testSchemaAsTextAndAsJSON() throws {
        let text = try RealmSync("schema", given("all-types.realm"))
        XCTAssertEqual(text.exitCode, 0, text.errors)
        XCTAssertTrue(
            text.output.hasPrefix("schema version 3\n\nAllTypes (12 objects, primary key _id)\n  _id: int, indexed\n"),
            text.output)
        XCTAssertTrue(text.output.contains("\n  mapOpt_string: dictionary<string?>\n"), text.output)
        let json = try XCTUnwrap(RealmSync("schema", given("all-types.realm"), "--json").json() as? [String: Any])
        XCTAssertEqual(json["schemaVersion"] as? Int, 3)
        let classes = try XCTUnwrap(json["classes"] as? [String: [String: Any]])
        let given = try XCTUnwrap(
            JSONSerialization.jsonObject(with: Data(contentsOf: URL(fileURLWithPath: given("all-types.json")))) as? [String: Any])
        let expected = try XCTUnwrap((given["classes"] as? [String: [String: Any]])?["AllTypes"]?["properties"] as? NSArray)
        XCTAssertEqual(classes["AllTypes"]?["properties"] as? NSArray, expected)
    }

    func testStatusTellsFormatVersionAndSizes() throws {
        let json = try XCTUnwrap(RealmSync("status", given("big.realm"), "-j").json() as? [String: Any])
        XCTAssertEqual(json["format"] as? Int, 24)
        XCTAssertEqual(json["version"] as? Int, 8)
        XCTAssertEqual(json["historyType"] as? Int, 2)
        XCTAssertEqual(json["encrypted"] as? Bool, false)
        let size = try XCTUnwrap(FileManager.default.attributesOfItem(atPath: given("big.realm"))[.size] as? Int)
        XCTAssertEqual(json["fileSize"] as? Int, size)
        let free = try XCTUnwrap(json["freeBytes"] as? Int)
        let verified = try XCTUnwrap(RealmSync("verify", given("big.realm"), "-j").json() as? [String: Any])
        XCTAssertEqual(verified["freeBytes"] as? Int, free)
        let text = try RealmSync("status", given("compact-copy.realm"))
        XCTAssertTrue(text.output.contains("file format:    24, streaming form\n"), text.output)
    }

    func testVerifyTellsSoundFromDamaged() throws {
        let sound = try RealmSync("verify", given("relationships.realm"))
        XCTAssertEqual(sound.exitCode, 0)
        XCTAssertTrue(sound.output.contains("relationships.realm: sound ("), sound.output)

        var bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: given("big.realm"))))
        // The byte in the middle of the header of the node that the live slot points to.
        let slot = Int(bytes[23] & 1)
        let top = bytes[slot * 8..<slot * 8 + 8].reversed().reduce(0) { $0 << 8 | Int($1) }
        bytes[top + 8] ^= 0x40
        let path = scratch.file("damaged.realm")
        try Data(bytes).write(to: URL(fileURLWithPath: path))
        let damaged = try RealmSync("verify", path)
        XCTAssertEqual(damaged.exitCode, 1, damaged.errors)
        XCTAssertTrue(damaged.output.contains(": damaged: "), damaged.output)
        let json = try XCTUnwrap(RealmSync("verify", path, "--json").json() as? [String: Any])
        XCTAssertEqual(json["sound"] as? Bool, false)
        XCTAssertGreaterThan((json["findings"] as? [[String: Any]])?.count ?? 0, 0)
        XCTAssertEqual(try RealmSync("verify", scratch.file("absent")).exitCode, 66)
    }

    func testVerifyOfAnEncryptedFile() throws {
        let key = scratch.file("key")
        try FileManager.default.copyItem(atPath: given("encrypted.key"), toPath: key)
        XCTAssertEqual(chmod(key, 0o600), 0)
        for name in ["encrypted.realm", "compact-copy-encrypted.realm"] {
            let run = try RealmSync("verify", given(name), "-k", key)
            XCTAssertEqual(run.exitCode, 0, run.output + run.errors)
        }
    }

    // MARK: Query

    private func query(_ arguments: String...) throws -> [[String: Any]] {
        let child = try ChildProcess(product: "realm-sync", ["query"] + arguments + ["--json", "--limit", "0"])
        XCTAssertEqual(child.waitForEnd(), 0, child.errors)
        return try XCTUnwrap(JSONSerialization.jsonObject(with: Data(child.output.utf8)) as? [[String: Any]])
    }

    func testQueryAnswersInTheLanguageOfPredicates() throws {
        let file = given("many-versions.realm")
        let keys = try RealmSync("query", file, "Log", "n > $0 AND n <= 140 SORT(n DESC) LIMIT(3)", "--arg", "134", "--keys")
        XCTAssertEqual(keys.output, "[140,139,138]\n", keys.errors)
        let list = try RealmSync("query", file, "Log", "n IN $0", "--arg", "[133, 134, 9]", "--keys")
        XCTAssertEqual(list.output, "[133,134]\n", list.errors)
        let plan = try RealmSync("query", file, "Log", "n == 133", "--explain")
        XCTAssertTrue(plan.output.contains("1 in the result"), plan.output)
        let wrong = try RealmSync("query", file, "Log", "n = = 3")
        XCTAssertEqual(wrong.exitCode, 64)
        XCTAssertEqual(wrong.errors.split(separator: "\n").count, 1, wrong.errors)
    }

    func testQueryRefusesDatesThatNoCalendarHasAndColumnsThatStandTwice() throws {
        let file = given("all-types.realm")
        for date in [
            "2024-13-45@00:00:00", "2024-02-30@00:00:00", "2023-02-29@00:00:00", "2024-04-31@00:00:00", "2024-01-01@24:00:00",
            "2024-01-01@00:60:00",
        ] {
            let run = try RealmSync("query", file, "AllTypes", "dateCol == \(date)")
            XCTAssertEqual(run.exitCode, 64, date)
            XCTAssertTrue(run.errors.contains("there is no such date as \(date)"), run.errors)
        }
        XCTAssertEqual(try RealmSync("query", file, "AllTypes", "dateCol == 2024-02-29@23:59:59:999999999").exitCode, 0)
        let twice = try RealmSync("query", file, "AllTypes", "--columns", "intCol,dateCol,intCol")
        XCTAssertEqual(twice.exitCode, 64)
        XCTAssertTrue(twice.errors.contains("'intCol' stands twice"), twice.errors)
    }

    func testQueryShowsAnAlignedTable() throws {
        let run = try RealmSync("query", given("big.realm"), "Item", "--limit", "3", "--columns", "id,code,on")
        XCTAssertEqual(run.exitCode, 0, run.errors)
        let lines = run.output.split(separator: "\n")
        XCTAssertEqual(lines.count, 5)
        XCTAssertTrue(lines[0].hasPrefix("_key "), run.output)
        XCTAssertTrue(run.errors.contains("only the first 3 objects are shown"), run.errors)
        // The titles stand above their values: a column begins at the same place in each line.
        let start = try XCTUnwrap(lines[0].range(of: "code")).lowerBound
        let offset = lines[0].distance(from: lines[0].startIndex, to: start)
        for line in lines.dropFirst(2) {
            XCTAssertEqual(line[line.index(line.startIndex, offsetBy: offset - 1)], " ", String(line))
            XCTAssertNotEqual(line[line.index(line.startIndex, offsetBy: offset)], " ", String(line))
        }
    }

    func testWhereFindsTheSameObjectsAsAFilterOverTheExport() throws {
        let all = try query(given("big.realm"), "Item")
        XCTAssertGreaterThan(all.count, 2000)
        let on = try query(given("big.realm"), "Item", "--where", "on=true")
        XCTAssertEqual(on.count, all.filter { $0["on"] as? Bool == true }.count)
        let both = try query(given("big.realm"), "Item", "--where", "on=true", "--where", "note=null")
        XCTAssertEqual(both.count, all.filter { $0["on"] as? Bool == true && $0["note"] is NSNull }.count)
        let one = try XCTUnwrap(all.first { $0["uid"] is [String: String] })
        let uid = try XCTUnwrap((one["uid"] as? [String: String])?["$uuid"])
        XCTAssertEqual(try query(given("big.realm"), "Item", "--where", "uid=\(uid)").first?["_key"] as? Int, one["_key"] as? Int)
        let code = try XCTUnwrap(one["code"] as? String)
        XCTAssertEqual(
            try query(given("big.realm"), "Item", "--where", "code=\"\(code)\"").count,
            all.filter { $0["code"] as? String == code }.count)
    }

    func testNothingFoundIsToldOnStandardError() throws {
        let run = try RealmSync("query", given("big.realm"), "Item", "--where", "id=-1")
        XCTAssertEqual(run.exitCode, 0)
        XCTAssertTrue(run.errors.contains("no object of Item matches"), run.errors)
    }

    // MARK: Watch

    func testWatchPrintsTheVersionThatIsThereAndEndsWhenInterrupted() throws {
        let path = scratch.file("big.realm")
        try FileManager.default.copyItem(atPath: given("big.realm"), toPath: path)
        let child = try ChildProcess(product: "realm-sync", ["watch", path, "--json"])
        let line = try XCTUnwrap(child.readLine(), child.errors)
        let event = try XCTUnwrap(JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
        XCTAssertEqual(event["version"] as? Int, 8)
        XCTAssertEqual(unlink(path), 0)
        XCTAssertTrue(try XCTUnwrap(child.readLine()).contains("\"event\":\"deleted\""))
        child.signal(SIGINT)
        XCTAssertEqual(child.waitForEnd(), 0)
        XCTAssertEqual(child.errors, "")
    }
}
