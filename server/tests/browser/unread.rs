//! New messages: where a conversation opens, which messages count as read, and the texts of the badge and the title.

use tidemark_client::Recipient;

use super::world::{World, find, say};

#[tokio::test]
async fn more_unread_than_the_server_counts_open_at_the_first_of_them() {
    let world = World::start().await;
    let (ben, cleo, ada) = (world.person("Ben").await, world.person("Cleo").await, world.person("Ada").await);
    let gid = ben.group("Harbour walk", &[ada.uid, cleo.uid]).await;
    ada.send(Recipient::Group(gid), "I am off for a week").await;
    ben.tells(&ada, "see you").await;
    // Two of them, since one person may send 1,000 messages at once.
    for n in 0..1_500 {
        let from = if n % 2 == 0 { &ben } else { &cleo };
        from.send(Recipient::Group(gid), &format!("number {n}")).await;
    }
    let window = world.visitor("Ada").await;
    window.until("document.querySelector('.row .badge')?.textContent === '999+'").await;
    assert_eq!(window.title().await, "(999+) Tidemark");
    // Someone who goes on before its history is here has read nothing of it.
    window.run(&before_its_history("[...document.querySelectorAll('.row')].at(-1).click()")).await;
    window.sees("see you").await;
    window.until("document.querySelectorAll('.row .badge').length === 1").await;
    assert_eq!(window.title().await, "(999+) Ben · Tidemark");
    // Nor when it is to be shown anew before that; on a device that has none of it.
    let window = world.visitor("Ada").await;
    window.until("document.querySelector('.row .badge')").await;
    let anew = "new BroadcastChannel('tidemark-' + document.body.dataset.uid).postMessage(['changed', null])";
    window.run(&before_its_history(anew)).await;
    window.until("document.querySelector('.fresh-line')").await;
    let first = "[...document.querySelector('.fresh-line').nextElementSibling.querySelectorAll('.words')]
        .map((it) => it.textContent).join() === 'number 0'";
    window.until(first).await;
    let in_view = "(() => {
        const line = document.querySelector('.fresh-line').getBoundingClientRect();
        return line.top > 56 && line.bottom < innerHeight;
    })()";
    window.until(in_view).await;
    // Nothing of it counts as read, and now that the rows are here, they have been counted.
    window.until("document.getElementById('jump-text').textContent === 'Jump to newest (999+ new)'").await;
    assert_eq!(unread(&ada).await, 1_000);
    assert_eq!(window.title().await, "(999+) Harbour walk · Tidemark");
    window.click("#jump").await;
    window.sees("number 1499").await;
    window
        .until("!document.querySelector('.row .badge') && document.title === 'Harbour walk · Tidemark'")
        .await;
}

/// A script that opens the first conversation and does `then` while the first page of its history is still to come.
fn before_its_history(then: &str) -> String {
    format!(
        "const [real, held] = [window.fetch, []];
        window.fetch = (path, options) => {{
          if (!path.includes('before=')) return real(path, options);
          return new Promise((go) => {{
            held.push(go);
            if (held.length < 2) return void setTimeout(() => {{ {then} }});
            window.fetch = real;
            for (const go of held) go();
          }}).then(() => real(path, options));
        }};
        document.querySelector('.row').click()"
    )
}

/// How many messages the server takes as unread in the first conversation.
async fn unread(person: &super::world::Person) -> u64 {
    person.http.conversations().await.expect("the list")[0].unread
}

#[tokio::test]
async fn what_was_read_is_not_new_any_more_when_more_comes_unseen() {
    let world = World::start().await;
    let (ben, ada) = (world.person("Ben").await, world.person("Ada").await);
    ben.tells(&ada, "one").await;
    let window = world.visitor("Ada").await;
    // Messages that come while the person looks are not new.
    window.until("document.querySelector('.row .badge')").await;
    window.pick("Ben").await;
    window.sees("one").await;
    window.until("document.querySelector('.fresh-line') && !document.querySelector('.row .badge')").await;
    // Another tab is in front of it.
    let hide = "Object.defineProperty(document, 'hidden', { value: true });
        document.dispatchEvent(new Event('visibilitychange'))";
    window.run(hide).await;
    ben.tells(&ada, "two").await;
    window.sees("two").await;
    let new = "[...document.querySelectorAll('.fresh-line')].map((it) =>
        it.nextElementSibling.querySelector('.words').textContent).join() === 'two'";
    window.until(new).await;
}

/// From now on the connection ends when the page tells somebody that messages were read, before that leaves.
const LOSE_THE_TICK: &str = r#"const { send } = WebSocket.prototype;
    WebSocket.prototype.send = function (text) {
      if (!text.includes('"state":"read"')) return send.call(this, text);
      WebSocket.prototype.send = send;
      window.lost = true;
      this.close();
    };"#;

#[tokio::test]
async fn who_is_told_that_a_message_was_read_is_told_although_the_connection_ends_before_that() {
    let world = World::start().await;
    let (ada, ben) = (world.newcomer("Ada").await, world.newcomer("Ben").await);
    find(&ada, "Ben").await;
    say(&ada, "Low tide is at nine").await;
    ada.until("document.querySelector('.own .state').ariaLabel === 'Delivered'").await;
    ben.run(LOSE_THE_TICK).await;
    ben.pick("Ada").await;
    ben.until("window.lost").await;
    ada.until("document.querySelector('.own .state').ariaLabel === 'Read'").await;
}
