import XCTest

/// What stops the process, and with which message. Each case runs in a process of its own.
final class TrapFeatureTests: XCTestCase {
    func testF060_aKeyThatIsTaken() {
        assertTraps("key taken", "type 'Dog'", "existing primary key value", "`update: .modified`")
        assertTraps("key taken, by create", "existing primary key value '7'")
    }

    func testF061_aKeyThatIsChanged() {
        for name in ["key changed", "integer key changed", "key changed by name"] {
            assertTraps(name, "Primary key can't be changed after an object is inserted")
        }
    }

    func testF049_anObjectOfASubclassInAListOfItsBase() {
        assertTraps("subclass in a list of its base", "'Derived' does not match the type 'Base'")
        assertTraps("subclass in a list of its base, managed", "'Derived' does not match the type 'Base'")
    }

    func testF131_collectionsOutsideOfATransaction() {
        for name in ["list", "set", "map", "set operation", "nested list"] {
            assertTraps("outside of a transaction: \(name)", "outside of a write transaction")
        }
    }

    func testF139_F252_objectsOfAnotherRealm() {
        assertTraps("other Realm: delete", "Can only delete an object from the Realm it belongs to")
        assertTraps("delete of an unmanaged object", "Can only delete an object from the Realm it belongs to")
        for name in ["add", "link", "append"] { assertTraps("other Realm: \(name)", "already managed by another Realm") }
        assertTraps("append of a frozen object", "thaw() gives the live one")
        assertTraps("set of another Realm", "different Realms")
        assertTraps("position of an object of another Realm", "another Realm")
    }

    func testF150_F157_writesThatAreRefused() {
        assertTraps("nested write", "already in a write transaction")
        assertTraps("write to a frozen Realm", "Can't perform transactions on a frozen Realm")
        assertTraps("write to a read-only Realm", "Can't perform transactions on read-only Realms")
        assertTraps("write to a frozen object", "thaw()")
        assertTraps("frozen list", "thaw()")
        assertTraps("add outside of a transaction", "outside of a write transaction")
        assertTraps("freeze within a transaction", "Cannot freeze")
    }

    func testF251_deletedObjectsAndWhatBelongedToThem() {
        for name in ["deleted: read", "deleted: write", "deleted: by name", "deleted: delete", "invalidated: object"] {
            assertTraps(name, "Object has been deleted or invalidated")
        }
        assertTraps("deleted: add", "deleted or invalidated object")
        assertTraps("deleted: list", "invalidated")
    }

    func testF046_F189_classesAndNamesThatDoNotExist() {
        assertTraps("class that is not in the schema", "Object type 'Hidden' is not managed by the Realm")
        assertTraps("add of a class that is not in the schema", "Object type 'Hidden' is not managed by the Realm")
        assertTraps("name that is no class", "'Nothing'")
        for name in ["name that is no property", "name that is no property, unmanaged", "name that is no property, dynamic"] {
            assertTraps(name, "Invalid property name 'nothing'")
        }
    }

    func testF128_F416_valuesThatDoNotFit() {
        assertTraps("nil for a required property", "Invalid value", "'Person.name'")
        assertTraps("null for a required property in a dictionary", "Invalid value", "'Dog.name'")
        assertTraps("value of a wrong type", "Invalid value 'three' of type 'String' for 'int' property 'Dog.age'")
        assertTraps("more values than properties", "more values (6)")
    }

    func testF058_F163_F229_lookupsAndPolicies() {
        assertTraps("policy without a key", "does not have a primary key")
        assertTraps("lookup in a class without a key", "does not have a primary key")
        assertTraps("lookup by a key of another type", "Invalid value 'x'")
    }

    func testF082_anEmbeddedObjectHasOneParent() {
        assertTraps("embedded object twice", "Can't set link to existing managed embedded object")
        assertTraps("embedded object created by itself", "'Address'")
    }

    func testF105_keysOfMaps() {
        for name in ["map key with a period", "map key with a dollar", "map key with a period in a dictionary"] {
            assertTraps(name, "Invalid key", "%2E")
        }
    }

    func testF108_collectionsThatAreNestedTooDeep() { assertTraps("nested too deep", "deeper than 100 levels") }

    func testF112_valuesThatAreTooLong() {
        assertTraps("text too long", "String too big")
        assertTraps("data too long", "Binary too big")
    }

