//! Consent of the receiver, on the data connection itself: the sender shows that it holds the
//! token which the receiver gave out for this connection, the receiver answers that it knows it.
//! Nothing else is sent before. A token is good for one connection; only its number is ever sent
//! in the clear, so who listens cannot use it.

use ring::hmac;
use ring::rand::SecureRandom;
use serde::{Deserialize, Serialize};
use std::fmt;

/// First bytes of a data connection: 8 bytes of protocol, the token's number, proof of the key.
pub const REQUEST_BYTES: usize = 8 + ID_BYTES + PROOF_BYTES;
/// First bytes that come back: proof of the key.
pub const ANSWER_BYTES: usize = PROOF_BYTES;

const PROTOCOL: &[u8; 8] = b"CLRLANE1";
const ID_BYTES: usize = 16;
const KEY_BYTES: usize = 32;
const PROOF_BYTES: usize = 32;

/// The number of a token.
pub type TokenId = [u8; ID_BYTES];

/// Leave to send on one connection, made by the receiver.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Token {
    id: TokenId,
    key: [u8; KEY_BYTES],
}

/// The machine has no random numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the machine has no random numbers for a token")]
pub struct NoRandomness;

impl Token {
    /// A new one.
    pub fn new(random: &dyn SecureRandom) -> Result<Self, NoRandomness> {
        let (mut id, mut key) = ([0; ID_BYTES], [0; KEY_BYTES]);
        random.fill(&mut id).map_err(|_| NoRandomness)?;
        random.fill(&mut key).map_err(|_| NoRandomness)?;
        Ok(Token { id, key })
    }

    /// Its number.
    pub fn id(&self) -> TokenId {
        self.id
    }

    fn proof(&self, of: &[u8]) -> hmac::Tag {
        hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &self.key), &self.message(of))
    }

    fn is_proof(&self, of: &[u8], proof: &[u8]) -> bool {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &self.key);
        hmac::verify(&key, &self.message(of), proof).is_ok()
    }

    fn message(&self, of: &[u8]) -> Vec<u8> {
        [of, &self.id].concat()
    }

    /// What the sender sends first.
    pub fn request(&self) -> [u8; REQUEST_BYTES] {
        let mut bytes = [0; REQUEST_BYTES];
        bytes[..8].copy_from_slice(PROTOCOL);
        bytes[8..8 + ID_BYTES].copy_from_slice(&self.id);
        bytes[8 + ID_BYTES..].copy_from_slice(self.proof(b"send").as_ref());
        bytes
    }

    /// Whether a request shows the key; in constant time.
    pub fn allows(&self, request: &Request) -> bool {
        request.id == self.id && self.is_proof(b"send", &request.proof)
    }

    /// What the receiver answers.
    pub fn answer(&self) -> [u8; ANSWER_BYTES] {
        let mut bytes = [0; ANSWER_BYTES];
        bytes.copy_from_slice(self.proof(b"accept").as_ref());
        bytes
    }

    /// Whether an answer shows the key; in constant time.
    pub fn is_accepted(&self, answer: &[u8; ANSWER_BYTES]) -> bool {
        self.is_proof(b"accept", answer)
    }
}

/// What a sender showed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// The number of its token.
    pub id: TokenId,
    proof: [u8; PROOF_BYTES],
}

impl Request {
    /// Nothing if these are no first bytes of a data connection.
    pub fn of_bytes(bytes: &[u8; REQUEST_BYTES]) -> Option<Self> {
        let rest = bytes.strip_prefix(PROTOCOL)?;
        let (id, proof) = rest.split_at(ID_BYTES);
        Some(Request { id: id.try_into().ok()?, proof: proof.try_into().ok()? })
    }
}

/// Secrets are not shown.
impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Token").finish_non_exhaustive()
    }
}

impl From<Token> for String {
    fn from(token: Token) -> String {
        crate::text::to_text(&[token.id.as_slice(), &token.key].concat())
    }
}

impl TryFrom<String> for Token {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        let wrong = "is no token of a connection";
        let bytes = crate::text::of_text(&text).ok_or(wrong)?;
        let (id, key) = bytes.split_at_checked(ID_BYTES).ok_or(wrong)?;
        Ok(Token { id: id.try_into().map_err(|_| wrong)?, key: key.try_into().map_err(|_| wrong)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::rand::SystemRandom;

    #[test]
    fn who_holds_the_token_is_let_in_and_knows_who_let_it_in() {
        let [ours, other] = [(); 2].map(|()| Token::new(&SystemRandom::new()).unwrap());
        let request = Request::of_bytes(&ours.request()).unwrap();
        assert_eq!(request.id, ours.id());
        assert!(ours.allows(&request) && !other.allows(&request));
        assert!(ours.is_accepted(&ours.answer()) && !ours.is_accepted(&other.answer()));
        // The request itself is no answer, so who reflects it is not taken for the receiver.
        let reflected: [u8; ANSWER_BYTES] = ours.request()[24..].try_into().unwrap();
        assert!(!ours.is_accepted(&reflected));
        let mut changed = ours.request();
        changed[REQUEST_BYTES - 1] ^= 1;
        assert!(!ours.allows(&Request::of_bytes(&changed).unwrap()));
        changed[0] ^= 1;
        assert_eq!(Request::of_bytes(&changed), None);
    }

    #[test]
    fn a_token_travels_as_text_and_is_not_shown() {
        let token = Token::new(&SystemRandom::new()).unwrap();
        let text = String::from(token.clone());
        assert_eq!(Token::try_from(text.clone()), Ok(token.clone()));
        assert!(Token::try_from(text[1..].to_owned()).is_err());
        assert!(Token::try_from("é".to_owned()).is_err());
        assert_eq!(format!("{token:?}"), "Token { .. }");
    }
}
