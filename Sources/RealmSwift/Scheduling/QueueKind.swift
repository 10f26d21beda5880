import Dispatch

/// Tells queues that run one block at a time from those that run several.
///
/// Dispatch does not say which a queue is. But the first word of each of its objects names the kind of object: a queue is
/// concurrent where that word is the one of a queue that we know to be. Where the words tell nothing, because the library has
/// changed, no queue is taken for concurrent.
enum QueueKind {
    private static let concurrentKinds: Set<UInt> = {
        let many = DispatchQueue(label: "realm.kind.concurrent", attributes: .concurrent)
        let kinds = Set([many, DispatchQueue.global()].compactMap(kind))
        for serial in [DispatchQueue(label: "realm.kind.serial"), DispatchQueue.main] {
            guard let kind = kind(serial), !kinds.contains(kind) else { return [] }
        }
        return kinds
    }()

    static func isConcurrent(_ queue: DispatchQueue) -> Bool { kind(queue).map { concurrentKinds.contains($0) } ?? false }

    /// The first word of the C object that a queue of Swift wraps; nil where it wraps none.
    private static func kind(_ queue: DispatchQueue) -> UInt? {
        let wrapped = Mirror(reflecting: queue).children.first { $0.label == "__wrapped" }?.value as? OpaquePointer
        return wrapped.map { UnsafeRawPointer($0).load(as: UInt.self) }
    }
}
