import Foundation
import RealmSwift

// Every declaration of the API in use, by its name, labels, defaults and result: that this compiles is the proof. What the calls
// do is shown by other tests.

extension Declared {
    class Wraps: Object {
        @Persisted(wrappedValue: 5) var a1: Int
        @Persisted(primaryKey: true) var pk: UUID
        @Persisted(indexed: true) var a2: Int
        @Persisted(indexed: true) var a3 = "x"
        @Persisted(wrappedValue: "s", indexed: true) var a4: String
        @Persisted(indexed: false) var a5: Date?
        @Persisted(indexed: true) var a6: Bool
        @Persisted(indexed: true) var a7: Status
        @Persisted(indexed: true) var a8: Status?
        @Persisted(indexed: true) var a9: ObjectId?
        @Persisted(indexed: true) var a10: Tag
        @Persisted(indexed: true) var a11: UUID
        @Persisted private(set) var b1: Int
        @Persisted private var b2: Int = 2
        @Persisted fileprivate var b3: String?
    }

    class WrapsPK1: Object { @Persisted(primaryKey: true) var id: Int; @Persisted(indexed: true) var other: Int }
    class WrapsPK2: Object { @Persisted(primaryKey: true) var id = UUID().uuidString }
    class WrapsPK3: Object { @Persisted(primaryKey: true) var id: String? }
    class WrapsPK4: Object { @Persisted(primaryKey: true) var id: Status }
    class WrapsPK5: Object { @Persisted(wrappedValue: 3, primaryKey: true) var id: Int }
    class WrapsPK6: Object { @Persisted(primaryKey: true) var id: Tag }
    class WrapsPK7: Object { @Persisted(primaryKey: true) var id: ObjectId? }
    class WrapsE: Object {
        @Persisted var l = RealmSwift.List<Pet>()
        @Persisted var m = Map<String, Int>()
        @Persisted var s = MutableSet<String>()
        @Persisted var any = AnyRealmValue.none
        @Persisted var any2: AnyRealmValue = .string("x")
        @Persisted var opt: Int? = 5
        @Persisted var date = Date()
        @Persisted var oid = ObjectId.generate()
        @Persisted var data = Data()
        @Persisted var dec: Decimal128 = 3.5
        @Persisted var dec2 = Decimal128()
        @Persisted var st = Status.doing
        @Persisted var temp = Temperature(c: 3)
        @Persisted var link: Pet? = nil
        @Persisted var emb: Street? = Street()
        @Persisted var int = 0 { didSet { print(oldValue) } }
        var plain: Int = 3
        lazy var lazyPlain: String = "x"
        var computed: String { "\(int)" }
        var computedRW: Status {
            get { st }
            set { st = newValue }
        }
        static let shared = 5
        let constant = "x"
        var closure: (() -> Void)?
        override init() { super.init() }
        convenience init(int: Int, l: [Pet]) { self.init(); self.int = int; self.l.append(objectsIn: l) }
        deinit {}
    }

