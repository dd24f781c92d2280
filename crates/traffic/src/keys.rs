//! Keys and certificates of one who takes part: a folder with the private certificate authority of
//! the site, an own certificate that says who this is, and its key, which never leaves the host.

use crate::name::{Identity, Name, Role};
use crate::small_file::{SmallFile, SmallFileError, must_be_trusted_folder};
use clearlane_lab::{Aside, Unfinished};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PublicKeyData, SignatureAlgorithm,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use time::{Duration, OffsetDateTime};

/// How long the authority is good for, and what it signs.
const AUTHORITY_DAYS: i64 = 3650;
const CERTIFICATE_DAYS: i64 = 365;
/// What certificates of controllers are known by to who has a token of theirs and no certificate.
pub const ENROLMENT_DNS: &str = "enrolment.clearlane.internal";

const CA_FILE: &str = "ca.pem";
const CA_KEY_FILE: &str = "ca-key.pem";
const CERT_FILE: &str = "cert.pem";
const KEY_FILE: &str = "key.pem";
/// Most bytes of a file of keys.
const BYTES_MAX: u64 = 64 << 10;

/// Why keys cannot be made or read.
#[derive(Debug, thiserror::Error)]
pub enum KeysError {
    /// A file cannot be read or written.
    #[error("{}: {problem}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong, and a remedy.
        problem: String,
    },
    /// The key and the certificate in a folder are not of each other.
    #[error(
        "{}: its key.pem is not that of its cert.pem; make both anew: `clearlane traffic init \
         --renew` for a controller, `join --force` for others",
        .0.display()
    )]
    Unlike(PathBuf),
    /// There is a folder already.
    #[error("{} holds keys already; use them, or choose another folder with --dir", .0.display())]
    Taken(PathBuf),
    /// Cryptography failed.
    #[error("cannot make a certificate: {0}")]
    Certificate(String),
}

impl From<rcgen::Error> for KeysError {
    fn from(error: rcgen::Error) -> Self {
        KeysError::Certificate(error.to_string())
    }
}

/// Who this is, with what proves it.
pub struct Keys {
    /// The folder.
    pub folder: PathBuf,
    /// Who this is.
    pub identity: Identity,
    /// The authority's certificate.
    pub authority: CertificateDer<'static>,
    pub(crate) certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

/// A public key on the curve P-256: a point, uncompressed (SEC 1, 2.3.3).
pub struct PublicKey(Vec<u8>);

impl PublicKey {
    /// `None` if these bytes have not the length and form of such a point.
    pub fn of_bytes(bytes: Vec<u8>) -> Option<Self> {
        (bytes.len() == 65 && bytes[0] == 4).then_some(PublicKey(bytes))
    }
}

impl PublicKeyData for PublicKey {
    fn der_bytes(&self) -> &[u8] {
        &self.0
    }

    fn algorithm(&self) -> &'static SignatureAlgorithm {
        &PKCS_ECDSA_P256_SHA256
    }
}

/// The site's certificate authority, which the controller has.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    certificate: CertificateDer<'static>,
}

impl Authority {
    /// Makes an authority and a controller's keys in a folder, which must hold none.
    pub fn init(folder: &Path, name: Name, unfinished: &Unfinished) -> Result<Self, KeysError> {
        if folder.join(CA_FILE).exists() || folder.join(CERT_FILE).exists() {
            return Err(KeysError::Taken(folder.to_owned()));
        }
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let params = authority_params()?;
        let certificate = params.self_signed(&key)?;
        let own = [(CA_FILE, certificate.pem(), 0o644), (CA_KEY_FILE, key.serialize_pem(), 0o600)];
        let der = certificate.der().clone();
        let authority = Authority { issuer: Issuer::new(params, key), certificate: der };
        let controllers = authority.of_controller(name)?;
        put(folder, own.into_iter().chain(controllers), Replace::Nothing, unfinished)?;
        Ok(authority)
    }

    /// Makes a new key and certificate for the controller whose folder this is.
    pub fn renew(folder: &Path, unfinished: &Unfinished) -> Result<Name, KeysError> {
        let authority = Authority::read(folder)?;
        let name = Keys::read(folder)?.identity.name;
        put(folder, authority.of_controller(name.clone())?, Replace::Keys, unfinished)?;
        Ok(name)
    }

