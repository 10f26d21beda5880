import SharedStore
import XCTest

/// Damage to groups, tables and the columns that they declare.
final class DamagedSchemaTests: DamageTestCase {
    // MARK: Group and tables

    func testMoreTablesThanNames() throws {
        try expect(.groupCounts, in: "relationships") { file in file.edit([1]) { $0.elements.append(1) } }
    }

    func testSlotOfATableThatIsZero() throws {
        try expect(.groupTable, in: "fulltext") { file in
            file.edit([1]) { $0.elements.append(0) }
            file.edit([0]) {
                let width = $0.payload.count / $0.payloadCount
                $0.payload += Array("class_Z".utf8) + [UInt8](repeating: 0, count: width - 8) + [UInt8(width - 8)]
                $0.payloadCount += 1
            }
        }
    }

    func testTablesOfOneName() throws {
        try expect(.groupName, in: "relationships") { file in
            file.edit([0]) { node in
                let width = node.payload.count / node.payloadCount
                node.payload.replaceSubrange((2 * width)..<(3 * width), with: node.payload[width..<(2 * width)])
            }
        }
    }

    func testTableWithTheKeyOfAnotherSlot() throws {
        try expect(.tableKey, in: "fulltext") { file in
            file.edit(file.table("Article")) { $0.elements[3] = self.tagged(7) }
        }
    }

    func testTableOfAnUnknownType() throws {
        try expect(.tableFlags, in: "fulltext") { file in
            file.edit(file.table("Article")) { $0.elements[12] = self.tagged(3) }
        }
    }

    func testTableWithTooFewElements() throws {
        try expect(.tableShape, in: "fulltext") { file in file.edit(file.table("Article")) { $0.elements.removeLast(4) } }
    }

    func testTableWithColumnsOfTheOldKind() throws {
        try expect(.tableShape, in: "fulltext") { file in file.edit(file.table("Article")) { $0.elements[1] = 9 } }
    }

    func testArraysOfLeafIndexesThatAreTooShort() throws {
        try expect(.tableArrays, in: "relationships") { file in
            file.edit(file.table("Dog") + [7]) { $0.elements.removeLast() }
        }
    }

    func testPrimaryKeyThatIsNoColumn() throws {
        try expect(.primaryKeyColumn, also: [.indexAttribute], in: "primary-keys") { file in
            file.edit(file.table("IntKey")) { $0.elements[11] = self.tagged(12345) }
        }
    }

    func testPrimaryKeyOfAnEmbeddedTable() throws {
        try expect(.primaryKeyColumn, also: [.embeddedOwners], in: "primary-keys") { file in
            file.edit(file.table("IntKey")) { $0.elements[12] = self.tagged(1) }
        }
    }

    // MARK: Columns

    func testSpecOfFiveElements() throws {
        try expect(.specShape, also: [.tableArrays, .clusterColumns, .primaryKeyColumn], in: "fulltext") { file in
            file.edit(file.table("Article") + [0]) { $0.elements.remove(at: 4) }
        }
    }

    func testSpecWithTypesOfAnotherLength() throws {
        try expect(.specCounts, also: [.tableArrays, .clusterColumns, .primaryKeyColumn], in: "fulltext") { file in
            file.edit(file.table("Article") + [0, 0]) { $0.elements.removeLast() }
        }
    }

    func testSpecWithoutTheNameOfAColumn() throws {
        try expect(.specCounts, also: [.specName], in: "fulltext") { file in
            file.edit(file.table("Article") + [0, 1]) { node in
                node.payload.removeLast(node.payload.count / node.payloadCount)
                node.payloadCount -= 1
            }
        }
    }

    func testColumnsOfOneLeafIndex() throws {
        try expect(
            .specLeafIndex, also: [.specCounts, .clusterColumns, .tableArrays, .indexAttribute, .nodeKind], in: "many-versions"
        ) { file in
            file.edit(file.table("Log") + [0, 5]) { $0.elements[1] = $0.elements[1] & ~0xFFFF | $0.elements[0] & 0xFFFF }
        }
    }

    func testColumnsOfOneName() throws {
        try expect(.specName, in: "big") { file in
            file.edit(file.table("Plain") + [0, 1]) { node in
                let width = node.payload.count / node.payloadCount
                node.payload.replaceSubrange(width..<(2 * width), with: node.payload[..<width])
            }
        }
    }

    func testColumnWhoseKeyHasAnotherType() throws {
        try expect(.specType, in: "many-versions") { file in file.edit(file.table("Log") + [0, 0]) { $0.elements[0] = 9 } }
    }

    func testColumnOfAnUnknownType() throws {
        try expect(.specType, also: [.tableArrays, .clusterColumns, .specCounts], in: "many-versions") { file in
            file.edit(file.table("Log") + [0, 5]) { $0.elements[1] = $0.elements[1] & ~(63 << 16) | 7 << 16 }
        }
    }