    static func values() throws {
        var v: AnyRealmValue = .none
        v = .int(1); v = .bool(true); v = .float(1); v = .double(1); v = .string("x"); v = .data(Data()); v = .date(Date())
        v = .object(Pet()); v = .objectId(ObjectId()); v = .decimal128(3); v = .uuid(UUID())
        v = .dictionary(Map()); v = .list(List()); v = AnyRealmValue()
        v = AnyRealmValue.fromDictionary(["a": .int(1), "b": .fromArray([.none])]); v = .fromArray([.int(1)])
        let a: Int? = v.intValue, b: Bool? = v.boolValue, c: Float? = v.floatValue, d: Double? = v.doubleValue,
            e: String? = v.stringValue, f: Data? = v.dataValue, g: Date? = v.dateValue, h: ObjectId? = v.objectIdValue
        let i: Decimal128? = v.decimal128Value, j: UUID? = v.uuidValue, k: Map<String, AnyRealmValue>? = v.dictionaryValue,
            l: List<AnyRealmValue>? = v.listValue, m: Pet? = v.object(Pet.self), n: DynamicObject? = v.dynamicObject
        switch v {
        case .none: break;
        case .int(let x): _ = x;
        case let .string(s): _ = s;
        case .bool, .float, .double, .data,
            .date, .object, .objectId, .decimal128, .uuid, .dictionary, .list:
            break
        }
        if case .int(let x) = v { _ = x }
        _ = (a, b, c, d, e, f, g, h, i, j, k, l, m, n, v == .int(1), Set([v]))

        let d0 = Decimal128(), d1 = Decimal128(value: 3), d2 = Decimal128(number: NSNumber(value: 4)),
            d3 = try Decimal128(string: "1.5"), d4: Decimal128 = 4, d5: Decimal128 = 4.5, d6: Decimal128 = "4.5",
            d7 = Decimal128(integerLiteral: 4), d8 = Decimal128(floatLiteral: 4), d9 = Decimal128(stringLiteral: "5")
        let mn: Decimal128 = Decimal128.min, mx: Decimal128 = .max, ex: Decimal128? = Decimal128(exactly: 5),
            mag: Decimal128 = d1.magnitude
        var s = d0 + d1 - d2 * d3 / d4
        s += d5; s -= d6; s *= d7; s /= d8
        let cmp: [Bool] = [s == d9, s != d9, s < d9, s <= d9, s > d9, s >= d9, s.isNaN, s.isSignaling, s.isSignalingNaN]
        let dist: Decimal128 = d1.distance(to: d2), adv: Decimal128 = d1.advanced(by: d2), dv: Double = d1.doubleValue,
            dc: Decimal = d1.decimalValue, sv: String = d1.stringValue
        let st: Decimal128.Stride = d1; let mm: Decimal128.Magnitude = d1
        d1.negate()
        let neg = -d1
        let dsum: Decimal128 = [d1, d2].reduce(0, +), dmax = [d1, d2].max(), dsort = [d1, d2].sorted()
        _ = (
            mn, mx, ex, mag, cmp, dist, adv, dv, dc, sv, st, mm, neg, dsum, dmax, dsort, d1.hashValue, "\(d1)",
            d1.description
        )

        let o0 = ObjectId(), o1 = ObjectId.generate(), o2 = try ObjectId(string: "507f1f77bcf86cd799439011"),
            o3 = ObjectId(timestamp: Date(), machineId: 3, processId: 4), o4 = ObjectId("507f1f77bcf86cd799439011")
        let ts: Date = o1.timestamp, os: String = o1.stringValue
        _ = (o0 == o1, o0 < o1, o0 <= o2, o3 > o4, o3 >= o4, ts, os, "\(o1)", o1.description, o1.hashValue, [o1, o2].sorted())

        let sd = RealmSwift.SortDescriptor(keyPath: "name"),
            sd2 = RealmSwift.SortDescriptor(
                keyPath: "name",
                ascending: false), sd3 = RealmSwift.SortDescriptor(keyPath: \Pet.name),
            sd4 = RealmSwift.SortDescriptor(keyPath: \Pet.name, ascending: false)
        let sd5: RealmSwift.SortDescriptor = "name", sd6: RealmSwift.SortDescriptor = sd.reversed(), kp: String = sd.keyPath,
            asc: Bool = sd.ascending
        _ = (sd2, sd3, sd4, sd5, sd6, kp, asc, sd.description, sd == sd2)
    }

