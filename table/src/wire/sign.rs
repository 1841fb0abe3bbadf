//! Signatures of requests and answers, in both versions of the scheme.
//!
//! A [`Signer`] is made from the secret of an access key, for one request: version 2 takes the secret as it is, version 4 derives a key
//! from it for one day and one region. It judges the request and signs the answer.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha1::Sha1;
use sha2::Sha256;

/// Every header that counts begins so; the names are in lower case.
pub const HEADER_PREFIX: &str = "x-ots-";

/// Signs with one secret.
pub struct Signer {
    /// The secret, or the text of the key that version 4 derives.
    key: Vec<u8>,
    version: SignatureVersion,
}

/// Which scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SignatureVersion {
    V2,
    V4,
}

impl Signer {
    /// By version 2.
    pub fn v2(secret: &str) -> Signer {
        Signer { key: secret.as_bytes().to_vec(), version: SignatureVersion::V2 }
    }

    /// By version 4: `date` is that of `x-ots-signdate` (`YYYYMMDD`), `region` that of `x-ots-signregion`.
    pub fn v4(secret: &str, date: &str, region: &str) -> Signer {
        let secret = format!("aliyun_v4{secret}");
        let key = [date, region, "ots", "aliyun_v4_request"]
            .iter()
            .fold(secret.into_bytes(), |key, part| hmac::<Hmac<Sha256>>(&key, part.as_bytes()));
        Signer { key: STANDARD.encode(key).into_bytes(), version: SignatureVersion::V4 }
    }

    /// The signature of a request to `path` with these headers: all that begin with [`HEADER_PREFIX`] but the signature.
    pub fn sign_request(&self, path: &str, headers: &[(&str, &str)]) -> String {
        let text = self.request_text(path, headers);
        STANDARD.encode(match self.version {
            SignatureVersion::V2 => hmac::<Hmac<Sha1>>(&self.key, text.as_bytes()),
            SignatureVersion::V4 => hmac::<Hmac<Sha256>>(&self.key, text.as_bytes()),
        })
    }

    /// Whether `signature` is that of the request. Takes as long for a wrong one, wherever it differs.
    pub fn verifies_request(&self, path: &str, headers: &[(&str, &str)], signature: &str) -> bool {
        let Ok(signature) = STANDARD.decode(signature) else { return false };
        let text = self.request_text(path, headers);
        match self.version {
            SignatureVersion::V2 => verifies::<Hmac<Sha1>>(&self.key, text.as_bytes(), &signature),
            SignatureVersion::V4 => verifies::<Hmac<Sha256>>(&self.key, text.as_bytes(), &signature),
        }
    }

    /// The signature of the answer to a request to `path`: of all its headers that begin with [`HEADER_PREFIX`].
    pub fn sign_answer(&self, path: &str, headers: &[(&str, &str)]) -> String {
        let mut text = lines(headers);
        text.push_str(path);
        STANDARD.encode(hmac::<Hmac<Sha1>>(&self.key, text.as_bytes()))
    }

    /// The text to sign. The line after the method would have the query, which no request has.
    fn request_text(&self, path: &str, headers: &[(&str, &str)]) -> String {
        let service = match self.version {
            SignatureVersion::V2 => "",
            SignatureVersion::V4 => "ots",
        };
        format!("{path}\nPOST\n\n{}{service}", lines(headers))
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer").field("version", &self.version).finish_non_exhaustive()
    }
}

/// The MD5 of a body as its header has it.
pub fn content_md5(body: &[u8]) -> String {
    STANDARD.encode(md5::compute(body).0)
}

/// One line for each header, sorted.
fn lines(headers: &[(&str, &str)]) -> String {
    let mut lines: Vec<String> =
        headers.iter().map(|(name, value)| format!("{name}:{}\n", value.trim())).collect();
    lines.sort_unstable();
    lines.concat()
}

