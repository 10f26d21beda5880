internal import SharedStore
import Synchronization

/// Called by a property of an object that stands in for its class while a key path is traced.
@inline(never)
public func _trace<Value: _Persistable>(_ object: ObjectBase, _ number: UInt32) -> Value {
    let recorder = Tracing.recorder
    let value =
        Tracing.declaredValue(of: object, Int(number)).flatMap { $0 as? Value }
        ?? (recorder?.usesMarks == true ? Value._traceMark() : Value._traceDefault())
    recorder?.record(object, Int(number), value)
    return value
}

/// The names behind key paths.
///
/// Swift keeps no names in key paths of wrapped properties. So the key path is applied to an instance whose properties are in
/// trace mode: each records that it was read and returns its default, or for a link the stand-in of the other class, with which
/// the key path goes on. Where the path seems to end there, it is applied once more, with values that are recognised.
enum Tracing {
    /// One property of the path.
    struct Step: @unchecked Sendable {
        // Sendable: both are values about classes, never changed.
        var owner: ClassInfo
        var property: PropertyInfo
    }

    struct Trace: Sendable {
        var steps: [Step]
        /// The key path ends with the last property; otherwise with something that is computed from it.
        var isComplete: Bool
        /// Of a key path that projects the elements of a collection: the path from an element.
        var projected: String?
        /// Of a key path that ends in something computed from several properties: the path of each. Otherwise one path.
        var paths: [String] = []
        /// The names in Swift, joined by dots.
        var path: String { steps.map(\.property.name).joined(separator: ".") }
    }

    final class Recorder: @unchecked Sendable {
        // Sendable: made and used by one call of `trace`, which does not suspend.
        /// Properties give values that are recognised, not defaults, which what is computed from them bears better.
        let usesMarks: Bool
        var steps: [Step] = []
        /// What the last property gave.
        var last: Any?

        init(usesMarks: Bool = false) { self.usesMarks = usesMarks }

        func record(_ object: ObjectBase, _ number: Int, _ value: Any) {
            let info = ClassInfo.of(Swift.type(of: object))
            steps.append(Step(owner: info, property: info.properties[number]))
            last = value
        }

        /// Whether the key path ends with a property, and not with something that is computed from one.
        func endsWithProperty(_ keyPath: AnyKeyPath, _ object: some AnyObject) -> (Bool, result: Any?) {
            let result: Any? = Tracing.$recorder.withValue(self) { object[keyPath: keyPath] }
            return (Tracing.isSame(result, last, type(of: keyPath).valueType), result)
        }
    }

    @TaskLocal static var recorder: Recorder?

    /// Instances in trace mode, one a class. They are read by several threads at once, which changes nothing in them.
    private struct Scratch: @unchecked Sendable {
        // Sendable: see above.
        var object: ObjectBase
        /// The defaults that the class declares for properties of mapped types, by number. Such a type need not be able to show
        /// what stands in for other values, so the default does that.
        var declaredValues: [Int: Any]
    }
    private static let scratches = Mutex<[ObjectIdentifier: Scratch]>([:])
    /// The key paths are kept, since another one could get the address of one that is gone.
    private struct Entry: @unchecked Sendable {
        // Sendable: key paths do not change.
        var keyPath: AnyKeyPath
        var trace: Trace
    }
    /// A key path in generic code is another object each time it is evaluated.
    private static let traceCountMax = 4096
    private static let traces = Mutex<[ObjectIdentifier: Entry]>([:])

    /// The instance of `type` whose properties record that they are read.
    static func scratch(_ type: ObjectBase.Type) -> ObjectBase? {
        if let scratch = scratches.withLock({ $0[ObjectIdentifier(type)] }) { return scratch.object }
        let info = ClassInfo.of(type)
        let object = ModelRuntime.makeSample(type)
        var declaredValues: [Int: Any] = [:]
        for property in info.properties {
            let address = object.address(property.offset)
            if let value = property.wrapper.mappedValue(at: address) { declaredValues[property.index] = value }
            property.wrapper.setTrace(at: address, number: UInt32(property.index))
        }
        let new = Scratch(object: object, declaredValues: declaredValues)
        let scratch = scratches.withLock { scratches -> Scratch in
            if let first = scratches[ObjectIdentifier(type)] { return first }
            scratches[ObjectIdentifier(type)] = new
            return new
        }
        return scratch.object
    }

