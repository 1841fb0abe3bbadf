//! The client's side of the protocol, without I/O: signed requests, and answers whose signatures are checked.

use crate::wire::proto;
use crate::wire::sign::{HEADER_PREFIX, Signer, content_md5};
use prost::Message as _;

/// The version of the protocol.
const API_VERSION: &str = "2015-12-31";

/// The instance, and the access key that a client uses.
#[derive(Clone)]
pub struct Credentials {
    /// The instance.
    pub instance: String,
    /// The id of the access key.
    pub access_key_id: String,
    /// Its secret.
    pub access_key_secret: String,
}

/// The secret stays out of logs.
impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Credentials({} of {})", self.access_key_id, self.instance)
    }
}

/// Why an answer is no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// The server refuses.
    #[error("{code}: {message}")]
    Refused {
        /// For programs.
        code: String,
        /// For people.
        message: String,
    },
    /// The answer was not made by somebody who has the secret, or not for this request, or was changed on its way.
    #[error("the answer's signature is invalid ({0}); check the address, and any proxy in between")]
    Untrusted(&'static str),
}

impl Credentials {
    /// The headers of a request for `operation` with this body. `date`: the time now, as ISO 8601 in UTC with milliseconds and `Z`.
    pub fn headers(&self, operation: &str, body: &[u8], date: &str) -> Vec<(&'static str, String)> {
        let mut headers = vec![
            ("x-ots-accesskeyid", self.access_key_id.clone()),
            ("x-ots-apiversion", API_VERSION.to_owned()),
            ("x-ots-contentmd5", content_md5(body)),
            ("x-ots-date", date.to_owned()),
            ("x-ots-instancename", self.instance.clone()),
        ];
        let signed: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let signature = Signer::v2(&self.access_key_secret).sign_request(&path(operation), &signed);
        headers.push(("x-ots-signature", signature));
        headers
    }

    /// Checks an answer to `operation`.
    ///
    /// # Errors
    /// When it is a refusal, or not to be trusted.
    pub fn check(
        &self,
        operation: &str,
        status: u16,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<(), AnswerError> {
        if !(200..300).contains(&status) {
            let error = proto::Error::decode(body);
            let (code, message) = match error {
                Ok(error) => (error.code, error.message),
                Err(_) => {
                    (format!("HTTP status {status}"), "it is not the address of a table server".to_owned())
                }
            };
            return Err(AnswerError::Refused { code, message });
        }
        let of = |name| headers.iter().find(|(other, _)| *other == name).map(|(_, value)| *value);
        if of("x-ots-contentmd5") != Some(&content_md5(body)) {
            return Err(AnswerError::Untrusted("the checksum of its body is wrong"));
        }
        let signed: Vec<(&str, &str)> =
            headers.iter().filter(|(name, _)| name.starts_with(HEADER_PREFIX)).copied().collect();
        let signature = Signer::v2(&self.access_key_secret).sign_answer(&path(operation), &signed);
        let expected = format!("OTS {}:{signature}", self.access_key_id);
        match of("authorization") {
            Some(found) if found == expected => Ok(()),
            Some(_) => Err(AnswerError::Untrusted("its signature is wrong")),
            None => Err(AnswerError::Untrusted("it has no signature")),
        }
    }
}

/// The path of an operation.
pub fn path(operation: &str) -> String {
    format!("/{operation}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credentials() -> Credentials {
        Credentials {
            instance: "testinst".to_owned(),
            access_key_id: "testid".to_owned(),
            access_key_secret: "testsecret".to_owned(),
        }
    }

    /// As the client in Python signs it.
    #[test]
    fn a_request_is_signed_as_others_do() {
        let headers = credentials().headers("ListTable", b"", "2026-11-22T01:02:03.000Z");
        let signature = headers.last().expect("the signature");
        assert_eq!(*signature, ("x-ots-signature", "bhFwuPHQ/I2zKtJf3Dq/ajZwMVE=".to_owned()));
        assert!(!format!("{:?}", credentials()).contains("testsecret"));
    }

    #[test]
    fn an_answer_counts_if_it_is_signed_for_this_request() {
        let signed = [
            ("x-ots-contentmd5", "1B2M2Y8AsgTpgAmY7PhCfg=="),
            ("x-ots-contenttype", "protocol buffer"),
            ("x-ots-date", "2026-11-22T01:02:03.000004Z"),
            ("x-ots-requestid", "0005f0c0-0000-0000-0000-000000000001"),
        ];
        let check = |operation, signature: &str, body: &[u8]| {
            let authorization = format!("OTS testid:{signature}");
            let mut headers = signed.to_vec();
            headers.extend([("authorization", authorization.as_str()), ("content-length", "0")]);
            credentials().check(operation, 200, &headers, body)
        };
        let good = "J/p++FTSlKZnyMAwzQKujzgNPOU=";
        assert_eq!(check("ListTable", good, b""), Ok(()));
        for (operation, signature, body) in [
            ("ListTable", good, &b"changed"[..]),
            ("DescribeTable", good, b""),
            ("ListTable", "6gda5pixtOXnYrHa8NbUuXIOfug=", b""),
        ] {
            let refused = check(operation, signature, body);
            assert!(matches!(refused, Err(AnswerError::Untrusted(_))), "{refused:?}");
        }
        assert!(matches!(
            credentials().check("ListTable", 200, &signed, b""),
            Err(AnswerError::Untrusted(_))
        ));
    }

    #[test]
    fn a_refusal_is_told_with_its_code() {
        let error = proto::Error {
            code: "OTSObjectNotExist".to_owned(),
            message: "Requested table does not exist.".to_owned(),
        };
        let refused = credentials().check("GetRow", 404, &[], &error.encode_to_vec()).expect_err("refused");
        assert_eq!(refused.to_string(), "OTSObjectNotExist: Requested table does not exist.");
        let other = credentials().check("GetRow", 502, &[], b"<html>").expect_err("refused");
        assert_eq!(other.to_string(), "HTTP status 502: it is not the address of a table server");
    }
}
