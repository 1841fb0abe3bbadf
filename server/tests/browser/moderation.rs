//! What administrators do about members of their group: taking back messages, muting, slow mode, reports.

use tidemark_client::{Draft, Recipient, Role};

use super::starred::choose;
use super::window::ENTER;
use super::world::{World, open_about, open_person, say, stored};

const ASKS: &str = "document.getElementById('ask').open";

/// Whether the last change of the group is told in words that begin so.
fn told(text: &str) -> String {
    format!("[...document.querySelectorAll('.event')].at(-1)?.textContent.startsWith('{text}')")
}

#[tokio::test]
async fn an_administrator_removes_a_message_and_all_see_who_did() {
    let world = World::start().await;
    let (ben, cleo) = (world.person("Ben").await, world.person("Cleo").await);
    let ada = world.person("Ada").await;
    let gid = ada.group("Harbour walk", &[ben.uid, cleo.uid]).await;
    ada.http.set_role(gid, ben.uid, Role::Administrator).await.expect("an administrator");
    cleo.send(Recipient::Group(gid), "Buy my boots").await;
    cleo.send(Recipient::Group(gid), "Good morning").await;
    let (bens, cleos) = (world.visitor("Ben").await, world.visitor("Cleo").await);
    for window in [&bens, &cleos] {
        window.pick("Harbour walk").await;
        window.sees("Buy my boots").await;
    }
    choose(&bens, "Buy my boots", "Remove for everybody…").await;
    bens.until(ASKS).await;
    bens.click("#ask-no").await;
    bens.until(&format!("!{ASKS}")).await;
    assert_eq!(stored(&ada, "Buy my boots").await, 1);
    choose(&bens, "Buy my boots", "Remove for everybody…").await;
    bens.click("#ask-yes").await;
    bens.sees("You removed this message").await;
    cleos.sees("Message removed by Ben").await;
    // The same in a window that saw it happen, after a reload, and in a browser that was not there.
    cleos.reload().await;
    let adas = world.visitor("Ada").await;
    adas.pick("Harbour walk").await;
    for window in [&cleos, &adas] {
        window.sees("Message removed by Ben").await;
        window.sees("Good morning").await;
        window.until("!document.body.textContent.includes('Buy my boots')").await;
    }
    assert_eq!(stored(&ada, "Buy my boots").await, 0);
    // A member is offered this for nobody's message.
    say(&adas, "That was spam").await;
    cleos.sees("That was spam").await;
    cleos.run("[...document.querySelectorAll('.msg')].at(-1).querySelector('.more').click()").await;
    let offered = "[...document.querySelectorAll('#actions button')].map((it) => it.textContent)";
    cleos.until(&format!("{offered}.includes('Reply')")).await;
    assert_eq!(cleos.run(&format!("return {offered}.includes('Remove for everybody…')")).await, false);
}

#[tokio::test]
async fn a_member_is_muted_in_the_panel_and_the_box_says_until_when() {
    let world = World::start().await;
    let (ada, ben) = (world.person("Ada").await, world.person("Ben").await);
    let gid = ada.group("Harbour walk", &[ben.uid]).await;
    let (owner, bens) = (world.visitor("Ada").await, world.visitor("Ben").await);
    for window in [&owner, &bens] {
        window.pick("Harbour walk").await;
    }
    bens.write("#text", "a draft that stays").await;
    open_about(&owner).await;
    let more = "#members-list [title='More about Ben']";
    let items = "[...document.querySelectorAll('#actions button')].map((it) => it.textContent).join()";
    owner.until(&format!("document.querySelector(\"{more}\")")).await;
    owner.click(more).await;
    owner.until(&format!("{items}.includes('Mute…')")).await;
    owner.click("#actions button:nth-last-child(3)").await;
    owner.until(&format!("{items} === 'For an hour,For a day,For a week,For good'")).await;
    owner.click("#actions button").await;
    owner
        .until("[...document.querySelectorAll('#members-list li')].some((li) => /Ben.*muted until/.test(li.textContent))")
        .await;
    bens.until(&told("Ada muted you until")).await;
    bens.until(
        "document.getElementById('locked-text').textContent.startsWith('You are muted in this group until ')",
    )
    .await;
    bens.until("document.getElementById('text').hidden && document.getElementById('archive').hidden").await;
    bens.reload().await;
    bens.until("!document.getElementById('locked').hidden").await;
    let draft = Draft::text(Recipient::Group(gid), "still here");
    assert_eq!(ben.http.send(&draft).await.expect_err("muted").code(), Some("muted"));

    owner.click(more).await;
    owner.until(&format!("{items}.includes('Lift the mute')")).await;
    owner.click("#actions button:nth-last-child(3)").await;
    bens.until(&told("Ada lifted your mute")).await;
    bens.until("document.getElementById('locked').hidden && document.getElementById('text').value === 'a draft that stays'")
        .await;
    bens.write("#text", ENTER).await;
    owner.sees("a draft that stays").await;
}