    fileprivate static func declaredValue(of object: ObjectBase, _ number: Int) -> Any? {
        guard let scratch = scratches.withLock({ $0[ObjectIdentifier(type(of: object))] }), scratch.object === object else {
            return nil
        }
        return scratch.declaredValues[number]
    }

    /// The properties that `keyPath`, which starts at objects of `root`, goes through.
    static func trace(_ keyPath: AnyKeyPath, from root: ObjectBase.Type) -> Trace {
        let identifier = ObjectIdentifier(keyPath)
        if let entry = traces.withLock({ $0[identifier] }) { return entry.trace }
        guard let scratch = scratch(root) else { return Trace(steps: [], isComplete: false) }
        return Tracing.trace(keyPath, of: scratch, root: root)
    }

    /// The same for a stand-in that is already there: an object in trace mode, or a projection of one.
    static func trace(_ keyPath: AnyKeyPath, of scratch: some AnyObject, root: ObjectBase.Type) -> Trace {
        let recorder = Recorder()
        var (isComplete, result) = recorder.endsWithProperty(keyPath, scratch)
        // What is computed may give the default too.
        if isComplete { isComplete = Recorder(usesMarks: true).endsWithProperty(keyPath, scratch).0 }
        let chains = chains(recorder.steps, root)
        let isChain = chains.count == 1
        let projected = isChain ? (result as? any AnyProjectedCollection)?.elementPath : nil
        let paths = chains.map { chain in (chain.map(\.property.name) + (projected.map { [$0] } ?? [])).joined(separator: ".") }
        let trace = Trace(
            steps: isChain ? recorder.steps : [], isComplete: isChain && isComplete, projected: projected, paths: paths)
        traces.withLock { traces in
            if traces.count >= traceCountMax { traces.removeAll() }
            traces[ObjectIdentifier(keyPath)] = Entry(keyPath: keyPath, trace: trace)
        }
        return trace
    }

    /// The steps as paths from the root: each property belongs to the class that the one before it links to, or begins a path of
    /// its own. Empty where that is not so.
    private static func chains(_ steps: [Step], _ root: ObjectBase.Type) -> [[Step]] {
        var chains: [[Step]] = []
        var type: ObjectBase.Type?
        for step in steps {
            if step.owner.type == type {
                chains[chains.count - 1].append(step)
            } else if step.owner.type == root {
                chains.append([step])
            } else {
                return []
            }
            type = step.property.shape.collection == nil ? step.property.shape.objectClass : nil
        }
        return chains
    }

    /// Whether the value at the end of a key path is what its last property gave.
    private static func isSame(_ result: Any?, _ last: Any?, _ valueType: Any.Type) -> Bool {
        guard let last else { return false }
        guard let a = ValueInput.unwrap(result), let b = ValueInput.unwrap(last) else {
            // Nil stands in for mapped types that can show nothing else; only the type tells then that the path ends here.
            return type(of: last) == valueType && ValueInput.unwrap(result) == nil && ValueInput.unwrap(last) == nil
        }
        // Their equality may be that of objects that are made anew each time.
        if let mapped = a as? any _CustomPersistable, mapped._toStored().plain == nil { return type(of: a) == type(of: b) }
        if let a = a as? any Hashable, let b = b as? any Hashable { return AnyHashable(a) == AnyHashable(b) }
        return type(of: a) == type(of: b)
    }

    /// The path in Swift names; stops the process where the key path is not made of persisted properties alone.
    static func path(_ keyPath: AnyKeyPath, from root: ObjectBase.Type) -> String {
        let trace = trace(keyPath, from: root)
        if !trace.isComplete { misuse("The key path does not name a persisted property of '\(root.className())'") }
        return trace.path
    }

    /// The paths of the properties from which the value at the end of a key path is made: one where the key path names a
    /// property; where it ends in something computed those that are read for it, in this order. Stops the process where there
    /// are none.
    static func pathsBehind(_ keyPath: AnyKeyPath, from root: ObjectBase.Type) -> [String] {
        let trace = trace(keyPath, from: root)
        if trace.isComplete { return [trace.path] }
        var paths: [String] = []
        for path in trace.paths where !paths.contains(where: { $0.isSame(as: path) }) { paths.append(path) }
        if paths.isEmpty {
            misuse("The key path does not name a persisted property of '\(root.className())', nor what is computed from one")
        }
        return paths
    }
}

/// The name of the property that a key path names, in Swift; of a path through links the names joined by dots.
public func _name<T: ObjectBase>(for keyPath: PartialKeyPath<T>) -> String { Tracing.path(keyPath, from: T.self) }
