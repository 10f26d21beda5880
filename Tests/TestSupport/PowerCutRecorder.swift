import SharedStore
import SystemCalls

#if DEBUG
// System calls can be intercepted in debug builds only.

/// Records what a program does to one file, and makes the images that a power cut may leave of it.
///
/// Model: what was done before the last sync is on the disk. Of what was done since, any subset may be, writes even in part
/// (sectors of 512 bytes); a change of size counts as one operation. Writes through a mapping are not seen.
///
/// Faults that it may make: lost, reordered and torn writes, a lost change of size, between two syncs. Faults that it never
/// makes: changed bytes of what was synced, a torn write of less than a sector, a sync that lies.
public final class PowerCutRecorder {
    public enum Operation {
        case write(offset: Int, bytes: [UInt8])
        case resize(Int)
        case sync
        /// The program went past a point that the test names.
        case mark(Int)
    }

    private let path: String
    private let initial: [UInt8]
    public private(set) var operations: [Operation] = []
    private static let sector = 512

    /// `initial` is the durable content of the file at `path` when recording begins.
    public init(path: String, initial: [UInt8]) {
        self.path = path
        self.initial = initial
    }

    /// Runs `body` and records its calls on the file.
    public func record(_ body: () throws -> Void) rethrows {
        SystemCallInterception.hook = { [self] call in
            guard call.path == path else { return nil }
            switch call.name {
            case "pwrite64": operations.append(.write(offset: call.offset, bytes: call.bytes.map { Array($0) } ?? []))
            case "ftruncate", "fallocate": operations.append(.resize(call.offset))
            case "fdatasync", "fsync": operations.append(.sync)
            default: break
            }
            return nil
        }
        defer { SystemCallInterception.hook = nil }
        try body()
    }

    /// Notes that everything up to here has been promised under `number`.
    public func mark(_ number: Int) { operations.append(.mark(number)) }

    /// Calls `check` with images after each prefix of the operations: all subsets of what is not durable where these are few,
    /// else a choice of them. `promised` is the last mark in the prefix.
    /// - Parameter inOrder: only what a disk leaves that keeps the order of writes, whole pages at a time. An encrypted file
    ///   promises no more: entry and data of a page are two writes between the same two syncs (file-format-3 8.4).
    /// - Returns: the number of images.
    @discardableResult
    public func forEachImage(
        subsets: Int = 10, seed: UInt64, inOrder: Bool = false, _ check: (_ image: [UInt8], _ promised: Int?) throws -> Void
    ) rethrows -> Int {
        var random = seed | 1
        let operations: [Operation] =
            inOrder
            ? operations.flatMap { operation in
                guard case .write(let offset, let bytes) = operation else { return [operation] }
                return EncryptedWrites.units(offset, bytes).map { .write(offset: $0.offset, bytes: $0.bytes) }
            } : operations
        func next(_ bound: Int) -> Int {
            random ^= random << 13; random ^= random >> 7; random ^= random << 17
            return Int(random % UInt64(max(bound, 1)))
        }
        var durable = initial
        var pending: [Operation] = []
        var promised: Int?
        var count = 0
        for index in 0...operations.count {
            let choices: [[Bool]]
            if inOrder {
                choices = [pending.map { _ in true }]
            } else if pending.count <= 4 {
                choices = (0..<(1 << pending.count)).map { bits in pending.indices.map { bits >> $0 & 1 != 0 } }
            } else {
                choices =
                    [pending.map { _ in true }, pending.map { _ in false }]
                    + (0..<subsets).map { k in pending.indices.map { _ in k % 3 == 0 ? next(8) != 0 : next(2) == 0 } }
            }
            for choice in choices {
                var image = durable
                for (operation, isChosen) in zip(pending, choice) where isChosen {
                    PowerCutRecorder.apply(operation, to: &image, tear: !inOrder && count % 3 == 1 ? { next(3) != 0 } : nil)
                }
                try check(image, promised)
                count += 1
            }
            if index == operations.count { break }
            switch operations[index] {
            case .sync:
                for operation in pending { PowerCutRecorder.apply(operation, to: &durable, tear: nil) }
                pending = []
            case .mark(let number): promised = number
            case let operation: pending.append(operation)
            }
        }
        return count
    }

    private static func apply(_ operation: Operation, to image: inout [UInt8], tear: (() -> Bool)?) {
        switch operation {
        case .resize(let size):
            if size > image.count { image.append(contentsOf: repeatElement(0, count: size - image.count)) }
        case .write(let offset, let bytes):
            // A write behind an end that was not made durable is lost with it, but for what fits.
            var position = offset
            while position < offset + bytes.count {
                let end = min((position / sector + 1) * sector, offset + bytes.count)
                if tear?() ?? true {
                    if end > image.count { image.append(contentsOf: repeatElement(0, count: end - image.count)) }
                    image.withUnsafeMutableBytes { target in
                        bytes.withUnsafeBytes { source in
                            let part = UnsafeRawBufferPointer(rebasing: source[(position - offset)..<(end - offset)])
                            UnsafeMutableRawBufferPointer(rebasing: target[position..<end]).copyMemory(from: part)
                        }
                    }
                }
                position = end
            }
        case .sync, .mark: break
        }
    }
}
#endif