    static func collections(_ realm: Realm, _ human: Human, queue: DispatchQueue) {
        let r = realm.objects(Pet.self)
        let i: Int? = r.index(of: Pet()), i2: Int? = r.index(matching: NSPredicate(format: "age > 3")),
            i3: Int? = r.index(matching: "name == %@", "x"), i4: Int? = r.index(matching: { $0.name == "x" })
        let at: [Pet] = r.objects(at: IndexSet([0]))
        let f1: Results<Pet> = r.filter("age > 3"), f2: Results<Pet> = r.filter("age > %@ AND name == %@", 3, "x"),
            f3: Results<Pet> = r.filter(NSPredicate(format: "age > %d", 3)), f4: [Pet] = r.filter { $0.age > 3 },
            f5: Results<Pet> = r.where { $0.age > 3 }

        let s1: Results<Pet> = r.sorted(byKeyPath: "age"), s2: Results<Pet> = r.sorted(byKeyPath: "age", ascending: false),
            s3: Results<Pet> = r.sorted(by: \.age), s4: Results<Pet> = r.sorted(by: \Pet.age, ascending: false),
            s5: Results<Pet> = r.sorted(by: [RealmSwift.SortDescriptor(keyPath: "age"), "name"]),
            s6: Results<Int> = human.ints.sorted(), s7: Results<Int> = human.ints.sorted(ascending: false),
            s8: [Pet] = r.sorted { $0.age < $1.age }
        let s9: Results<Pet> = r.sorted(by: ["age", "name"])
        let d1: Results<Pet> = r.distinct(by: ["age"]), d2: Results<Pet> = r.distinct(by: [\Pet.age, \Pet.name]),
            d3: Results<Int> = human.ints.distinct()
        let m1: Int? = r.min(ofProperty: "age"), m2: Int? = r.max(ofProperty: "age"), m3: Int = r.sum(ofProperty: "age"),
            m4: Double? = r.average(ofProperty: "age"), m5: Int? = r.min(of: \.age), m6: Int? = r.max(of: \.age),
            m7: Int = r.sum(of: \.age), m8: Int? = r.average(of: \.age), m9: Int? = human.ints.min(),
            m10: Int? = human.ints.max(), m11: Int = human.ints.sum(), m12: Double? = human.ints.average()
        let m13 = r.min(ofProperty: "age") as Int?, m14 = r.sum(ofProperty: "age") as Int,
            m15 = r.average(ofProperty: "age") as Double?, m16: Double?? = r.max(of: \.weight),
            m17: Double? = r.sum(of: \.weight)
        let hr = realm.objects(Human.self)
        let m18: Date?? = hr.min(of: \.birth), m19: Temperature? = hr.min(of: \.temp),
            m20: AnyRealmValue? = hr.max(of: \.any), m21: Decimal128 = hr.sum(of: \.dec),
            m23: Date? = hr.max(ofProperty: "birth"), m24: NSNumber? = r.max(ofProperty: "age")
        let v1: Any? = r.value(forKey: "name"), v2: Any? = r.value(forKeyPath: "@avg.age"),
            names = r.value(forKey: "name") as! [String]
        r.setValue("x", forKey: "name")
        let ro: Realm? = r.realm, inv: Bool = r.isInvalidated, c: Int = r.count, first: Pet? = r.first, last: Pet? = r.last,
            si: Int = r.startIndex, ei: Int = r.endIndex, ia: Int = r.index(after: 0), ib: Int = r.index(before: 1),
            sub: Pet = r[0], sl: Slice<Results<Pet>> = r[0..<1]
        let fr: Results<Pet> = r.freeze(), th: Results<Pet>? = fr.thaw(), isf: Bool = r.isFrozen
        let x1: SectionedResults<String, Pet> = r.sectioned(by: \.name),
            x2:
                SectionedResults<
                    String,
                    Pet
                > = r.sectioned(by: \.name, ascending: false),
            x3: SectionedResults<String, Pet> = r.sectioned(
                by: \.name,
                sortDescriptors: [RealmSwift.SortDescriptor(keyPath: "name")])
        let
            x4: SectionedResults<String, Pet> = r.sectioned(
                by: { String($0.name.prefix(1)) },
                sortDescriptors: [RealmSwift.SortDescriptor(keyPath: \Pet.name)]),
            x5:
                SectionedResults<
                    Bool,
                    Int
                > = human.ints.sectioned(by: { $0 > 3 }),
            x6:
                SectionedResults<
                    Bool,
                    Int
                > = human.ints.sectioned(by: { $0 > 3 }, ascending: false),
            x7:
                SectionedResults<
                    Int,
                    Pet
                > = r.sectioned(sortDescriptors: [RealmSwift.SortDescriptor(keyPath: "name")]) { $0.age }
        let x8: SectionedResults<Status?, Human> = hr.sectioned(by: \.statusOpt),
            x9:
                SectionedResults<
                    ObjectId,
                    Pet
                > = r.sectioned(by: \._id)
        let t1: NotificationToken = r.observe { (change: RealmCollectionChange<Results<Pet>>) in
            switch change {
            case .initial(let results): _ = results.count
            case .update(let results, let deletions, let insertions, let modifications):
                let d: [Int] = deletions
                _ = (results, d, insertions, modifications)
            case .error(let error): fatalError("\(error)")
            }
        }
        let t2 = r.observe(on: queue) { change in if case .update(_, let d, _, _) = change { print(d) } }
        let t3 = r.observe(keyPaths: ["name"]) { _ in }, t4 = r.observe(keyPaths: ["name"], on: queue) { _ in },
            t5 = r.observe(keyPaths: [\Pet.name]) { _ in }, t6 = r.observe(keyPaths: [\.name, \.age], on: queue) { _ in },
            t7 = r.observe(keyPaths: nil, on: nil) { _ in }
        let it: RLMIterator<Pet> = r.makeIterator()
        let any = AnyRealmCollection(r), any2: AnyRealmCollection<Pet> = AnyRealmCollection(human.pets)
        let arr: [Pet] = Array(r), mapped: [String] = r.map { $0.name }, lz = r.lazy.map { $0.name }, arr2 = r.map(\.name)
        _ = (i, i2, i3, i4, at, f1, f2, f3, f4, f5, s1, s2, s3, s4, s5, s6, s7, s8, s9, d1, d2, d3)
        _ = (m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14, m15, m16, m17, m18, m19, m20, m21, m23, m24)
        _ = (v1, v2, names, ro, inv, c, first, last, si, ei, ia, ib, sub, sl, fr, th, isf)
        _ = (x1, x2, x3, x4, x5, x6, x7, x8, x9, t1, t2, t3, t4, t5, t6, t7, it, any == any2, arr, mapped, lz, arr2)
    }

