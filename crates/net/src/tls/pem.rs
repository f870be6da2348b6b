//! Files in PEM, read once and then taken apart.

use super::TlsError;
use crate::files::{self, FileError};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject};
use std::{
    fs,
    path::{Path, PathBuf},
};

#[derive(Debug)]
pub(super) struct PemFile {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl PemFile {
    /// As a client: whatever its user names, pipes as well.
    pub(super) fn read(path: &Path) -> Result<PemFile, TlsError> {
        let bytes =
            fs::read(path).map_err(|source| FileError::Read { path: path.to_owned(), source })?;
        Ok(PemFile { path: path.to_owned(), bytes })
    }

    /// As a server: it must not be held up.
    pub(super) fn read_regular(path: &Path) -> Result<PemFile, TlsError> {
        Ok(PemFile { path: path.to_owned(), bytes: files::read(path)? })
    }

    /// A server's key is nobody else's business.
    pub(super) fn read_private(path: &Path) -> Result<PemFile, TlsError> {
        Ok(PemFile { path: path.to_owned(), bytes: files::read_private(path)? })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// All of them; there may be none.
    pub(super) fn certificates(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        CertificateDer::pem_slice_iter(&self.bytes)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| TlsError::certificates(&self.path, error))
    }

    /// At least one.
    pub(super) fn chain(&self) -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let found = self.certificates()?;
        match found.is_empty() {
            true => Err(TlsError::NoCertificate { path: self.path.clone() }),
            false => Ok(found),
        }
    }

    pub(super) fn key(&self) -> Result<PrivateKeyDer<'static>, TlsError> {
        PrivateKeyDer::from_pem_slice(&self.bytes)
            .map_err(|source| TlsError::NoKey { path: self.path.clone(), source })
    }
}
