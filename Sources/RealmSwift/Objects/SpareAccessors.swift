internal import CShims
internal import SharedStore

/// Accessors that were handed out and may be handed out again for another object, once nobody else holds them.
///
/// Making an accessor and freeing it costs twice as much as all the rest of a step of a loop. Whoever hands out one after another keeps the
/// last ones here. One is only used again if no other reference to it exists: no strong, no weak, no unowned one, since such a reference would see
/// another object. Only accessors of live sessions, of classes with nothing but persisted properties.
///
/// An owner must not be referred to by its session: accessors hold the session.
struct SpareAccessors: ~Copyable {
    private var first: Unmanaged<ObjectBase>?
    private var second: Unmanaged<ObjectBase>?

    deinit {
        first?.release()
        second?.release()
    }

    /// An accessor that nobody else refers to, of the given block; its place is that of another object.
    @inline(__always)
    mutating func take(_ block: UnsafeMutablePointer<TableBlock>) -> ObjectBase? {
        guard let newest = first else { return nil }
        if SpareAccessors.isFree(newest, block) { return SpareAccessors.cleared(newest) }
        // The one before the last, for loops that hold on to two at a time.
        swap(&first, &second)
        if let first, SpareAccessors.isFree(first, block) { return SpareAccessors.cleared(first) }
        return nil
    }

    /// Keeps a new accessor in the place of the older one.
    mutating func keep(_ object: ObjectBase) {
        first?.release()
        first = Unmanaged.passRetained(object)
    }

    @inline(__always)
    private static func isFree(_ object: Unmanaged<ObjectBase>, _ block: UnsafeMutablePointer<TableBlock>) -> Bool {
        realm_count_word(object.toOpaque()) == block.pointee.soleReferenceWord && object._withUnsafeGuaranteedRef { $0.block == block }
    }

    @inline(__always)
    private static func cleared(_ object: Unmanaged<ObjectBase>) -> ObjectBase {
        let object = object.takeUnretainedValue()
        if object.collections != nil { object.collections = nil }
        return object
    }
}
