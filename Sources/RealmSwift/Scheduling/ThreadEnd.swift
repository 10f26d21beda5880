internal import CShims

/// The sessions of a thread that hear of commits, for the moment when the thread ends.
///
/// Tokens and asynchronous writes may keep a session longer than the thread that it belongs to lives. Nobody can use it then, nor
/// end what it waits for: so the thread closes it as its last act, which lets go of the version that it read, and of the file.
enum ThreadEnd {
    private final class List {
        struct Entry {
            weak var waker: SessionWaker?
        }
        var entries: [Entry] = []
    }

    /// Called on the session's thread.
    static func close(_ waker: SessionWaker) {
        guard let list = list() else { return }
        list.entries.removeAll { $0.waker == nil }
        list.entries.append(List.Entry(waker: waker))
    }

    private static func list() -> List? {
        if let context = realm_thread_end_context() { return Unmanaged<List>.fromOpaque(context).takeUnretainedValue() }
        let list = Unmanaged.passRetained(List())
        let isSet = realm_set_thread_end(list.toOpaque()) { context in
            guard let context else { return }
            let list = Unmanaged<List>.fromOpaque(context).takeRetainedValue()
            for entry in list.entries { entry.waker?.placeEnds() }
        }
        if isSet { return list.takeUnretainedValue() }
        list.release()
        return nil
    }
}
