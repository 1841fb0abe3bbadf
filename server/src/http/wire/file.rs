//! A file in the body of a row, for the description of the API.

use utoipa::ToSchema;
use uuid::Uuid;

/// A file that a message or a moment names.
#[derive(ToSchema)]
#[schema(as = NamedFile)]
#[expect(dead_code, reason = "describes what is stored as JSON")]
pub(super) struct FileForm {
    /// Its bytes are at `/files/{message_id}/{id}`, with the `message_id` of this row.
    id: Uuid,
    /// Its name.
    #[schema(min_length = 1, max_length = 255, example = "pier.jpg")]
    name: String,
    /// Its bytes.
    #[schema(minimum = 1)]
    size: u64,
    /// Its media type, by its bytes.
    #[schema(example = "image/jpeg")]
    r#type: String,
    /// The width of a picture as it is shown, or that of a film as its sender says, in pixels.
    #[schema(nullable = false, minimum = 1)]
    width: Option<u32>,
    /// The height, likewise.
    #[schema(nullable = false, minimum = 1)]
    height: Option<u32>,
    /// The previews that there are, at `/files/{message_id}/{id}/{preview}`; absent: none.
    #[schema(nullable = false, min_items = 1, max_items = 2)]
    previews: Option<Vec<PreviewForm>>,
    /// How long it plays, in milliseconds, as its sender says.
    #[schema(nullable = false)]
    duration_ms: Option<u64>,
    /// The heights of a recording over its time, as Base64 of up to 100 bytes, as its sender says.
    #[schema(nullable = false)]
    waveform: Option<String>,
}

/// A preview of a picture.
#[derive(ToSchema)]
#[schema(as = Preview, rename_all = "lowercase")]
#[expect(dead_code, reason = "describes what is stored as JSON")]
enum PreviewForm {
    /// At most 480 pixels wide and high.
    Small,
    /// At most 1,600 pixels wide and high.
    Large,
}
