//! Groups: making one without mistakes, and what asks before it is done.

use tidemark_client::Role;

use super::starred::choose;
use super::window::{ENTER, Window};
use super::world::{World, connected, say};

const PROBLEM: &str = "document.getElementById('group-problem').textContent";
const ASKS: &str = "document.getElementById('ask').open";

/// Chooses an item of the menu of a member.
async fn choose_of(window: &Window, name: &str, words: &str) {
    let menu = format!("#members-list [title='More about {name}']");
    window.until(&format!("document.querySelector(\"{menu}\")")).await;
    window.click(&menu).await;
    let item = format!(
        "[...document.querySelectorAll('#actions:popover-open button')].find((it) => it.textContent === '{words}')"
    );
    window.until(&item).await;
    window.run(&format!("{item}.click()")).await;
}

/// Closes the panel.
async fn close(window: &Window) {
    window.click("#about-close").await;
    window.until("document.getElementById('about').hidden && !location.hash").await;
}

#[tokio::test]
async fn a_typed_name_is_taken_or_asked_about() {
    let world = World::start().await;
    world.person("Ben").await;
    world.person("Benedict").await;
    let ada = world.newcomer("Ada").await;
    ada.click("#open-group").await;
    // Enter in the name makes no group of one.
    ada.write("#group-name", &format!("Harbour walk{ENTER}")).await;
    ada.until("document.activeElement.id === 'group-find'").await;
    // Pressing at once gets an answer, and later search results do not take it away.
    let type_and_press = |name: &str| {
        format!(
            "const field = document.getElementById('group-find'); field.value = '{name}'; \
             field.dispatchEvent(new Event('input')); document.querySelector('#new-group-form .primary').click()"
        )
    };
    ada.run(&type_and_press("Bene")).await;
    ada.until("document.querySelectorAll('#group-list li').length === 1").await;
    ada.until(&format!("{PROBLEM} === 'Choose who you mean by “Bene”.'")).await;
    ada.run(&type_and_press("Benex")).await;
    ada.until(&format!("{PROBLEM}.startsWith('Nobody is called “Benex”.')")).await;
    // Exactly one has this name, whatever its case.
    ada.run("document.getElementById('group-find').value = 'ben'").await;
    ada.click("#new-group-form .primary").await;
    ada.until("document.getElementById('pane-title').textContent === 'Harbour walk'").await;
    ada.until("document.getElementById('pane-about').textContent === '2 members'").await;
    assert_eq!(ada.run("return document.querySelectorAll('#list li').length").await, 1);
}

#[tokio::test]
async fn removing_and_leaving_ask_first_and_a_group_that_was_left_goes_into_the_archive() {
    let world = World::start().await;
    let (ben, cleo) = (world.person("Ben").await, world.person("Cleo").await);
    let person = world.person("Ada").await;
    let gid = person.group("Harbour walk", &[ben.uid, cleo.uid]).await;
    let ada = world.visitor("Ada").await;
    ada.pick("Harbour walk").await;
    ada.until("document.getElementById('pane-about').textContent === '3 members'").await;
    ada.click("#open-about").await;
    ada.until("document.querySelectorAll('#members-list li').length === 3").await;
    choose_of(&ada, "Cleo", "Remove…").await;
    ada.until(&format!("{ASKS} && document.activeElement.id === 'ask-no'")).await;
    ada.click("#ask-no").await;
    ada.until(&format!("!{ASKS}")).await;
    assert_eq!(ben.http.group(gid).await.expect("the group").members.len(), 3);
    choose_of(&ada, "Cleo", "Remove…").await;
    ada.click("#ask-yes").await;
    ada.until("document.getElementById('pane-about').textContent === '2 members'").await;
    ada.click("#leave").await;
    ada.until(&format!(
        "{ASKS} && document.getElementById('ask-title').textContent === 'Leave Harbour walk?'"
    ))
    .await;
    ada.click("#ask-yes").await;
    ada.until("!document.getElementById('locked').hidden").await;
    ada.click("#archive").await;
    let archived = "!document.querySelector('#list a') && document.querySelector('#list .archive').textContent === 'Archived (1)'";
    ada.until(&format!("location.pathname === '/' && {archived}")).await;
    ada.reload().await;
    connected(&ada).await;
    ada.until(archived).await;
    // Somebody who is taken in again sees it again.
    ben.http.add_member(gid, person.uid).await.expect("added");
    ada.pick("Harbour walk").await;
    say(&ada, "Back again").await;
}

