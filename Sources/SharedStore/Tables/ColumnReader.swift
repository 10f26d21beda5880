/// The values of one column for the rows of one cluster leaf, of whatever kind: made once a leaf, then asked row by row.
///
/// For those who read many rows of columns that they do not know in advance (export, tables of the command line). Nothing is
/// allocated by making one or by `view`.
public enum ColumnReader {
    case int(IntLeaf)
    case optionalInt(NullableIntLeaf)
    case bool(BoolLeaf)
    case float(FloatLeaf)
    case double(DoubleLeaf)
    case string(StringLeaf)
    case enumeratedString(EnumStringLeaf)
    case binary(BinaryLeaf)
    case timestamp(TimestampLeaf)
    case decimal(DecimalLeaf)
    case objectId(ObjectIdLeaf)
    case uuid(UUIDLeaf)
    /// Keys of objects in the column's target table.
    case link(LinkLeaf)
    case mixed(MixedLeaf)
    case backlink(BacklinkLeaf)
    /// Roots of lists, sets or dictionaries.
    case collection(RefLeaf)

    /// - Parameter cluster: the node of a cluster leaf: `ClusterLeaf.node` or `ObjectRow.cluster`.
    public init(_ memory: Memory, _ cluster: Node, _ column: Column) throws {
        let ref = try cluster.requiredRef(column.leafIndex + 1)
        if column.collection != nil {
            self = .collection(try RefLeaf(memory, ref))
            return
        }
        switch column.type {
        case .int: self = column.isNullable ? .optionalInt(try NullableIntLeaf(memory, ref)) : .int(try IntLeaf(memory, ref))
        case .bool: self = .bool(try BoolLeaf(memory, ref))
        case .float: self = .float(try FloatLeaf(memory, ref))
        case .double: self = .double(try DoubleLeaf(memory, ref))
        case .string:
            self =
                column.isEnumerated
                ? .enumeratedString(try EnumStringLeaf(memory, ref, keys: StringLeaf(memory, memory.enumerationRef(column))))
                : .string(try StringLeaf(memory, ref))
        case .binary: self = .binary(try BinaryLeaf(memory, ref))
        case .timestamp: self = .timestamp(try TimestampLeaf(memory, ref))
        case .decimal: self = .decimal(try DecimalLeaf(memory, ref))
        case .objectId: self = .objectId(try ObjectIdLeaf(memory, ref))
        case .uuid: self = .uuid(try UUIDLeaf(memory, ref))
        case .link: self = .link(try LinkLeaf(memory, ref))
        case .mixed: self = .mixed(try MixedLeaf(memory, ref))
        case .backlink: self = .backlink(try BacklinkLeaf(memory, ref))
        case .typedLink: throw FormatError(ref: cluster.ref, "column of typed links")
        }
    }

    /// Number of values; the cluster leaf's number of rows, unless the file is damaged.
    public var count: Int {
        switch self {
        case .int(let leaf): leaf.count
        case .optionalInt(let leaf): leaf.count
        case .bool(let leaf): leaf.count
        case .float(let leaf): leaf.count
        case .double(let leaf): leaf.count
        case .string(let leaf): leaf.count
        case .enumeratedString(let leaf): leaf.count
        case .binary(let leaf): leaf.count
        case .timestamp(let leaf): leaf.count
        case .decimal(let leaf): leaf.count
        case .objectId(let leaf): leaf.count
        case .uuid(let leaf): leaf.count
        case .link(let leaf): leaf.count
        case .mixed(let leaf): leaf.count
        case .backlink(let leaf): leaf.count
        case .collection(let leaf): leaf.count
        }
    }
}
