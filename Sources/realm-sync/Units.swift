import Glibc

/// Sizes and times, for people and from people.
enum Units {
    /// `512 B`, `3.4 KB`, `1.2 GB`: powers of 1024, at most four digits.
    static func text(bytes: Int) -> String {
        let units = ["B", "KB", "MB", "GB", "TB", "PB", "EB"]
        var value = Double(bytes)
        var unit = 0
        while abs(value) >= 1024, unit < units.count - 1 {
            value /= 1024
            unit += 1
        }
        if unit == 0 { return "\(bytes) B" }
        return "\(fixed(value, abs(value) < 10 ? 2 : abs(value) < 100 ? 1 : 0)) \(units[unit])"
    }

    /// `0.3 ms`, `250 ms`, `12 s`, `3 min 5 s`, `4 h 10 min`, `2 d 3 h`.
    static func text(seconds: Double) -> String {
        if seconds < 1 { return "\(fixed(seconds * 1000, seconds < 0.01 ? 1 : 0)) ms" }
        // Far more than anything that is measured, and safe to convert.
        let whole = Int(min(seconds, 1e15))
        switch whole {
        case ..<60: return "\(whole) s"
        case ..<3600: return "\(whole / 60) min \(whole % 60) s"
        case ..<86400: return "\(whole / 3600) h \(whole % 3600 / 60) min"
        default: return "\(whole / 86400) d \(whole % 86400 / 3600) h"
        }
    }

    static func fixed(_ value: Double, _ digits: Int) -> String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 400) { buffer in
            let count = withVaList([value]) { vsnprintf(buffer.baseAddress, buffer.count, "%.\(digits)f", $0) }
            return String(decoding: UnsafeRawBufferPointer(buffer)[..<max(0, min(Int(count), buffer.count - 1))], as: UTF8.self)
        }
    }

    /// A moment as RFC 3339 text in UTC, with as many digits behind the second as are needed, or always three; nil where the year
    /// has more than four digits.
    static func text(seconds: Int64, nanoseconds: Int32, fixesMilliseconds: Bool = false) -> String? {
        // A time before 1970 has both parts negative.
        var whole = seconds
        var fraction = Int(nanoseconds)
        if fraction < 0 {
            whole = whole &- 1
            fraction += 1_000_000_000
        }
        guard (-62_167_219_200...253_402_300_799).contains(whole) else { return nil }
        var time = time_t(whole)
        var parts = tm()
        guard gmtime_r(&time, &parts) != nil else { return nil }
        var text = pad(Int(parts.tm_year) + 1900, 4) + "-" + pad(Int(parts.tm_mon) + 1, 2) + "-" + pad(Int(parts.tm_mday), 2)
        text += "T" + pad(Int(parts.tm_hour), 2) + ":" + pad(Int(parts.tm_min), 2) + ":" + pad(Int(parts.tm_sec), 2)
        if fixesMilliseconds {
            text += "." + pad(fraction / 1_000_000, 3)
        } else if fraction != 0 {
            var digits = pad(fraction, 9)
            while digits.hasSuffix("0") { digits.removeLast() }
            text += "." + digits
        }
        return text + "Z"
    }

    /// With three digits behind the second, so that lines of a log line up.
    static func text(nanosecondsSince1970 value: Int64) -> String {
        text(seconds: value / 1_000_000_000, nanoseconds: Int32(value % 1_000_000_000), fixesMilliseconds: true) ?? "\(value) ns"
    }

    static func pad(_ value: Int, _ width: Int) -> String {
        let digits = String(value)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }

    // MARK: From people

    static func duration(_ text: String) -> Duration? {
        let number = text.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
        guard let value = Double(number), value.isFinite else { return nil }
        let factor: Double? =
            switch text.dropFirst(number.count) {
            case "ms": 0.001
            case "", "s": 1
            case "m", "min": 60
            case "h": 3600
            case "d": 86400
            default: nil
            }
        guard let factor, value * factor <= 1e9 else { return nil }
        return .nanoseconds(Int64(value * factor * 1e9))
    }

    static func byteCount(_ text: String) -> Int? {
        let number = text.prefix { $0.isASCII && $0.isNumber }
        guard let value = Int(number) else { return nil }
        let shift: Int? =
            switch text.dropFirst(number.count).uppercased() {
            case "", "B": 0
            case "K", "KB", "KIB": 10
            case "M", "MB", "MIB": 20
            case "G", "GB", "GIB": 30
            case "T", "TB", "TIB": 40
            default: nil
            }
        guard let shift, value <= Int.max >> shift else { return nil }
        return value << shift
    }
}