    func testF069_F097_F098_F120_valuesThatCannotBeShown() {
        assertTraps("raw value without a case", "no case with the raw value 'gigantic'")
        assertTraps("mapped value that cannot be made", "Failed to convert persisted value '101'")
        assertTraps("literal that is no decimal", "is not a decimal number")
        assertTraps("literal that is no object id", "is not an object id")
        assertTraps("number for a decimal", "decimal128")
    }

    func testF144_F300_unmanagedValuesCannotBeFrozen() {
        assertTraps("freeze of an unmanaged object", "Unmanaged objects cannot be frozen")
        assertTraps("freeze of an unmanaged list", "Unmanaged collections cannot be frozen")
    }

    func testF437_positionsOutOfRange() {
        assertTraps("position: results", "Index 3 is out of bounds (must be less than 3)")
        assertTraps("position: filtered results", "Index 2 is out of bounds (must be less than 2)")
        assertTraps("position: list", "Index 2 is out of bounds (must be less than 2)")
        assertTraps("position: negative", "Cannot pass a negative value for 'index'")
        assertTraps("position: unmanaged list", "Index 0 is out of bounds (must be less than 0)")
        assertTraps("position: several", "Index 5 is out of bounds")
        assertTraps("position: insert", "Index 4 is out of bounds")
        assertTraps("position: remove last of none", "Cannot remove 1 elements")
        assertTraps("position: remove more than there are", "Cannot remove 3 elements")
        assertTraps("position: section", "Index 7 is out of bounds")
        assertTraps("position of an element of a set", "not available on MutableSet")
        assertTraps("position in a set by a predicate", "not available on MutableSet")
    }

    func testF213_F224_predicatesThatAreRefused() {
        assertTraps("query: unmanaged list", "may only be called on collections that were retrieved from a Realm")
        assertTraps("query: values", "Querying is currently only implemented for arrays of Realm Objects")
        assertTraps("query: values, in Swift", "Querying is currently only implemented for arrays of Realm Objects")
        assertTraps("query: text that cannot be read", "Invalid predicate \"age >\"")
        assertTraps("query: unknown property", "'nothing'")
        assertTraps("query: id against text", "Invalid query")
        assertTraps("query: number against text", "Invalid query")
        assertTraps("query: too few arguments", "Invalid predicate")
        assertTraps("query: MATCHES", "Invalid predicate")
        assertTraps("query: block", "Predicates with blocks cannot be used in queries")
    }

    func testF191_F202_queriesInSwiftThatAreRefused() {
        assertTraps("query: computed property", "persisted properties of 'Derived'")
        assertTraps("query: two collections", "Comparing two collection columns is not permitted")
        assertTraps("query: subquery over a map", "Subqueries over maps are not possible")
        assertTraps(
            "query: subquery without a collection", "Subqueries will only work when the query contains a collection of objects")
        assertTraps("key path of what is not stored", "does not name a persisted property of 'Derived'")
    }

    func testF178_F184_F190_F435_ordersAndSumsThatAreRefused() {
        assertTraps("sort: unknown property", "Cannot sort on key path 'nothing': property 'Dog.nothing' does not exist")
        assertTraps("sort: along a list", "Cannot sort on key path 'dogs.age'")
        assertTraps("sort: by a link", "Cannot sort on key path 'owner'")
        assertTraps("sort: values by a key", "can only sort on 'self'")
        assertTraps("distinct: operator", "'dogs.@count'")
        assertTraps("sum: unknown property", "Invalid property name 'nothing'")
        assertTraps("sum: date", "not supported for date")
        assertTraps("values: nested operator", "Nested key paths")
    }

    func testF072_F181_sectionsAndProjectionsThatAreRefused() {
        assertTraps("sections: no order", "at least one SortDescriptor")
        assertTraps("sections: another order", "The section key path must match the primary sort descriptor")
        assertTraps("sections: block that writes", "must not change the Realm")
        assertTraps("projection of nothing", "No properties are defined for the projection 'EmptyProjection'")
        assertTraps("projection of what is not stored", "must be a part of Realm object 'Derived'")
        assertTraps("projection that cannot be set", "cannot be set")
        assertTraps("projection outside of a transaction", "outside of a write transaction")
    }
}