#[tokio::test]
async fn roles_bans_and_invitations_are_changed_in_the_panel() {
    let world = World::start().await;
    let (ben, cleo) = (world.person("Ben").await, world.person("Cleo").await);
    let ada = world.newcomer("Ada").await;
    let uid = ada.run("return Number(document.body.dataset.uid)").await.as_u64().expect("a uid");
    let uid = u32::try_from(uid).expect("a uid");
    let gid = ben.group("Harbour walk", &[uid, cleo.uid]).await;
    ada.pick("Harbour walk").await;
    ada.click("#open-about").await;
    ada.until("document.querySelectorAll('#members-list li').length === 3").await;
    let offered = "document.querySelectorAll('#members-list button').length";
    assert_eq!(
        ada.run(&format!("return {offered}")).await,
        0,
        "a member is offered nothing that would be refused"
    );
    ben.http.set_role(gid, uid, Role::Owner).await.expect("handed over");
    close(&ada).await;
    ada.click("#open-about").await;
    ada.until(&format!("{offered} === 2")).await;

    choose_of(&ada, "Cleo", "Make an administrator").await;
    ada.until("[...document.querySelectorAll('#members-list li')].some((li) => /Cleo.*administrator/.test(li.textContent))")
        .await;
    choose_of(&ada, "Ben", "Ban…").await;
    ada.until(&format!(
        "{ASKS} && document.getElementById('ask-title').textContent === 'Ban Ben from Harbour walk?'"
    ))
    .await;
    ada.click("#ask-yes").await;
    ada.until("document.querySelectorAll('#members-list li').length === 2").await;
    ada.until("document.querySelectorAll('#bans li').length === 1").await;
    ada.click("#banned summary").await;
    ada.click("#bans [aria-label='Lift the ban of Ben']").await;
    ada.until("!document.querySelector('#bans li') && !document.getElementById('no-bans').hidden").await;

    let made = "fetch('/api/v1/groups/' + location.pathname.slice(5) + '/invites', { method: 'POST', \
                headers: { 'content-type': 'application/json' }, body: '{}' }).then(() => { window.made = true; })";
    ada.run(made).await;
    ada.until("window.made").await;
    close(&ada).await;
    ada.click("#open-about").await;
    ada.until("document.querySelectorAll('#invites li').length === 1").await;
    ada.click("#open-invites summary").await;
    ada.click("#invites button").await;
    ada.click("#ask-yes").await;
    ada.until("!document.querySelector('#invites li') && !document.getElementById('no-invites').hidden")
        .await;
    assert_eq!(
        ben.http.group(gid).await.expect_err("banned, and not taken in again").code(),
        Some("unknown_group")
    );
}

#[tokio::test]
async fn who_joins_later_is_not_told_that_the_group_begins_there() {
    let world = World::start().await;
    let (ben, ada) = (world.person("Ben").await, world.person("Ada").await);
    let gid = ben.group("Harbour walk", &[]).await;
    ben.send(tidemark_client::Recipient::Group(gid), "before Ada").await;
    ben.http.add_member(gid, ada.uid).await.expect("added");
    for (name, start) in [
        ("Ada", "You see this group from the moment you joined."),
        ("Ben", "This is where Harbour walk begins."),
    ] {
        let window = world.visitor(name).await;
        window.pick("Harbour walk").await;
        window.until(&format!("document.querySelector('.start')?.textContent === '{start}'")).await;
    }
}

