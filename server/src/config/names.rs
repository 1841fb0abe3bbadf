//! Names of keys: the one that was probably meant by a mistyped one, and the one that an earlier name has today.

/// The one of `known` that is nearest to `name`, if any is near.
pub(super) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_ascii_lowercase();
    let far = |other: &str| strsim::damerau_levenshtein(&name, &other.to_ascii_lowercase());
    let near = known.into_iter().map(|other| (far(other), other)).min_by_key(|(far, _)| *far)?;
    (near.0 <= name.chars().count().div_ceil(3)).then_some(near.1)
}

/// Keys that had another name in earlier versions: section, earlier name, name. The field of each has the earlier name as a
/// serde alias, too, for the reader of files.
const RENAMED: [(&str, &str, &str); 6] = [
    ("storage", "fold_rows", "flush_rows"),
    ("storage", "fold_bytes", "flush_bytes"),
    ("storage", "fold_seconds", "flush_seconds"),
    ("storage", "fold_chunk", "flush_chunk"),
    ("storage", "known_heads", "known_latest_ids"),
    ("queues", "known_marks", "known_watermarks"),
];

/// Keys of earlier versions that have no effect any more: section and key. They are still read from files, too.
const WITHOUT_EFFECT: [(&str, &str); 3] = [
    ("storage", "known_new_names"),
    ("storage", "journal_page_size"),
    ("storage", "journal_checkpoint_pages"),
];

/// Whether `key` of `section` is read for the sake of earlier versions alone.
pub(super) fn is_without_effect(section: &str, key: &str) -> bool {
    WITHOUT_EFFECT.contains(&(section, key))
}

/// The name that `key` of `section` has today.
pub(super) fn today<'a>(section: &str, key: &'a str) -> &'a str {
    RENAMED.iter().find(|(of, earlier, _)| (*of, *earlier) == (section, key)).map_or(key, |(_, _, name)| name)
}

/// `; did you mean …?`, or nothing.
pub(super) fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, known).map(|near| format!("; did you mean `{near}`?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_reported_if_one_is_near() {
        let known = ["info", "debug", "text_characters"];
        assert_eq!(nearest("inof", known), Some("info"));
        assert_eq!(nearest("TEXT_CHARAKTERS", known), Some("text_characters"));
        assert_eq!(nearest("frobnicate", known), None);
        assert_eq!(did_you_mean("debgu", known), "; did you mean `debug`?");
    }
}
