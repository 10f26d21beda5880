import Foundation
import Glibc

/// How long a test waits at most for what comes by itself.
///
/// A limit is no measurement: what is waited for comes as soon as it can, and a limit only ends a test in which it does not come
/// at all. Under a sanitizer of the compiler everything takes many times as long, so limits are longer there.
public enum TestTime {
    /// A sanitizer of the compiler that this process is built for.
    public enum Sanitizer: Sendable { case address, thread }

    /// Found by the runtime that comes with it, since nothing of a source says what it is compiled for.
    public static let sanitizer: Sanitizer? = {
        if dlsym(nil, "__asan_init") != nil { return .address }
        return dlsym(nil, "__tsan_init") != nil ? .thread : nil
    }()

    /// What limits are multiplied by.
    public static let factor: Double = sanitizer == nil ? 1 : 10

    /// The limit, in seconds, for what takes at most `seconds` on a slow machine. Less than a second is no limit but a look at
    /// whether something comes that must not, and stays as it is.
    public static func limit(_ seconds: Double) -> Double { seconds < 1 ? seconds : seconds * factor }
}
