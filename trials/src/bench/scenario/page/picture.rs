//! How long a picture takes from one screen to the other: pasted, uploaded, looked at by the server, and shown.

use serde_json::json;

use super::super::files::jpeg;
use super::BrowserPage;
use crate::bench::Context;
use crate::bench::report::Sample;
use crate::{Failure, Result};

/// Pictures of which median and tail are told.
const PICTURES: usize = 20;
/// Pixels of a photo of 2 MB.
const PIXELS: (u32, u32) = (2_880, 1_920);

/// Adds a field for a file, whose file is then pasted.
const FIELD: &str = "const field = document.createElement('input');
    Object.assign(field, { type: 'file', id: 'trial' });
    document.body.append(field)";

/// Pastes the file under a name, and sends it as soon as it stands above the box.
const PASTE: &str = "const clipboardData = new DataTransfer(), tray = document.getElementById('tray');
    clipboardData.items.add(new File([document.getElementById('trial').files[0]], NAME, { type: 'image/jpeg' }));
    const event = new Event('paste', { bubbles: true, cancelable: true });
    Object.defineProperty(event, 'clipboardData', { value: clipboardData });
    new MutationObserver((changes, observer) => {
      if (!tray.querySelector('.chosen')) return;
      observer.disconnect();
      document.getElementById('send').click();
    }).observe(tray, { childList: true, subtree: true });
    window.pasted = performance.timeOrigin + performance.now();
    document.getElementById('text').dispatchEvent(event)";

/// Notes when the picture with a name is shown.
const SHOWN: &str = "window.pictured = null;
    const isShown = ({ alt, naturalWidth }) => alt.includes(NAME) && naturalWidth > 0;
    note('pictured', () => [...document.querySelectorAll('[role=log] .picture img')].some(isShown))";

pub(super) async fn measure(page: &mut BrowserPage, context: &Context) -> Result<Vec<Sample>> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("photo.jpg");
    std::fs::write(&file, jpeg(PIXELS.0, PIXELS.1)?)?;
    let (ann, others) = page.told(1, 1).await?;
    let ben = others.first().ok_or_else(|| Failure::new("nobody"))?;
    let (from, to) = (page.in_talk(&ann, ben).await?, page.in_talk(ben, &ann).await?);
    from.run(FIELD).await?;
    from.element("#trial").await?.send_keys(&file.to_string_lossy()).await?;
    let mut times = Vec::new();
    for n in 0..context.scaled(PICTURES) {
        let name = json!(format!("photo-{n}.jpg")).to_string();
        to.run(&SHOWN.replace("NAME", &name)).await?;
        from.run_async("window.rest(arguments[0])").await?;
        from.run(&PASTE.replace("NAME", &name)).await?;
        let shown = to.number("window.pictured && performance.timeOrigin + window.pictured").await?;
        times.push(shown - from.number("window.pasted").await?);
    }
    from.close().await?;
    to.close().await?;
    let sample = |what, share| {
        let metric = format!("a picture of 2 MB, paste to the other's screen, {what}");
        Sample::new(metric, super::quantile(&times, share), "ms")
    };
    Ok(vec![sample("median", 0.5), sample("p90", 0.9)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_photo_is_as_large_as_its_row_says() {
        let bytes = jpeg(PIXELS.0, PIXELS.1).expect("encoded").len();
        assert!((1_900_000..2_100_000).contains(&bytes), "{bytes} bytes");
    }
}
