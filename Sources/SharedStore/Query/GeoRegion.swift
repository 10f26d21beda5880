/// A place on the earth, in degrees.
public struct GeoPoint: Hashable, Sendable {
    /// East of Greenwich, -180...180.
    public var longitude: Double
    /// North of the equator, -90...90.
    public var latitude: Double
    /// The ranges are checked where a query is made with a region of such points.
    public init(longitude: Double, latitude: Double) {
        self.longitude = longitude
        self.latitude = latitude
    }
}

/// A region that points can lie within (query-language 13).
public enum GeoRegion: Hashable, Sendable {
    /// The polygon with two opposite corners and the two others that follow from them; its edges are great circles.
    case box(GeoPoint, GeoPoint)
    /// All points within `radius` of the centre, the rim included. The radius is an angle in radians: kilometres / 6378.1.
    case circle(GeoPoint, radius: Double)
    /// The first ring is the outline, the others are holes; each ring ends with its first point.
    case polygon([[GeoPoint]])
}
