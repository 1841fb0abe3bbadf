//! Names of keys: the one that was probably meant by a mistyped one.

/// The one of `known` that is nearest to `name`, if any is near.
pub(super) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_ascii_lowercase();
    let far = |other: &str| strsim::damerau_levenshtein(&name, &other.to_ascii_lowercase());
    let near = known.into_iter().map(|other| (far(other), other)).min_by_key(|(far, _)| *far)?;
    (near.0 <= name.chars().count().div_ceil(3)).then_some(near.1)
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
