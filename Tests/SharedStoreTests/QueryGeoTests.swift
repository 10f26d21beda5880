import XCTest

@testable import SharedStore

final class QueryGeoTests: XCTestCase {
    private func p(_ longitude: Double, _ latitude: Double) -> GeoPoint { GeoPoint(longitude: longitude, latitude: latitude) }
    private func area(_ region: GeoRegion) -> GeoArea? { GeoArea(region, type: .null, coordinates: .null) }

    func testABoxIsThePolygonOfItsCornersWhicheverWayRoundTheyAreGiven() throws {
        for (a, b) in [(p(10, 59), p(11, 60)), (p(11, 60), p(10, 59)), (p(10, 60), p(11, 59))] {
            let box = try XCTUnwrap(area(.box(a, b)))
            XCTAssertTrue(box.contains(p(10.5, 59.5)))
            XCTAssertFalse(box.contains(p(11.5, 59.5)))
            XCTAssertFalse(box.contains(p(10.5, -59.5)))
            XCTAssertFalse(box.contains(p(-169.5, -59.5)), "the other side of the earth")
        }
        // Great circles bend towards the pole: the southern edge of a wide box lies north of its corners' latitude.
        XCTAssertFalse(try XCTUnwrap(area(.box(p(-20, 55.5), p(50, 62)))).contains(p(12.57, 55.68)))
    }

    func testABoxMayCrossThe180thMeridian() throws {
        let box = try XCTUnwrap(area(.box(p(170, 0), p(-170, 20))))
        XCTAssertTrue(box.contains(p(180, 10)))
        XCTAssertTrue(box.contains(p(-180, 10)))
        XCTAssertTrue(box.contains(p(-175, 10)))
        XCTAssertFalse(box.contains(p(0, 10)))
    }

    func testInvalidRegionsAreRefused() {
        XCTAssertNil(area(.box(p(0, 0), p(0, 0))))
        XCTAssertNil(area(.box(p(0, 0), p(10, 0))))
        XCTAssertNil(area(.box(p(10, 95), p(11, 99))))
        XCTAssertNil(area(.box(p(200, 0), p(210, 10))))
        XCTAssertNil(area(.box(p(.nan, 0), p(10, 10))))
        XCTAssertNil(area(.circle(p(0, 0), radius: -1)))
        XCTAssertNil(area(.circle(p(0, 0), radius: .nan)))
        XCTAssertNil(area(.circle(p(0, 91), radius: 1)))
        XCTAssertNil(area(.polygon([])))
        XCTAssertNil(area(.polygon([[p(0, 0), p(1, 0), p(1, 1)]])), "open")
        XCTAssertNil(area(.polygon([[p(0, 0), p(1, 1), p(1, 0), p(0, 1), p(0, 0)]])), "crosses itself")
        XCTAssertNil(area(.polygon([[p(0, 0), p(0, 0), p(0, 0), p(0, 0)]])))
        XCTAssertNil(area(.polygon([square(0, 1), square(2, 3)])), "the hole lies outside")
        XCTAssertNil(area(.polygon([square(0, 2), square(1, 3)])), "the hole crosses the outline")
    }

    private func square(_ low: Double, _ high: Double) -> [GeoPoint] {
        [p(low, low), p(high, low), p(high, high), p(low, high), p(low, low)]
    }

    func testAPolygonHoldsWhatLiesInsideItsOutlineAndOutsideItsHoles() throws {
        let polygon = try XCTUnwrap(area(.polygon([square(-1, 2), square(0.25, 0.75)])))
        XCTAssertTrue(polygon.contains(p(1.5, 1.5)))
        XCTAssertFalse(polygon.contains(p(0.5, 0.5)))
        XCTAssertFalse(polygon.contains(p(2.5, 1.5)))
    }

    func testACornerBelongsToExactlyOneOfTheAreasAroundIt() throws {
        let corner = p(5, 5)
        let parts: [GeoRegion] = [.box(p(0, 0), corner), .box(corner, p(10, 10)), .box(p(0, 10), corner), .box(p(10, 0), corner)]
        XCTAssertEqual(try parts.filter { try XCTUnwrap(area($0)).contains(corner) }.count, 1)
    }

    func testACircleIncludesItsRim() throws {
        XCTAssertTrue(try XCTUnwrap(area(.circle(p(10.7, 59.9), radius: 0))).contains(p(10.7, 59.9)))
        XCTAssertFalse(try XCTUnwrap(area(.circle(p(10.7, 59.9), radius: 0))).contains(p(10.7, 59.9000001)))
        XCTAssertTrue(try XCTUnwrap(area(.circle(p(0, 0), radius: .pi / 2))).contains(p(90, 0)))
        XCTAssertTrue(try XCTUnwrap(area(.circle(p(0, 0), radius: 4))).contains(p(180, 0)))
        XCTAssertFalse(try XCTUnwrap(area(.circle(p(0, 0), radius: 1))).contains(p(180, 0)))
        XCTAssertFalse(try XCTUnwrap(area(.circle(p(0, 0), radius: 4))).contains(p(181, 0)), "no point at all")
    }
}
