import Foundation
import RealmSwift

// Every declaration of the API in use, by its name, labels, defaults and result: that this compiles is the proof. What the calls
// do is shown by other tests.

extension Declared {
    static func linkingObjects(_ human: Human, _ pet: Pet, _ realm: Realm) {
        let lo: LinkingObjects<Human> = pet.owners
        let f: Human? = lo.first, c: Int = lo.count, w: Results<Human> = lo.where { $0.name == "x" },
            s: Results<Human> = lo.sorted(byKeyPath: "name"), fl: Results<Human> = lo.filter("name == 'x'")
        let made = LinkingObjects(fromType: Human.self, property: "pets")
        let t = lo.observe { (c: RealmCollectionChange<LinkingObjects<Human>>) in _ = c }
        let r = realm.objects(Human.self)
        let any: AnyRealmCollection<Human> = AnyRealmCollection(lo), e: Human = any[0], d: String = any.description,
            fr: AnyRealmCollection<Human> = any.freeze(), th: AnyRealmCollection<Human>? = fr.thaw()
        _ = (
            f, c, w, s, fl, made, t, r == r, any == any, e, d, fr, th, lo == lo, lo.freeze(), lo.thaw() as Any,
            lo.realm as Any, lo.isInvalidated, lo.description
        )
    }

    static func sections(_ realm: Realm, _ queue: DispatchQueue) {
        let s = realm.objects(Pet.self).sectioned(by: \.name)
        let k: [String] = s.allKeys, c: Int = s.count, sec: ResultsSection<String, Pet> = s[0],
            el: Pet = s[IndexPath(indexes: [0, 1])], el2: Pet = s[IndexPath(item: 1, section: 0)],
            el3: Pet = s[IndexPath(row: 1, section: 0)], key: String = sec.key, id: String = sec.id, sc: Int = sec.count,
            p: Pet = sec[0]
        for section in s { print(section.key); for pet in section { print(pet.name) } }
        let t = s.observe { (change: SectionedResultsChange<SectionedResults<String, Pet>>) in
            switch change {
            case .initial(let c): _ = c
            case .update(
                let c, let deletions, let insertions, let modifications, let sectionsToInsert,
                let sectionsToDelete):
                let d: [IndexPath] = deletions, i: IndexSet = sectionsToInsert
                _ = (c, d, insertions, modifications, i, sectionsToDelete)
            }
        }
        let t2 = s.observe(keyPaths: ["name"]) { _ in }, t3 = s.observe(keyPaths: [\Pet.name], on: queue) { _ in },
            t4 = sec.observe { (c: RealmSectionedResultsChange<ResultsSection<String, Pet>>) in _ = c },
            t5 = sec.observe(keyPaths: [\Pet.age]) { _ in }
        let fr: SectionedResults<String, Pet> = s.freeze(), th: SectionedResults<String, Pet>? = fr.thaw(),
            fsec: ResultsSection<String, Pet> = sec.freeze(), tsec: ResultsSection<String, Pet>? = fsec.thaw()
        let it: SectionedResultsIterator<String, Pet> = s.makeIterator(), it2: SectionIterator<Pet> = sec.makeIterator(),
            it3: RLMSectionedResultsIterator<String, Pet> = it, it4: RLMSectionIterator<Pet> = it2
        _ = (
            k, c, el, el2, el3, key, id, sc, p, t, t2, t3, t4, t5, fr, th, fsec, tsec, it, it2, it3, it4, s == s, sec == sec,
            s.realm as Any, s.isInvalidated, s.isFrozen, sec.isFrozen, sec.realm as Any, s.first as Any, sec.first as Any,
            s.map { $0.key }, sec.map { $0.name }
        )
        let ip = IndexPath(row: 1, section: 2)
        _ = (ip.row, ip.item, ip.section)
        let views = realm.objects(HumanView.self).sectioned(by: \.name)
        let views2 = realm.objects(HumanView.self).sectioned(
            by: { String($0.name.first ?? "-") },
            sortDescriptors: [RealmSwift.SortDescriptor(keyPath: "name")])
        let views3 = realm.objects(HumanView.self).sectioned(
            by: \.name,
            sortDescriptors: [RealmSwift.SortDescriptor(keyPath: "name")])
        _ = (views, views2, views3)
    }

