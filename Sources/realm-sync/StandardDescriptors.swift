import CShims
import Glibc
import SystemCalls

/// What a process must set right before it opens its first file.
enum StandardDescriptors {
    /// Opens `/dev/null` for each of the descriptors 0 to 2 that the process was started without. A database would get such a
    /// number otherwise, and a message that is written to it.
    static func prepare() {
        while true {
            // The lowest number that is free is the one that is given out.
            guard let descriptor = try? SystemCalls.openForChildren("/dev/null", O_RDWR) else { return }
            if descriptor > STDERR_FILENO { return SystemCalls.close(descriptor) }
        }
    }

    /// A file that is mapped and gets shorter meanwhile makes the system send SIGBUS to whoever reads behind its end. That is bad
    /// data, and no fault of this program: one line says so, and the exit code.
    static func endClearlyOnBusError() {
        CShims_exit_on_bus_error(
            "realm-sync: the file became shorter while it was read, or its disk failed; nothing was lost by that here\n",
            ExitCode.inputOutput.rawValue)
    }
}
