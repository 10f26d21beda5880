import Foundation
internal import SharedStore

/// A point on the earth.
///
/// To store one, make an embedded class with the properties `type: String` (= "Point") and `coordinates: List<Double>`:
/// longitude, latitude and, if you like, altitude.
public struct GeoPoint: Hashable, Sendable {
    /// In degrees, -90 to 90, the north positive.
    public let latitude: Double
    /// In degrees, -180 to 180, the east positive.
    public let longitude: Double
    /// In metres.
    public let altitude: Double

    /// Nil outside of -90...90 degrees of latitude and -180...180 of longitude, and for a negative altitude.
    public init?(latitude: Double, longitude: Double, altitude: Double = 0) {
        guard (-90.0...90.0).contains(latitude), (-180.0...180.0).contains(longitude), altitude >= 0 else { return nil }
        self.latitude = latitude
        self.longitude = longitude
        self.altitude = altitude
    }

    init?(_ pair: (Double, Double)) { self.init(latitude: pair.0, longitude: pair.1) }

    var stored: SharedStore.GeoPoint { SharedStore.GeoPoint(longitude: longitude, latitude: latitude) }
}

/// A shape that a query can look into.
protocol GeoShape {
    var region: GeoRegion { get }
}

/// What lies between two parallels and two meridians.
public struct GeoBox: Hashable, Sendable, GeoShape {
    /// The corner in the south-west.
    public let bottomLeft: GeoPoint
    /// The corner in the north-east.
    public let topRight: GeoPoint

    /// The box between two corners.
    public init(bottomLeft: GeoPoint, topRight: GeoPoint) {
        self.bottomLeft = bottomLeft
        self.topRight = topRight
    }

    /// Pairs of latitude and longitude; nil where one is out of range.
    public init?(bottomLeft: (Double, Double), topRight: (Double, Double)) {
        guard let bottomLeft = GeoPoint(bottomLeft), let topRight = GeoPoint(topRight) else { return nil }
        self.init(bottomLeft: bottomLeft, topRight: topRight)
    }

    var region: GeoRegion { .box(bottomLeft.stored, topRight.stored) }
}

/// A polygon of great-circle edges, with holes.
public struct GeoPolygon: Hashable, Sendable, GeoShape {
    /// The border; the last point is the first one again.
    public let outerRing: [GeoPoint]
    /// What is cut out, each a ring like the outer one.
    public let holes: [[GeoPoint]]?

    /// Nil where a ring has fewer than four points or its last point is not its first.
    public init?(outerRing: [GeoPoint], holes: [[GeoPoint]]? = nil) {
        for ring in [outerRing] + (holes ?? []) where ring.count < 4 || ring.first != ring.last { return nil }
        self.outerRing = outerRing
        self.holes = holes
    }

    /// Pairs of latitude and longitude.
    public init?(outerRing: [(Double, Double)], holes: [[(Double, Double)]] = []) {
        guard let outer = GeoPolygon.points(outerRing) else { return nil }
        var rings: [[GeoPoint]] = []
        for hole in holes {
            guard let ring = GeoPolygon.points(hole) else { return nil }
            rings.append(ring)
        }
        self.init(outerRing: outer, holes: rings)
    }

    /// From pairs of latitude and longitude. Nil where a ring has fewer than four points, does not end where it begins, or a
    /// point is none.
    public init?(outerRing: [(Double, Double)], holes: [(Double, Double)]...) { self.init(outerRing: outerRing, holes: holes) }

    private static func points(_ pairs: [(Double, Double)]) -> [GeoPoint]? {
        let points = pairs.compactMap { GeoPoint($0) }
        return points.count == pairs.count ? points : nil
    }

    var region: GeoRegion { .polygon(([outerRing] + (holes ?? [])).map { $0.map(\.stored) }) }
}

/// A length on the surface of the earth.
public struct Distance: Hashable, Sendable {
    /// Of the earth, in kilometres.
    static let earthRadiusKilometers = 6378.1
    private static let milesInKilometer = 1 / 1.609344

    /// The angle that the distance is at the centre of the earth.
    public let radians: Double

    private init?(radians: Double) {
        guard radians >= 0 else { return nil }
        self.radians = radians
    }

    /// Nil where the number is negative.
    public static func kilometers(_ kilometers: Double) -> Distance? { Distance(radians: kilometers / earthRadiusKilometers) }
    /// From miles; nil for a negative number.
    public static func miles(_ miles: Double) -> Distance? { Distance(radians: miles / milesInKilometer / earthRadiusKilometers) }
    /// From degrees at the centre of the earth; nil for a negative number.
    public static func degrees(_ degrees: Double) -> Distance? { Distance(radians: degrees * .pi / 180) }
    /// From radians at the centre of the earth; nil for a negative number.
    public static func radians(_ radians: Double) -> Distance? { Distance(radians: radians) }

    /// In kilometres on the surface.
    public func asKilometers() -> Double { radians * Distance.earthRadiusKilometers }
    /// In miles on the surface.
    public func asMiles() -> Double { asKilometers() * Distance.milesInKilometer }
    /// In degrees at the centre of the earth.
    public func asDegrees() -> Double { radians * 180 / .pi }
    /// In radians at the centre of the earth.
    public func asRadians() -> Double { radians }
}

/// What lies within a distance of a point.
public struct GeoCircle: Hashable, Sendable, GeoShape {
    /// The middle.
    public let center: GeoPoint
    /// How far from the middle a point may be.
    public let radius: Distance

    /// All points that are no further from the middle than the radius.
    public init(center: GeoPoint, radius: Distance) {
        self.center = center
        self.radius = radius
    }

    /// Nil for a negative radius.
    public init?(center: GeoPoint, radiusInRadians: Double) {
        guard let radius = Distance.radians(radiusInRadians) else { return nil }
        self.init(center: center, radius: radius)
    }

    /// The centre as latitude and longitude.
    public init?(center: (Double, Double), radiusInRadians: Double) {
        guard let center = GeoPoint(center) else { return nil }
        self.init(center: center, radiusInRadians: radiusInRadians)
    }

    /// From latitude and longitude; nil where they are none.
    public init?(center: (Double, Double), radius: Distance) {
        guard let center = GeoPoint(center) else { return nil }
        self.init(center: center, radius: radius)
    }

    var region: GeoRegion { .circle(center.stored, radius: radius.radians) }
}