    func testDistinctValuesOfAColumnOfNumbers() throws {
        try expect(.specEnumeration, also: [.nodeKind], in: "trees") { file in
            file.edit(file.table("Small") + [0, 4]) { $0.elements.swapAt(0, 3) }
        }
    }

    func testTooFewListsOfDistinctValues() throws {
        try expect(.specEnumeration, in: "trees") { file in
            file.edit(file.table("Small") + [0, 4]) { $0.elements.removeLast() }
        }
    }

    func testDistinctValueThatStandsTwice() throws {
        try expect(.specEnumeration, in: "trees") { file in
            file.edit(file.table("Small") + [0, 4, file.column("Small", "color")]) { node in
                let width = node.payload.count / node.payloadCount
                node.payload.replaceSubrange(width..<(2 * width), with: node.payload[..<width])
            }
        }
    }

    /// The context flag in every kind of node in which it has no meaning.
    func testContextFlagWhereItMeansNothing() throws {
        let places: [(DamagedFile) -> [Int]] = [
            { _ in [] }, { _ in [1] }, { $0.table("Dog") }, { $0.table("Dog") + [0] }, { $0.table("Dog") + [0, 5] },
            { $0.table("Dog") + [4] },
            { $0.table("Dog") + [7] }, { $0.leaf("Dog", "age") }, { $0.leaf("Person", "dogs") }, { $0.leaf("Person", "best") },
            { $0.cluster("Dog") + [0] },
            { $0.index("Dog", "name") + [0] }, { $0.leaf("Person", "any") + [0] },
            { $0.collection("Person", "byNick") + [1, 2] }, { _ in [0] },
        ]
        for (number, place) in places.enumerated() {
            let file = try DamagedFile(fixture("relationships"))
            let path = place(file)
            let flags = file.flags(file.ref(path))
            file.edit(path) { $0.flags |= 0x20 }
            let report = try file.verify()
            XCTAssertEqual(report.errorCodes, [.nodeContext], "place \(number), flags \(flags): \(report.findings)")
        }
    }

    func testColumnWhoseKeyHasOtherAttributes() throws {
        try expect(.specAttributes, in: "many-versions") { file in
            file.edit(file.table("Log") + [0, 2]) { $0.elements[0] = 16 }
        }
    }

    func testDictionaryWithKeysOfAnUnknownType() throws {
        try expect(.specType, in: "relationships") { file in
            let column = file.column("Person", "byNick")
            file.edit(file.table("Person") + [0, 0]) { $0.elements[column] = 9 << 16 | $0.elements[column] & 0xFFFF }
        }
    }

    func testBacklinkColumnInFrontOfAnother() throws {
        try expect(.specOrder, also: [.specName, .nodeElement, .specCounts], in: "relationships") { file in
            for slot in [0, 2, 5] { file.edit(file.table("Dog") + [0, slot]) { $0.elements.swapAt(2, 3) } }
        }
    }

    func testOppositeColumnThatPointsElsewhere() throws {
        try expect(.columnOpposite, also: [.backlinkExtra, .backlinkMissing, .linkDangling], in: "relationships") { file in
            let best = file.leafIndex("Person", "best"), dogs = file.leafIndex("Person", "dogs")
            file.edit(file.table("Person") + [8]) { $0.elements.swapAt(best, dogs) }
        }
    }

    func testLinkColumnWithoutTargetTable() throws {
        try expect(.columnOpposite, also: [.backlinkExtra, .backlinkMissing, .linkTarget], in: "relationships") { file in
            let best = file.leafIndex("Person", "best")
            file.edit(file.table("Person") + [7]) { $0.elements[best] = 900 }
        }
    }

    func testBacklinkColumnWithoutOrigin() throws {
        try expect(.columnOrigin, .warning, in: "nested-mixed") { file in
            file.edit(file.table("metadata") + [0, 0]) { $0.elements.append(14) }
            file.edit(file.table("metadata") + [0, 2]) { $0.elements.append(0) }
            file.edit(file.table("metadata") + [0, 5]) { $0.elements.append(1 | 14 << 16) }
            file.edit(file.table("metadata") + [4]) { $0.elements.append(0) }
            file.edit(file.table("metadata") + [7]) { $0.elements.append(77) }
            file.edit(file.table("metadata") + [8]) { $0.elements.append(77) }
            let leaf = file.append(.init(flags: 0x40, elements: [0]))
            file.edit(file.cluster("metadata")) { $0.elements.append(Int64(leaf)) }
        }
    }

    func testColumnWithoutLinksThatHasAnOpposite() throws {
        try expect(.columnOpposite, in: "many-versions") { file in
            file.edit(file.table("Log") + [7]) { $0.elements[0] = 1 }
        }
    }
}