    static func projections(_ human: Human, _ realm: Realm, _ queue: DispatchQueue) {
        let v = HumanView(projecting: human)
        let root: Human = v.rootObject, r: Realm? = v.realm, inv: Bool = v.isInvalidated, fz: Bool = v.isFrozen,
            fr: HumanView = v.freeze(), th: HumanView? = fr.thaw(), d: String = v.description, eq: Bool = v == v
        v.name = "x"; v.streetName = "s"; v.status = .doing; v.intOpt = nil; v.b = true
        let names: ProjectedCollection<String> = v.petNames, n: String = names[0], c: Int = names.count,
            i: Int? = names.index(of: "x"), im: Int? = names.index(matching: NSPredicate(format: "name == 'x'")),
            arr = Array(names)
        let t = v.observe { (change: ObjectChange<HumanView>) in
            switch change {
            case .change(let v, let props):
                for p in props {
                    print(
                        v.name, p.name, p.oldValue as Any,
                        p.newValue as Any)
                };
            case .deleted: break;
            case .error(let e): print(e)
            }
        }
        let t2 = v.observe(keyPaths: ["name"]) { _ in }, t3 = v.observe(keyPaths: [\HumanView.name], on: queue) { _ in }
        let t4 = names.observe { (c: RealmCollectionChange<ProjectedCollection<String>>) in _ = c }
        let t5 = names.observe(keyPaths: ["name"], on: queue) { _ in }
        let t6 = names.observe(on: queue) { _ in }
        let vs: Results<HumanView> = realm.objects(HumanView.self), f: Results<HumanView> = vs.filter("name == 'x'"),
            s: Results<HumanView> = vs.sorted(byKeyPath: "name"), first: HumanView? = vs.first
        realm.delete(v.rootObject)
        let nf: ProjectedCollection<String> = names.freeze(), nt: ProjectedCollection<String>? = nf.thaw()
        _ = (
            root, r, inv, fz, fr, th, d, eq, n, c, i, im, arr, t, t2, t3, t4, t5, t6, f, s, first, nf, nt, names.description,
            names.realm as Any, names.isInvalidated, names.isFrozen, names.startIndex, names.endIndex, Set([v]),
            HumanView.className()
        )
        let path: PartialKeyPath<HumanView> = \HumanView.name
        let nm: String = _name(for: path), nm2: String = _name(for: \Human.street?.name as PartialKeyPath<Human>),
            nm3 = _name(for: \Human.pets)
        let vt = vs.observe(keyPaths: ["name"]) { (c: RealmCollectionChange<Results<HumanView>>) in _ = c }
        _ = (nm, nm2, nm3, vt)
    }

    static func errors(_ open: () throws -> Realm) {
        do { _ = try open() } catch Realm.Error.fail {} catch Realm.Error.fileAccess {} catch Realm.Error.filePermissionDenied {
        } catch Realm.Error.fileExists {} catch Realm.Error.fileNotFound {} catch Realm.Error.fileFormatUpgradeRequired {
        } catch Realm.Error.incompatibleLockFile {} catch Realm.Error.addressSpaceExhausted {} catch Realm.Error.schemaMismatch {
        } catch Realm.Error.alreadyOpen {} catch Realm.Error.invalidInput {} catch Realm.Error.outOfDiskSpace {} catch Realm.Error
            .incompatibleSession
        {} catch Realm.Error.unsupportedFileFormatVersion {} catch Realm.Error.fileOperationFailed {} catch Realm.Error
            .invalidDatabase
        {} catch Realm.Error.incompatibleHistories {} catch Realm.Error.multipleSyncAgents {} catch Realm.Error.subscriptionFailed
        {} catch Realm.Error.noSubscriptionForWrite {} catch let error as Realm.Error where error.code == .fail {
            print(error)
        } catch let error as Realm.Error {
            switch error.code {
            case .fail: break;
            case .fileAccess, .fileNotFound: break;
            default: break
            }
            if error.code == .schemaMismatch {}
            if case .alreadyOpen = error.code {}
            let c = error.code
            let u: URL? = error.fileURL, i = error.errorCode, ui: [String: Any] = error.userInfo
            _ = (c, u, i, ui, error.localizedDescription)
        } catch let error as NSError { print(error.domain, error.code, error.userInfo, error.localizedDescription) }
        let e = Realm.Error(.fail), e2 = Realm.Error(Realm.Error.fail, userInfo: [NSLocalizedDescriptionKey: "x"]),
            e3 = Realm.Error.callFailed, e4 = Realm.Error(Realm.Error.Code.fileAccess)
        let code: Realm.Error.Code = .fileNotFound, raw: Int = code.rawValue
        let err: Swift.Error = e
        if let re = err as? Realm.Error, re.code == .fail { print(re) }
        if let re = err as? Realm.Error, re.code == Realm.Error.fail { print(re) }
        _ = (e2, e3, e4, raw, e == e2, e != e2)
    }

