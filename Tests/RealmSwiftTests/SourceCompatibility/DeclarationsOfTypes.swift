import Foundation
import RealmSwift

// Which protocols the types of the API conform to: that this compiles is the proof.

extension Declared {
    static func hashable<T: Hashable>(_: T.Type) {}
    static func sendable<T: Sendable>(_: T.Type) {}
    static func describable<T: CustomStringConvertible>(_: T.Type) {}
    static func codable<T: Codable>(_: T.Type) {}
    static func encodable<T: Encodable>(_: T.Type) {}
    static func equatable<T: Equatable>(_: T.Type) {}
    static func realmCollection<T: RealmCollection>(_: T.Type) {}
    static func keyed<T: RealmKeyedCollection>(_: T.Type) {}
    static func confinedType<T: ThreadConfined>(_: T.Type) {}
    static func minmax<T: MinMaxType>(_: T.Type) {}
    static func addable<T: AddableType>(_: T.Type) {}
    static func sortable<T: SortableType>(_: T.Type) {}
    static func keyPathSortable<T: KeypathSortable>(_: T.Type) {}
    static func collectionValue<T: RealmCollectionValue>(_: T.Type) {}
    static func fetchable<T: RealmFetchable>(_: T.Type) {}
    static func optionalType<T: RealmOptionalType>(_: T.Type) {}
    static func propertyType<T: RealmPropertyType>(_: T.Type) {}
    static func randomAccess<T: RandomAccessCollection>(_: T.Type) where T.Index == Int {}
    static func mutableC<T: MutableCollection>(_: T.Type) {}
    static func numericT<T: Numeric>(_: T.Type) {}
    static func comparableT<T: Comparable>(_: T.Type) {}
    static func identifiable<T: Identifiable>(_: T.Type) {}
    static func inside<T: _RealmCollectionValueInsideOptional>(_: T.Type) {}
    static func queryNumeric<T: _QueryNumeric>(_: T.Type) {}
    static func queryString<T: _QueryString>(_: T.Type) {}
    static func queryBinary<T: _QueryBinary>(_: T.Type) {}
    static func persistable<T: _Persistable>(_: T.Type) {}
    static func discoverable<T: _RealmSchemaDiscoverable>(_: T.Type) {}
    static func defaultConstructible<T: _DefaultConstructible>(_: T.Type) {}
    static func linkingProtocol<T: LinkingObjectsProtocol>(_: T.Type) {}
    static func mapKey<T: _MapKey>(_: T.Type) {}
    static func sectioned<T: RealmSectionedResult>(_: T.Type) {}
    static func projectionObservable<T: ProjectionObservable>(_: T.Type) {}

