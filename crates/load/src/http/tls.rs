//! TLS of a download: whom we trust, and the handshake.
//!
//! What comes in: certificates given by the user, or those of this host. What goes out: a stream that is
//! proven to belong to the host of the URL, unless the user accepts any certificate. It keeps no session and
//! sends no certificate.

use linerate_model::kind::HttpPlan;
use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, RootCertStore, SignatureScheme, StreamOwned,
};

use super::dial::Timed;
use super::url::Failure;

/// Where distributions keep what they trust: Debian and Arch, Red Hat, SUSE, Alpine.
const BUNDLES: [&str; 4] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
];

/// A bundle beyond this is none.
const BUNDLE_MAX: u64 = 16 << 20;

/// What a handshake needs; built once per test.
pub(super) fn config(plan: &HttpPlan) -> Result<Arc<ClientConfig>, Failure> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|e| format!("no version of TLS can be used: {e}"))?;
    let mut config = if plan.insecure {
        builder.dangerous().with_custom_certificate_verifier(Arc::new(Anyone(provider))).with_no_client_auth()
    } else {
        builder.with_root_certificates(roots(plan)?).with_no_client_auth()
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

fn roots(plan: &HttpPlan) -> Result<RootCertStore, Failure> {
    let (pem, source) = match &plan.trusted_pem {
        Some(pem) => (pem.clone().into_bytes(), "the given file".to_owned()),
        None => host_bundle()?,
    };
    let mut store = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(|e| format!("{source} holds a broken certificate: {e}"))?;
        match store.add(certificate) {
            Ok(()) => {}
            // A host's own bundle may hold odd old ones.
            Err(_) if plan.trusted_pem.is_none() => {}
            Err(e) => return Err(format!("a certificate of {source} cannot be trusted: {e}")),
        }
    }
    if store.is_empty() {
        return Err(format!("{source} holds no certificate to trust; give one with --ca FILE"));
    }
    Ok(store)
}

/// What this host trusts, and where it keeps it.
fn host_bundle() -> Result<(Vec<u8>, String), Failure> {
    let named = std::env::var_os("SSL_CERT_FILE").filter(|v| !v.is_empty()).map(PathBuf::from);
    let bundles: Vec<PathBuf> = named.into_iter().chain(BUNDLES.map(PathBuf::from)).collect();
    for path in &bundles {
        let sized = std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.len() <= BUNDLE_MAX);
        if let Some(pem) = sized.then(|| std::fs::read(path).ok()).flatten() {
            return Ok((pem, path.display().to_string()));
        }
    }
    Err("this host has no list of certificates to trust (package ca-certificates); give one with --ca FILE"
        .to_owned())
}

/// The handshake; returns the version of TLS too.
pub(super) fn shake_hands<'a>(
    config: &Arc<ClientConfig>,
    host: &str,
    mut stream: Timed<'a>,
) -> Result<(StreamOwned<ClientConnection, Timed<'a>>, String), Failure> {
    let name =
        ServerName::try_from(host.to_owned()).map_err(|_| format!("`{host}` cannot be in a certificate"))?;
    let mut connection =
        ClientConnection::new(config.clone(), name).map_err(|e| format!("TLS cannot begin: {e}"))?;
    while connection.is_handshaking() {
        connection.complete_io(&mut stream).map_err(|e| format!("TLS handshake with {host}: {e}"))?;
    }
    let version = connection.protocol_version().and_then(|v| v.as_str()).unwrap_or("TLS").to_owned();
    Ok((StreamOwned::new(connection, stream), version.replace("TLSv1_", "TLS 1.")))
}

/// Takes any certificate, but still no forged signature in the handshake.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
