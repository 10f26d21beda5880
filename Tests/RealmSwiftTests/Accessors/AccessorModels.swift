import Foundation
import RealmSwift

/// Nothing but persisted properties: its accessors may be used again.
final class Part: Object {
    @Persisted(primaryKey: true) var id: Int
    @Persisted var weight: Int
    @Persisted var name: String
    @Persisted var isNew: Bool
    @Persisted var price: Double
    @Persisted var rank: Int?
    @Persisted var note: String?
    @Persisted var made: Date
    @Persisted var numbers: List<Int>
    @Persisted var pieces: List<Part>
    @Persisted var whole: Part?
    override class func shouldIncludeInDefaultSchema() -> Bool { false }

    /// What follows from the key in the files of these tests.
    var isItself: Bool { weight == id &* 3 && name == "part \(id)" }
}

/// With a stored property of its own, which belongs to the instance.
final class MarkedPart: Object {
    @Persisted var number: Int
    var mark = ""
    override class func shouldIncludeInDefaultSchema() -> Bool { false }
}

/// Tells how many of its instances there are; the initializer need not run for an accessor, but the deinitializer does.
final class CountedPart: Object {
    @Persisted var number: Int
    nonisolated(unsafe) static var endCount = 0
    deinit { CountedPart.endCount += 1 }
    override class func shouldIncludeInDefaultSchema() -> Bool { false }
}

class Vehicle: Object {
    @Persisted var wheels: Int
    override class func shouldIncludeInDefaultSchema() -> Bool { false }
}

final class Truck: Vehicle {
    @Persisted var load: Int
    @Persisted var driver: String
}

/// Values that are made where none was given.
final class Ticket: Object {
    @Persisted(primaryKey: true) var id: UUID
    @Persisted(indexed: true) var code: Int
    @Persisted(indexed: true) var text: String
    @Persisted var other: ObjectId
    @Persisted var date: Date
    @Persisted var data: Data
    @Persisted var small: Int8
    @Persisted var flag: Bool?
    @Persisted var level: TicketLevel
    @Persisted var size: Decimal128
    @Persisted var any: AnyRealmValue
    override class func shouldIncludeInDefaultSchema() -> Bool { false }
}

enum TicketLevel: Int, PersistableEnum { case first = 1, second }
