/// The rules that a file can break. Numbers in brackets: document and rule, as in file-format-1 section 11 ("1:4"),
/// file-format-2 section 11 ("2:16"), file-format-3 section 10 ("3:7").
public enum FindingCode: String, Sendable, CaseIterable {
    // MARK: Header and top array
    /// The file is shorter than it must be, or not a multiple of 8 bytes long [1:1].
    case headerSize = "header.size"
    /// Bytes 16 to 19 are not `T-DB` [1:1].
    case headerMnemonic = "header.mnemonic"
    /// The live format version is none that can be read [1:1, 3:1].
    case headerFormat = "header.format"
    /// The live top ref is unaligned or lies outside the file [1:1].
    case headerTopRef = "header.topRef"
    /// The reserved byte, or one of the flag bits 1 to 7, is set (warning) [1:2].
    case headerReserved = "header.reserved"
    /// The footer of a streaming file does not end with the cookie [1:3, 3:14].
    case footerCookie = "footer.cookie"
    /// The logical size of a streaming file is not its size less 16 (warning) [1:3, 3:14].
    case footerPosition = "footer.position"
    /// The number of elements of the top array is none of the legal ones [2:1, 3:2].
    case topCount = "top.count"
    /// An element of the top array is of the wrong kind: a ref for a number or the other way round [2:1, 3:2].
    case topElement = "top.element"
    /// The logical size is unaligned, exceeds the file, or differs from the snapshot's [3:3].
    case topLogicalSize = "top.logicalSize"
    /// The logical size of a file that was committed to is not a multiple of a page (warning) [3:3].
    case topPages = "top.pages"
    /// The version is 0, or differs from the snapshot's [3:2].
    case topVersion = "top.version"
    /// Element 11 is none of: 0, a limit, a well-formed state of compaction [3:11].
    case evacuationState = "evacuation.state"

    // MARK: Nodes
    /// A ref is not a multiple of 8 [1:4].
    case nodeUnaligned = "node.unaligned"
    /// A ref is negative, or the node does not lie inside the file [1:4, 1:6].
    case nodeRange = "node.range"
    /// The width type is 3, or a node of bytes has elements of more than 8 bits [1:5].
    case nodeWidthType = "node.widthType"
    /// Flags that exclude each other: an inner node without refs, refs in a node that is not of width type 0 [1:5].
    case nodeFlags = "node.flags"
    /// The context flag is set in a node in which it means nothing (a warning in files of older formats) [1:5].
    case nodeContext = "node.context"
    /// Bytes 0 to 3 are not `41 41 41 41` (warning) [1:5].
    case nodeChecksum = "node.checksum"
    /// A node begins or ends inside another one [1:7].
    case nodeOverlap = "node.overlap"
    /// A node has two owners [1:6, 2:37].
    case nodeShared = "node.shared"
    /// A node is owned by one of its own descendants [1:9].
    case nodeCycle = "node.cycle"
    /// A node crosses a multiple of 64 MiB (warning) [1:8, 3:9].
    case nodeSection = "node.section"
    /// A page of an encrypted file cannot be decrypted [3:13].
    case nodeUnreadable = "node.unreadable"
    /// An element that must be a ref is 0 or a number, or the other way round.
    case nodeElement = "node.element"
    /// A node is not of the kind that its place asks for: refs, width type, width, or number of elements [1:10-23].
    case nodeKind = "node.kind"

    // MARK: Free space
    /// The three lists of free space differ in length [3:4].
    case freeCounts = "free.counts"
    /// The list of free blocks is not sorted by position [3:4].
    case freeOrder = "free.order"
    /// Two free blocks overlap [3:4].
    case freeOverlap = "free.overlap"
    /// Position or length of a free block is not a multiple of 8, or the length is not positive [3:4].
    case freeAlignment = "free.alignment"
    /// A free block lies outside the logical file [3:4].
    case freeRange = "free.range"
    /// A free block was released by a version that does not exist yet [3:5].
    case freeVersion = "free.version"
    /// A free block contains a node in use [1:7, 3:7].
    case spaceOverlap = "space.overlap"
    /// A pinned snapshot uses what the newest one takes for free [3:8].
    case pinnedOverlap = "pinned.overlap"
    /// Bytes that are neither reachable nor free (warning) [1:7, 3:7].
    case spaceLeaked = "space.leaked"

