import Foundation
import RealmSwift

// Every declaration of the API in use, by its name, labels, defaults and result: that this compiles is the proof. What the calls
// do is shown by other tests.

extension Declared {
    static func realmsAndOpening(_ queue: DispatchQueue) throws {
        let c = Realm.Configuration.defaultConfiguration
        let realm = try Realm()
        _ = try Realm(queue: queue)
        _ = try Realm(queue: nil)
        _ = try Realm(configuration: c)
        _ = try Realm(configuration: .defaultConfiguration, queue: queue)
        _ = try Realm(fileURL: URL(fileURLWithPath: "/tmp/x"))
        let f1: (Realm.Configuration, DispatchQueue?) throws -> Realm = Realm.init(configuration:queue:)
        let f2: (URL) throws -> Realm = Realm.init(fileURL:)
        _ = (f1, f2)
        let task: Realm.AsyncOpenTask = Realm.asyncOpen(configuration: c, callbackQueue: .main) {
            (
                result: Result<
                    Realm,
                    Swift.Error
                >
            ) in
            switch result {
            case .success(let realm): print(realm.isEmpty)
            case .failure(let error): print(error.localizedDescription)
            }
        }
        task.cancel()
        Realm.asyncOpen { result in _ = try? result.get() }
        Realm.asyncOpen(callbackQueue: queue) { _ in }
        Realm.asyncOpen(configuration: c) { result in
            if case let .success(realm) = result { print(realm) }
        }
        let behaviour: Realm.OpenBehavior = .never
        switch behaviour {
        case .never, .always, .once: break
        }
        let schema: Schema = realm.schema
        let configuration: Realm.Configuration = realm.configuration
        let empty: Bool = realm.isEmpty
        let inWrite: Bool = realm.isInWriteTransaction, performing: Bool = realm.isPerformingAsynchronousWriteOperations
        realm.autorefresh = false
        let auto: Bool = realm.autorefresh
        realm.refresh()
        let refreshed: Bool = realm.refresh()
        realm.invalidate()
        let frozen: Bool = realm.isFrozen
        let fr: Realm = realm.freeze(), th: Realm = fr.thaw()
        let pet: Pet = realm.freeze(Pet()), pet2: Pet? = realm.thaw(Pet())
        let fc: Results<Pet> = realm.freeze(realm.objects(Pet.self))
        let block: NotificationBlock = { (notification: Realm.Notification, realm: Realm) in
            switch notification {
            case .didChange: print("d", realm);
            case .refreshRequired: break
            }
        }
        let token: NotificationToken = realm.observe(block)
        token.invalidate()
        let raw: String = Realm.Notification.didChange.rawValue
        _ = (
            schema, configuration, empty, inWrite, performing, auto, refreshed, frozen, fr, th, pet, pet2, fc, raw,
            realm == fr, realm != fr
        )
    }

    @MainActor static func realmsOfTheMainActor() async throws {
        let c = Realm.Configuration()
        _ = try await Realm()
        _ = try await Realm(configuration: c)
        _ = try await Realm(configuration: c, downloadBeforeOpen: .always)
        _ = try await Realm(downloadBeforeOpen: .once)
        _ = try await Realm.open()
        _ = try await Realm.open(configuration: c, downloadBeforeOpen: .once)
        _ = try await Realm(actor: MainActor.shared)
        let realm = try await Realm(configuration: c, actor: MainActor.shared)
        let n: Int = try await realm.asyncWrite { 5 }
        try await realm.asyncWrite { realm.deleteAll() }
        await realm.asyncRefresh()
        let b: Bool = await realm.asyncRefresh()
        _ = (n, b)
    }