    /// The files of a controller.
    fn of_controller(&self, name: Name) -> Result<[KeyFile; 2], KeysError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let signed = self.signed(&Identity { name, role: Role::Controller }, &key)?;
        Ok([(CERT_FILE, pem(&signed), 0o644), (KEY_FILE, key.serialize_pem(), 0o600)])
    }

    /// The authority in a folder that `init` made.
    pub fn read(folder: &Path) -> Result<Self, KeysError> {
        must_be_trusted(folder)?;
        let path = folder.join(CA_KEY_FILE);
        let fault = |problem: String| KeysError::File { path: path.clone(), problem };
        let text = key_text(&path).map_err(|error| match error.is_not_there() {
            true => fault(
                "there is no such key: only the folder that `clearlane traffic init` made signs \
                 certificates"
                    .into(),
            ),
            false => fault(error.to_string()),
        })?;
        let key = KeyPair::from_pem(&text).map_err(|error| fault(format!("no key: {error}")))?;
        let certificate = certificate(folder, CA_FILE)?;
        Ok(Authority { issuer: Issuer::new(authority_params()?, key), certificate })
    }

    /// The authority's certificate.
    pub fn certificate(&self) -> &CertificateDer<'static> {
        &self.certificate
    }

    /// A certificate for a public key, which says who has the key to it.
    pub fn signed(
        &self,
        identity: &Identity,
        key: &impl PublicKeyData,
    ) -> Result<CertificateDer<'static>, KeysError> {
        let mut names = vec![identity.dns()];
        if identity.role == Role::Controller {
            names.push(ENROLMENT_DNS.into());
        }
        let mut params = CertificateParams::new(names)?;
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, identity.to_string());
        (params.not_before, params.not_after) = span(CERTIFICATE_DAYS);
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages =
            vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        Ok(params.signed_by(key, &self.issuer)?.der().clone())
    }
}

/// A key that was made here, for which a certificate is asked for.
pub struct Candidate {
    key: KeyPair,
}

impl Candidate {
    /// Makes a key.
    pub fn new() -> Result<Self, KeysError> {
        Ok(Candidate { key: KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)? })
    }

    /// The key, for who signs in the same process.
    pub(crate) fn key(&self) -> &KeyPair {
        &self.key
    }

    /// Its public half.
    pub fn public(&self) -> Vec<u8> {
        self.key.public_key_raw().to_vec()
    }

    /// Puts it into a folder with the certificate that came for it.
    pub fn store(
        &self,
        folder: &Path,
        certificate: &CertificateDer<'_>,
        authority: &CertificateDer<'_>,
        replace: Replace,
        unfinished: &Unfinished,
    ) -> Result<(), KeysError> {
        must_be_free(folder, replace)?;
        let files = [
            (CA_FILE, pem(authority), 0o644),
            (KEY_FILE, self.key.serialize_pem(), 0o600),
            (CERT_FILE, pem(certificate), 0o644),
        ];
        put(folder, files, replace, unfinished)
    }
}

impl Keys {
    /// Reads a folder that `init` or an enrolment made.
    pub fn read(folder: &Path) -> Result<Self, KeysError> {
        let fault =
            |file: &str, problem: String| KeysError::File { path: folder.join(file), problem };
        must_be_trusted(folder)?;
        let authority = certificate(folder, CA_FILE)?;
        let certificate = certificate(folder, CERT_FILE)?;
        let identity = whose(&certificate)
            .ok_or_else(|| fault(CERT_FILE, "is no certificate of clearlane traffic".into()))?;
        let text = key_text(&folder.join(KEY_FILE));
        let text = text.map_err(|error| fault(KEY_FILE, error.to_string()))?;
        let key = PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(|_| {
            let problem = "holds no whole key; copy the file again, or join anew with --force";
            fault(KEY_FILE, problem.into())
        })?;
        Ok(Keys { folder: folder.to_owned(), identity, authority, certificate, key })
    }

    /// Whether the certificate is good no longer than this, or not at all.
    pub fn ends_within(&self, days: i64) -> bool {
        let then = OffsetDateTime::now_utc() + Duration::days(days);
        let then = std::time::Duration::from_secs(then.unix_timestamp().max(0) as u64);
        let then = UnixTime::since_unix_epoch(then);
        let anchors = webpki::anchor_from_trusted_cert(&self.authority).map(|anchor| [anchor]);
        let Ok(anchors) = anchors else { return true };
        let Ok(own) = webpki::EndEntityCert::try_from(&self.certificate) else { return true };
        let all = webpki::ALL_VERIFICATION_ALGS;
        let usage = webpki::KeyUsage::client_auth();
        own.verify_for_usage(all, &anchors, &[], then, usage, None, None).is_err()
    }

    /// The private key.
    pub(crate) fn key(&self) -> PrivateKeyDer<'static> {
        self.key.clone_key()
    }
}

/// What keys may be put in place of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Replace {
    /// Of nothing: the folder has none.
    Nothing,
    /// Of keys that are there; not of an authority's, whose certificates would be worth nothing.
    Keys,
}

/// Fails if keys may not be put into a folder: before a token is used up for it.
pub fn must_be_free(folder: &Path, replace: Replace) -> Result<(), KeysError> {
    must_be_trusted(folder)?;
    let is_authority = folder.join(CA_KEY_FILE).exists();
    match folder.join(CERT_FILE).exists() && replace == Replace::Nothing || is_authority {
        true => Err(KeysError::Taken(folder.to_owned())),
        false => Ok(()),
    }
}

