import SharedStore
import XCTest

/// Damage to the history.
final class DamagedHistoryTests: DamageTestCase {
    func testChangesetThatCannotBeParsed() throws {
        try expect(.historyElement, in: "relationships") { file in file.edit([8, 0]) { $0.payload[3] = 99 } }
    }

    func testChangesetThatIsCutOff() throws {
        try expect(.historyElement, in: "relationships") { file in
            file.edit([8, 0]) {
                $0.payloadCount = 2
                $0.payload.removeSubrange(2...)
            }
        }
    }

    func testChangesetThatUsesWhatItHasNotSelected() throws {
        try expect(.historyElement, in: "many-versions") { file in
            file.edit([8, 1]) {
                $0.payload.removeFirst(3); $0.payloadCount -= 3
            }
            file.edit([8, 0]) { $0.elements[0] -= 3 }
        }
    }

    func testMoveOfAnElementToItsOwnPlace() throws {
        func history(_ from: UInt8, _ to: UInt8) throws -> DamagedFile {
            let file = try DamagedFile(fixture("relationships"))
            // Of table 1, collection column 0 of object 0: the move.
            file.edit([8, 0]) { ($0.payload, $0.payloadCount) = ([10, 0, 1, 30, 0, 0, 33, from, to], 9) }
            return file
        }
        try expectSound(history(2, 3), warnings: [.spaceLeaked, .topPages])
        try expect(.historyElement, of: history(2, 2))
    }

    func testChangesetThatIsNull() throws {
        try expect(.valueNull, in: "relationships") { file in file.edit([8]) { $0.elements.append(0) } }
    }

    func testMoreChangesetsThanVersions() throws {
        try expect(.historyCount, in: "many-versions") { file in
            let count = 500
            let blob = file.append(.init(flags: 0x10))
            let offsets = file.append(.init(flags: 0, elements: [Int64](repeating: 0, count: count)))
            let nulls = file.append(.init(flags: 0, elements: [Int64](repeating: 0, count: count)))
            file.edit([8]) { $0.elements = [Int64(offsets), Int64(blob), Int64(nulls)] }
        }
    }

    func testHistoryOfAnUnknownType() throws {
        try expect(.historyType, in: "fulltext") { file in file.edit([]) { $0.elements[7] = self.tagged(9) } }
    }

    func testHistoryOfAFutureSchema() throws {
        try expect(.historyType, in: "fulltext") { file in file.edit([]) { $0.elements[9] = self.tagged(2) } }
    }

    func testSchemaVersionWithoutHistory() throws {
        try expect(.historyType, in: "fulltext") { file in
            file.edit([]) {
                $0.elements[7] = self.tagged(0); $0.elements[8] = 0
            }
        }
    }
}
