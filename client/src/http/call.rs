//! One call of the HTTP interface, and how it goes from one address to the next.

use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, Method};
use serde::Serialize;
use uuid::Uuid;

use crate::error::Error;
use crate::servers::Servers;

/// A request, independent of the server that gets it.
pub(super) struct HttpCall {
    method: Method,
    path: String,
    query: Vec<(&'static str, String)>,
    body: Option<String>,
    /// By which a server knows a repetition.
    key: Option<Uuid>,
    repeat: Repeat,
}

/// How to go on when nobody knows whether a server has carried the call out.
#[derive(Clone, Copy)]
enum Repeat {
    /// Ask another server: twice is the same as once.
    Safe,
    /// The same, and this refusal of the other one says that the first has carried it out.
    DoneIf(&'static str),
    /// Report it: twice would make two.
    Never,
}

impl HttpCall {
    /// A call that another server may be asked again, whatever became of it at the first.
    pub(super) fn new(method: Method, path: impl Into<String>) -> HttpCall {
        HttpCall { method, path: path.into(), query: Vec::new(), body: None, key: None, repeat: Repeat::Safe }
    }

    /// One that makes something new each time: another server is asked only if the first could not be reached.
    pub(super) fn once(self) -> HttpCall {
        HttpCall { repeat: Repeat::Never, ..self }
    }

    /// One that makes something new, but for those with the same key.
    pub(super) fn keyed(self, key: Uuid) -> HttpCall {
        HttpCall { key: Some(key), ..self }
    }

    /// A refusal with this code, when it is asked again, means that it was carried out before.
    pub(super) fn done_if(self, code: &'static str) -> HttpCall {
        HttpCall { repeat: Repeat::DoneIf(code), ..self }
    }

    pub(super) fn query(mut self, name: &'static str, value: impl ToString) -> HttpCall {
        self.query.push((name, value.to_string()));
        self
    }

    pub(super) fn json(self, body: &impl Serialize) -> HttpCall {
        let body = serde_json::to_string(body).expect("bodies hold only strings, numbers and valid JSON");
        HttpCall { body: Some(body), ..self }
    }

    /// Asks the server in use, then each of the others once; answers the body.
    pub(super) async fn ask(
        &self,
        client: &Client,
        servers: &Servers,
        token: Option<&str>,
    ) -> Result<Vec<u8>, Error> {
        let first = servers.in_use();
        let mut place = first;
        let mut perhaps_done = false;
        loop {
            let failure = match self.ask_one(client, servers, place, token).await {
                Ok(body) => return Ok(body),
                Err(failure) => failure,
            };
            if let (Repeat::DoneIf(done), true) = (self.repeat, perhaps_done)
                && failure.error.code() == Some(done)
            {
                return Ok(Vec::new());
            }
            if failure.of_the_server {
                servers.failed(place);
            }
            perhaps_done |= failure.perhaps_done;
            place += 1;
            let may = failure.of_the_server && !(perhaps_done && matches!(self.repeat, Repeat::Never));
            if !may || place - first >= servers.count() {
                return Err(failure.error);
            }
        }
    }

    async fn ask_one(
        &self,
        client: &Client,
        servers: &Servers,
        place: usize,
        token: Option<&str>,
    ) -> Result<Vec<u8>, AskFailure> {
        let url = servers.at(place, &format!("api/v1/{}", self.path));
        let mut request = client.request(self.method.clone(), url).query(&self.query);
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        if let Some(key) = self.key {
            request = request.header("idempotency-key", key.to_string());
        }
        if let Some(body) = &self.body {
            request = request.header(CONTENT_TYPE, "application/json").body(body.clone());
        }
        let response = request.send().await.map_err(AskFailure::from)?;
        let status = response.status();
        let body = response.bytes().await.map_err(AskFailure::from)?;
        if status.is_success() {
            return Ok(body.into());
        }
        let of_the_server = matches!(status.as_u16(), 502..=504);
        let error = Error::from_response(status.as_u16(), &body);
        Err(AskFailure { error, of_the_server, perhaps_done: status.is_server_error() })
    }
}

/// Why one server gave no answer that counts.
struct AskFailure {
    error: Error,
    /// Another server may do better.
    of_the_server: bool,
    /// The call may have been carried out all the same.
    perhaps_done: bool,
}

impl From<reqwest::Error> for AskFailure {
    fn from(error: reqwest::Error) -> AskFailure {
        let perhaps_done = !error.is_connect();
        let error = Error::from(error);
        AskFailure { of_the_server: matches!(error, Error::Transport(_)), perhaps_done, error }
    }
}

#[cfg(test)]
mod tests;