#[tokio::test]
async fn slow_mode_is_set_in_the_panel_and_the_box_counts_the_wait() {
    let world = World::start().await;
    let (ada, ben) = (world.person("Ada").await, world.person("Ben").await);
    let gid = ada.group("Harbour walk", &[ben.uid]).await;
    let (owner, bens) = (world.visitor("Ada").await, world.visitor("Ben").await);
    for window in [&owner, &bens] {
        window.pick("Harbour walk").await;
    }
    open_about(&owner).await;
    owner.until("!document.getElementById('describe').hidden").await;
    owner.click("#describe summary").await;
    owner.run("document.getElementById('describe-slow').value = '3600'").await;
    owner.click("#describe-form .primary").await;
    bens.until(&told("Ada turned slow mode on: one message of each member every 1 hour")).await;
    assert_eq!(ada.http.group(gid).await.expect("the group").slow_seconds, 3_600);
    let waits =
        "/Slow mode: .* in 3,[0-9]{3} seconds/.test(document.getElementById('slow-wait').textContent)";
    assert_eq!(bens.run(&format!("return {waits}")).await, false);
    say(&bens, "The one of this hour").await;
    owner.sees("The one of this hour").await;
    bens.until(&format!("{waits} && document.getElementById('send').disabled")).await;
    // What is typed meanwhile stays, and Enter does not send it.
    bens.write("#text", &format!("Another one{ENTER}")).await;
    bens.reload().await;
    bens.until(&format!("{waits} && document.getElementById('text').value === 'Another one'")).await;
    assert_eq!(stored(&ada, "Another one").await, 0);
    ada.http.set_slow_mode(gid, 0).await.expect("set");
    bens.until(&told("Ada turned slow mode off")).await;
    bens.until(
        "!document.getElementById('send').disabled && !document.getElementById('slow-wait').textContent",
    )
    .await;
    bens.write("#text", ENTER).await;
    owner.sees("Another one").await;
}

