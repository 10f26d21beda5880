import Glibc

/// A region made ready for asking whether points lie in it (query-language 13). Edges are great circles; areas are those of the
/// smaller side of an outline, whichever way round it is written.
public struct GeoArea: Sendable {
    /// Columns of the class that the points are stored in.
    let type: ColumnKey
    let coordinates: ColumnKey
    private let shape: Shape

    private enum Shape {
        case circle(center: Vector, cosine: Double, radius: Double)
        case polygon([Ring])
        /// A region that is legal but has no inside.
        case empty
    }

    /// Nil where the region is invalid: an open or too short ring, edges that cross, a negative radius, coordinates out of range,
    /// a hole outside of its outline.
    init?(_ region: GeoRegion, type: ColumnKey, coordinates: ColumnKey) {
        self.type = type
        self.coordinates = coordinates
        switch region {
        case .circle(let center, let radius):
            guard center.isValid, radius >= 0 else { return nil }
            shape = .circle(center: Vector(center), cosine: cos(min(radius, .pi)), radius: radius)
        case .box(let a, let b):
            guard a.isValid, b.isValid, a.longitude != b.longitude, a.latitude != b.latitude else { return nil }
            let corners = [
                a, GeoPoint(longitude: b.longitude, latitude: a.latitude), b,
                GeoPoint(longitude: a.longitude, latitude: b.latitude),
            ]
            if let ring = Ring(corners.map { Vector($0) }), ring.hasArea { shape = .polygon([ring]) } else { shape = .empty }
        case .polygon(let rings):
            guard !rings.isEmpty else { return nil }
            var made: [Ring] = []
            for points in rings {
                guard points.count >= 4, points.allSatisfy(\.isValid), points.first == points.last,
                    let ring = Ring(points.dropLast().map { Vector($0) })
                else { return nil }
                made.append(ring)
            }
            for hole in made.dropFirst() {
                guard hole.vertices.allSatisfy({ made[0].contains($0) || made[0].vertices.contains($0) }), !made[0].crosses(hole)
                else { return nil }
            }
            shape = made[0].hasArea ? .polygon([made[0]] + made.dropFirst().filter(\.hasArea)) : .empty
        }
    }

    func contains(_ point: GeoPoint) -> Bool {
        guard point.isValid else { return false }
        let p = Vector(point)
        switch shape {
        case .empty: return false
        case .circle(let center, let cosine, let radius):
            if radius >= .pi { return true }
            // Near the centre the cosine is too flat to compare; there the chord tells.
            if radius < 1e-3 { return (p - center).length <= 2 * sin(radius / 2) * (1 + 1e-12) + 1e-15 }
            return p.dot(center) >= cosine - 1e-15
        case .polygon(let rings):
            return rings[0].contains(p) && !rings.dropFirst().contains { $0.contains(p) }
        }
    }

    /// A point on the unit sphere.
    struct Vector: Equatable, Sendable {
        var x: Double, y: Double, z: Double
        init(_ x: Double, _ y: Double, _ z: Double) {
            self.x = x
            self.y = y
            self.z = z
        }
        init(_ point: GeoPoint) {
            let longitude = point.longitude * .pi / 180, latitude = point.latitude * .pi / 180
            // A pole is as many points as there are meridians, as far apart as the last digits of the cosine: so the corners of a
            // region at a pole stay different points, and its edges know their meridians.
            let ring = cos(latitude)
            self.init(ring * cos(longitude), ring * sin(longitude), sin(latitude))
        }
        func dot(_ b: Vector) -> Double { x * b.x + y * b.y + z * b.z }
        func cross(_ b: Vector) -> Vector { Vector(y * b.z - z * b.y, z * b.x - x * b.z, x * b.y - y * b.x) }
        static func + (a: Vector, b: Vector) -> Vector { Vector(a.x + b.x, a.y + b.y, a.z + b.z) }
        static func - (a: Vector, b: Vector) -> Vector { Vector(a.x - b.x, a.y - b.y, a.z - b.z) }
        static func * (a: Vector, f: Double) -> Vector { Vector(a.x * f, a.y * f, a.z * f) }
        var length: Double { dot(self).squareRoot() }
        var unit: Vector { self * (1 / length) }
    }

