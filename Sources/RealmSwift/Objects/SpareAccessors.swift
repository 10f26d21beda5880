internal import CShims
internal import SharedStore

/// Accessors that were handed out and may be handed out again for another object, once nobody else holds them.
///
/// Making an accessor and freeing it costs twice as much as all the rest of a step of a loop. Whoever hands out one after another
/// keeps the last ones here. One is only used again if no other reference to it exists: no strong, no weak, no unowned one, since
/// such a reference would see another object. Only accessors of live sessions, of classes with nothing but persisted properties.
///
/// An owner must not be referred to by its session: accessors hold the session.
struct SpareAccessors: ~Copyable {
    private var first = Spare()
    private var second = Spare()

    deinit {
        first.release()
        second.release()
    }

    /// An accessor that nobody else refers to, of the given block; its place is that of another object.
    @inline(__always)
    mutating func take(_ block: UnsafeMutablePointer<TableBlock>) -> ObjectBase? {
        if first.isFree(block) { return first.lend() }
        return takeOlder(block)
    }

    /// The one before the last, for loops that hold on to two at a time.
    @inline(never)
    private mutating func takeOlder(_ block: UnsafeMutablePointer<TableBlock>) -> ObjectBase? {
        if first.object == nil { return nil }
        swap(&first, &second)
        return first.isFree(block) ? first.lend() : nil
    }

    /// Keeps a new accessor of a class whose accessors can be used again, in the place of the older one.
    mutating func keep(_ object: ObjectBase) {
        first.release()
        first = Spare(object)
    }
}

/// One accessor, with references in store.
///
/// Whoever gets it lets go of one reference, which is an atomic subtraction, some 6 ns; to take that reference first would be
/// another. So references are taken by the thousand, and one of them is handed over each time. The word in which the runtime
/// counts them tells what is still out.
private struct Spare: BitwiseCopyable {
    private(set) var object: Unmanaged<ObjectBase>?
    /// The object's count word while nobody else refers to it.
    private var freeWord: UInt64 = 0
    /// By how much that word grows with each reference; 0 where that is not known.
    private var step: UInt64 = 0
    /// References that are ours, one of them for good.
    private var stock: UInt32 = 0

    private static let stockMax: UInt32 = 1024

    init() {}

    init(_ object: ObjectBase) {
        self.object = .passRetained(object)
        stock = 1
        freeWord = ModelRuntime.soleReferenceWord
        step = ModelRuntime.referenceStep
    }

    @inline(__always)
    func isFree(_ block: UnsafeMutablePointer<TableBlock>) -> Bool {
        guard let object else { return false }
        return realm_count_word(object.toOpaque()) == freeWord && object._withUnsafeGuaranteedRef { $0.block == block }
    }

    /// Hands over a reference to the object, which is free.
    @inline(__always)
    mutating func lend() -> ObjectBase {
        let object = object.unsafelyUnwrapped
        if stock == 1 { restock() }
        stock &-= 1
        freeWord &-= step
        let lent = object.takeRetainedValue()
        if lent.collections != nil { lent.collections = nil }
        return lent
    }

    @inline(never)
    private mutating func restock() {
        guard let address = object?.toOpaque() else { return }
        let count = step == 0 ? 1 : Spare.stockMax
        realm_retain_times(address, count)
        stock &+= count
        freeWord &+= UInt64(count) &* step
    }

    func release() {
        if let object { realm_release_times(object.toOpaque(), stock) }
    }
}