#[tokio::test]
async fn a_report_reaches_the_administrators_who_act_on_it() {
    let world = World::start().await;
    let (ada, ben, cleo) = (world.person("Ada").await, world.person("Ben").await, world.person("Cleo").await);
    let gid = ada.group("Harbour walk", &[ben.uid, cleo.uid]).await;
    for text in ["Buy my boots", "And my hats", "Good morning", "See you"] {
        cleo.send(Recipient::Group(gid), text).await;
    }
    let (owner, bens) = (world.visitor("Ada").await, world.visitor("Ben").await);
    for window in [&owner, &bens] {
        window.pick("Harbour walk").await;
    }
    for (text, words) in
        [("Buy my boots", "every day"), ("And my hats", ""), ("Good morning", ""), ("See you", "")]
    {
        choose(&bens, text, "Report…").await;
        bens.until("document.getElementById('report').open").await;
        bens.until(&format!("document.getElementById('report-quote').textContent === '{text}'")).await;
        if !words.is_empty() {
            bens.write("#report-words", words).await;
        }
        bens.click("#report-send").await;
        bens.until(
            "document.getElementById('report-note').textContent === 'Thank you. Your report was sent.'",
        )
        .await;
        bens.click("#report-close").await;
        bens.until("!document.getElementById('report').open").await;
    }
    open_about(&bens).await;
    bens.until("document.querySelectorAll('#members-list li').length === 3").await;
    assert_eq!(bens.run("return document.getElementById('reported').hidden").await, true);

    // One is dismissed by another program.
    let page = ada.http.group_reports(gid, 0).await.expect("a page");
    let reported: Vec<&str> = page.reports.iter().map(|report| report.message.text.as_str()).collect();
    assert_eq!(reported, ["Buy my boots", "And my hats", "Good morning", "See you"]);
    ada.http.dismiss_report(gid, page.reports[3].number).await.expect("dismissed");
    let rest = ada.http.group_reports(gid, page.reports[2].number).await.expect("a page");
    assert!(rest.reports.is_empty() && rest.next.is_none(), "{rest:?}");
    open_about(&owner).await;
    owner.until("document.getElementById('reports-count').textContent === '3'").await;
    owner.click("#reported summary").await;
    owner.until("/Cleo.*Spam or advertising/.test(document.querySelector('#reports li').textContent)").await;
    owner.until("document.querySelector('#reports li').textContent.includes('every day')").await;
    let left = |count: u32| format!("document.querySelectorAll('#reports li').length === {count}");
    owner.click("#reports li:nth-child(3) [aria-label='Dismiss the report about Cleo']").await;
    owner.until(&left(2)).await;
    owner.click("#reports li:first-child [aria-label='Remove the message of Cleo']").await;
    owner
        .until(&format!("{ASKS} && document.getElementById('ask-quote').textContent === 'Buy my boots'"))
        .await;
    owner.click("#ask-yes").await;
    owner.until(&left(1)).await;
    owner.click("#reports [aria-label='Remove Cleo']").await;
    owner.until(ASKS).await;
    owner.click("#ask-yes").await;
    owner.until(&format!("{} && !document.getElementById('no-reports').hidden", left(0))).await;
    assert_eq!(ada.http.group(gid).await.expect("the group").members.len(), 2);
    assert_eq!(stored(&ben, "Buy my boots").await, 0);
    assert_eq!(stored(&ben, "Good morning").await, 1);
}

#[tokio::test]
async fn a_person_is_reported_from_the_conversation() {
    let world = World::start().await;
    let (ada, ben) = (world.person("Ada").await, world.person("Ben").await);
    ada.tells(&ben, "I know where you live").await;
    let bens = world.visitor("Ben").await;
    bens.pick("Ada").await;
    open_about(&bens).await;
    open_person(&bens).await;
    let items = "[...document.querySelectorAll('#actions button')].map((it) => it.textContent)";
    bens.until(&format!("{items}.at(-1) === 'Report…'")).await;
    bens.click("#actions button:last-child").await;
    bens.until("document.getElementById('report-title').textContent.includes('Ada')").await;
    bens.run("document.getElementById('report-words').value = 'x'.repeat(1001)").await;
    bens.click("#report-send").await;
    bens.until("document.getElementById('report-problem').textContent.includes('1,000 characters')").await;
    bens.run("document.getElementById('report-words').value = 'She threatens me'").await;
    bens.run("document.getElementById('report-reason').value = 'harassment'").await;
    bens.click("#report-send").await;
    bens.until("document.getElementById('report-note').textContent && !document.getElementById('report-problem').textContent")
        .await;
    // The account's own data has it.
    let own =
        "fetch('/api/v1/me/data').then((answer) => answer.text()).then((text) => { window.own = text; })";
    bens.run(own).await;
    bens.until("window.own?.includes('She threatens me')").await;
}