    static func conformances() {
        hashable(ObjectBase.self); hashable(Object.self); hashable(EmbeddedObject.self); hashable(Pet.self)
        hashable(HumanView.self)
        hashable(AnyRealmValue.self); hashable(Decimal128.self); hashable(ObjectId.self)
        hashable(SingleMapEntry<String, Int>.self)
        hashable(NotificationToken.self)
        sendable(Realm.Configuration.self); sendable(ThreadSafeReference<Pet>.self); sendable(ThreadSafe<Pet>.self)
        sendable(ObjectId.self)
        sendable(Decimal128.self); sendable(NotificationToken.self); sendable(Realm.Error.self)
        sendable(Realm.Error.Code.self); sendable(Realm.OpenBehavior.self)
        sendable(StringOptions.self); sendable(Realm.UpdatePolicy.self); sendable(PropertyType.self)
        describable(Realm.Configuration.self); describable(Schema.self); describable(ObjectSchema.self)
        describable(Property.self); describable(SortDescriptor.self)
        describable(RealmSwift.List<Int>.self); describable(MutableSet<Int>.self); describable(Map<String, Int>.self)
        describable(Results<Pet>.self)
        describable(LinkingObjects<Pet>.self); describable(AnyRealmCollection<Pet>.self)
        describable(ProjectedCollection<String>.self); describable(Decimal128.self)
        describable(ObjectId.self); describable(RealmProperty<Int?>.self); describable(Pet.self)
        codable(RealmSwift.List<Int>.self); codable(MutableSet<Int>.self); codable(Map<String, Int>.self)
        codable(RealmOptional<Int>.self); codable(RealmProperty<Int?>.self)
        codable(Decimal128.self); codable(ObjectId.self)
        encodable(Results<Pet>.self); encodable(AnyRealmCollection<Int>.self)
        equatable(Realm.self); equatable(Realm.Configuration.self); equatable(Schema.self); equatable(ObjectSchema.self)
        equatable(Property.self)
        equatable(SortDescriptor.self); equatable(Results<Pet>.self); equatable(RealmSwift.List<Pet>.self)
        equatable(LinkingObjects<Pet>.self); equatable(AnyRealmCollection<Pet>.self)
        equatable(RealmOptional<Int>.self); equatable(RealmProperty<Int?>.self); equatable(MutableSet<Int>.self)
        equatable(SectionedResults<String, Pet>.self); equatable(ResultsSection<String, Pet>.self)
        realmCollection(RealmSwift.List<Int>.self); realmCollection(MutableSet<Int>.self); realmCollection(Results<Pet>.self)
        realmCollection(LinkingObjects<Pet>.self); realmCollection(AnyRealmCollection<Pet>.self)
        keyed(Map<String, Int>.self)
        confinedType(Pet.self); confinedType(Street.self); confinedType(RealmSwift.List<Int>.self)
        confinedType(MutableSet<Int>.self); confinedType(Map<String, Int>.self); confinedType(Results<Pet>.self)
        confinedType(LinkingObjects<Pet>.self); confinedType(HumanView.self); confinedType(ProjectedCollection<Int>.self)
        confinedType(SectionedResults<String, Pet>.self); confinedType(ResultsSection<String, Pet>.self)
        minmax(NSNumber.self); minmax(Double.self); minmax(Float.self); minmax(Int.self); minmax(Int8.self)
        minmax(Int16.self); minmax(Int32.self); minmax(Int64.self); minmax(Date.self); minmax(NSDate.self)
        minmax(Decimal128.self); minmax(AnyRealmValue.self); minmax(Int?.self); minmax(Status.self)
        addable(NSNumber.self); addable(Double.self); addable(Decimal128.self); addable(AnyRealmValue.self)
        addable(Int?.self)
        sortable(AnyRealmValue.self); sortable(Data.self); sortable(Date.self); sortable(Decimal128.self)
        sortable(Double.self); sortable(Float.self); sortable(Int16.self); sortable(String.self); sortable(String?.self)
        keyPathSortable(Pet.self); keyPathSortable(HumanView.self)
        collectionValue(Int.self); collectionValue(Int8.self); collectionValue(Int?.self); collectionValue(Status.self)
        collectionValue(Status?.self); collectionValue(Temperature.self); collectionValue(Temperature?.self)
        collectionValue(Pet.self); collectionValue(Street.self); collectionValue(HumanView.self)
        collectionValue(AnyRealmValue.self); collectionValue(UUID?.self); collectionValue(Pet?.self)
        fetchable(Pet.self); fetchable(HumanView.self); fetchable(DynamicObject.self)
        optionalType(Int.self); optionalType(Int8.self); optionalType(Int16.self); optionalType(Int32.self)
        optionalType(Int64.self); optionalType(Float.self); optionalType(Double.self); optionalType(Bool.self)
        propertyType(AnyRealmValue.self); propertyType(Int?.self); propertyType(Double?.self)
        randomAccess(RealmSwift.List<Int>.self); randomAccess(Results<Pet>.self); randomAccess(ProjectedCollection<Int>.self)
        randomAccess(SectionedResults<String, Pet>.self); randomAccess(ResultsSection<String, Pet>.self)
        mutableC(RealmSwift.List<Int>.self)
        numericT(Decimal128.self); comparableT(Decimal128.self); comparableT(ObjectId.self); comparableT(Status.self)
        identifiable(Pet.self); identifiable(ResultsSection<String, Pet>.self)
        inside(Int.self); inside(String.self); inside(Pet.self); inside(Street.self); inside(UUID.self)
        inside(ObjectId.self); inside(Decimal128.self); inside(Status.self); inside(Temperature.self)
        queryNumeric(Int.self); queryNumeric(Date.self); queryNumeric(Decimal128.self); queryNumeric(AnyRealmValue.self)
        queryNumeric(Int?.self); queryNumeric(Double?.self)
        queryString(String.self); queryString(String?.self); queryBinary(Data.self); queryBinary(Data?.self)
        queryBinary(String.self)
        persistable(Int.self); persistable(Pet?.self); persistable(Status.self); persistable(RealmSwift.List<Int>.self)
        persistable(Map<String, Int>.self)
        discoverable(Int.self); discoverable(RealmSwift.List<Int>.self)
        defaultConstructible(RealmSwift.List<Int>.self); defaultConstructible(AnyRealmValue.self)
        defaultConstructible(Decimal128.self)
        linkingProtocol(LinkingObjects<Pet>.self); mapKey(String.self)
        sectioned(SectionedResults<String, Pet>.self); sectioned(ResultsSection<String, Pet>.self)
        projectionObservable(HumanView.self)
        let key: PropertyKey = 3
        _ = key
    }
}