    static func configurations() {
        var c = Realm.Configuration(
            fileURL: URL(fileURLWithPath: "/x"), inMemoryIdentifier: nil, encryptionKey: nil,
            readOnly: false, schemaVersion: 0, migrationBlock: nil, deleteRealmIfMigrationNeeded: false,
            shouldCompactOnLaunch: nil, objectTypes: nil, seedFilePath: nil)
        c = Realm.Configuration()
        c = Realm.Configuration(inMemoryIdentifier: "x")
        c = Realm.Configuration(fileURL: URL(string: "/x"), readOnly: true)
        c = Realm.Configuration(
            schemaVersion: 2,
            migrationBlock: {
                migration,
                oldSchemaVersion in if oldSchemaVersion < 2 { _ = migration }
            })
        c = Realm.Configuration(shouldCompactOnLaunch: { totalBytes, usedBytes in
            let oneHundredMB = 100 * 1024 * 1024
            return (totalBytes > oneHundredMB) && (Double(usedBytes) / Double(totalBytes)) < 0.5
        })
        c.fileURL = nil; c.fileURL!.deleteLastPathComponent(); c.fileURL!.appendPathComponent("x")
        c.fileURL?.appendPathExtension("realm")
        let url: URL? = c.fileURL, id: String? = c.inMemoryIdentifier, key: Data? = c.encryptionKey, ro: Bool = c.readOnly,
            v: UInt64 = c.schemaVersion, mb: MigrationBlock? = c.migrationBlock
        let del: Bool = c.deleteRealmIfMigrationNeeded, comp: (@Sendable (Int, Int) -> Bool)? = c.shouldCompactOnLaunch,
            types: [ObjectBase.Type]? = c.objectTypes, maxv: UInt? = c.maximumNumberOfActiveVersions,
            seed: URL? = c.seedFilePath
        c.inMemoryIdentifier = "s"; c.encryptionKey = Data(count: 64); c.readOnly = false; c.schemaVersion = 4
        c.migrationBlock = { _, _ in }; c.deleteRealmIfMigrationNeeded = false
        c.shouldCompactOnLaunch = { $0 > $1 }; c.objectTypes = [Pet.self, Street.self]; c.maximumNumberOfActiveVersions = 5
        c.seedFilePath = nil
        let c2: Realm.Configuration = .init(objectTypes: [Pet.self])
        Realm.Configuration.defaultConfiguration = c
        _ = (url, id, key, ro, v, mb, del, comp, types, maxv, seed, c.description, c == c2, "\(c)")
    }

    static func transactions(_ realm: Realm, _ tokens: [NotificationToken]) throws {
        try realm.write { realm.deleteAll() }
        try realm.write(withoutNotifying: tokens) {}
        let r: Int = try realm.write { return 5 }
        let p: Pet = try realm.write {
            let p = Pet(); realm.add(p); return p
        }
        try realm.write { realm.create(Pet.self) }
        try realm.write { _ = 3 }
        let block: (() throws -> Void) = {}
        try realm.write(block)
        let block2 = { realm.deleteAll() }
        try realm.write(block2)
        realm.beginWrite()
        try realm.commitWrite()
        realm.beginWrite()
        try realm.commitWrite(withoutNotifying: tokens)
        realm.cancelWrite()
        realm.writeAsync { realm.deleteAll() }
        realm.writeAsync({ realm.deleteAll() }, onComplete: { (error: Swift.Error?) in print(error as Any) })
        realm.writeAsync {
            realm.deleteAll()
        } onComplete: { error in
            if let error { print(error) }
        }
        let id: AsyncTransactionId = realm.writeAsync {}
        realm.beginAsyncWrite { realm.commitAsyncWrite() }
        let id2: AsyncTransactionId = realm.beginAsyncWrite {
            realm.commitAsyncWrite(allowGrouping: true) { error in print(error as Any) }
        }
        let id3: AsyncTransactionId = realm.commitAsyncWrite { _ in }
        realm.commitAsyncWrite(allowGrouping: false, nil)
        try realm.cancelAsyncWrite(id)
        _ = (r, p, id2, id3)
    }

