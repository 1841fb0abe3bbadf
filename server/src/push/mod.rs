//! Web Push without state: the endpoint and the keys of a subscription, the encrypted body (RFC 8291), the token of this installation
//! (RFC 8292), and the connection that takes a push to the push service of a browser (RFC 8030).
//!
//! Called by `app::push`, which decides who gets a push and when.

mod address;
mod endpoint;
mod message;
mod service;
mod vapid;

pub use address::is_public;
pub use endpoint::{BadEndpoint, Endpoint, MOST_ENDPOINT_BYTES};
pub use message::DeviceKeys;
pub use service::{PushAnswer, PushError, PushOptions, PushServices};
pub use vapid::{BadKey, VapidKey};
