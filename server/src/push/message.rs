//! The body of a push: encrypted for one device, as RFC 8291 says ("aes128gcm" of RFC 8188, one record). The push service cannot read it.

use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::agreement::{ECDH_P256, EphemeralPrivateKey, UnparsedPublicKey, agree_ephemeral};
use ring::error::Unspecified;
use ring::hmac::{HMAC_SHA256, Key, sign};
use ring::rand::{SecureRandom as _, SystemRandom};

/// Bytes of a record with its tag, of which a body has one.
const RECORD: u32 = 4_096;
/// Stands behind the text of the last record.
const LAST: u8 = 2;

/// The keys that a device has made for its subscription: all that is needed to write to it.
#[derive(Clone, PartialEq, Eq)]
pub struct DeviceKeys {
    public: [u8; 65],
    auth: [u8; 16],
}

impl DeviceKeys {
    /// The keys `p256dh`, a point of P-256 in its long form, and `auth`. `None`: they are none.
    pub fn new(p256dh: &[u8], auth: &[u8]) -> Option<DeviceKeys> {
        let keys = DeviceKeys { public: p256dh.try_into().ok()?, auth: auth.try_into().ok()? };
        // Tells a point of the curve from other 65 bytes.
        keys.encrypt(b"").ok().map(|_| keys)
    }

    /// `p256dh`: 65 bytes.
    pub fn public(&self) -> &[u8] {
        &self.public
    }

    /// `auth`: 16 bytes.
    pub fn auth(&self) -> &[u8] {
        &self.auth
    }

    /// The body of a push that says `text`, which has at most 3,993 bytes.
    ///
    /// # Errors
    /// When the system has no random numbers, or the public key is no point of the curve.
    pub fn encrypt(&self, text: &[u8]) -> Result<Vec<u8>, Unspecified> {
        let random = SystemRandom::new();
        let own = EphemeralPrivateKey::generate(&ECDH_P256, &random)?;
        let own_public = own.compute_public_key()?;
        let mut salt = [0; 16];
        random.fill(&mut salt)?;
        let theirs = UnparsedPublicKey::new(&ECDH_P256, &self.public);
        agree_ephemeral(own, &theirs, |shared| self.seal(shared, own_public.as_ref(), &salt, text))?
    }

    /// The body, where `shared` is what the two private keys have in common.
    fn seal(
        &self,
        shared: &[u8],
        own_public: &[u8],
        salt: &[u8; 16],
        text: &[u8],
    ) -> Result<Vec<u8>, Unspecified> {
        let (key, nonce) = self.key(shared, own_public, salt)?;
        let mut body = salt.to_vec();
        body.extend(RECORD.to_be_bytes());
        body.push(u8::try_from(own_public.len()).map_err(|_| Unspecified)?);
        body.extend(own_public);
        let mut record = [text, &[LAST]].concat();
        key.seal_in_place_append_tag(nonce, Aad::empty(), &mut record)?;
        body.extend(record);
        Ok(body)
    }

    /// The key and the nonce of the one record.
    fn key(
        &self,
        shared: &[u8],
        own_public: &[u8],
        salt: &[u8],
    ) -> Result<(LessSafeKey, Nonce), Unspecified> {
        let info = [b"WebPush: info\0", &self.public[..], own_public].concat();
        let material = derive(&self.auth, shared, &info);
        let key = derive(salt, &material, b"Content-Encoding: aes128gcm\0");
        let nonce = derive(salt, &material, b"Content-Encoding: nonce\0");
        let key = LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key[..16])?);
        Ok((key, Nonce::try_assume_unique_for_key(&nonce[..12])?))
    }
}

/// Keys stay out of logs.
impl std::fmt::Debug for DeviceKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("DeviceKeys(…)")
    }
}

/// The first 32 bytes of HKDF with SHA-256 (RFC 5869), which are one block of it.
fn derive(salt: &[u8], material: &[u8], info: &[u8]) -> [u8; 32] {
    let hmac = |key: &[u8], text: &[u8]| -> [u8; 32] {
        sign(&Key::new(HMAC_SHA256, key), text).as_ref().try_into().expect("SHA-256 has 32 bytes")
    };
    hmac(&hmac(salt, material), &[info, &[1]].concat())
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;

    use super::*;

    fn bytes(text: &str) -> Vec<u8> {
        URL_SAFE_NO_PAD.decode(text).expect("base64url")
    }

    /// Section 5 and appendix A of RFC 8291.
    #[test]
    fn the_example_of_the_rfc_comes_out_as_it_stands_there() {
        let keys = DeviceKeys::new(
            &bytes("BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"),
            &bytes("BTBZMqHH6r4Tts7J_aSIgg"),
        );
        let own =
            bytes("BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8");
        let shared = bytes("kyrL1jIIOHEzg3sM2ZWRHDRB62YACZhhSlknJ672kSs");
        let salt = bytes("DGv6ra1nlYgDCS1FRnbzlw").try_into().expect("16 bytes");
        let text = b"When I grow up, I want to be a watermelon";
        let body = keys.expect("keys").seal(&shared, &own, &salt, text).expect("sealed");
        assert_eq!(
            URL_SAFE_NO_PAD.encode(body),
            "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_\
             yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN"
        );
    }

    #[test]
    fn the_device_alone_reads_what_is_written_to_it() {
        let random = SystemRandom::new();
        let device = EphemeralPrivateKey::generate(&ECDH_P256, &random).expect("random");
        let public = device.compute_public_key().expect("a key");
        let keys = DeviceKeys::new(public.as_ref(), &[7; 16]).expect("keys");
        let body = keys.encrypt(b"{\"seq\":42}").expect("random");
        let (salt, own) = (&body[..16], &body[21..86]);
        let opened = agree_ephemeral(device, &UnparsedPublicKey::new(&ECDH_P256, own), |shared| {
            let (key, nonce) = keys.key(shared, own, salt)?;
            let mut record = body[86..].to_vec();
            key.open_in_place(nonce, Aad::empty(), &mut record).map(|text| text.to_vec())
        });
        assert_eq!(opened.expect("agreed").expect("opened"), b"{\"seq\":42}\x02");
        assert_ne!(keys.encrypt(b"{\"seq\":42}").expect("random"), body, "no key is used twice");
    }

    #[test]
    fn what_is_no_point_of_the_curve_is_no_key() {
        let point =
            bytes("BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4");
        let mut beside = point.clone();
        beside[64] ^= 1;
        for (public, auth) in [
            (&beside[..], &[1; 16][..]),
            (&point[..64], &[1; 16]),
            (&point, &[1; 15]),
            (&[4; 65], &[1; 16]),
            (&[], &[]),
        ] {
            assert_eq!(DeviceKeys::new(public, auth), None);
        }
    }
}
