//! Roles without some right: refused at the start, before anything is done; and the role that has all a server needs.

use tidemark_test_support::servers::postgres::Server;

use super::refusals::{as_owner, as_role, refused, served, tables};
use super::servers::run;

/// A server of its own, since roles are known to all databases of one; a database of it, and the same as the role `chat`, which may
/// nothing.
async fn database() -> (Server, String, String) {
    let server = Server::start_with("-c fsync=on");
    let url = server.new_database().await;
    as_owner(&url, "CREATE ROLE chat LOGIN").await;
    let chat = as_role(&url, "chat");
    (server, url, chat)
}

#[tokio::test]
async fn who_may_make_no_tables_is_told_so() {
    let (_server, url, chat) = database().await;
    let said = refused(&chat).await;
    assert!(
        said.contains("tables or functions are missing, and its role chat lacks CREATE on SCHEMA public"),
        "{said}"
    );
    assert!(said.contains("GRANT CREATE ON SCHEMA public TO chat"), "{said}");
    assert_eq!(tables(&url).await, 0);
    as_owner(&url, "REVOKE ALL ON SCHEMA public FROM PUBLIC").await;
    let said = refused(&chat).await;
    assert!(said.contains("its role chat may use no schema of its search_path"), "{said}");
    as_owner(&url, "GRANT ALL ON SCHEMA public TO chat").await;
    served(&chat).await;
}

#[tokio::test]
async fn each_right_that_is_missing_is_named_and_those_of_the_page_are_enough() {
    let (_server, url, chat) = database().await;
    let place = tempfile::tempdir().expect("a directory");
    let (code, _, said) = run(place.path(), &url, &["migrate"]).await;
    assert_eq!(code, 0, "{said}");
    let made = tables(&url).await;
    for (grant, lacks) in [
        ("", "lacks USAGE on SEQUENCE acceptances"),
        ("GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO chat", "lacks SELECT on TABLE _sqlx_migrations"),
        ("GRANT SELECT ON ALL TABLES IN SCHEMA public TO chat", "lacks DELETE on TABLE access_keys"),
        ("GRANT UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO chat", "lacks INSERT on TABLE access_keys"),
    ] {
        if !grant.is_empty() {
            as_owner(&url, grant).await;
        }
        let said = refused(&chat).await;
        assert!(
            said.contains(&format!("its role chat {lacks}; let the owner run GRANT ")),
            "{grant}: {said}"
        );
    }
    as_owner(&url, "GRANT INSERT ON ALL TABLES IN SCHEMA public TO chat").await;
    served(&chat).await;
    as_owner(&url, "REVOKE INSERT ON entries FROM chat").await;
    assert!(refused(&chat).await.contains("lacks INSERT on TABLE entries"));
    as_owner(&url, "GRANT INSERT ON entries TO chat").await;
    as_owner(&url, "REVOKE EXECUTE ON FUNCTION commit_changes FROM PUBLIC").await;
    assert!(refused(&chat).await.contains("lacks EXECUTE on FUNCTION commit_changes(jsonb)"));
    as_owner(&url, "GRANT EXECUTE ON FUNCTION commit_changes TO chat").await;
    served(&chat).await;

    // A function of another version is replaced by the owner, and the role may still call it.
    as_owner(&url, "UPDATE functions SET sum = 'x' WHERE name = 'commit_changes'").await;
    let said = refused(&chat).await;
    assert!(said.contains("its role chat may not change what postgres owns"), "{said}");
    assert!(said.contains("run `tidemark migrate` of this version with the role postgres"), "{said}");
    assert_eq!(run(place.path(), &url, &["migrate"]).await.0, 0);
    served(&chat).await;
    assert_eq!(tables(&url).await, made);
}

/// As some providers have it.
#[tokio::test]
async fn who_may_not_ask_which_cluster_it_is_is_told_so() {
    let (_server, url, chat) = database().await;
    as_owner(&url, "GRANT CREATE ON SCHEMA public TO chat").await;
    as_owner(&url, "REVOKE EXECUTE ON FUNCTION pg_control_system() FROM PUBLIC").await;
    let said = refused(&chat).await;
    assert!(said.contains("lacks EXECUTE on FUNCTION pg_control_system()"), "{said}");
    assert!(said.contains("GRANT EXECUTE ON FUNCTION pg_control_system() TO chat"), "{said}");
    assert_eq!(tables(&url).await, 0);
    let place = tempfile::tempdir().expect("a directory");
    as_owner(&url, "GRANT EXECUTE ON FUNCTION pg_control_system() TO chat").await;
    assert_eq!(run(place.path(), &chat, &["migrate"]).await.0, 0);
}
