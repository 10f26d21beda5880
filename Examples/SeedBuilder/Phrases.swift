import Foundation
import RealmSwift

/// The classes of the app, a phrase book, that opens the seed: the app has the same.
final class Topic: Object, Decodable {
    @Persisted(primaryKey: true) var name: String
    @Persisted var phrases: List<Phrase>
}

final class Phrase: Object, Decodable {
    @Persisted(primaryKey: true) var id: Int
    /// By language.
    @Persisted var texts: Map<String, String>
    @Persisted(originProperty: "phrases") var topics: LinkingObjects<Topic>

    private enum CodingKeys: String, CodingKey { case id, texts }
}

enum PhraseBook {
    static let classes: [ObjectBase.Type] = [Topic.self, Phrase.self]

    /// A JSON array of topics, each with its phrases.
    static func decode(_ json: Data) throws -> [Topic] { try JSONDecoder().decode([Topic].self, from: json) }
}
