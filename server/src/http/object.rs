//! JSON objects as values of Rust. serde takes an array for a struct, field by field; here an array is refused.

use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

/// Reads an object, and nothing else, as `T`. Also for fields: `#[serde(deserialize_with = "object")]`.
pub(super) fn object<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    deserializer.deserialize_map(ObjectFields(PhantomData))
}

/// Reads an object or `null`, for fields that may be absent: `#[serde(default, deserialize_with = "optional_object")]`.
pub(super) fn optional_object<'de, T, D>(deserializer: D) -> Result<Option<T>, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    let read: Option<Object<T>> = Option::deserialize(deserializer)?;
    Ok(read.map(|Object(value)| value))
}

struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Object<T>, D::Error> {
        object(deserializer).map(Object)
    }
}

/// Reads the text of an object as `T`.
pub(super) fn from_text<'de, T: Deserialize<'de>>(text: &'de str) -> Result<T, serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = object(&mut reader)?;
    reader.end()?;
    Ok(value)
}

struct ObjectFields<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectFields<T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<T, A::Error> {
        T::deserialize(MapAccessDeserializer::new(fields))
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::value::RawValue;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Outer<'a> {
        #[serde(deserialize_with = "object")]
        inner: Inner,
        #[serde(borrow)]
        raw: Option<&'a RawValue>,
    }

    #[derive(Debug, Deserialize)]
    struct Inner {
        n: u8,
    }

    #[test]
    fn objects_are_read_and_arrays_are_not() {
        let outer: Outer<'_> = from_text(r#"{"inner":{"n":7},"raw":[1, 2]}"#).expect("objects");
        assert_eq!((outer.inner.n, outer.raw.map(RawValue::get)), (7, Some("[1, 2]")));
        for bad in [r#"[{"n":7},null]"#, r#"{"inner":[7]}"#, "null", "7", r#"{"inner":{"n":7}} x"#] {
            assert!(from_text::<Outer<'_>>(bad).is_err(), "{bad}");
        }
    }
}
