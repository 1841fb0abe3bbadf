//! Reports: what somebody finds wrong with a message or a person, for those who can do something about it.

use super::{ClientId, GroupId, IdempotencyKey, Timestamp, Uid};

/// Characters of the reporter's own words.
pub const LONGEST_REPORT: usize = 1_000;

/// Reports of one account in a day.
pub const REPORTS_A_DAY: u32 = 20;

/// What is wrong. The words are stored and must stay stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Advertising and the like.
    Spam,
    /// Somebody is insulted or threatened.
    Harassment,
    /// A law is broken.
    Illegal,
    /// Something else, which the reporter's own words say.
    Other,
}

impl Reason {
    /// The word in the database and in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::Spam => "spam",
            Reason::Harassment => "harassment",
            Reason::Illegal => "illegal",
            Reason::Other => "other",
        }
    }

    /// The reason of that word.
    pub fn parse(word: &str) -> Option<Reason> {
        [Reason::Spam, Reason::Harassment, Reason::Illegal, Reason::Other]
            .into_iter()
            .find(|reason| reason.as_str() == word)
    }
}

/// A message that was reported, as it stood then. Its text stays with the report when the message is taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReportedMessage {
    /// Its name, which all copies share: the sender is the person that the report is about.
    pub key: IdempotencyKey,
    /// The group that it was sent to; `None`: it was sent to the reporter alone.
    pub gid: Option<GroupId>,
    /// Its text.
    pub text: String,
    /// When it was sent.
    pub sent_at: Timestamp,
}

/// What a report says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    /// When it was made.
    pub made_at: Timestamp,
    /// What is wrong.
    pub reason: Reason,
    /// The reporter's own words; may be empty.
    pub words: String,
    /// The person that it is about.
    pub about: Uid,
    /// The message that it is about; `None`: it is about the person.
    pub message: Option<ReportedMessage>,
}

impl Complaint {
    /// Whether `other` says the same, at another time perhaps.
    pub fn is_repeated_by(&self, other: &Complaint) -> bool {
        let key = |complaint: &Complaint| complaint.message.as_ref().map(|message| message.key);
        (self.reason, &self.words, self.about, key(self))
            == (other.reason, &other.words, other.about, key(other))
    }
}

/// A report that is about to be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewReport {
    /// Its maker.
    pub reporter: Uid,
    /// By which a repetition is known.
    pub client_id: ClientId,
    /// What it says.
    pub complaint: Complaint,
}

/// A report that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Its number; later ones are larger.
    pub number: u64,
    /// Its maker; `None`: the account is deleted.
    pub reporter: Option<Uid>,
    /// What it says.
    pub complaint: Complaint,
    /// Whether the operators have closed it.
    pub is_closed: bool,
}

impl Report {
    /// The group of the reported message, if it was said in one.
    pub fn gid(&self) -> Option<GroupId> {
        self.complaint.message.as_ref()?.gid
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_read_back_from_its_word() {
        for reason in [Reason::Spam, Reason::Harassment, Reason::Illegal, Reason::Other] {
            assert_eq!(Reason::parse(reason.as_str()), Some(reason));
        }
        assert_eq!(Reason::parse("Spam"), None);
    }
}
