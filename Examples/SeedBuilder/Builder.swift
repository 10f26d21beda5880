import Foundation
import RealmSwift

/// What is built, and how one knows that it is good.
struct SeedBuilder {
    let input: URL
    let output: URL
    let schemaVersion: UInt64

    struct Summary {
        var topicCount = 0
        var phraseCount = 0
        var byteCount = 0
    }

    /// The output appears when everything was checked, or not at all; one that is there already is replaced then.
    func build() throws -> Summary {
        let partial = output.appendingPathExtension("partial")
        try? FileManager.default.removeItem(at: partial)
        do {
            try write(to: partial)
            try Verification.requireSound(partial)
            let summary = try check(partial)
            guard rename(partial.path, output.path) == 0 else {
                throw SeedError("cannot write \(output.path): \(String(cString: strerror(errno)))")
            }
            return summary
        } catch {
            try? FileManager.default.removeItem(at: partial)
            throw error
        }
    }

    private func topics() throws -> [Topic] {
        guard FileManager.default.isReadableFile(atPath: input.path) else {
            throw SeedError("\(input.path): no such file, or it may not be read")
        }
        do { return try PhraseBook.decode(Data(contentsOf: input)) } catch let error as DecodingError {
            throw SeedError("\(input.path): \(SeedError.text(error))")
        }
    }

    /// Everything in one transaction, in memory; the copy of it has no free space and no history.
    private func write(to url: URL) throws {
        let configuration = Realm.Configuration(
            inMemoryIdentifier: "seed", schemaVersion: schemaVersion, objectTypes: PhraseBook.classes)
        let realm = try Realm(configuration: configuration)
        let topics = try topics()
        try realm.write {
            for topic in topics {
                if let taken = realm.object(ofType: Topic.self, forPrimaryKey: topic.name) {
                    throw SeedError("the topic '\(taken.name)' occurs twice")
                }
                // A phrase may stand under several topics; it is stored once.
                realm.add(topic, update: .modified)
            }
        }
        try realm.writeCopy(toFile: url)
    }

    /// As the app does it: read only, which needs no right to write and leaves nothing beside the file.
    private func check(_ url: URL) throws -> Summary {
        let configuration = Realm.Configuration(
            fileURL: url, readOnly: true, schemaVersion: schemaVersion, objectTypes: PhraseBook.classes)
        let realm = try Realm(configuration: configuration)
        for topic in try topics() {
            guard let stored = realm.object(ofType: Topic.self, forPrimaryKey: topic.name),
                stored.phrases.count == topic.phrases.count
            else {
                throw SeedError("the topic '\(topic.name)' is not in the seed as it should be")
            }
            for phrase in topic.phrases where realm.object(ofType: Phrase.self, forPrimaryKey: phrase.id)?.texts.count == 0 {
                throw SeedError("the phrase \(phrase.id) has no text")
            }
        }
        let size = try FileManager.default.attributesOfItem(atPath: url.path)[.size] as? Int
        return Summary(
            topicCount: realm.objects(Topic.self).count, phraseCount: realm.objects(Phrase.self).count, byteCount: size ?? 0)
    }
}

struct SeedError: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }

    /// What is wrong with the JSON, and where.
    static func text(_ error: DecodingError) -> String {
        let context: DecodingError.Context
        switch error {
        case .typeMismatch(_, let found), .valueNotFound(_, let found), .keyNotFound(_, let found), .dataCorrupted(let found):
            context = found
        @unknown default: return "\(error)"
        }
        let place = context.codingPath.map { key in key.intValue.map { "[\($0)]" } ?? ".\(key.stringValue)" }.joined()
        return place.isEmpty ? context.debugDescription : "at \(place): \(context.debugDescription)"
    }
}
