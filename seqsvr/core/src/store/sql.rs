//! Claims, ceilings and the layout as columns of tables, for the store in SQLite. Owns nothing. The database has 64-bit integers with a
//! sign only, so epochs and incarnations are stored with their bits as they are, and ceilings end at [`MAX_CEILING`].

use super::claims::{ClaimRun, Claims, Hands};
use super::{Layout, MAX_CEILING, Owner, StoreError};
use crate::ids::{Epoch, SectionId};
use crate::store::message::Held;

/// A row of `hands`: first and last section; term, version, incarnation and whether it has released, of the newest owner
/// and of the highest earlier one.
pub(super) type HandsRow =
    (i64, i64, i64, i64, i64, bool, Option<i64>, Option<i64>, Option<i64>, Option<bool>);

/// Refuses tables that another program wrote; `tables` is what people call them.
pub(super) fn known_version(tables: &str, stored: i64, known: i64) -> Result<(), sqlx::Error> {
    if stored == known {
        return Ok(());
    }
    let other = format!(
        "{tables} has version {stored}, which this program does not know (it knows {known}); use the one that wrote it"
    );
    Err(sqlx::Error::Configuration(other.into()))
}

/// Whether the layout is still to be stored; other settings than the stored ones are refused.
pub(super) fn layout_is_new(stored: Option<(i64, i64)>, configured: Layout) -> Result<bool, StoreError> {
    let Some((section_size, step)) = stored else { return Ok(true) };
    let damaged = |error: sqlx::Error| StoreError::Unavailable(format!("the stored layout: {error}"));
    let stored =
        Layout { section_size: number(section_size).map_err(damaged)?, step: number(step).map_err(damaged)? };
    if stored == configured { Ok(false) } else { Err(StoreError::Layout { stored, configured }) }
}

/// The layout from its two columns.
pub(super) fn stored_layout(stored: Option<(i64, i64)>) -> Result<Option<Layout>, sqlx::Error> {
    let layout =
        |(section_size, step)| Ok(Layout { section_size: number(section_size)?, step: number(step)? });
    stored.map(layout).transpose()
}

/// The claims, from all rows of `hands`.
pub(super) fn claims(rows: Vec<HandsRow>) -> Result<Claims, sqlx::Error> {
    let run = |row: HandsRow| {
        let (first, last, term, version, incarnation, released, ..) = row;
        let earlier = match (row.6, row.7, row.8, row.9) {
            (Some(term), Some(version), Some(incarnation), Some(released)) => {
                Some(Held { owner: owner(term, version, incarnation), released })
            }
            _ => None,
        };
        let owner = Held { owner: owner(term, version, incarnation), released };
        let sections = SectionId::new(number(first)?)..=SectionId::new(number(last)?);
        Ok(ClaimRun { sections, hands: Hands { owner, earlier } })
    };
    Ok(Claims::from_runs(rows.into_iter().map(run).collect::<Result<_, sqlx::Error>>()?))
}

/// The row that `run` is stored as.
pub(super) fn row(ClaimRun { sections, hands: Hands { owner, earlier } }: &ClaimRun) -> HandsRow {
    (
        sections.start().get().into(),
        sections.end().get().into(),
        owner.owner.epoch.term.cast_signed(),
        owner.owner.epoch.version.cast_signed(),
        owner.owner.incarnation.cast_signed(),
        owner.released,
        earlier.map(|held| held.owner.epoch.term.cast_signed()),
        earlier.map(|held| held.owner.epoch.version.cast_signed()),
        earlier.map(|held| held.owner.incarnation.cast_signed()),
        earlier.map(|held| held.released),
    )
}

/// An owner from its three columns.
pub(super) fn owner(term: i64, version: i64, incarnation: i64) -> Owner {
    let epoch = Epoch { term: term.cast_unsigned(), version: version.cast_unsigned() };
    Owner { epoch, incarnation: incarnation.cast_unsigned() }
}

/// A ceiling as it is stored.
pub(super) fn stored(ceiling: u64) -> Result<i64, sqlx::Error> {
    let too_large =
        |_| sqlx::Error::Encode(format!("{ceiling} is above {MAX_CEILING}, the largest ceiling").into());
    i64::try_from(ceiling).map_err(too_large)
}

/// A section, or one of the settings, from a column that is wide enough for it.
pub(super) fn number(column: i64) -> Result<u32, sqlx::Error> {
    u32::try_from(column).map_err(|_| sqlx::Error::Decode(format!("{column} is out of range").into()))
}
