//! TLS 1.3 between those who take part: both show a certificate of the site's authority. Nothing
//! else is spoken, and no older version.

use crate::keys::{ENROLMENT_DNS, Keys, KeysError};
use crate::name::Identity;
use crate::text::one_line;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring as provider};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::version::TLS13;
use rustls::{
    AlertDescription, CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore,
    ServerConfig, SignatureScheme,
};
use std::sync::Arc;

fn crypto() -> Arc<CryptoProvider> {
    Arc::new(provider::default_provider())
}

fn fault(error: impl std::fmt::Display) -> KeysError {
    KeysError::Certificate(error.to_string())
}

fn roots(authority: &CertificateDer<'static>) -> Result<Arc<RootCertStore>, KeysError> {
    let mut roots = RootCertStore::empty();
    roots.add(authority.clone()).map_err(fault)?;
    Ok(Arc::new(roots))
}

/// What a fault of a handshake says to who runs a site, with the remedy.
pub fn in_words(error: &Error) -> String {
    use AlertDescription as Alert;
    use CertificateError as Fault;
    let words = match error {
        Error::InvalidCertificate(fault) => match fault {
            Fault::BadSignature | Fault::UnknownIssuer => {
                "its certificate is of another site's authority; use the keys of one site on both \
                 sides (--dir)"
            }
            Fault::Expired
            | Fault::ExpiredContext { .. }
            | Fault::NotValidYet
            | Fault::NotValidYetContext { .. } => {
                "its certificate is not good at this host's time; set this host's clock, or renew \
                 the certificate"
            }
            Fault::NotValidForName | Fault::NotValidForNameContext { .. } => {
                "another agent than this one answers there; put its address right: enrol it again, \
                 or edit agents.toml"
            }
            _ => return format!("its certificate is refused: {}", one_line(&error.to_string())),
        },
        Error::AlertReceived(Alert::CertificateExpired) => {
            "it finds our certificate not good at its time; set its host's clock, or renew our \
             certificate"
        }
        Error::AlertReceived(Alert::UnknownCA | Alert::DecryptError | Alert::BadCertificate) => {
            "it finds our certificate of another site's authority; use the keys of one site on \
             both sides (--dir)"
        }
        Error::AlertReceived(Alert::CertificateRequired) => "it wants a certificate; use --dir",
        error => return one_line(&error.to_string()),
    };
    words.to_owned()
}

/// Who takes connections: only of those with a certificate of the authority.
pub fn server(keys: &Keys) -> Result<Arc<ServerConfig>, KeysError> {
    let roots = roots(&keys.authority)?;
    let verifier = WebPkiClientVerifier::builder_with_provider(roots, crypto()).build();
    let config = ServerConfig::builder_with_provider(crypto())
        .with_protocol_versions(&[&TLS13])
        .map_err(fault)?
        .with_client_cert_verifier(verifier.map_err(fault)?)
        .with_single_cert(vec![keys.certificate.clone()], keys.key())
        .map_err(|error| unlike(keys, error))?;
    Ok(Arc::new(config))
}

/// The key and the certificate of a folder do not belong together.
fn unlike(keys: &Keys, error: Error) -> KeysError {
    match error {
        Error::InconsistentKeys(_) => KeysError::Unlike(keys.folder.clone()),
        error => fault(error),
    }
}

/// Who connects, with a certificate.
pub fn client(keys: &Keys) -> Result<Arc<ClientConfig>, KeysError> {
    let config = ClientConfig::builder_with_provider(crypto())
        .with_protocol_versions(&[&TLS13])
        .map_err(fault)?
        .with_root_certificates(roots(&keys.authority)?)
        .with_client_auth_cert(vec![keys.certificate.clone()], keys.key())
        .map_err(|error| unlike(keys, error))?;
    Ok(Arc::new(config))
}

/// Whom a connection is to: TLS checks that the other's certificate says so.
pub fn server_name(who: &Identity) -> Result<ServerName<'static>, KeysError> {
    ServerName::try_from(who.dns()).map_err(fault)
}

/// Who enrols others: takes connections of those who have no certificate yet.
pub fn enrolment_server(keys: &Keys) -> Result<Arc<ServerConfig>, KeysError> {
    let chain = vec![keys.certificate.clone(), keys.authority.clone()];
    let config = ServerConfig::builder_with_provider(crypto())
        .with_protocol_versions(&[&TLS13])
        .map_err(fault)?
        .with_no_client_auth()
        .with_single_cert(chain, keys.key())
        .map_err(fault)?;
    Ok(Arc::new(config))
}

/// Who is enrolled: knows the authority by its fingerprint, from the token.
pub fn enrolment_client(fingerprint: Fingerprint) -> Result<Arc<ClientConfig>, KeysError> {
    let config = ClientConfig::builder_with_provider(crypto())
        .with_protocol_versions(&[&TLS13])
        .map_err(fault)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Pinned { fingerprint }))
        .with_no_client_auth();
    Ok(Arc::new(config))
}

/// The name that who enrols others has.
pub fn enrolment_name() -> Result<ServerName<'static>, KeysError> {
    ServerName::try_from(ENROLMENT_DNS).map_err(fault)
}

/// SHA-256 of the authority's certificate.
pub type Fingerprint = [u8; 32];

/// The fingerprint of a certificate.
pub fn fingerprint(certificate: &CertificateDer<'_>) -> Fingerprint {
    let digest = ring::digest::digest(&ring::digest::SHA256, certificate);
    let mut fingerprint = [0; 32];
    fingerprint.copy_from_slice(digest.as_ref());
    fingerprint
}

/// Takes the authority of this fingerprint for the only one.
#[derive(Debug)]
struct Pinned {
    fingerprint: Fingerprint,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let pinned = |one: &&CertificateDer<'_>| fingerprint(one) == self.fingerprint;
        let authority = intermediates.iter().find(pinned).ok_or_else(|| {
            Error::General("the enrolment is not that of the token's authority".into())
        })?;
        let general = |error: KeysError| Error::General(error.to_string());
        let roots = roots(&authority.clone().into_owned()).map_err(general)?;
        let verifier = WebPkiServerVerifier::builder_with_provider(roots, crypto()).build();
        let verifier = verifier.map_err(|error| Error::General(error.to_string()))?;
        verifier.verify_server_cert(end_entity, &[], name, ocsp, now)
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("TLS 1.2 is not spoken".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = crypto().signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, &known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        crypto().signature_verification_algorithms.supported_schemes()
    }
}