    // MARK: Groups, tables, columns
    /// The lists of table names and of tables differ in length, or are longer than 65535 [2:1].
    case groupCounts = "group.counts"
    /// An entry of the list of tables is neither a table nor a free slot [2:2].
    case groupTable = "group.table"
    /// A table name is empty, longer than 63 bytes, or stands twice; or a free slot has a name (warning) [2:2, 2:3].
    case groupName = "group.name"
    /// The top of a table has not the elements that it must have.
    case tableShape = "table.shape"
    /// The key that a table holds is not that of its slot [2:4].
    case tableKey = "table.key"
    /// The table type is 3 [2:15].
    case tableFlags = "table.flags"
    /// The arrays with one entry for each leaf index differ in length, are too short, or have entries without a column [2:11].
    case tableArrays = "table.arrays"
    /// A spec has not the elements that it must have [2:6].
    case specShape = "spec.shape"
    /// The arrays of a spec differ in length [2:6].
    case specCounts = "spec.counts"
    /// A column stands behind a backlink column [2:6].
    case specOrder = "spec.order"
    /// Two columns have one leaf index [2:7].
    case specLeafIndex = "spec.leafIndex"
    /// A column name is empty, longer than 63 bytes, or stands twice [2:7].
    case specName = "spec.name"
    /// A column's type is unknown, or its key says another one; or the key type of a dictionary is wrong [2:8, 2:9].
    case specType = "spec.type"
    /// Attributes exclude each other, or the column key says others [2:8].
    case specAttributes = "spec.attributes"
    /// The lists of distinct values do not fit the columns [2:10].
    case specEnumeration = "spec.enumeration"
    /// The two ends of a link column do not name each other, or a column without links names another end [2:12, 2:13].
    case columnOpposite = "column.opposite"
    /// A backlink column whose origin does not exist (warning) [2:12].
    case columnOrigin = "column.origin"
    /// The primary key is no column, or one that cannot be a primary key [2:14].
    case primaryKeyColumn = "primaryKey.column"
    /// Two objects have one primary key [2:14].
    case primaryKeyDuplicate = "primaryKey.duplicate"

    // MARK: Cluster trees
    /// A leaf lies at another depth than an inner node says [2:16].
    case clusterDepth = "cluster.depth"
    /// An inner node says another number of objects than it holds [2:16].
    case clusterSize = "cluster.size"
    /// An inner node has too few or too many children [2:16, 2:21].
    case clusterChildren = "cluster.children"
    /// Offsets of children do not begin with 0, do not ascend, or are not one a child [2:17].
    case clusterOffsets = "cluster.offsets"
    /// Keys do not ascend, or reach into another cluster [2:17, 2:18].
    case clusterKeys = "cluster.keys"
    /// A live object has a negative key, or a tombstone one that is not below -1 [2:20].
    case clusterKeySign = "cluster.keySign"
    /// More than 256 objects in a cluster, or none in one that is not the root [2:16, 2:21].
    case clusterCount = "cluster.count"
    /// A cluster lacks the element of a column, or has one without a column [2:19].
    case clusterColumns = "cluster.columns"
    /// A leaf of a column has another number of values than its cluster has rows [2:19].
    case leafCount = "leaf.count"
    /// The collision map is not sorted, its arrays differ in length, or a key is none of an object [2:36].
    case collisionMap = "collision.map"
    /// A tombstone without any backlink [2:30].
    case tombstoneUnlinked = "tombstone.unlinked"
    /// A tombstone's key is not the one that follows from its primary key [2:30].
    case tombstoneKey = "tombstone.key"

    // MARK: Values
    /// A leaf of nullable integers has no element that stands for null [1:10].
    case intSentinel = "int.sentinel"
    /// Null is not stood for by the largest value of the width (warning) [1:10].
    case intSentinelValue = "int.sentinelValue"
    /// A boolean is none of 0, 1, 3 [1:11].
    case boolValue = "bool.value"
    /// Seconds and nanoseconds of a leaf of timestamps differ in number [1:13].
    case timestampCounts = "timestamp.counts"
    /// Nanoseconds of a second or more [1:13].
    case timestampRange = "timestamp.range"
    /// Seconds and nanoseconds have different signs [1:13].
    case timestampSign = "timestamp.sign"
    /// The bytes of a leaf of ObjectIds or UUIDs are no whole number of values [1:15].
    case fixedSize = "fixed.size"
    /// The last byte of a short string says more padding than the block has [1:16].
    case stringBlock = "string.block"
    /// Bytes between the end of a short string and the last byte of its block are not 0 [1:16].
    case stringPadding = "string.padding"
    /// A string is not followed by a zero byte [1:17, 1:18].
    case stringTerminator = "string.terminator"
    /// A leaf of small blobs has not its three parts, or they differ in length [1:17].
    case blobsShape = "blobs.shape"
    /// Offsets of small blobs descend, exceed the blob, or do not end with it [1:17].
    case blobsOffsets = "blobs.offsets"
    /// A null flag of a small blob is neither 0 nor 1 [1:17].
    case blobsNulls = "blobs.nulls"
    /// A null value has bytes (warning) [1:17].
    case blobsNullSize = "blobs.nullSize"
    /// A position is not in the list of distinct values [1:19, 2:10].
    case enumIndex = "enum.index"
    /// Null where the column, or the place, does not allow it [2:22, 2:23].
    case valueNull = "value.null"
    /// A string is not UTF-8 (warning) [2:22].
    case valueUTF8 = "value.utf8"
    /// A Mixed value of an unknown type, or with a payload array that its type does not use [1:20].
    case mixedType = "mixed.type"
    /// A Mixed value uses an entry behind the end of its payload array [1:20].
    case mixedPayloadIndex = "mixed.payloadIndex"
    /// Two Mixed values use one entry of a payload array [1:20].
    case mixedPayloadShared = "mixed.payloadShared"
    /// An entry of a payload array belongs to no value [1:20].
    case mixedPayloadUnused = "mixed.payloadUnused"
    /// The array of pairs has an odd number of elements.
    case mixedPayloadCount = "mixed.payloadCount"
    /// A payload has not the size of its type, or is null; the upper half of a float is not 0 (warning) [1:20].
    case mixedPayload = "mixed.payload"
    /// More keys than values, or fewer (warning) [1:20, 2:24].
    case mixedKeyCount = "mixed.keyCount"
    /// A nested collection without a key, or a key at another value (warning) [1:20, 2:24].
    case mixedKeyMissing = "mixed.keyMissing"
    /// Two nested collections of one collection have one key [1:20, 2:24].
    case mixedKeyDuplicate = "mixed.keyDuplicate"