#[tokio::test]
async fn members_see_what_they_may_do_and_administrators_name_the_group() {
    let world = World::start().await;
    let (ben, cleo) = (world.person("Ben").await, world.person("Cleo").await);
    let gid = ben.group("Harbour walk", &[cleo.uid]).await;
    let (owner, member) = (world.visitor("Ben").await, world.visitor("Cleo").await);
    for window in [&owner, &member] {
        window.pick("Harbour walk").await;
        window.until("document.getElementById('pane-about').textContent === '2 members'").await;
        window.click("#open-about").await;
        window.until("document.querySelectorAll('#members-list li').length === 2").await;
        window.until("document.querySelector('#members-list .role').textContent.startsWith('owner')").await;
    }
    let allowed = "return [document.querySelectorAll('#members-list button').length, !document.getElementById('describe').hidden]";
    assert_eq!(member.run(allowed).await, serde_json::json!([0, false]));
    assert_eq!(owner.run(allowed).await, serde_json::json!([1, true]));
    owner.click("#describe summary").await;
    owner.run("document.getElementById('describe-name').value = ''").await;
    owner.write("#describe-name", "Sunday walk").await;
    owner.write("#describe-topic", &format!("Nine at the pier{ENTER}")).await;
    for window in [&owner, &member] {
        window.until("document.getElementById('pane-title').textContent === 'Sunday walk'").await;
        window
            .until("document.getElementById('pane-about').textContent === '2 members · Nine at the pier'")
            .await;
    }
    assert_eq!(ben.http.group(gid).await.expect("the group").name, "Sunday walk");
    owner.until("[...document.querySelectorAll('.event')].length === 3").await;
}

#[tokio::test]
async fn who_joins_sees_earlier_messages_where_the_group_shows_them() {
    let world = World::start().await;
    let (ben, ada) = (world.person("Ben").await, world.person("Ada").await);
    let gid = ben.group("Harbour walk", &[]).await;
    for text in ["Low tide is at nine", "Bring boots"] {
        ben.send(tidemark_client::Recipient::Group(gid), text).await;
    }
    let (owner, joiner) = (world.visitor("Ben").await, world.visitor("Ada").await);
    joiner.until("!document.getElementById('list-blank').hidden").await;
    owner.pick("Harbour walk").await;
    choose(&owner, "Low tide", "Pin for everybody").await;
    owner.click("#open-about").await;
    owner.until("document.querySelectorAll('#members-list li').length === 1").await;
    owner.click("#describe summary").await;
    owner.click("#describe-history").await;
    owner.click("#describe-form .primary").await;
    let told = "[...document.querySelectorAll('.event')].at(-1).textContent";
    owner.until(&format!("{told}.includes('You let those who join see earlier messages')")).await;
    ben.http.add_member(gid, ada.uid).await.expect("added");

    // She is there while it comes, and is told of nothing.
    joiner.until("document.querySelector('#list li')?.textContent.includes('Ben added you')").await;
    assert_eq!(joiner.run("return document.querySelector('#list .badge')?.textContent ?? ''").await, "");
    assert!(!joiner.run("return document.title").await.as_str().expect("a title").starts_with('('));
    for window in [&joiner, &world.visitor("Ada").await] {
        window.pick("Harbour walk").await;
        window.sees("Bring boots").await;
        window.until(&format!("{told}.includes('Ben added you')")).await;
        let order = "return [...document.querySelectorAll('.msg .words, .event')].map((it) => it.textContent.slice(0, 11))";
        assert_eq!(window.run(order).await, serde_json::json!(["Low tide is", "Bring boots", "Ben added y"]));
        assert_eq!(window.run("return document.querySelectorAll('.fresh-line').length").await, 0);
        window.until("document.querySelector('.start')?.textContent === 'These are the newest messages from before you joined.'")
            .await;
        window.until("document.getElementById('pins').textContent.includes('Low tide is at nine')").await;
    }
    say(&joiner, "Thanks").await;
    owner.sees("Thanks").await;
    // The panel says how it is, and it can be undone.
    close(&owner).await;
    owner.click("#open-about").await;
    owner
        .until("!document.getElementById('describe').hidden && document.getElementById('describe-history').checked")
        .await;
    owner.click("#describe summary").await;
    owner.click("#describe-history").await;
    owner.click("#describe-form .primary").await;
    owner.until(&format!("{told}.includes('You hid earlier messages from those who join')")).await;
    assert_eq!(ben.http.group(gid).await.expect("the group").history, tidemark_client::History::Hidden);
}

