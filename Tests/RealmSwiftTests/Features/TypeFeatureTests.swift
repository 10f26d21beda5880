import Foundation
import RealmSwift
import RealmSwiftTestModels
import TestSupport
import XCTest

/// Values of every type in a Realm.
final class TypeFeatureTests: RealmTestCase {
    private func store(_ values: [String: Any]) throws -> (Realm, AllTypes) {
        let realm = try makeRealm()
        var values = values
        values["key"] = "k"
        let object = try realm.write { realm.create(AllTypes.self, value: values) }
        return (realm, object)
    }

    func testF091_theExtremesOfEveryInteger() throws {
        let (realm, object) = try store([
            "int8": Int8.min, "int16": Int16.min, "int32": Int32.min, "int64": Int64.min, "int": Int.max,
        ])
        XCTAssertEqual(object.int8, .min)
        XCTAssertEqual(object.int16, .min)
        XCTAssertEqual(object.int32, .min)
        XCTAssertEqual(object.int64, .min)
        XCTAssertEqual(object.int, .max)
        try realm.write {
            object.int8 = .max
            object.int16 = .max
            object.int32 = .max
            object.int64 = .max
            object.int = .min
            object.optInt8 = -1
        }
        XCTAssertEqual(
            [Int(object.int8), Int(object.int16), Int(object.int32), Int(object.int64), object.int],
            [127, 32767, 2_147_483_647, .max, .min])
        XCTAssertEqual(object.optInt8, -1)
    }

    func testF090_F093_boolsAndDoublesAreQueried() throws {
        let (realm, object) = try store(["bool": true, "double": Double.greatestFiniteMagnitude])
        XCTAssertEqual(realm.objects(AllTypes.self).filter("bool == true").count, 1)
        XCTAssertEqual(realm.objects(AllTypes.self).where { $0.bool == false }.count, 0)
        XCTAssertEqual(object.double, .greatestFiniteMagnitude)
        for value in [Double.leastNonzeroMagnitude, -.infinity, 0.1, -0.0] {
            try realm.write { object.double = value }
            XCTAssertEqual(object.double, value)
        }
        XCTAssertEqual(object.double.sign, .minus)
    }

    func testF094_textsComeBackByteByByte() throws {
        let texts = ["", "é", "e\u{301}", "👩‍👩‍👧‍👦🇩🇪", "a\0b", String(repeating: "ß", count: 5000), "\u{FEFF}x", "日本語"]
        let (realm, object) = try store([:])
        for text in texts {
            try realm.write { object.string = text }
            XCTAssertEqual(Array(object.string.utf8), Array(text.utf8))
            XCTAssertEqual(realm.objects(AllTypes.self).where { $0.string == text }.count, 1, text.prefix(5).description)
        }
    }

    func testF095_emptyDataIsNotNil() throws {
        let (realm, object) = try store(["optData": Data()])
        XCTAssertEqual(object.optData, Data())
        XCTAssertEqual(realm.objects(AllTypes.self).filter("optData == nil").count, 0)
        try realm.write { object.optData = nil }
        XCTAssertNil(object.optData)
        XCTAssertEqual(realm.objects(AllTypes.self).filter("optData == nil").count, 1)
        let bytes = Data((0..<100_000).map { UInt8(truncatingIfNeeded: $0) })
        try realm.write { object.data = bytes }
        XCTAssertEqual(object.data, bytes)
    }

    func testF100_everyOptionalHoldsNil() throws {
        let (realm, object) = try store([
            "optInt": 1, "optString": "s", "optDouble": 1.5, "optDate": Date(), "optUuid": UUID(), "optDecimal": 1,
            "optSize": "large", "optObjectId": ObjectId.generate(),
        ])
        let names =
            realm.schema["AllTypes"]?.properties.map(\.name).filter {
                $0.hasPrefix("opt") && !$0.hasSuffix("s") && !$0.hasSuffix("Map")
            } ?? []
        XCTAssertEqual(names.count, 15)
        try realm.write {
            for name in names { object[name] = nil }
        }
        for name in names {
            XCTAssertNil(object[name], name)
            XCTAssertEqual(realm.objects(AllTypes.self).filter("%K == nil", name).count, 1, name)
        }
    }