fn keyed<M: Mac + KeyInit>(key: &[u8], text: &[u8]) -> M {
    <M as KeyInit>::new_from_slice(key).expect("HMAC takes keys of any length").chain_update(text)
}

fn hmac<M: Mac + KeyInit>(key: &[u8], text: &[u8]) -> Vec<u8> {
    keyed::<M>(key, text).finalize().into_bytes().to_vec()
}

fn verifies<M: Mac + KeyInit>(key: &[u8], text: &[u8], signature: &[u8]) -> bool {
    keyed::<M>(key, text).verify_slice(signature).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "testsecret";
    const EMPTY_MD5: &str = "1B2M2Y8AsgTpgAmY7PhCfg==";

    fn request() -> Vec<(&'static str, &'static str)> {
        vec![
            ("x-ots-date", "2026-11-22T01:02:03.000Z"),
            ("x-ots-apiversion", "2015-12-31"),
            ("x-ots-accesskeyid", "testid"),
            ("x-ots-instancename", "testinst"),
            ("x-ots-contentmd5", EMPTY_MD5),
        ]
    }

    fn request_v4() -> Vec<(&'static str, &'static str)> {
        let mut headers = request();
        headers.extend([("x-ots-signdate", "20261122"), ("x-ots-signregion", "cn-local")]);
        headers
    }

    fn v4() -> Signer {
        Signer::v4(SECRET, "20261122", "cn-local")
    }

    #[test]
    fn the_md5_of_nothing_is_known() {
        assert_eq!(content_md5(b""), EMPTY_MD5);
    }

    #[test]
    fn requests_are_signed_as_an_sdk_signs_them() {
        assert_eq!(Signer::v2(SECRET).sign_request("/ListTable", &request()), "bhFwuPHQ/I2zKtJf3Dq/ajZwMVE=");
        assert_eq!(
            v4().sign_request("/ListTable", &request_v4()),
            "cbpISTMau5qOknpHFNmuKpAcwL80zZFMFVpFLppNQsI="
        );
        assert_eq!(v4().key, b"6gY7/3frgfiMWLphL/31jCOg/SpxKfJZcrjzDMLy4pg=");
    }

    #[test]
    fn answers_are_signed_as_an_sdk_expects_them() {
        let answer = [
            ("x-ots-contentmd5", EMPTY_MD5),
            ("x-ots-contenttype", "protocol buffer"),
            ("x-ots-date", "2026-11-22T01:02:03.000004Z"),
            ("x-ots-requestid", "0005f0c0-0000-0000-0000-000000000001"),
        ];
        assert_eq!(Signer::v2(SECRET).sign_answer("/ListTable", &answer), "J/p++FTSlKZnyMAwzQKujzgNPOU=");
        assert_eq!(v4().sign_answer("/ListTable", &answer), "6gda5pixtOXnYrHa8NbUuXIOfug=");
    }

    #[test]
    fn a_signature_holds_for_its_own_request_alone() {
        for (signer, headers) in [(Signer::v2(SECRET), request()), (v4(), request_v4())] {
            let signature = signer.sign_request("/ListTable", &headers);
            assert!(signer.verifies_request("/ListTable", &headers, &signature));
            assert!(!signer.verifies_request("/GetRow", &headers, &signature));
            for at in 0..headers.len() {
                let mut other = headers.clone();
                other[at].1 = "other";
                assert!(!signer.verifies_request("/ListTable", &other, &signature), "{}", headers[at].0);
            }
            assert!(!Signer::v2("another").verifies_request("/ListTable", &headers, &signature));
            for wrong in ["", "=", "not base64", &signature[1..], &signature[4..]] {
                assert!(!signer.verifies_request("/ListTable", &headers, wrong), "{wrong}");
            }
        }
    }

    #[test]
    fn a_secret_is_never_shown() {
        assert!(!format!("{:?}", Signer::v2(SECRET)).contains(SECRET));
    }
}