#[tokio::test]
async fn an_administrator_is_made_a_member_again_and_a_group_is_handed_over_in_the_panel() {
    let world = World::start().await;
    let (ada, ben, cleo) = (world.person("Ada").await, world.person("Ben").await, world.person("Cleo").await);
    let gid = ada.group("Harbour walk", &[ben.uid, cleo.uid]).await;
    ada.http.set_role(gid, cleo.uid, Role::Administrator).await.expect("an administrator");
    let (owner, bens, cleos) =
        (world.visitor("Ada").await, world.visitor("Ben").await, world.visitor("Cleo").await);
    for window in [&owner, &bens, &cleos] {
        window.pick("Harbour walk").await;
    }
    owner.click("#open-about").await;
    owner.until("document.querySelectorAll('#members-list li').length === 3").await;
    let items = "[...document.querySelectorAll('#actions button')].map((it) => it.textContent).join()";
    let role = |name: &str, role: &str| {
        format!(
            "[...document.querySelectorAll('#members-list li')].find((it) => it.querySelector('.title').textContent === '{name}')
                .querySelector(':scope > .role')?.textContent === {role}"
        )
    };
    let told =
        |text: &str| format!("[...document.querySelectorAll('.event')].at(-1)?.textContent === '{text}'");
    let roles = async || {
        let members = ben.http.group(gid).await.expect("the group").members;
        [&ada, &ben, &cleo]
            .map(|person| members.iter().find(|member| member.uid == person.uid).expect("a member").role)
    };

    owner.until(&role("Cleo", "'administrator'")).await;
    owner.click("#members-list [title='More about Cleo']").await;
    owner.until(&format!("{items} === 'Make a member,Make the owner,Mute…,Remove…,Ban…'")).await;
    owner.click("#actions button").await;
    owner.until(&role("Cleo", "undefined")).await;
    cleos.until(&told("Ada made you a member again")).await;
    assert_eq!(roles().await, [Role::Owner, Role::Member, Role::Member]);

    for (answer, roles_then) in [
        ("#ask-no", [Role::Owner, Role::Member, Role::Member]),
        ("#ask-yes", [Role::Administrator, Role::Owner, Role::Member]),
    ] {
        owner.click("#members-list [title='More about Ben']").await;
        owner.until(&format!("{items} === 'Make an administrator,Make the owner,Mute…,Remove…,Ban…'")).await;
        owner.click("#actions button:nth-child(2)").await;
        owner.until(ASKS).await;
        owner
            .until(
                "document.getElementById('ask-title').textContent === 'Make Ben the owner of Harbour walk?'",
            )
            .await;
        owner.click(answer).await;
        owner.until(&format!("!{ASKS}")).await;
        if answer == "#ask-yes" {
            owner.until(&role("Ben", "'owner'")).await;
        }
        assert_eq!(roles().await, roles_then, "{answer}");
    }
    owner.until(&role("Ada", "'administrator, you'")).await;
    bens.until(&told("Ada made you the owner")).await;
    // An administrator is offered what administrators may do, and nothing about the owner.
    owner.until("!document.querySelector('#members-list [title=\"More about Ben\"]')").await;
    owner.click("#members-list [title='More about Cleo']").await;
    owner.until(&format!("{items} === 'Mute…,Remove…,Ban…'")).await;
    bens.click("#open-about").await;
    bens.until("document.querySelector('#members-list [title=\"More about Ada\"]')").await;
    bens.click("#members-list [title='More about Ada']").await;
    bens.until(&format!("{items} === 'Make a member,Make the owner,Mute…,Remove…,Ban…'")).await;
}
