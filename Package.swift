// swift-tools-version:6.0
// This file is the architecture diagram: a target may use what stands above it in the list, never below.
import PackageDescription

let package = Package(
    name: "realm-linux",
    products: [
        .library(name: "SharedStore", targets: ["SharedStore"]),
        .library(name: "Notifier", targets: ["Notifier"]),
        .library(name: "Replication", targets: ["Replication"]),
        .library(name: "RealmSwift", targets: ["RealmSwift"]),
        .library(name: "RealmSwiftDynamic", type: .dynamic, targets: ["RealmSwift"]),
        .executable(name: "realm-sync", targets: ["realm-sync"]),
    ],
    targets: [
        // Libraries of the system, each one a Debian package (see ARCHITECTURE.md for why each was chosen).
        .systemLibrary(name: "COpenSSL", pkgConfig: "libcrypto", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CInotifyTools", providers: [.apt(["libinotifytools0-dev"])]),
        .systemLibrary(name: "CDecimal", providers: [.apt(["libintelrdfpmath-dev"])]),
        .systemLibrary(name: "CZstd", providers: [.apt(["libzstd-dev"])]),
        .systemLibrary(name: "CXXHash", providers: [.apt(["libxxhash-dev"])]),
        .systemLibrary(name: "CCurl", pkgConfig: "libcurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(name: "CSQLite", providers: [.apt(["libsqlite3-dev"])]),
        .systemLibrary(name: "CLMDB", providers: [.apt(["liblmdb-dev"])]),

        // What Swift cannot say: the lock file's layout, process-shared mutexes, atomics on mapped memory, epoll.
        .target(name: "CShims"),
        .target(name: "SystemCalls", dependencies: ["CShims"]),
        .target(name: "Notifier", dependencies: ["SystemCalls", "CShims", "CInotifyTools"]),
        .target(name: "SharedStore", dependencies: ["Notifier", "SystemCalls", "CShims", "COpenSSL", "CDecimal"]),
        .target(
            name: "Replication",
            dependencies: ["SharedStore", "Notifier", "SystemCalls", "CShims", "COpenSSL", "CZstd", "CXXHash", "CCurl"]),
        .target(name: "RealmSwift", dependencies: ["SharedStore", "Notifier", "CShims"]),
        .executableTarget(name: "realm-sync", dependencies: ["Replication", "SharedStore", "Notifier", "SystemCalls"]),

        // What can be made with the object API: the guide's samples are in Tests/GuideTests, whole programs here.
        .executableTarget(name: "TaskList", dependencies: ["RealmSwift"], path: "Examples/TaskList"),
        .executableTarget(
            name: "SeedBuilder", dependencies: ["RealmSwift", "SharedStore"], path: "Examples/SeedBuilder",
            exclude: ["phrases.json"]),

        // Programs of the developers: measured, fuzzed, killed.
        .executableTarget(
            name: "Benchmarks",
            dependencies: [
                "RealmSwift", "SharedStore", "Replication", "Notifier", "SystemCalls", "COpenSSL", "CSQLite", "CLMDB",
            ], path: "Benchmarks"),
        .executableTarget(name: "Fuzzer", dependencies: ["SharedStore", "SystemCalls", "TestSupport"], path: "Tests/Fuzzer"),
        // A process that tests start, stop and kill: opens a file and does what its arguments say.
        .executableTarget(
            name: "TestParticipant",
            dependencies: [
                "SharedStore", "Notifier", "SystemCalls", "Replication", "RealmSwift", "RealmSwiftTestModels", "TestSupport",
            ],
            path: "Tests/TestParticipant"),

        .target(name: "TestSupport", dependencies: ["SharedStore", "SystemCalls"], path: "Tests/TestSupport"),
        // A service in use for a long time: Scripts/soak.
        .executableTarget(name: "Soak", dependencies: ["SharedStore", "SystemCalls", "TestSupport"], path: "Tests/Soak"),
        // Threads of one process on one store, small enough to be built for a sanitizer on the build server: Scripts/sanitize.
        .executableTarget(name: "Threads", dependencies: ["SharedStore", "Notifier", "TestSupport"], path: "Tests/Threads"),
        .testTarget(name: "SystemCallsTests", dependencies: ["SystemCalls", "TestSupport"]),
        .testTarget(name: "NotifierTests", dependencies: ["Notifier", "TestSupport", "TestParticipant"]),
        .testTarget(name: "SharedStoreTests", dependencies: ["SharedStore", "TestSupport", "TestParticipant"]),
        .testTarget(name: "ReplicationTests", dependencies: ["Replication", "TestSupport", "TestParticipant"]),
        // Models in a module of their own, as an application has them: what the compiler makes of them across modules is tested.
        .target(name: "RealmSwiftTestModels", dependencies: ["RealmSwift"], path: "Tests/RealmSwiftTestModels"),
        .testTarget(
            name: "RealmSwiftTests",
            dependencies: ["RealmSwift", "RealmSwiftTestModels", "SharedStore", "SystemCalls", "TestSupport", "TestParticipant"],
            resources: [.copy("Resources/bundled.realm")]),
        .testTarget(name: "GuideTests", dependencies: ["RealmSwift", "SharedStore", "TestSupport", "TaskList", "SeedBuilder"]),
        .testTarget(
            name: "RealmSyncTests", dependencies: ["SharedStore", "TestSupport", "TestParticipant", "realm-sync", "Soak"]),
        .testTarget(name: "InteropTests", dependencies: ["SharedStore", "TestSupport", "TestParticipant"]),
        .testTarget(
            name: "TortureTests", dependencies: ["SharedStore", "Replication", "TestSupport", "TestParticipant", "Fuzzer"]),
    ],
    swiftLanguageModes: [.v6]
)