    static func migrations() {
        let block: MigrationBlock = { (migration: Migration, oldSchemaVersion: UInt64) in
            let o: Schema = migration.oldSchema, n: Schema = migration.newSchema
            migration.enumerateObjects(ofType: Human.className()) {
                (
                    oldObject: MigrationObject?,
                    newObject: MigrationObject?
                ) in
                let first = oldObject!["first"] as! String, age = oldObject?["age"] as? Int
                newObject!["name"] = "\(first) \(age ?? 0)"
                newObject?["age"] = nil
                newObject?.name = "x"
                if let newObject, let list = newObject["pets"] as? List<DynamicObject> { list.forEach { _ = $0 } }
                let s = newObject?.dynamicList("pets")
                _ = s
                if let old = oldObject { migration.delete(old) }
            }
            let made: MigrationObject = migration.create("Pet", value: ["name": "x"])
            migration.create("Pet"); migration.create(Pet.className(), value: made)
            migration.delete(made)
            let b: Bool = migration.deleteData(forType: "Old")
            migration.deleteData(forType: "Old")
            migration.renameProperty(onType: Human.className(), from: "a", to: "b")
            let e: MigrationObjectEnumerateBlock = { _, _ in }
            migration.enumerateObjects(ofType: "X", e)
            _ = (o, n, b)
        }
        _ = block
    }

    static func schemas(_ realm: Realm) {
        let s = realm.schema, os: [ObjectSchema] = s.objectSchema, o: ObjectSchema? = s["Pet"],
            ps: [Property] = o!.properties, cn: String = o!.className, oc: AnyClass = o!.objectClass,
            em: Bool = o!.isEmbedded, pk: Property? = o!.primaryKeyProperty, p: Property? = o!["name"]
        let n: String = p!.name, col: String = p!.columnName, t: PropertyType = p!.type,
            f: [Bool] = [
                p!.isArray, p!.isSet,
                p!.isMap, p!.isIndexed, p!.isOptional,
            ],
            ocn: String? = p!.objectClassName
        switch t {
        case .int, .bool, .string, .data, .date, .float, .double, .object, .linkingObjects, .any, .objectId,
            .decimal128, .UUID:
            break;
        @unknown default: break
        }
        let raw: Int32 = t.rawValue
        _ = (
            os, ps, cn, oc, em, pk, n, col, f, ocn, raw, s.description, o!.description, p!.description, s == s, o == o,
            p == p, o!.isAsymmetric
        )
    }

