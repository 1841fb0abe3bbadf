//! Access keys in an empty [`Directory`], on each database.

use crate::domain::{Timestamp, Uid};
use crate::store::{AccessKey, Directory};

fn key(id: &str, inbox: Option<Uid>) -> AccessKey {
    AccessKey {
        id: id.to_owned(),
        secret: format!("the secret of {id}"),
        instance: "shop".to_owned(),
        may_write: inbox.is_none(),
        inbox,
        created_at: Timestamp(1_700_000_000_123),
        sign_outs: 0,
    }
}

/// Runs all of it.
pub async fn run(keys: &Directory) {
    assert_eq!(keys.access_key("AK2").await, Ok(None));
    let all = [key("AK1", None), key("AK2", Some(Uid(u32::MAX))), key("AK3", Some(Uid(7)))];
    for key in all.iter().rev() {
        keys.put_access_key(key.clone()).await.expect("kept");
    }
    for key in &all {
        assert_eq!(keys.access_key(&key.id).await, Ok(Some(key.clone())));
    }
    assert_eq!(keys.access_key("ak2").await, Ok(None), "ids are compared letter by letter");
    assert_eq!(keys.access_keys("", 2).await, Ok(all[..2].to_vec()));
    assert_eq!(keys.access_keys("AK2", 2).await, Ok(all[2..].to_vec()));
    for id in ["AK3", "AK3", "nobody's"] {
        keys.sign_out(id).await.expect("counted");
    }
    assert_eq!(keys.access_keys("AK2", 2).await, Ok(vec![AccessKey { sign_outs: 2, ..all[2].clone() }]));
    assert_eq!(keys.access_key("AK1").await, Ok(Some(all[0].clone())));
    assert_eq!(keys.remove_access_key("AK2").await, Ok(true));
    assert_eq!(keys.remove_access_key("AK2").await, Ok(false));
    assert_eq!(keys.access_key("AK2").await, Ok(None));
    assert_eq!(keys.access_keys("", 10).await.expect("listed").len(), 2);
}