    static func addingAndDeleting(_ realm: Realm, _ human: Human) {
        let policy: Realm.UpdatePolicy = .modified
        switch policy {
        case .error, .modified, .all: break
        }
        let raw: Int = Realm.UpdatePolicy.all.rawValue
        realm.add(human); realm.add(human, update: .error); realm.add(human, update: .all)
        realm.add([human]); realm.add([human], update: .modified); realm.add(Set([human]))
        realm.add(realm.objects(Human.self), update: .modified); realm.add(human.pets)
        realm.add([human].lazy.map { $0 }, update: .all)
        realm.create(Pet.self)
        let p: Pet = realm.create(Pet.self, value: ["name": "x"])
        realm.create(Pet.self, value: ["name": "x", "age": 5], update: .modified)
        realm.create(Pet.self, value: [ObjectId.generate(), "x", 5] as [Any], update: .all)
        realm.create(Pet.self, value: p)
        realm.create(Pet.self, value: NSNull())
        let d: DynamicObject = realm.dynamicCreate("Pet", value: ["name": "x"], update: .modified)
        realm.dynamicCreate("Pet"); realm.dynamicCreate("Pet", value: [])
        realm.delete(human); realm.delete(human.street!); realm.delete([human]); realm.delete(human.pets)
        realm.delete(realm.objects(Pet.self)); realm.delete(human.petMap); realm.delete(human.petSet)
        realm.delete(human.streets)
        realm.delete(human.partners); realm.delete(human.streetMap); realm.delete(human.pets.filter("age > 3"))
        realm.delete(human.pets.filter { $0.age > 3 }); realm.delete(d); realm.delete(AnyRealmCollection(human.pets))
        realm.delete(human.pets.where { $0.age > 3 })
        realm.delete(Set([human])); realm.delete(realm.dynamicObjects("Pet")); realm.deleteAll()
        _ = (raw, d)
    }

    static func reading(_ realm: Realm) {
        let r: Results<Pet> = realm.objects(Pet.self)
        let v: Results<HumanView> = realm.objects(HumanView.self)
        let p: Pet? = realm.object(ofType: Pet.self, forPrimaryKey: ObjectId.generate())
        let h = realm.object(ofType: Human.self, forPrimaryKey: "x")
        let h2 = realm.object(ofType: Human.self, forPrimaryKey: String?.none)
        let d: Results<DynamicObject> = realm.dynamicObjects("Pet")
        let o: DynamicObject? = realm.dynamicObject(ofType: "Pet", forPrimaryKey: 4)
        _ = (r, v, p, h, h2, d, o)
    }

    static func files(_ realm: Realm) throws {
        try realm.writeCopy(toFile: URL(fileURLWithPath: "x"))
        try realm.writeCopy(toFile: URL(fileURLWithPath: "x"), encryptionKey: Data(count: 64))
        try realm.writeCopy(configuration: .defaultConfiguration)
        let e: Bool = Realm.fileExists(for: realm.configuration), d: Bool = try Realm.deleteFiles(for: .defaultConfiguration)
        _ = try Realm.deleteFiles(for: realm.configuration)
        try Realm.performMigration(); try Realm.performMigration(for: realm.configuration)
        let v: UInt64 = try schemaVersionAtURL(URL(fileURLWithPath: "x")),
            v2 = try schemaVersionAtURL(URL(fileURLWithPath: "x"), encryptionKey: nil)
        _ = (e, d, v, v2)
    }

    static func threads(_ realm: Realm, _ human: Human) {
        let a = ThreadSafeReference(to: human),
            b: ThreadSafeReference<RealmSwift.List<Pet>> = ThreadSafeReference(to: human.pets)
        let c = ThreadSafeReference(to: human.petSet), d = ThreadSafeReference(to: human.petMap),
            e = ThreadSafeReference(to: realm.objects(Pet.self)), f = ThreadSafeReference(to: human.partners),
            g = ThreadSafeReference(to: human.street!), v = ThreadSafeReference(to: HumanView(projecting: human))
        let inv: Bool = a.isInvalidated
        let ra: Human? = realm.resolve(a)
        guard let rb = realm.resolve(b) else { return }
        @ThreadSafe var safe = human
        @ThreadSafe var safe2: Human? = human
        @ThreadSafe var list = human.pets
        _ = list as Any
        func take(@ThreadSafe _ person: Human?) { person?.name = "x" }
        take(human)
        class Holder { @ThreadSafe var pet: Pet?; @ThreadSafe var results: Results<Pet>?; init(p: Pet) { pet = p } }
        let wrapper: ThreadSafe<Human> = ThreadSafe(wrappedValue: human)
        safe2 = nil
        _ = (c, d, e, f, g, v, inv, ra, rb, safe2 as Any, wrapper.wrappedValue as Any)
    }