    static func observers(_ h: Human, _ s: Street, _ queue: DispatchQueue) {
        let t = h.observe { (change: ObjectChange<Human>) in
            switch change {
            case .change(let object, let properties):
                for property in properties {
                    let n: String = property.name, o: Any? = property.oldValue,
                        nv: Any? = property.newValue
                    ; _ = (object, n, o, nv)
                }
            case .error(let error): let e: NSError = error; print(e)
            case .deleted: print("deleted")
            }
        }
        let t2 = h.observe { change in
            switch change {
            case .change(let object, let properties): print(object, properties)
            case .error(let error): print("An error occurred: \(error)")
            case .deleted: print("The object was deleted.")
            }
        }
        let t3 = h.observe(keyPaths: ["name"]) { (c: ObjectChange<Human>) in _ = c },
            t4 = h.observe(
                keyPaths: [
                    \Human.name,
                    \Human.street?.name,
                ], on: queue
            ) { (c: ObjectChange<Human>) in _ = c },
            t5 = h.observe(on: queue) { (c: ObjectChange<ObjectBase>) in _ = c },
            t6 = s.observe { (c: ObjectChange<Street>) in _ = c },
            t7 = s.observe(on: queue) { (c: ObjectChange<Street>) in _ = c }
        let t8 = h.observe(keyPaths: [\.name]) { (c: ObjectChange<Human>) in _ = c }
        let t9 = h.observe(keyPaths: ["name"]) { change in
            switch change {
            case .change(let o, _): print(o);
            default: break
            }
        }
        let t10 = h.observe(keyPaths: [\Human.name]) { change in if case .deleted = change {} }
        _ = (t, t2, t3, t4, t5, t6, t7, t8, t9, t10)
    }

    actor Act {
        var realm: Realm!
        var tokens: [NotificationToken] = []
        init() async throws { realm = try await Realm(actor: self) }
        func go(_ h: Human, _ s: Street, _ v: HumanView) async throws {
            let c = realm.objects(Pet.self)
            tokens.append(await c.observe(on: self) { actor, change in actor.handle(change) })
            tokens.append(
                await c.observe(keyPaths: ["name"], on: self) {
                    (
                        actor: isolated Act,
                        change: RealmCollectionChange<Results<Pet>>
                    ) in actor.handle(change)
                })
            tokens.append(await c.observe(keyPaths: [\Pet.name], on: self, { actor, change in _ = (actor, change) }))
            tokens.append(await h.pets.observe(on: self) { _, _ in })
            tokens.append(await h.petSet.observe(keyPaths: [\.name], on: self) { _, _ in })
            tokens.append(await h.petMap.observe(on: self) { (_, change: RealmMapChange<Map<String, Pet?>>) in _ = change })
            tokens.append(await h.petMap.observe(keyPaths: [\Pet.name], on: self) { _, _ in })
            tokens.append(
                await h.observe(on: self) { (actor: isolated Act, change: ObjectChange<Human>) in
                    _ = (
                        actor,
                        change
                    )
                })
            tokens.append(
                await h.observe(keyPaths: ["name"], on: self) {
                    (
                        _: isolated Act,
                        change: ObjectChange<Human>
                    ) in _ = change
                })
            tokens.append(
                await h.observe(keyPaths: [\Human.name], on: self) {
                    (
                        _,
                        change: ObjectChange<Human>
                    ) in _ = change
                })
            tokens.append(await s.observe(on: self) { (_, change: ObjectChange<Street>) in _ = change })
            tokens.append(
                await s.observe(keyPaths: [\Street.name], on: self) {
                    (
                        _,
                        change: ObjectChange<Street>
                    ) in _ = change
                })
            tokens.append(await v.observe(on: self) { _, change in _ = change })
            tokens.append(await v.observe(keyPaths: [\HumanView.name], on: self) { _, change in _ = change })
            let sec = c.sectioned(by: \.name)
            tokens.append(await sec.observe(on: self) { _, change in _ = change })
            tokens.append(await sec.observe(keyPaths: [\Pet.name], on: self) { _, change in _ = change })
            tokens.append(await sec[0].observe(on: self) { _, change in _ = change })
            tokens.append(await sec[0].observe(keyPaths: [\Pet.name], on: self) { _, change in _ = change })
            tokens.append(await AnyRealmCollection(c).observe(on: self) { _, _ in })
            try await realm.asyncWrite {
                c[0].age = 3; realm.delete(c)
            }
            let r = try await Realm.open()
            await r.asyncRefresh()
            _ = r
        }
        func handle(_ c: RealmCollectionChange<Results<Pet>>) {}
    }

