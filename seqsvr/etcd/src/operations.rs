//! The operations and comparisons that transactions are made of.

use super::cell::Cell;
use super::v3::compare::{CompareResult, CompareTarget, TargetUnion};
use super::v3::request_op::Request;
use super::v3::response_op::Response;
use super::v3::{Compare, DeleteRangeRequest, PutRequest, RangeRequest, RequestOp, ResponseOp};

/// Reads one key.
pub fn get(key: impl Into<Vec<u8>>) -> RequestOp {
    let range = RangeRequest { key: key.into(), ..RangeRequest::default() };
    RequestOp { request: Some(Request::RequestRange(range)) }
}

/// Writes one key.
pub fn put(key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> RequestOp {
    put_leased(key, value, 0)
}

/// Writes one key that ends with a lease.
pub fn put_leased(key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>, lease: i64) -> RequestOp {
    let put = PutRequest { key: key.into(), value: value.into(), lease };
    RequestOp { request: Some(Request::RequestPut(put)) }
}

/// Removes one key.
pub fn delete(key: impl Into<Vec<u8>>) -> RequestOp {
    RequestOp { request: Some(Request::RequestDeleteRange(DeleteRangeRequest { key: key.into() })) }
}

/// Holds while the last change of the key is the one of `revision`; 0: while the key is not there.
pub fn unchanged(key: impl Into<Vec<u8>>, revision: i64) -> Compare {
    compare(key, CompareTarget::Mod, TargetUnion::ModRevision(revision))
}

/// Holds while the key has this value.
pub fn holds(key: impl Into<Vec<u8>>, value: impl Into<Vec<u8>>) -> Compare {
    compare(key, CompareTarget::Value, TargetUnion::Value(value.into()))
}

fn compare(key: impl Into<Vec<u8>>, target: CompareTarget, with: TargetUnion) -> Compare {
    Compare {
        result: CompareResult::Equal.into(),
        target: target.into(),
        key: key.into(),
        target_union: Some(with),
    }
}

/// The key as a [`get`] found it.
pub fn found(answer: &ResponseOp) -> Cell {
    match &answer.response {
        Some(Response::ResponseRange(range)) => range.kvs.first().map(Cell::from).unwrap_or_default(),
        _ => Cell::default(),
    }
}

/// The end of the range of all keys that begin with `prefix`.
pub fn prefix_end(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return end;
        }
    }
    // Every key is larger than the empty prefix: etcd's sign for all that follow.
    vec![0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_ends_before_the_next_key_that_lacks_it() {
        assert_eq!(prefix_end(b"a/"), b"a0");
        assert_eq!(prefix_end(b"a\xff\xff"), b"b");
        assert_eq!(prefix_end(b"\xff"), [0]);
    }
}
