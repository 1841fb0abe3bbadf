//! Whether a role's list of stores fits the stored configuration, for `seqsvr verify`.

use futures_util::future::join_all;
use tokio::time::timeout;

use super::Quorum;
use seqsvr_core::store::Configuration;
use seqsvr_core::store::message::{Answer, Description, Misaddressed, Question};

impl Quorum {
    /// The mistakes in this role's list of stores, compared with the stored configuration, a line for each.
    pub async fn misfits(&self) -> Vec<String> {
        let listed = self.described(usize::MAX).await;
        let Some(stored) = self.configuration() else { return vec![Misaddressed::Unconfigured.to_string()] };
        let addrs = self.listed_addrs();
        let mut lines: Vec<String> = addrs
            .iter()
            .zip(&listed)
            .enumerate()
            .filter_map(|(index, (addr, what))| {
                let twice = what.as_ref().ok().and_then(|what| {
                    let same = |other: &Result<Description, String>| {
                        other.as_ref().is_ok_and(|other| other.id == what.id)
                    };
                    listed[..index].iter().position(same)
                });
                listed_misfit(&stored, addr, what.as_ref(), twice.map(|first| addrs[first].as_str()))
            })
            .collect();
        let answers = |id: u64| listed.iter().flatten().any(|what| what.id == id);
        lines.extend(
            stored
                .members
                .iter()
                .filter(|one| !answers(one.id))
                .map(|one| format!("no listed address leads to the member {}; add {}", one.name, one.addr)),
        );
        if let Some(write) = self.ways.write.filter(|write| *write != stored.write) {
            lines.push(format!(
                "write = {write}, but the stores use {}; correct it, or leave it out",
                stored.write
            ));
        }
        lines.extend(
            join_all(stored.members.iter().map(|one| self.led_astray(&stored, one.id)))
                .await
                .into_iter()
                .flatten(),
        );
        lines
    }

    /// Whether the stored address of a member leads to another store, or to none.
    async fn led_astray(&self, stored: &Configuration, id: u64) -> Option<String> {
        let member = stored.members.iter().find(|one| one.id == id)?;
        let link = self.ways.dial(&member.addr).ok()?;
        let there = match timeout(self.patience, link.ask(Question::Describe)).await {
            Ok(Ok(Answer::Described(what))) if what.id == id => return None,
            Ok(Ok(Answer::Described(what))) => format!("{} answers", what.name),
            _ => "no process answers".to_owned(),
        };
        Some(format!(
            "the stores know {} at {}, where {there}; if it is gone or has moved: seqsvr store replace {} ADDRESS",
            member.name, member.addr, member.name
        ))
    }
}

fn listed_misfit(
    stored: &Configuration,
    addr: &str,
    what: Result<&Description, &String>,
    first: Option<&str>,
) -> Option<String> {
    let number = stored.number;
    match (what, first) {
        (Err(why), _) => Some(format!("{addr} does not answer: {why}")),
        (Ok(what), Some(first)) => Some(format!("{addr} is {}, as {first} is; list each once", what.name)),
        (Ok(what), None) if !stored.has(what.id) => Some(format!(
            "{addr} is {}, which is not a member of configuration {number}; take it off the list, or add it: seqsvr store add {addr}",
            what.name
        )),
        (Ok(what), None) if what.sealed => {
            Some(format!("{addr} waits for the end of a change of the stores"))
        }
        (Ok(what), None) if what.configuration.as_ref().is_none_or(|one| one.number < number) => {
            Some(format!("{addr} does not know configuration {number} yet"))
        }
        _ => None,
    }
}