    func testF102_listsOfEveryValue() throws {
        let (realm, object) = try store([
            "bools": [true, false], "floats": [1.5, -2], "optInts": [NSNull(), 3], "optStrings": ["a", NSNull()],
        ])
        XCTAssertEqual(Array(object.bools), [true, false])
        XCTAssertEqual(Array(object.floats), [1.5, -2])
        XCTAssertEqual(Array(object.optInts), [nil, 3])
        try realm.write {
            object.optInts.append(nil)
            object.optInts[1] = nil
            object.datas.append(Data())
            object.sizes.append(.medium)
            object.sizes[0] = .large
            object.decimals.append(objectsIn: [1, 2.5, "3"])
            object.anys.append(objectsIn: [.int(1), .string("x"), .fromArray([.bool(true)])])
        }
        XCTAssertEqual(Array(object.optInts), [nil, nil, nil])
        XCTAssertEqual(Array(object.optStrings), ["a", nil])
        XCTAssertEqual(object.datas.first, Data())
        XCTAssertEqual(Array(object.sizes), [.large])
        XCTAssertEqual(object.decimals.sum().stringValue, "6.5")
        XCTAssertEqual(object.anys[2].listValue?.first, .bool(true))
    }

    func testF103_aSetHoldsEachValueOnce() throws {
        let (realm, object) = try store(["intSet": [3, 1, 3, 2]])
        XCTAssertEqual(Array(object.intSet), [1, 2, 3])
        try realm.write {
            object.intSet.insert(2)
            object.anySet.insert(objectsIn: [.int(1), .double(1), .string("1"), .data(Data("1".utf8)), .none])
        }
        XCTAssertEqual(object.intSet.count, 3)
        XCTAssertEqual(object.anySet.count, 4)
        XCTAssertTrue(object.intSet.contains(2))
        XCTAssertFalse(object.intSet.contains(9))
    }

    func testF104_aMapHoldsValuesByKey() throws {
        let (realm, object) = try store(["intMap": ["a": 1, "": 0]])
        XCTAssertEqual(object.intMap["a"], 1)
        XCTAssertEqual(object.intMap[""], 0)
        XCTAssertNil(object.intMap["b"])
        try realm.write {
            object.intMap["ключ"] = 7
            object.intMap["a"] = nil
            object.optStringMap["n"] = .some(nil)
            object.anyMap["x"] = .fromDictionary(["deep": .int(1)])
        }
        XCTAssertEqual(Set(object.intMap.keys), ["", "ключ"])
        XCTAssertEqual(object.optStringMap.keys, ["n"])
        XCTAssertEqual(object.anyMap["x"]?.dictionaryValue?["deep"], .int(1))
    }

    func testF105_keysWithPeriodsAreEncoded() throws {
        let (realm, object) = try store([:])
        try realm.write { object.intMap["a%2Eb%24"] = 1 }
        XCTAssertEqual(object.intMap.keys.first?.removingPercentEncoding, "a.b$")
        try realm.write { object.intMap["a$b"] = 2 }
        XCTAssertEqual(object.intMap["a$b"], 2)
    }

    func testF106_F107_anyRealmValueOfEveryKind() throws {
        let (realm, object) = try store([:])
        let date = Date(timeIntervalSinceReferenceDate: 5), id = ObjectId.generate(), uuid = UUID()
        XCTAssertEqual(object.any, .none)
        for value in [
            AnyRealmValue.int(5), .bool(true), .float(1.5), .double(2.5), .string("s"), .data(Data([1])), .date(date),
            .objectId(id), .decimal128(3), .uuid(uuid), .none,
        ] {
            try realm.write { object.any = value }
            XCTAssertEqual(object.any, value)
            XCTAssertEqual(realm.objects(AllTypes.self)[0].any, value)
        }
        try realm.write { object.any = .object(Owner(value: ["id": 3])) }
        guard case .object(let owner) = object.any else { return XCTFail("no object") }
        XCTAssertEqual((owner as? Owner)?.id, 3)
        try realm.write { object.any = .none }
        XCTAssertNil(object.any.object(Owner.self))
        XCTAssertEqual(realm.objects(AllTypes.self).where { $0.any == .none }.count, 1)
    }

    func testF108_collectionsNestToADepthOfAHundred() throws {
        let (realm, object) = try store([:])
        var value = AnyRealmValue.int(1)
        for depth in 0..<100 { value = depth % 2 == 0 ? .fromArray([value]) : .fromDictionary(["k": value]) }
        try realm.write { object.any = value }
        var read = object.any
        for _ in 0..<100 { read = try XCTUnwrap(read.listValue?.first ?? read.dictionaryValue?["k"]) }
        XCTAssertEqual(read, .int(1))
        let copy = AllTypes(value: object)
        XCTAssertNotNil(copy.any.dictionaryValue)
    }

    func testF106_anObjectOfAClassThatTheSchemaDoesNotHave() throws {
        let scratch = ScratchDirectory()
        try autoreleasepool {
            let realm = try makeFileRealm(scratch)
            try realm.write {
                realm.create(Person.self, value: ["name": "Ann", "anything": Owner(value: ["id": 5])] as [String: Any])
            }
        }
        let realm = try makeFileRealm(scratch, [Person.self, Dog.self, Address.self, Country.self])
        let any = realm.objects(Person.self)[0].anything
        XCTAssertNil(any.object(Owner.self))
        XCTAssertEqual(any.dynamicObject?.id as? Int, 5)
        XCTAssertEqual(any.dynamicObject?.objectSchema.className, "Owner")
    }

