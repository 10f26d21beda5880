@_spi(Reflection) import Swift
import Synchronization

/// What is known about a class of projections: found once by reflection.
final class ProjectionInfo: @unchecked Sendable {
    // Sendable: nothing changes after `init`; key paths do not change.

    struct Property {
        /// In the projection.
        var name: String
        /// The persisted properties on the way from the root, joined by dots; several where the value is computed from several.
        var paths: [String]
        var keyPath: AnyKeyPath

        func value(of root: ObjectBase) -> Any? { root[keyPath: keyPath] }
    }

    let properties: [Property]

    private static let cache = Mutex<[ObjectIdentifier: ProjectionInfo]>([:])

    /// - Parameter projection: an instance whose own properties are initialised.
    static func of(_ projection: AnyObject, root: ObjectBase.Type) -> ProjectionInfo {
        let type: AnyClass = type(of: projection)
        if let info = cache.withLock({ $0[ObjectIdentifier(type)] }) { return info }
        let info = ProjectionInfo(projection, type, root)
        return cache.withLock {
            if let first = $0[ObjectIdentifier(type)] { return first }
            $0[ObjectIdentifier(type)] = info
            return info
        }
    }

    private init(_ projection: AnyObject, _ type: AnyClass, _ root: ObjectBase.Type) {
        var found: [(name: String, keyPath: AnyKeyPath)] = []
        let address = Unmanaged.passUnretained(projection).toOpaque()
        // 1 stands for classes: the option's own name is a mutable global.
        _ = _forEachField(of: type, options: _EachFieldOptions(rawValue: 1)) { name, offset, fieldType, _ in
            if let wrapper = fieldType as? any AnyProjected.Type {
                let name = String(cString: name)
                found.append((name.hasPrefix("_") ? String(name.dropFirst()) : name, wrapper.keyPath(at: address + offset)))
            }
            return true
        }
        if found.isEmpty {
            misuse("No properties are defined for the projection '\(type)'. Did you remember to mark them with '@Projected'?")
        }
        properties = found.map { name, keyPath in
            let paths = Tracing.trace(keyPath, from: root).paths
            if paths.isEmpty {
                misuse("The projected property '\(type).\(name)' must be a part of Realm object '\(root.className())'.")
            }
            return Property(name: name, paths: paths, keyPath: keyPath)
        }
    }
}

/// `Projected` of any types.
private protocol AnyProjected {
    static func keyPath(at address: UnsafeMutableRawPointer) -> AnyKeyPath
}

extension Projected: AnyProjected {
    fileprivate static func keyPath(at address: UnsafeMutableRawPointer) -> AnyKeyPath {
        address.assumingMemoryBound(to: Projected<T, Value>.self).pointee.projectedKeyPath
    }
}

extension Tracing {
    /// The path of the root behind the property of a projection that a key path names.
    static func path<Root, P: Projection<Root>>(_ keyPath: PartialKeyPath<P>, projecting type: P.Type) -> String {
        guard let root = scratch(Root.self) as? Root else { misuse("The class '\(Root.self)' cannot be traced") }
        let trace = trace(keyPath, of: P(projecting: root), root: Root.self)
        guard trace.paths.count == 1 else { misuse("The key path does not name a projected property of '\(type)'") }
        return trace.paths[0]
    }
}

/// The name of the root's property that a property of a projection shows; of a longer path the names joined by dots.
public func _name<O: ObjectBase, T>(for keyPath: PartialKeyPath<T>) -> String where T: Projection<O> {
    Tracing.path(keyPath, projecting: T.self)
}
