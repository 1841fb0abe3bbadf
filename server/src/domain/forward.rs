//! Forwarded messages: the person that wrote the text first. The server takes the name from the row that is forwarded, so nobody can put
//! words into the mouth of somebody else. Stored in the body; its form must stay stable.

use serde::Deserialize;
use serde_json::json;

use super::{Body, Content, Uid};

/// The field of the body. An edit takes it away: the text is then another person's.
pub(super) const FORWARDED_FROM: &str = "forwarded_from";

#[derive(Deserialize)]
struct Forwarded {
    forwarded_from: Option<u32>,
}

impl Body {
    /// The body of a message that forwards `message`: it names the author, also where that one is forwarded itself, and the same files.
    pub fn forwarding(self, message: &Content) -> Body {
        let stored: Option<Forwarded> = serde_json::from_str(message.body.as_json()).ok();
        let first = stored.and_then(|stored| stored.forwarded_from).map(Uid);
        let mut body: serde_json::Map<_, _> = serde_json::from_str(self.as_json()).unwrap_or_default();
        body.insert(FORWARDED_FROM.to_owned(), json!(first.unwrap_or(message.sender).0));
        Body::from_stored(serde_json::Value::Object(body).to_string()).with_files_of(&message.body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{Conversation, Kind, Timestamp};

    fn said(sender: u32, body: Body) -> Content {
        let target = Conversation::User(Uid(9));
        Content {
            kind: Kind::Message,
            sender: Uid(sender),
            target,
            client_id: None,
            body,
            sent_at: Timestamp(0),
        }
    }

    /// They lie in the tables and in exports.
    #[test]
    fn a_forwarded_message_names_the_first_author_whoever_forwards_it() {
        let text = || Body::text("hi", 9).expect("short");
        let once = text().forwarding(&said(1, text()));
        assert_eq!(once.as_json(), r#"{"forwarded_from":1,"text":"hi"}"#);
        let again = text().forwarding(&said(2, once.clone()));
        assert_eq!(again, once);
        // A text that looks like the field is none.
        let feigned = Body::text(r#""forwarded_from":7"#, 99).expect("short");
        assert_eq!(text().forwarding(&said(3, feigned)).as_json(), r#"{"forwarded_from":3,"text":"hi"}"#);
    }
}