    func testF109_placesAreEmbeddedObjects() throws {
        let realm = try Realm(
            configuration: Realm.Configuration(inMemoryIdentifier: name, objectTypes: [Stand.self, GeoSpot.self]))
        try realm.write {
            realm.create(Stand.self, value: ["name": "s", "spot": ["coordinates": [13.4, 52.5]]] as [String: Any])
        }
        let spot = try XCTUnwrap(realm.objects(Stand.self)[0].spot)
        XCTAssertEqual(spot.type, "Point")
        XCTAssertEqual(Array(spot.coordinates), [13.4, 52.5])
    }

    func testF111_foundationValuesAsInput() throws {
        let (_, object) = try store([
            "int": NSNumber(value: 5), "bool": NSNumber(value: true), "double": NSNumber(value: 2.5),
            "string": NSString(string: "s"),
            "date": NSDate(timeIntervalSinceReferenceDate: 7), "data": NSData(data: Data([1])), "optInt": NSNull(),
            "decimal": NSDecimalNumber(string: "1.25"),
        ])
        XCTAssertEqual(object.int, 5)
        XCTAssertEqual(object.bool, true)
        XCTAssertEqual(object.double, 2.5)
        XCTAssertEqual(object.string, "s")
        XCTAssertEqual(object.date.timeIntervalSinceReferenceDate, 7)
        XCTAssertEqual(object.data, Data([1]))
        XCTAssertNil(object.optInt)
        XCTAssertEqual(object.decimal.stringValue, "1.25")
    }

    func testF112_aTextJustBelowTheLimit() throws {
        let (realm, object) = try store([:])
        let text = String(repeating: "x", count: 0xFF_FFF8 - 9)
        try realm.write {
            object.string = text
            object.data = Data(count: 0xFF_FFF8 - 8)
        }
        XCTAssertEqual(object.string.utf8.count, text.utf8.count)
        XCTAssertEqual(object.data.count, 0xFF_FFF8 - 8)
    }

    func testF113_namesThatAreTooLongAreRefused() {
        for (type, part) in [
            (ThisClassHasANameThatIsLongerThanTheFiftySevenBytesWhichFit.self as ObjectBase.Type, "Class name"),
            (LongProperty.self, "Property name"),
        ] {
            XCTAssertThrowsError(
                try Realm(configuration: Realm.Configuration(inMemoryIdentifier: name + part, objectTypes: [type]))
            ) { XCTAssertTrue("\($0)".contains(part), "\($0)") }
        }
        XCTAssertNoThrow(
            try Realm(configuration: Realm.Configuration(inMemoryIdentifier: name, objectTypes: [LongestProperty.self])))
    }

    func testF114_namesInOtherScripts() throws {
        let realm = try Realm(configuration: Realm.Configuration(inMemoryIdentifier: name, objectTypes: [Größe.self]))
        try realm.write { realm.create(Größe.self, value: ["höhe": 3, "名前": "x"] as [String: Any]) }
        XCTAssertEqual(realm.objects(Größe.self).filter("höhe > 2 AND 名前 == 'x'").count, 1)
        XCTAssertEqual(realm.objects(Größe.self).where { $0.名前 == "x" }.first?.höhe, 3)
        XCTAssertNotNil(realm.schema["Größe"])
    }

    func testF115_oneVariableForEveryCollection() throws {
        let (realm, object) = try store(["ints": [1, 2], "intSet": [5]])
        let collections: [AnyRealmCollection<Int>] = [
            AnyRealmCollection(object.ints), AnyRealmCollection(object.intSet),
            AnyRealmCollection(object.ints.sorted(ascending: false)),
        ]
        XCTAssertEqual(collections.map { Array($0) }, [[1, 2], [5], [2, 1]])
        XCTAssertEqual(collections[0].index(of: 2), 1)
        XCTAssertEqual(collections[0], collections[0])
        XCTAssertEqual(collections.map { $0.sum() }, [3, 5, 3])
        try realm.write { object.ints.append(9) }
        XCTAssertEqual(collections.map(\.count), [3, 1, 3])
        XCTAssertTrue(collections[2].freeze().isFrozen)
        let plain = List<Int>(), any = AnyRealmCollection(plain)
        plain.append(4)
        XCTAssertEqual(Array(any), [4])
    }

