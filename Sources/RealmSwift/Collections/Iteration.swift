internal import SharedStore

/// Goes through a collection as it was when the iteration began.
///
/// Objects that are deleted meanwhile are handed out invalidated. The object that was handed out last may be used again for the
/// next one as soon as nobody refers to it any more.
@frozen public struct RLMIterator<Element: RealmCollectionValue>: IteratorProtocol {
    @usableFromInline let cursor: _Cursor

    init(_ cursor: _Cursor) { self.cursor = cursor }
    init(_ elements: [Element]) { cursor = _ValueCursor(elements) }

    /// Nil behind the last element, and whenever it is asked after that.
    @inlinable @inline(__always)
    public mutating func next() -> Element? { Element._next(cursor) }
}

/// The rest of an iteration: an `ObjectCursor` where the element type says that it iterates objects, else a `_ValueCursor`.
public class _Cursor {
    @usableFromInline let isOverObjects: Bool
    init(isOverObjects: Bool) { self.isOverObjects = isOverObjects }

    /// Objects from wherever they come.
    /// - Parameter keys: those of the objects; nil: all of the table.
    static func over<Element: RealmCollectionValue>(
        _ session: Session, _ table: TableKey, keys: [ObjectKey]? = nil, as element: Element.Type
    ) -> _Cursor {
        guard let type = session.type(table) else { return _ValueCursor<Element>([]) }
        if Element._iteratesObjects, let wanted = Element.self as? ObjectBase.Type,
            wanted == DynamicObject.self || type.makes(wanted)
        {
            return ObjectCursor(type, keys, isDynamic: wanted == DynamicObject.self)
        }
        // A type that is mapped to a class, or an optional.
        let objects = ObjectCursor(type, keys, isDynamic: Element._elementShape.objectClass == DynamicObject.self)
        var elements: [Element] = []
        while let object = objects.next() { elements.append(Element._from(_Stored(.object(object)))) }
        return _ValueCursor(elements)
    }
}

/// Goes through elements that are there already.
public final class _ValueCursor<Element: RealmCollectionValue>: _Cursor {
    @usableFromInline let elements: [Element]
    @exclusivity(unchecked) @usableFromInline var index = 0

    init(_ elements: [Element]) {
        self.elements = elements
        super.init(isOverObjects: false)
    }

    @inlinable @inline(__always)
    func next() -> Element? {
        if index >= elements.count { return nil }
        defer { index &+= 1 }
        return elements[index]
    }
}

/// The next object of an iteration over objects: of a cursor with `isOverObjects`, in the class that it was made for.
@inline(never)
public func _nextObject(_ cursor: _Cursor) -> ObjectBase? {
    unsafeDowncast(cursor, to: ObjectCursor.self).next()
}

/// A collection in a file, by position.
public class _Elements {
    func value(_ index: Int) -> _Stored { .null }
    /// An element of a collection of integers that cannot be null; nil where it is another one.
    func int(_ index: Int) -> Int64? { nil }
    func ints() -> [Int]? { nil }
    /// An element that is an object, in the class that the caller wants to see.
    func object(_ index: Int, as wanted: ObjectBase.Type) -> ObjectBase {
        let stored = value(index)
        guard let object = stored.object(as: wanted), object.isInstance(of: wanted) else { stored.mismatch(wanted) }
        return object
    }
    init() {}
}

@inline(never)
public func _intElement(_ elements: _Elements, _ index: Int) -> Int {
    elements.int(index).map { Int(truncatingIfNeeded: $0) } ?? Int._from(elements.value(index))
}

@inline(never)
public func _objectElement(_ elements: _Elements, _ index: Int, _ wanted: ObjectBase.Type) -> ObjectBase {
    elements.object(index, as: wanted)
}

extension ObjectBase {
    /// Whether the object may be cast to a class that is only known at run time.
    @inline(__always)
    final func isInstance(of wanted: ObjectBase.Type) -> Bool { type(of: self) == wanted || inherits(wanted) }

    @inline(never)
    private final func inherits(_ wanted: ObjectBase.Type) -> Bool {
        var type: AnyClass? = Swift.type(of: self)
        while let present = type {
            if present == wanted { return true }
            type = _getSuperclass(present)
        }
        return false
    }
}