    class Legacy: Object {
        let list = RealmSwift.List<Pet>()
        let ints = RealmSwift.List<Int>()
        let optInt = RealmOptional<Int>()
        let optInt2 = RealmOptional<Double>(3)
        let prop = RealmProperty<Int?>()
        let any = RealmProperty<AnyRealmValue>()
        let set = MutableSet<String>()
        let map = Map<String, Int>()
        let fans = LinkingObjects(fromType: Legacy2.self, property: "legacies")
        override static func primaryKey() -> String? { nil }
        override static func ignoredProperties() -> [String] { ["x"] }
        override static func indexedProperties() -> [String] { [] }
        override class func propertiesMapping() -> [String: String] { [:] }
        override class func shouldIncludeInDefaultSchema() -> Bool { true }
    }
    class Legacy2: Object {
        let legacies = RealmSwift.List<Legacy>()
        override class func primaryKey() -> String? { nil }
        override class func ignoredProperties() -> [String] { [] }
        override class func indexedProperties() -> [String] { [] }
    }
    class LegacyE: EmbeddedObject {
        let x = RealmOptional<Int>()
        override class func ignoredProperties() -> [String] { [] }
        override class func propertiesMapping() -> [String: String] { [:] }
    }

    static func objects(_ h: Human, _ s: Street, _ token: NotificationToken) {
        let a = Human(), b = Human(value: ["name": "x"]), c = Street(value: ["x", 3] as [Any])
        let realm: Realm? = h.realm, os: ObjectSchema = h.objectSchema, inv: Bool = h.isInvalidated,
            desc: String = h.description, cn: String = Human.className(), inc: Bool = Human.shouldIncludeInDefaultSchema()
        let pk: String? = Human.primaryKey(), ig: [String] = Human.ignoredProperties(),
            ix: [String] = Human.indexedProperties(), pm: [String: String] = Human.propertiesMapping()
        h["name"] = "x"; h["intOpt"] = nil
        let any: Any? = h["name"], v: Any? = h.value(forKey: "name"), vp: Any? = h.value(forKeyPath: "partner.name")
        h.setValue("x", forKey: "name"); h.setValue("x", forKeyPath: "partner.name"); h.setValue(nil, forKey: "intOpt")
        let dl: RealmSwift.List<DynamicObject> = h.dynamicList("pets"),
            ds: MutableSet<DynamicObject> = h.dynamicMutableSet("petSet"),
            dm:
                Map<
                    String,
                    DynamicObject?
                > = h.dynamicMap("petMap")
        let same: Bool = h.isSameObject(as: b), same2: Bool = h.isSameObject(as: nil), same3: Bool = s.isSameObject(as: c)
        let fr: Bool = h.isFrozen, f: Human = h.freeze(), t: Human? = f.thaw(), sf: Street = s.freeze(),
            st: Street? = sf.thaw()
        s["name"] = "y"
        let sl: RealmSwift.List<DynamicObject> = s.dynamicList("list")
        let eq: Bool = a == b, hv: Int = a.hashValue, ident: Bool = a === b
        let cls: AnyClass = type(of: h)
        let id: UInt64 = Pet().id
        _ = (
            realm, os, inv, desc, cn, inc, pk, ig, ix, pm, any, v, vp, dl, ds, dm, same, same2, same3, fr, f, t, sf, st, sl,
            eq, hv, ident, cls, id, s.objectSchema, s.realm as Any, s.isInvalidated, Street.isEmbedded(), Street.className(),
            Street.ignoredProperties(), Street.propertiesMapping()
        )
        let dyn = DynamicObject()
        let x: Any? = dyn["x"]; let y: Any? = dyn.name; dyn.name = "s"; dyn["name"] = 5
        _ = (x, y)
    }
}
