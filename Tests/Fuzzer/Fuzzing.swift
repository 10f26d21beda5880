import Foundation
import TestSupport

/// The cases of one seed over a list of good files.
struct Fuzzing {
    let seed: UInt64
    let generator: Generator
    let fixtures: [FuzzFixture]
    /// Files of which most cases are made, and the others.
    private let small: [Int]
    private let large: [Int]

    init(seed: UInt64, directories: [String], generator: Generator = .bytes) throws {
        self.seed = seed
        self.generator = generator
        var fixtures: [FuzzFixture] = []
        for directory in directories {
            for name in try FileManager.default.contentsOfDirectory(atPath: directory).sorted() where name.hasSuffix(".realm") {
                // Encrypted files have no nodes to aim at; their first page is noise.
                if let fixture = try? FuzzFixture(path: directory + "/" + name) { fixtures.append(fixture) }
            }
        }
        self.fixtures = fixtures
        small = fixtures.indices.filter { fixtures[$0].bytes.count <= 64 << 10 }
        large = fixtures.indices.filter { fixtures[$0].bytes.count > 64 << 10 }
    }

    /// The damaged file of one case. Large files are rare: they cost as much time as a hundred small ones.
    func mutated(_ index: Int, only: Set<Int>? = nil) -> Mutator {
        var random = SplitMix(seed: seed, case: index)
        let isLarge = !large.isEmpty && (small.isEmpty || random.oneIn(40))
        let choices = isLarge ? large : small
        return Mutator(fixtures[choices[random.below(choices.count)]], random: random, generator: generator, only: only)
    }

    /// Runs one case; returns what is wrong, nil where nothing is.
    func run(_ index: Int, only: Set<Int>? = nil) -> String? {
        let mutator = mutated(index, only: only)
        do {
            _ = try Exercise.run(mutator.bytes)
            return nil
        } catch {
            return "\(error)"
        }
    }
}