    func testF119_F121_F123_F125_F126_mappedTypesInRealms() throws {
        let realm = try makeRealm()
        let object = Mapped(
            value: ["temperature": 20, "url": "https://a.b/c", "optPlace": ["x": 1.0, "y": 2.0]] as [String: Any])
        try realm.write {
            realm.add(object)
            realm.create(
                Mapped.self,
                value: ["temperature": Celsius(degrees: 5), "even": EvenNumber(persistedValue: 4) as Any] as [String: Any])
        }
        XCTAssertEqual(realm.schema["Mapped"]?["temperature"]?.type, .double)
        XCTAssertEqual(realm.schema["Mapped"]?["url"]?.type, .string)
        XCTAssertEqual(realm.schema["Mapped"]?["url"]?.isOptional, true)
        XCTAssertEqual(realm.schema["Mapped"]?["place"]?.objectClassName, "PointModel")
        XCTAssertEqual(realm.schema["Mapped"]?["urls"]?.isArray, true)
        let all = realm.objects(Mapped.self)
        XCTAssertEqual(all.where { $0.temperature == Celsius(degrees: 20) }.count, 1)
        XCTAssertEqual(all.where { $0.temperature > Celsius(degrees: 10) }.count, 1)
        XCTAssertEqual(all.where { $0.temperature.persistableValue < 10 }.count, 1)
        XCTAssertEqual(all.where { $0.url == URL(string: "https://a.b/c") }.count, 1)
        XCTAssertEqual(all.where { $0.optPlace.persistableValue.x == 1 }.count, 1)
        XCTAssertEqual(all.filter("temperature == 5").count, 1)
        XCTAssertEqual(all.filter("url CONTAINS 'a.b'").count, 1)
        XCTAssertEqual(all.filter("temperature == %@", Celsius(degrees: 20)).count, 1)
        XCTAssertEqual(object["url"] as? String, "https://a.b/c")
        XCTAssertEqual(object["temperature"] as? Double, 20)
        XCTAssertEqual((object["optPlace"] as? PointModel)?.y, 2)
        XCTAssertEqual(realm.dynamicObjects("Mapped").first?.temperature as? Double, 20)
        XCTAssertEqual(all.max(of: \.temperature), Celsius(degrees: 20))
        XCTAssertEqual(all.sorted(by: \.temperature).map(\.temperature.degrees), [5, 20])
        try realm.write { object["url"] = "https://x.y" }
        XCTAssertEqual(object.url?.host, "x.y")
    }

    func testF120_whatCannotBeConvertedReadsAsNil() throws {
        let realm = try makeRealm()
        let object = try realm.write { realm.create(Mapped.self, value: ["even": 4]) }
        try realm.write { realm.dynamicObjects("Mapped")[0]["even"] = 5 }
        XCTAssertNil(object.even)
        XCTAssertEqual(object["even"] as? Int, 5)
    }

    func testF123_aPropertyMayChangeToItsPersistedTypeWithoutAMigration() throws {
        let scratch = ScratchDirectory(), url = URL(fileURLWithPath: scratch.file("a.realm"))
        enum Before {
            final class Heat: Object {
                @Persisted var value: Celsius
                override class func shouldIncludeInDefaultSchema() -> Bool { false }
            }
        }
        enum After {
            final class Heat: Object {
                @Persisted var value: Double
                override class func shouldIncludeInDefaultSchema() -> Bool { false }
            }
        }
        try autoreleasepool {
            let realm = try Realm(
                configuration: Realm.Configuration(
                    fileURL: url, encryptionKey: TestKeys.usualData, objectTypes: [Before.Heat.self]))
            try realm.write { realm.create(Before.Heat.self, value: ["value": 7.5]) }
        }
        let realm = try Realm(
            configuration: Realm.Configuration(fileURL: url, encryptionKey: TestKeys.usualData, objectTypes: [After.Heat.self]))
        XCTAssertEqual(realm.objects(After.Heat.self).first?.value, 7.5)
    }
}

private class GeoSpot: EmbeddedObject {
    @Persisted var type = "Point"
    @Persisted var coordinates: List<Double>
}

private class Stand: Object {
    @Persisted var name: String
    @Persisted var spot: GeoSpot?
}

private class ThisClassHasANameThatIsLongerThanTheFiftySevenBytesWhichFit: Object {
    @Persisted var value: Int
    override class func shouldIncludeInDefaultSchema() -> Bool { false }
}

private class LongProperty: Object {
    @Persisted var aPropertyWithANameOfSixtyFourBytesIsOneByteLongerThanWhatIsThere: Int
    override class func shouldIncludeInDefaultSchema() -> Bool { false }
}

private class LongestProperty: Object {
    @Persisted var aPropertyWithANameOfSixtyThreeBytesIsAsLongAsItCanPossiblyBeeee: Int
    override class func shouldIncludeInDefaultSchema() -> Bool { false }
}

private class Größe: Object {
    @Persisted var höhe: Int
    @Persisted var 名前: String
}
