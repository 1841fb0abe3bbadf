//! A bare axum server of files: it hashes what comes and writes it to a file, and reads a file and sends it.
//!
//! It runs in a process of its own, as the server does. `/written` answers when the system has all bytes, `/synced` when they are on
//! the disk, as an upload to the server is.

use std::path::{Path, PathBuf};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{self, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, put};
use futures_util::{StreamExt as _, stream};
use sha2::{Digest as _, Sha256};
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::Result;

/// Bytes that are read at a time: as many as the server reads.
const PIECE: usize = 128 << 10;

/// Serves the files of a folder until the process is killed; prints the address first.
pub(crate) async fn serve(folder: &Path) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?);
    let write = |is_durable| {
        move |State(folder): State<PathBuf>, extract::Path(name): extract::Path<String>, body| async move {
            answer(write(&folder.join(name), body, is_durable).await)
        }
    };
    let read = |State(folder): State<PathBuf>, extract::Path(name): extract::Path<String>| async move {
        answer(read(&folder.join(name)).await)
    };
    let routes = Router::new()
        .route("/written/{name}", put(write(false)))
        .route("/synced/{name}", put(write(true)))
        .route("/{name}", get(read))
        .with_state(folder.to_owned());
    Ok(axum::serve(listener, routes).await?)
}

/// Nothing that the load asks for fails; this says why a run does.
fn answer(done: Result<Response>) -> Response {
    done.unwrap_or_else(|failure| (StatusCode::INTERNAL_SERVER_ERROR, failure.to_string()).into_response())
}

/// Writes a file, and answers its hash.
async fn write(path: &Path, body: Body, is_durable: bool) -> Result<Response> {
    let (mut file, mut hash) = (File::create(path).await?, Sha256::new());
    let mut bytes = body.into_data_stream();
    while let Some(piece) = bytes.next().await {
        let piece = piece?;
        hash.update(&piece);
        file.write_all(&piece).await?;
    }
    file.flush().await?;
    if is_durable {
        file.sync_all().await?;
    }
    Ok(hash.finalize().to_vec().into_response())
}

async fn read(path: &Path) -> Result<Response> {
    let file = File::open(path).await?;
    let length = file.metadata().await?.len();
    let pieces = stream::try_unfold(file, |mut file| async move {
        let mut piece = vec![0; PIECE];
        let read = file.read(&mut piece).await?;
        piece.truncate(read);
        Ok::<_, std::io::Error>((read > 0).then(|| (Bytes::from(piece), file)))
    });
    Ok(([(header::CONTENT_LENGTH, length)], Body::from_stream(pieces)).into_response())
}