    // MARK: B+ trees and collections
    /// An inner node has no child, or flags that it must not have [1:24]; a root with a single child (warning) [1:27].
    case treeShape = "tree.shape"
    /// The last element of an inner node is not the number of elements below it [1:24].
    case treeTotal = "tree.total"
    /// The offsets of an inner node are not those of its children [1:25].
    case treeOffsets = "tree.offsets"
    /// A child of an inner node in compact form has not the number of elements that all must have [1:25].
    case treeCompact = "tree.compact"
    /// Leaves lie at different depths [1:26].
    case treeDepth = "tree.depth"
    /// A leaf that is not the root is empty [1:26].
    case treeEmptyLeaf = "tree.emptyLeaf"
    /// More than 1000 elements in a node (warning) [1:26].
    case treeNodeCount = "tree.nodeCount"
    /// An unsigned array of less than 8 bits (warning) [1:23].
    case unsignedWidth = "unsigned.width"
    /// The values of a set do not ascend [1:28, 2:23].
    case setOrder = "set.order"
    /// A value stands twice in a set [1:28, 2:23].
    case setDuplicate = "set.duplicate"
    /// A value of a set is a list or a dictionary [2:24].
    case setNested = "set.nested"
    /// The flag of a list or set of links does not tell whether some are unresolved [1:29, 2:25].
    case setUnresolvedFlag = "set.unresolvedFlag"
    /// A dictionary is no array of two refs [1:28].
    case dictionaryShape = "dictionary.shape"
    /// A dictionary has more keys than values, or fewer [1:28, 2:23].
    case dictionaryCounts = "dictionary.counts"
    /// The keys of a dictionary do not ascend strictly [1:28, 2:23].
    case dictionaryOrder = "dictionary.order"
    /// A value of a dictionary is not of the column's type [2:23].
    case dictionaryValue = "dictionary.value"

    // MARK: Links
    /// A link to an object that does not exist [2:26].
    case linkDangling = "link.dangling"
    /// A link into a table that does not exist, is not the column's, or may not be linked to [2:26].
    case linkTarget = "link.target"
    /// A link without a backlink [2:27].
    case backlinkMissing = "backlink.missing"
    /// A backlink without a link [2:27].
    case backlinkExtra = "backlink.extra"
    /// A list of less than two backlinks (warning) [1:22, 2:28].
    case backlinkList = "backlink.list"
    /// An embedded object with no owner, or with several [2:29].
    case embeddedOwners = "embedded.owners"

    // MARK: Indexes
    /// A node of an index has not the flags and elements of one [2:31].
    case indexNode = "index.node"
    /// Chunks do not ascend, are not of 32 bits, not one an entry, or not the child's last one [2:31].
    case indexChunks = "index.chunks"
    /// An empty node or list in an index [2:31, 2:33].
    case indexEmpty = "index.empty"
    /// A sub-index below the depth limit [2:34].
    case indexDepth = "index.depth"
    /// An object that the index does not find by its value [2:32].
    case indexMissing = "index.missing"
    /// An entry for an object that does not exist, or a word that it does not hold [2:32].
    case indexExtra = "index.extra"
    /// An entry stands where its object's value does not lead to [2:32].
    case indexPlace = "index.place"
    /// The number of entries is not that of the objects [2:32].
    case indexCount = "index.count"
    /// Objects of equal value do not ascend in their list, or objects of different values share one [2:33].
    case indexList = "index.list"
    /// Values in a list do not ascend (warning) [2:33].
    case indexListOrder = "index.listOrder"
    /// An index without the attribute that asks for it, or the other way round, or of a type that cannot have one [2:35].
    case indexAttribute = "index.attribute"

    // MARK: History
    /// History type or schema version that do not go together, or are unknown [2:5, 3:2].
    case historyType = "history.type"
    /// More changesets than versions [3:10].
    case historyCount = "history.count"
    /// A changeset cannot be parsed, or uses what it has not selected [3:10].
    case historyElement = "history.element"

    // MARK: The run itself
    /// Too deep a nesting of nodes of one tree; the part below was not looked at [1:9].
    case depthLimit = "depth.limit"
    /// More elements than any well-formed file of this size holds; the run stopped.
    case elementLimit = "element.limit"
}
