//! Uploads by tus 1.0, and downloads.

use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, RequestBuilder, Response};
use uuid::Uuid;

use super::Http;
use crate::error::Error;

/// How often an upload is gone on with in which nothing more came through.
const TRIES: u32 = 5;
/// The pause before the first of these; each further one is twice as long.
const PAUSE: Duration = Duration::from_millis(200);
/// Bytes of one request, so that it ends within the time of a call.
const AT_ONCE: usize = 8 << 20;

impl Http {
    /// Uploads a file and returns its id, which [`crate::Draft::with_files`] takes. It goes on after a lost connection, with another address
    /// if there are several.
    ///
    /// # Errors
    /// When the file is refused, or nothing more of it comes through however often it is tried.
    pub async fn upload(&self, name: &str, bytes: &[u8]) -> Result<Uuid, Error> {
        let begin = self.tus(Method::POST, "files").header("upload-length", bytes.len());
        let begin = begin.header("upload-metadata", format!("filename {}", BASE64_STANDARD.encode(name)));
        let begun = answered(begin).await?;
        let address = header(&begun, "location").unwrap_or_default();
        let id = address.rsplit('/').next().and_then(|id| Uuid::try_parse(id).ok());
        let id = id.ok_or_else(|| Error::Usage(format!("{address:?} is no address of an upload")))?;
        let path = format!("files/{id}");
        let (mut offset, mut tries) = (0, 0);
        while offset < bytes.len() {
            let end = bytes.len().min(offset + AT_ONCE);
            let part = self.tus(Method::PATCH, &path).header("upload-offset", offset);
            let part = part
                .header(CONTENT_TYPE, "application/offset+octet-stream")
                .body(bytes[offset..end].to_vec());
            let failure = match answered(part).await {
                Ok(answer) => {
                    (offset, tries) = (offset_of(&answer).unwrap_or(end), 0);
                    continue;
                }
                Err(failure) if !failure.is_retryable() || tries == TRIES => return Err(failure),
                Err(failure) => failure,
            };
            if matches!(failure, Error::Transport(_)) {
                self.servers.failed(self.servers.in_use());
            }
            tokio::time::sleep(PAUSE * 2_u32.pow(tries)).await;
            tries += 1;
            if let Ok(answer) = answered(self.tus(Method::HEAD, &path)).await {
                offset = offset_of(&answer).unwrap_or(offset);
            }
        }
        Ok(id)
    }

    /// The bytes of a file that the row `message_id` of the caller's inbox names.
    pub async fn file(&self, message_id: u64, id: Uuid) -> Result<Vec<u8>, Error> {
        self.bytes(&format!("files/{message_id}/{id}")).await
    }

    /// A preview of a picture, one of those in [`crate::NamedFile::previews`].
    pub async fn preview(&self, message_id: u64, id: Uuid, preview: &str) -> Result<Vec<u8>, Error> {
        self.bytes(&format!("files/{message_id}/{id}/{preview}")).await
    }

    pub(super) async fn bytes(&self, path: &str) -> Result<Vec<u8>, Error> {
        Ok(answered(self.request(Method::GET, path)).await?.bytes().await?.into())
    }

    fn tus(&self, method: Method, path: &str) -> RequestBuilder {
        self.request(method, path).header("tus-resumable", "1.0.0")
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, self.servers.at(self.servers.in_use(), path));
        match self.token() {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }
}

async fn answered(request: RequestBuilder) -> Result<Response, Error> {
    let answer = request.send().await?;
    let status = answer.status();
    if status.is_success() {
        return Ok(answer);
    }
    Err(Error::from_response(status.as_u16(), &answer.bytes().await?))
}

fn header(answer: &Response, name: &str) -> Option<String> {
    Some(answer.headers().get(name)?.to_str().ok()?.to_owned())
}

fn offset_of(answer: &Response) -> Option<usize> {
    header(answer, "upload-offset")?.parse().ok()
}
