//! A client that uploads files one after the other over one connection, to the server by tus or to a bare server, and takes back what it
//! has uploaded.

use std::path::PathBuf;

use tidemark_client::Account;

use crate::bench::baseline::process::BareProcess;
use crate::http::KeptAlive;
use crate::server::Server;
use crate::{Failure, Result};

/// See the module.
pub(super) struct Uploader {
    connection: KeptAlive,
    host: String,
    to: To,
}

enum To {
    Tidemark {
        token: String,
        /// The file that is there.
        id: Option<String>,
    },
    Bare {
        path: String,
        /// The file that it makes.
        file: PathBuf,
    },
}

impl Uploader {
    /// One that uploads to the server.
    pub(super) async fn of(server: &Server, account: &Account) -> Result<Uploader> {
        let to = To::Tidemark { token: account.token.clone(), id: None };
        let host = server.host().to_owned();
        Ok(Uploader { connection: KeptAlive::open(&host).await?, host, to })
    }

    /// One that uploads to the path `PATH` of a bare server, which makes `file` of it.
    pub(super) async fn bare(server: &BareProcess, path: String, file: PathBuf) -> Result<Uploader> {
        let host = server.address().to_owned();
        Ok(Uploader { connection: KeptAlive::open(&host).await?, host, to: To::Bare { path, file } })
    }

    /// Uploads a file, in one piece.
    pub(super) async fn upload(&mut self, bytes: &[u8]) -> Result<()> {
        let length = bytes.len();
        let path = match &self.to {
            To::Tidemark { .. } => {
                let about = format!("upload-length: {length}\r\nupload-metadata: filename dGlkZQ==\r\n");
                let head = self.head("POST", "/files", &about);
                let answer = self.connection.answer(head.as_bytes()).await?;
                let headers = answer.headers();
                let location = headers.iter().find(|(name, _)| name == "location").map(|(_, at)| *at);
                let path = location.ok_or_else(|| refused(answer.head, answer.body))?.to_owned();
                if let To::Tidemark { id, .. } = &mut self.to {
                    *id = Some(path.clone());
                }
                path
            }
            To::Bare { path, .. } => path.clone(),
        };
        let more = format!(
            "upload-offset: 0\r\ncontent-type: application/offset+octet-stream\r\ncontent-length: {length}\r\n"
        );
        let method = if matches!(self.to, To::Bare { .. }) { "PUT" } else { "PATCH" };
        self.connection.begin(self.head(method, &path, &more).as_bytes()).await?;
        let answer = self.connection.answer(bytes).await?;
        if !(200..300).contains(&answer.status) {
            return Err(refused(answer.head, answer.body));
        }
        Ok(())
    }

    /// Removes what it has uploaded last.
    pub(super) async fn remove(&mut self) -> Result<()> {
        let path = match &mut self.to {
            To::Tidemark { id, .. } => id.take(),
            To::Bare { file, .. } => return Ok(std::fs::remove_file(file)?),
        };
        let path = path.ok_or_else(|| Failure::new("nothing was uploaded"))?;
        let head = self.head("DELETE", &path, "");
        let answer = self.connection.answer(head.as_bytes()).await?;
        if answer.status != 204 {
            return Err(refused(answer.head, answer.body));
        }
        Ok(())
    }

    fn head(&self, method: &str, path: &str, more: &str) -> String {
        let host = &self.host;
        let session = match &self.to {
            To::Tidemark { token, .. } => {
                format!("authorization: Bearer {token}\r\ntus-resumable: 1.0.0\r\n")
            }
            To::Bare { .. } => String::new(),
        };
        format!("{method} {path} HTTP/1.1\r\nhost: {host}\r\n{session}{more}\r\n")
    }
}

fn refused(head: &str, body: &[u8]) -> Failure {
    Failure::new(format!("an upload is refused: {head}{:.1000}", String::from_utf8_lossy(body)))
}
