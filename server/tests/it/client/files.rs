//! Files by the Rust client.

use tidemark_client::{Conversation, Draft, Http, RangeQuery, Recipient};

use crate::support::TestApp;

#[tokio::test]
async fn a_file_is_uploaded_named_and_read() {
    let app = TestApp::start().await;
    let http = Http::new(&format!("http://{}", app.address)).expect("an address");
    let ann = http.sign_up("ann", "correct horse battery").await.expect("signed up");
    let http = http.with_token(&ann.token);
    let bytes: Vec<u8> = (0..9_000_000_u32).map(|n| (n % 241) as u8).collect();
    let id = http.upload("tide.bin", &bytes).await.expect("uploaded");
    let draft = Draft::text(Recipient::User(ann.uid), "").with_files(&[id]);
    let sent = http.send(&draft).await.expect("sent");
    let rows = http.range(&RangeQuery::after(0)).await.expect("a page").rows;
    let [file] = &rows[0].files()[..] else { panic!("{rows:?}") };
    assert_eq!((file.id, &*file.name, file.size), (id, "tide.bin", 9_000_000));
    assert!(http.file(sent.message_id, id).await.expect("read") == bytes);
    let refused = http.upload("../x", b"x").await.expect_err("refused");
    assert_eq!(refused.code(), Some("bad_file_name"));
    assert_eq!(
        http.preview(sent.message_id, id, "small").await.expect_err("none").code(),
        Some("unknown_file")
    );
}

#[tokio::test]
async fn a_picture_of_a_person_and_of_a_group_is_chosen_seen_and_taken_away() {
    let app = TestApp::start().await;
    let http = Http::new(&format!("http://{}", app.address)).expect("an address");
    let ann = http.sign_up("ann", "correct horse battery").await.expect("signed up");
    let http = http.with_token(&ann.token);
    let mut png = std::io::Cursor::new(Vec::new());
    image::DynamicImage::new_rgb8(300, 200).write_to(&mut png, image::ImageFormat::Png).expect("encoded");
    let file = http.upload("me.png", png.get_ref()).await.expect("uploaded");
    http.set_picture(uuid::Uuid::from_u128(1), Some(file)).await.expect("set");
    let own = || async { http.profiles(&[ann.uid]).await.expect("asked").remove(0).picture };
    assert_eq!(own().await, Some(file));
    let square = http.picture(Conversation::User(ann.uid), file).await.expect("read");
    assert_eq!(image::load_from_memory(&square).expect("a picture").width(), 200);
    let gid = http.create_group("walkers", &[]).await.expect("made");
    http.set_group_picture(gid, Some(file)).await.expect("set");
    assert_eq!(http.group(gid).await.expect("asked").picture, Some(file));
    assert_eq!(http.conversations().await.expect("asked")[0].picture, Some(file));
    http.picture(Conversation::Group(gid), file).await.expect("read");
    http.set_group_picture(gid, None).await.expect("set");
    http.set_picture(uuid::Uuid::from_u128(3), None).await.expect("set");
    assert_eq!((own().await, http.group(gid).await.expect("asked").picture), (None, None));
}