extension Units {
    /// A moment from RFC 3339 text such as `2024-02-29`, `2024-02-29T12:30:00Z` or with a fraction and an offset such as
    /// `+02:00`;
    /// without an offset it is UTC. A number alone is seconds since 1970.
    static func moment(_ text: String) -> (seconds: Int64, nanoseconds: Int32)? {
        if let seconds = Int64(text), text.count != 4 { return (seconds, 0) }
        var scanner = Substring(text)
        guard let year = scanner.takeNumber(digits: 4), scanner.take("-"), let month = scanner.takeNumber(digits: 2),
            scanner.take("-"), let day = scanner.takeNumber(digits: 2), (1...12).contains(month), day > 0
        else { return nil }
        var (hour, minute, second, nanoseconds, offset) = (0, 0, 0, 0, 0)
        if scanner.take("T") || scanner.take("t") || scanner.take(" ") {
            guard let time = scanner.takeHoursAndMinutes(), time.hours < 24, time.minutes < 60 else { return nil }
            (hour, minute) = time
            if scanner.take(":") {
                guard let s = scanner.takeNumber(digits: 2), s < 60 else { return nil }
                second = s
                if scanner.take(".") {
                    let digits = scanner.prefix { $0.isASCII && $0.isNumber }
                    guard (1...9).contains(digits.count) else { return nil }
                    nanoseconds = Int(digits + String(repeating: "0", count: 9 - digits.count)) ?? 0
                    scanner = scanner.dropFirst(digits.count)
                }
            }
            if !(scanner.take("Z") || scanner.take("z")), !scanner.isEmpty {
                let isEast = scanner.take("+")
                guard isEast || scanner.take("-"), let east = scanner.takeHoursAndMinutes() else { return nil }
                offset = (east.hours * 60 + east.minutes) * (isEast ? 60 : -60)
            }
        }
        guard scanner.isEmpty else { return nil }
        let isLeapYear = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        let monthDays = [31, isLeapYear ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        guard day <= monthDays[month - 1] else { return nil }
        // Days since 1970 by counting leap days up to the year before.
        let years = year - 1
        var days = years * 365 + years / 4 - years / 100 + years / 400 - 719_162
        days += monthDays[..<(month - 1)].reduce(0, +) + day - 1
        let seconds = Int64(days * 86400 + hour * 3600 + minute * 60 + second - offset)
        // Both parts of a time before 1970 are negative or zero.
        if seconds < 0, nanoseconds > 0 { return (seconds + 1, Int32(nanoseconds - 1_000_000_000)) }
        return (seconds, Int32(nanoseconds))
    }
}

private extension Substring {
    mutating func take(_ character: Character) -> Bool {
        guard first == character else { return false }
        removeFirst()
        return true
    }

    mutating func takeHoursAndMinutes() -> (hours: Int, minutes: Int)? {
        guard let hours = takeNumber(digits: 2), take(":"), let minutes = takeNumber(digits: 2) else { return nil }
        return (hours, minutes)
    }

    mutating func takeNumber(digits: Int) -> Int? {
        let text = prefix(digits)
        guard text.count == digits, text.allSatisfy({ $0.isASCII && $0.isNumber }) else { return nil }
        removeFirst(digits)
        return Int(text)
    }
}