    static func lists(_ human: Human, _ realm: Realm) {
        let l: List<Pet> = human.pets
        l.append(Pet()); l.append(objectsIn: [Pet()]); l.append(objectsIn: realm.objects(Pet.self)); l.insert(Pet(), at: 0)
        l.insert(contentsOf: [Pet()], at: 0); l.remove(at: 0); l.removeFirst(); l.removeFirst(1); l.removeLast()
        l.removeLast(2); l.removeAll()
        l.removeSubrange(0..<1); l.removeSubrange(0...0); l.removeSubrange(..<1); l.remove(atOffsets: IndexSet([0]))
        l.replace(index: 0, object: Pet()); l.replaceSubrange(0..<1, with: [Pet()]); l.replaceSubrange(0..., with: [Pet()])
        l.move(from: 0, to: 1); l.move(fromOffsets: IndexSet([0]), toOffset: 1); l.swapAt(0, 1)
        l[0] = Pet()
        let e: Pet = l[0]
        let v: [Any] = l.value(forKey: "name"), vp = l.value(forKeyPath: "@sum.age")
        l.setValue("x", forKey: "name")
        let sl: List<Pet>.SubSequence = l[0..<1]
        human.pets = List<Pet>(); human.pets = l
        var total = 0
        for p in l { total += p.age }
        for (i, p) in l.enumerated() { total += i + p.age }
        let idx: Int? = l.index(of: e), fi: Int? = l.firstIndex(of: e), con: Bool = l.contains(e),
            con2 = l.contains { $0.age > 2 }, em: Bool = l.isEmpty
        let li = List<Int>(); li.append(objectsIn: 0..<4); li.append(objectsIn: [1, 2]); li.append(objectsIn: li)
        let sum = li.reduce(0, +)
        let opt = List<Int?>(); opt.append(nil); opt.append(3)
        let o: Int? = opt[0]
        let str: List<String> = List(); str.append("x"); _ = str.joined(separator: ",")
        if let index = l.firstIndex(where: { $0.age == 2 }) { l.remove(at: index) }
        let w: Results<Pet> = l.where { $0.age > 3 }, wi: Results<Pet> = l.filter("age > 3").sorted(byKeyPath: "age")
        _ = (
            e, v, vp, sl, total, idx, fi, con, con2, em, sum, o, w, wi, l.description, l == l, l.realm as Any,
            l.isInvalidated, l.isFrozen, l.freeze(), l.thaw() as Any
        )
    }

    static func sets(_ human: Human) {
        let s: MutableSet<Int> = human.intSet, p: MutableSet<Pet> = human.petSet
        s.insert(3); s.insert(objectsIn: [1, 2]); s.remove(3); s.removeAll(); p.insert(Pet()); p.insert(objectsIn: [Pet()])
        let b: [Bool] = [s.contains(3), s.isSubset(of: s), s.intersects(s), p.contains(Pet())]
        s.formIntersection(s); s.formUnion(s); s.subtract(s)
        let e: Int = s[0], f: Int? = s.first, c: Int = s.count, arr = Array(s), srt: Results<Int> = s.sorted(), st = Set(s)
        human.intSet = MutableSet<Int>()
        let v: [Any] = p.value(forKey: "name")
        p.setValue(3, forKey: "age")
        _ = (
            b, e, f, c, arr, srt, st, v, s.min() as Int?, s.sum() as Int, p.filter("age > 3"), p.where { $0.age > 3 },
            p.sorted(by: \.age), s.freeze(), s.description
        )
        for x in s { print(x) }
        let t = p.observe { (c: RealmCollectionChange<MutableSet<Pet>>) in _ = c }
        _ = t
    }