/// Fails if anybody but root and the current user may replace the keys in a folder.
fn must_be_trusted(folder: &Path) -> Result<(), KeysError> {
    match must_be_trusted_folder(folder) {
        // A missing folder is no fault here: missing files are told one by one.
        Err(error) if error.is_not_there() => Ok(()),
        trusted => trusted.map_err(|error| KeysError::File {
            path: folder.to_owned(),
            problem: error.to_string(),
        }),
    }
}

/// The text of a key. Fails if anybody but its owner may read it.
fn key_text(path: &Path) -> Result<String, SmallFileError> {
    SmallFile::open(path, BYTES_MAX)?.trusted()?.private()?.text()
}

/// The holder of a certificate, as it says; `None` if the certificate is none of ours. Its
/// signature is checked elsewhere.
pub fn whose(certificate: &CertificateDer<'_>) -> Option<Identity> {
    let entity = webpki::EndEntityCert::try_from(certificate).ok()?;
    entity.valid_dns_names().find_map(Identity::of_dns)
}

fn authority_params() -> Result<CertificateParams, KeysError> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "clearlane traffic");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    (params.not_before, params.not_after) = span(AUTHORITY_DAYS);
    Ok(params)
}

/// From yesterday on, because clocks differ.
fn span(days: i64) -> (OffsetDateTime, OffsetDateTime) {
    let now = OffsetDateTime::now_utc();
    (now - Duration::days(1), now + Duration::days(days))
}

fn certificate(folder: &Path, file: &str) -> Result<CertificateDer<'static>, KeysError> {
    let path = folder.join(file);
    let read = |path: &Path| SmallFile::open(path, BYTES_MAX)?.trusted()?.bytes();
    let fault = |problem: String| KeysError::File { path: path.clone(), problem };
    let bytes = read(&path).map_err(|error| match error.is_not_there() {
        true => fault(
            "is not there; make keys with `clearlane traffic init` on the controller, or with \
             `clearlane traffic join` on a host, or name their folder with --dir"
                .into(),
        ),
        false => fault(error.to_string()),
    })?;
    CertificateDer::from_pem_slice(&bytes).map_err(|_| {
        fault("holds no whole certificate; copy the file again, or join anew with --force".into())
    })
}

/// The text form (RFC 7468).
fn pem(certificate: &CertificateDer<'_>) -> String {
    use base64::Engine;
    let text = base64::engine::general_purpose::STANDARD.encode(certificate);
    let lines: Vec<&str> = (0..text.len())
        .step_by(64)
        .filter_map(|at| text.get(at..text.len().min(at + 64)))
        .collect();
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
}

fn make_folder(folder: &Path) -> Result<(), KeysError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| KeysError::File {
        path: folder.to_owned(),
        problem: clearlane_lab::plain(&error).to_string(),
    })?;
    must_be_trusted(folder)
}

/// A file of keys: its name, text and mode.
type KeyFile = (&'static str, String, u32);

/// Puts files into a folder. Makes the folder if it is not there, and refuses it if others may
/// write it. All files are written before the first gets its name. [`KeysError::Unlike`] tells of a
/// machine that stopped in between.
fn put(
    folder: &Path,
    files: impl IntoIterator<Item = KeyFile>,
    replace: Replace,
    unfinished: &Unfinished,
) -> Result<(), KeysError> {
    make_folder(folder)?;
    let refused = |path: PathBuf, error: io::Error| KeysError::File {
        path,
        problem: clearlane_lab::plain(&error).to_string(),
    };
    let mut written = Vec::new();
    for (name, text, mode) in files {
        let path = folder.join(name);
        if replace == Replace::Nothing && path.exists() {
            return Err(KeysError::Taken(folder.to_owned()));
        }
        let aside = || -> io::Result<Aside> {
            let (aside, mut file) = unfinished.file_of_mode(&path, mode)?;
            file.write_all(text.as_bytes()).and_then(|()| file.sync_all())?;
            Ok(aside)
        };
        let aside = aside().map_err(|error| refused(path.clone(), error))?;
        written.push((aside, path));
    }
    unfinished.publish(written).map_err(|(path, error)| refused(path, error))
}

/// Writes a file that is not there yet; what is half written is taken away.
pub(crate) fn write(folder: &Path, name: &str, bytes: &[u8], mode: u32) -> Result<(), KeysError> {
    let path = folder.join(name);
    let written = || -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&path)?;
        file.write_all(bytes).and_then(|()| file.sync_all()).inspect_err(|_| {
            let _ = fs::remove_file(&path);
        })
    };
    written().map_err(|error| KeysError::File {
        path: path.clone(),
        problem: clearlane_lab::plain(&error).to_string(),
    })
}