    static func places(_ realm: Realm) {
        let p: GeoPoint? = GeoPoint(latitude: 1, longitude: 2),
            p2: GeoPoint? = GeoPoint(
                latitude: 1, longitude: 2,
                altitude: 3)
        let b = GeoBox(bottomLeft: p!, topRight: p2!), b2: GeoBox? = GeoBox(bottomLeft: (1, 2), topRight: (3, 4)),
            g: GeoPolygon? = GeoPolygon(outerRing: [p!], holes: [[p!]]),
            g2: GeoPolygon? = GeoPolygon(
                outerRing: [(1, 2)],
                holes: [[(1, 2)]]),
            g3: GeoPolygon? = GeoPolygon(outerRing: [(1, 2)], holes: [(1, 2)], [(3, 4)]),
            g4: GeoPolygon? = GeoPolygon(outerRing: [p!]), g5 = GeoPolygon(outerRing: [(0, 0), (1, 1), (2, 2), (0, 0)])
        let d: Distance? = Distance.kilometers(3), d2: Distance? = .miles(3), d3: Distance? = .degrees(3),
            d4: Distance? = .radians(3), c = GeoCircle(center: p!, radius: d!),
            c2: GeoCircle? = GeoCircle(
                center: p!,
                radiusInRadians: 3),
            c3: GeoCircle? = GeoCircle(center: (1, 2), radiusInRadians: 3),
            c4: GeoCircle? = GeoCircle(center: (1, 2), radius: Distance.kilometers(3)!),
            c5 = GeoCircle(
                center: (1, 2),
                radius: .kilometers(3)!)
        let n: [Double] = [
            p!.latitude, p!.longitude, p!.altitude, d!.asKilometers(), d!.asMiles(), d!.asDegrees(),
            d!.radians, c.radius.radians, b.bottomLeft.latitude, b.topRight.longitude, g!.outerRing[0].latitude,
        ]
        let holes: [[GeoPoint]]? = g!.holes
        let w = realm.objects(Human.self).where { $0.street.geoWithin(b) || $0.street.geoWithin(c) || $0.street.geoWithin(g!) }
        let f = realm.objects(Human.self).filter("street IN %@", b),
            f2 = realm.objects(Human.self).filter(NSPredicate(format: "street IN %@", c))
        _ = (b2, g2, g3, g4, g5, d2, d3, d4, c2, c3, c4, c5, n, holes, w, f, f2, p == p2, b == b, c == c)
    }

    static func logging() {
        let l: Logger = Logger(level: .info, logFunction: { (level: LogLevel, message: String) in print(level, message) })
        Logger.shared = l
        Logger.shared.level = .trace
        let lv: LogLevel = l.level
        switch lv {
        case .off, .fatal, .error, .warn, .info, .detail, .debug, .trace, .all: break;
        @unknown default: break
        }
        let raw: UInt = lv.rawValue
        _ = raw
        Logger.shared = Logger(level: .warn) { level, message in print("\(level.rawValue) - \(message)") }
    }

    static func smallThings() {
        autoreleasepool { print("x") }
        let r: Int = autoreleasepool { 3 }
        autoreleasepool(invoking: {})
        let rr = try? autoreleasepool { () throws -> Int in 3 }
        let p1 = NSPredicate(format: "a == %@ AND b == %d", "x", 3),
            p2 = NSPredicate(
                format: "a == %@",
                argumentArray: ["x"]), p3 = NSCompoundPredicate(andPredicateWithSubpredicates: [p1, p2]),
            p4 = NSCompoundPredicate(notPredicateWithSubpredicate: p1),
            p5 = NSCompoundPredicate(
                type: .or,
                subpredicates: [p1, p4]), p6 = NSPredicate(value: true), p7 = NSPredicate(format: "a IN %@", [1, 2]),
            p8 = NSPredicate(format: "%K == %@", "name", "x")
        _ = (r, rr, p3, p5, p6, p7, p8)
    }
}