    static func maps(_ human: Human, _ queue: DispatchQueue) {
        let m: Map<String, Int> = human.intMap, p: Map<String, Pet?> = human.petMap,
            o:
                Map<
                    String,
                    String?
                > = human.stringMapOpt
        let c: Int = m.count, k: [String] = m.keys, v: [Int] = m.values, sv: Int? = m["x"], pv: Pet?? = p["x"],
            pv2: Pet? = p["x"] ?? nil, ov: String?? = o["x"]
        m["x"] = 5; m["x"] = nil; o["x"] = .some(nil); o["x"] = "y"; p["x"] = Pet(); p["x"] = nil
        m.updateValue(3, forKey: "x"); m.setValue(3, forKey: "x"); m.removeObject(for: "x"); m.removeAll()
        m.merge(m) { a, b in a + b }; m.merge(["x": 3], uniquingKeysWith: { $1 }); m.merge([("x", 3)], uniquingKeysWith: +)
        m.merge(zip(["a"], [1])) { old, _ in old }
        let ok = m.object(forKey: "x" as AnyObject), vk = m.value(forKey: "x"), vkp = m.value(forKeyPath: "x")
        let cw: Bool = m.contains { key, value in key == "x" && value > 3 },
            cw2: Bool = m.contains(where: { $0 == "x" && $1 > 3 })
        let f: Results<Pet?> = p.filter(NSPredicate(format: "age > 3")), w: Results<Pet?> = p.where { $0.age > 3 },
            s: Results<Int> = m.sorted(), s2: Results<Int> = m.sorted(ascending: false),
            s3: Results<Pet?> = p.sorted(byKeyPath: "age"), s4: Results<Pet?> = p.sorted(byKeyPath: "age", ascending: false),
            s5: Results<Pet?> = p.sorted(by: [RealmSwift.SortDescriptor(keyPath: "age")]),
            s6: Results<Pet?> = p.sorted(by: \.age, ascending: true)
        let a1: Int? = p.min(ofProperty: "age"), a2: Int? = p.max(ofProperty: "age"), a3: Int = p.sum(ofProperty: "age"),
            a4: Double? = p.average(ofProperty: "age"), a5: Int? = p.min(of: \.age), a6: Int? = p.max(of: \.age),
            a7: Int = p.sum(of: \.age), a8: Int? = p.average(of: \.age), a9: Int? = m.min(), a10: Int? = m.max(),
            a11: Int = m.sum(), a12: Double? = m.average()
        let t = m.observe { (change: RealmMapChange<Map<String, Int>>) in
            switch change {
            case .initial(let m): _ = m;
            case .update(
                let m, let deletions, let insertions,
                let modifications):
                let d: [String] = deletions
                _ = (m, d, insertions, modifications);
            case .error(let e): print(e)
            }
        }
        let t2 = p.observe(keyPaths: ["age"], on: queue) { _ in }
        for e in m { let e: SingleMapEntry<String, Int> = e; let k: String = e.key; let v: Int = e.value; _ = (k, v) }
        for entry in p { if let pet = entry.value { print(entry.key, pet.name) } }
        for (key, value) in m.asKeyValueSequence() { print(key, value) }
        let dict = Dictionary(uniqueKeysWithValues: m.asKeyValueSequence().map { ($0.key, $0.value) }),
            dict2 = Dictionary(uniqueKeysWithValues: zip(m.keys, m.values))
        let kvs: Map<String, Int>.KeyValueSequence = m.asKeyValueSequence()
        let fr: Map<String, Int> = m.freeze(), th: Map<String, Int>? = fr.thaw()
        human.intMap = Map<String, Int>()
        _ = (c, k, v, sv, pv, pv2, ov, ok, vk, vkp, cw, cw2, f, w, s, s2, s3, s4, s5, s6, a1, a2, a3, a4)
        _ = (
            a5, a6, a7, a8, a9, a10, a11, a12, t, t2, dict, dict2, kvs, fr, th, m.realm as Any, m.isInvalidated, m.isFrozen,
            m.description, m == m
        )
        let mapped = m.map { "\($0.key)\($0.value)" }, filtered = m.filter { $0.value > 2 },
            sortedE = m.sorted { $0.key < $1.key }
        _ = (mapped, filtered, sortedE)
    }
}
