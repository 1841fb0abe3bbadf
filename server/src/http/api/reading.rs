//! Limits of answers with many rows: the rate at which an account reads, and the memory that its answers take.

use std::sync::Arc;

use axum::extract::FromRef;
use axum::http::StatusCode;
use axum::response::Response;

use super::json_text;
use crate::domain::Uid;
use crate::http::budget::{Budget, Charge};
use crate::http::error::Problem;
use crate::http::limits::{ClientNetwork, Rates};
use crate::http::proxy::Caller;
use crate::http::state::HttpState;

/// Bytes of a row with a text of usual length. The real size of an answer is known once it is made.
const USUAL_ROW: usize = 1_024;

/// Bytes of the largest page, about: what the store puts into one, and the marks around it.
const LARGEST_PAGE: usize = 5 << 20;

/// Lets accounts read.
pub(in crate::http) struct Reads {
    rates: Arc<Rates>,
    budget: Budget,
}

impl FromRef<HttpState> for Reads {
    fn from_ref(state: &HttpState) -> Reads {
        Reads { rates: Arc::clone(&state.rates), budget: state.budget.clone() }
    }
}

/// An answer with rows that is being made.
pub(in crate::http) struct Reading {
    uid: Uid,
    rates: Arc<Rates>,
    charge: Charge,
}

impl Reads {
    /// Begins an answer to `uid` with up to `rows` rows; refuses those who have read too much, or leave too much unread.
    pub(in crate::http) async fn begin(
        self,
        uid: Uid,
        caller: Caller,
        rows: usize,
    ) -> Result<Reading, Problem> {
        let Reads { rates, budget } = self;
        rates.may_read(uid).map_err(Problem::rate_limited)?;
        let bytes = rows.saturating_mul(USUAL_ROW).min(LARGEST_PAGE);
        let charge = budget.take_soon(ClientNetwork::of(caller.address), bytes).await?;
        Ok(Reading { uid, rates, charge })
    }
}

impl Reading {
    /// So many bytes were read beside those of the answer.
    pub(in crate::http) fn looked_through(self, bytes: usize) -> Reading {
        self.rates.has_read(self.uid, bytes);
        self
    }

    /// The answer.
    pub(in crate::http) fn answer(self, text: String) -> Result<Response, Problem> {
        self.rates.has_read(self.uid, text.len());
        Ok(json_text(StatusCode::OK, self.charge.body(text)?))
    }
}
