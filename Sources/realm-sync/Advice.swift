import Glibc
import SystemCalls

/// System calls that failed, in words that say what to do. The path comes first, as in all messages.
enum Advice {
    /// The longest name of a file, and what the names of side files and of files in the making may add to it.
    private static let nameByteCountMax = 255
    private static let sideNameByteCount = 23
    private static let pathByteCountMax = 4095

    static func text(_ error: SystemError) -> String {
        let path = error.path
        if path.isEmpty { return error.description }
        switch error.code {
        case ENOENT where (try? SystemCalls.linkStatus(path: path))?.isSymbolicLink == true:
            return "\(path): is a symbolic link that leads nowhere; remove it, or make what it names"
        case ENOENT: return "\(path): no such file or folder; check the path"
        case ENOTDIR: return "\(path): a part of this path is a file and no folder; check the path"
        case EISDIR: return "\(path): is a directory; give the path of a file"
        case EEXIST: return "\(path): exists already; remove it or choose another name"
        case ELOOP: return "\(path): a symbolic link that leads to itself, or too many of them"
        case ENAMETOOLONG: return tooLong(path)
        case EACCES, EPERM: return "\(path): permission denied by \(error.call); check owner and mode of the file and its folder"
        case EROFS: return "\(path): the file system is read-only; choose another place"
        case ENODEV where error.call == "mmap":
            return "\(path): its file system cannot map files into memory; copy the file to another one"
        case EADDRINUSE:
            return "\(path): somebody listens there already, perhaps another service; end it or choose another address"
        case EADDRNOTAVAIL: return "\(path): is no address of this machine; choose another address"
        case ENOSPC, EDQUOT: return "\(error.description); make room and try again"
        default: return error.description
        }
    }

    static func isOnReadOnlyFileSystem(_ path: String) -> Bool { access(path, W_OK) != 0 && errno == EROFS }

    static func tooLong(_ path: String) -> String {
        if path.utf8.count > pathByteCountMax {
            return "\(path.prefix(60))...: the path has \(path.utf8.count) bytes, it may have at most \(pathByteCountMax)"
        }
        var name = path.split(separator: "/").max { $0.utf8.count < $1.utf8.count } ?? ""
        for side in [".management", ".lock", ".note", ".tmp_compaction_space"] where name.hasSuffix(side) {
            name = name.dropLast(side.count)
        }
        if let making = name.range(of: ".part") { name = name[..<making.lowerBound] }
        return
            "\(name): the name has \(name.utf8.count) bytes, which is too long: side files add up to \(sideNameByteCount) to it, so a realm file's "
            + "name may have at most \(nameByteCountMax - sideNameByteCount)"
    }
}

private extension Substring {
    /// The first place where `text` stands.
    func range(of text: String) -> Range<Index>? {
        var start = startIndex
        while start < endIndex {
            if self[start...].hasPrefix(text) { return start..<index(start, offsetBy: text.count) }
            start = index(after: start)
        }
        return nil
    }
}