    /// A closed outline whose inside is on the left of its edges.
    ///
    /// A point on a vertex belongs to exactly one of the outlines that meet there, by the rule of the S2 library: what decides is
    /// on which side of the vertex a fixed direction lies.
    struct Ring: Sendable {
        let vertices: [Vector]
        /// A point far from everything, from which edges are counted.
        private static let origin = Vector(-0.0099994664350250197, 0.0025924542609324121, 0.99994664350250195)
        private var containsOrigin = false
        /// False for an outline that goes back the way it came.
        private(set) var hasArea = true

        /// Nil where fewer than three points are left when a point that follows itself is taken once, where others fall together,
        /// or where edges cross.
        init?(_ corners: [Vector]) {
            var points: [Vector] = []
            for corner in corners where corner != points.last { points.append(corner) }
            if points.count > 1, points.first == points.last { points.removeLast() }
            let n = points.count
            guard n >= 3 else { return nil }
            for i in 0..<n {
                for j in (i + 1)..<n where points[i] == points[j] { return nil }
            }
            for i in 0..<n {
                for j in (i + 1)..<n where Ring.cross(points[i], points[(i + 1) % n], points[j], points[(j + 1) % n]) {
                    return nil
                }
            }
            // By Gauss and Bonnet the area on the left is 2 pi less the turns at the vertices.
            var turns = 0.0
            for i in 0..<n {
                let a = points[i], b = points[(i + 1) % n], c = points[(i + 2) % n]
                let ab = a.cross(b), bc = b.cross(c)
                turns += atan2(ab.cross(bc).dot(b), ab.dot(bc))
            }
            let area = 2 * .pi - turns
            hasArea = abs(area) >= 1e-14
            vertices = area > 2 * .pi ? points.reversed() : points
            let isInside = Ring.isOrdered(Ring.direction(vertices[1]), vertices[0], vertices[2], around: vertices[1])
            if isInside != contains(vertices[1]) { containsOrigin = true }
        }

        /// True where the arcs `ab` and `cd` cross at an inner point of both.
        static func cross(_ a: Vector, _ b: Vector, _ c: Vector, _ d: Vector) -> Bool {
            if a == c || a == d || b == c || b == d { return false }
            let ab = a.cross(b), cd = c.cross(d)
            let acb = -ab.dot(c), bda = ab.dot(d)
            if acb * bda <= 0 { return false }
            let cbd = -cd.dot(b), dac = cd.dot(a)
            return acb * cbd > 0 && acb * dac > 0
        }

        func crosses(_ other: Ring) -> Bool {
            let n = vertices.count, m = other.vertices.count
            for i in 0..<n {
                for j in 0..<m
                where Ring.cross(vertices[i], vertices[(i + 1) % n], other.vertices[j], other.vertices[(j + 1) % m]) {
                    return true
                }
            }
            return false
        }

        /// Counts the edges between the point and the origin.
        func contains(_ p: Vector) -> Bool {
            var isInside = containsOrigin
            let n = vertices.count
            for i in 0..<n where Ring.crossesOrMeets(Ring.origin, p, vertices[i], vertices[(i + 1) % n]) { isInside.toggle() }
            return isInside
        }

        private static func crossesOrMeets(_ a: Vector, _ b: Vector, _ c: Vector, _ d: Vector) -> Bool {
            if b == c { return isOrdered(direction(b), d, a, around: b) }
            if b == d { return isOrdered(direction(b), c, a, around: b) }
            return cross(a, b, c, d)
        }

        /// A direction at `a` that depends on nothing but `a`.
        private static func direction(_ a: Vector) -> Vector {
            let x = abs(a.x), y = abs(a.y), z = abs(a.z)
            var other = Vector(0.012, 0.0053, 0.00457)
            if x > y {
                if x > z { other.z = 1 } else { other.y = 1 }
            } else {
                if y > z { other.x = 1 } else { other.y = 1 }
            }
            return a.cross(other).unit
        }

        /// True where `a`, `b`, `c` are met in this order going round `o` to the left.
        private static func isOrdered(_ a: Vector, _ b: Vector, _ c: Vector, around o: Vector) -> Bool {
            func turn(_ p: Vector, _ q: Vector, _ r: Vector) -> Double { p.cross(q).dot(r) }
            return (turn(b, o, a) >= 0 ? 1 : 0) + (turn(c, o, b) >= 0 ? 1 : 0) + (turn(a, o, c) > 0 ? 1 : 0) >= 2
        }
    }
}

extension GeoPoint {
    var isValid: Bool { abs(longitude) <= 180 && abs(latitude) <= 90 }
}
