//! The key by which push services know this installation (RFC 8292). A browser subscribes with its public half; then no other server's
//! pushes reach that device.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::json;

use crate::domain::Timestamp;

/// For how long a token is good, in seconds; the RFC allows a day.
const GOOD_FOR: i64 = 12 * 60 * 60;

/// See the module.
pub struct VapidKey {
    pair: EcdsaKeyPair,
    random: SystemRandom,
}

/// The bytes are no key of P-256 in PKCS#8, or the system has no random numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is no key of the curve P-256 in the form PKCS#8")]
pub struct BadKey;

impl VapidKey {
    /// A new key, as it is stored (PKCS#8).
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn draw() -> Result<Vec<u8>, BadKey> {
        let drawn = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        drawn.map(|key| key.as_ref().to_vec()).map_err(|_| BadKey)
    }

    /// The key that was stored so.
    ///
    /// # Errors
    /// When it is none.
    pub fn from_stored(stored: &[u8]) -> Result<VapidKey, BadKey> {
        let random = SystemRandom::new();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, stored, &random);
        pair.map(|pair| VapidKey { pair, random }).map_err(|_| BadKey)
    }

    /// Its public half, as a browser takes it to subscribe: base64url.
    pub fn public(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.pair.public_key().as_ref())
    }

    /// The header `Authorization` for a push service at `origin`. `contact`: an address of the operator, where there is one.
    ///
    /// # Errors
    /// When the system has no random numbers.
    pub fn authorization(
        &self,
        origin: &str,
        contact: Option<&str>,
        now: Timestamp,
    ) -> Result<String, BadKey> {
        let mut claims = json!({ "aud": origin, "exp": now.0 / 1_000 + GOOD_FOR });
        if let Some(contact) = contact {
            claims["sub"] = contact.into();
        }
        let said = format!("{}.{}", part(r#"{"typ":"JWT","alg":"ES256"}"#), part(&claims.to_string()));
        let signature = self.pair.sign(&self.random, said.as_bytes()).map_err(|_| BadKey)?;
        Ok(format!("vapid t={said}.{}, k={}", URL_SAFE_NO_PAD.encode(signature), self.public()))
    }
}

/// A part of a token.
fn part(text: &str) -> String {
    URL_SAFE_NO_PAD.encode(text)
}

/// The key stays out of logs.
impl std::fmt::Debug for VapidKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("VapidKey(…)")
    }
}

#[cfg(test)]
mod tests {
    use ring::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
    use serde_json::Value;

    use super::*;

    /// The claims of a header `Authorization` whose token this key has signed.
    fn claims(header: &str) -> Value {
        let (token, key) =
            header.strip_prefix("vapid t=").and_then(|rest| rest.split_once(", k=")).expect("t and k");
        let (said, signature) = token.rsplit_once('.').expect("three parts");
        let bytes = |text: &str| URL_SAFE_NO_PAD.decode(text).expect("base64url");
        let key = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, bytes(key));
        key.verify(said.as_bytes(), &bytes(signature)).expect("signed by the key that it names");
        let (head, claims) = said.split_once('.').expect("a head and claims");
        let read = |text| serde_json::from_slice::<Value>(&bytes(text)).expect("JSON");
        assert_eq!(read(head), json!({"typ": "JWT", "alg": "ES256"}));
        read(claims)
    }

    /// Section 2.4 of RFC 8292.
    #[test]
    fn the_example_of_the_rfc_is_read_and_verified() {
        let example = "vapid t=eyJ0eXAiOiJKV1QiLCJhbGciOiJFUzI1NiJ9.eyJhdWQiOiJodHRwczovL3B1c2guZXhhbXBsZS5uZXQiLCJleHAiOjE0NTM1MjM3N\
            jgsInN1YiI6Im1haWx0bzpwdXNoQGV4YW1wbGUuY29tIn0.i3CYb7t4xfxCDquptFOepC9GAu_HLGkMlMuCGSK2rpiUfnK9ojFwDXb1JrErtmysazNjjvW2\
            L9OkSSHzvoD1oA, k=BA1Hxzyi1RUM1b5wjxsn7nGxAszw2u61m164i3MrAIxHF6YK5h4SDYic-dRuU_RCPCfA5aq9ojSwk5Y2EmClBPs";
        let expected = json!({"aud": "https://push.example.net", "exp": 1_453_523_768, "sub": "mailto:push@example.com"});
        assert_eq!(claims(example), expected);
    }

    #[test]
    fn a_token_is_made_out_for_one_push_service_and_half_a_day() {
        let key = VapidKey::from_stored(&VapidKey::draw().expect("random")).expect("a key");
        let now = Timestamp(1_795_309_323_000);
        let header = key.authorization("https://push.example.org", Some("https://chat.example.org"), now);
        let expected = json!({"aud": "https://push.example.org", "exp": 1_795_352_523, "sub": "https://chat.example.org"});
        assert_eq!(claims(&header.expect("signed")), expected);
        let header = key.authorization("https://push.example.org", None, now).expect("signed");
        assert!(claims(&header).get("sub").is_none());
    }

    #[test]
    fn a_stored_key_is_the_same_key() {
        let stored = VapidKey::draw().expect("random");
        let public = |stored| VapidKey::from_stored(stored).expect("a key").public();
        assert_eq!(public(&stored), public(&stored));
        assert_eq!(public(&stored).len(), 87);
        assert!(VapidKey::from_stored(&stored[1..]).is_err());
    }
}
