//! The protocol buffers of a Chakra trace, as far as it is read (`et_def.proto`, package
//! `ChakraProtoMsg`, of github.com/mlcommons/chakra). Unknown fields are passed over.

/// What a file begins with.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct GlobalMetadata {
    #[prost(string, tag = "1")]
    pub(super) version: String,
    #[prost(message, repeated, tag = "2")]
    pub(super) attributes: Vec<Attribute>,
}

/// A node of a rank.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Node {
    #[prost(uint64, tag = "1")]
    pub(super) id: u64,
    #[prost(int32, tag = "3")]
    pub(super) kind: i32,
    #[prost(uint64, repeated, tag = "4")]
    pub(super) control_dependencies: Vec<u64>,
    #[prost(uint64, repeated, tag = "5")]
    pub(super) data_dependencies: Vec<u64>,
    #[prost(uint64, tag = "6")]
    pub(super) start_time_micros: u64,
    #[prost(uint64, tag = "7")]
    pub(super) duration_micros: u64,
    #[prost(message, repeated, tag = "10")]
    pub(super) attributes: Vec<Attribute>,
}

/// A named value.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Attribute {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(oneof = "Value", tags = "7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 28, 29")]
    pub(super) value: Option<Value>,
}

/// Of a value: generators write the same number in different ways.
#[derive(Clone, PartialEq, prost::Oneof)]
pub(super) enum Value {
    #[prost(int32, tag = "7")]
    Int32(i32),
    #[prost(int64, tag = "9")]
    Int64(i64),
    #[prost(uint32, tag = "11")]
    Uint32(u32),
    #[prost(uint64, tag = "13")]
    Uint64(u64),
    #[prost(sint32, tag = "15")]
    Sint32(i32),
    #[prost(sint64, tag = "17")]
    Sint64(i64),
    #[prost(fixed32, tag = "19")]
    Fixed32(u32),
    #[prost(fixed64, tag = "21")]
    Fixed64(u64),
    #[prost(sfixed32, tag = "23")]
    Sfixed32(i32),
    #[prost(sfixed64, tag = "25")]
    Sfixed64(i64),
    #[prost(bool, tag = "27")]
    Bool(bool),
    #[prost(message, tag = "28")]
    Bools(Bools),
    #[prost(string, tag = "29")]
    Text(String),
}

/// A list of truth values.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Bools {
    #[prost(bool, repeated, tag = "1")]
    pub(super) values: Vec<bool>,
}

impl Value {
    /// A number that is not negative, if it is one.
    pub(super) fn number(&self) -> Option<u64> {
        match *self {
            Value::Int32(value) | Value::Sint32(value) | Value::Sfixed32(value) => {
                u64::try_from(value).ok()
            }
            Value::Int64(value) | Value::Sint64(value) | Value::Sfixed64(value) => {
                u64::try_from(value).ok()
            }
            Value::Uint32(value) | Value::Fixed32(value) => Some(value.into()),
            Value::Uint64(value) | Value::Fixed64(value) => Some(value),
            Value::Bool(value) => Some(value.into()),
            Value::Bools(_) | Value::Text(_) => None,
        }
    }
}

impl Node {
    /// The value of an attribute, if it has one.
    pub(super) fn attribute(&self, name: &str) -> Option<&Value> {
        let found = self.attributes.iter().find(|attribute| attribute.name == name);
        found.and_then(|attribute| attribute.value.as_ref())
    }
}
