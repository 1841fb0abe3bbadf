//! Puts the configuration together: defaults, file, environment, flags.

use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::names::did_you_mean;
use super::{Config, ConfigError};

/// The flags of every command; each wins over file and environment.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Flags {
    /// Read this TOML file; docs/tidemark.example.toml lists every key
    #[arg(long, global = true, env = "TIDEMARK_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Keep the database and its lock in this directory [default: data]
    #[arg(long, global = true, env = "TIDEMARK_DATA_DIR", value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Use this database, sqlite:PATH or postgres://USER:PASSWORD@HOST/DATABASE [default: sqlite:DIR/tidemark.db]
    #[arg(long, global = true, env = "TIDEMARK_DATABASE_URL", value_name = "URL")]
    pub database_url: Option<String>,
    /// Serve on this address; port 0 picks a free one [default: 127.0.0.1:8080]
    #[arg(long, global = true, env = "TIDEMARK_LISTEN", value_name = "ADDRESS")]
    pub listen: Option<String>,
}

impl Flags {
    /// Those that stand for a key: flag, section, key and text.
    fn values(&self) -> impl Iterator<Item = (&'static str, &'static str, &'static str, String)> {
        let data_dir = self.data_dir.as_ref().map(|dir| dir.to_string_lossy().into_owned());
        let given = [
            ("--listen", "server", "listen", self.listen.clone()),
            ("--data-dir", "storage", "data_dir", data_dir),
            ("--database-url", "storage", "database_url", self.database_url.clone()),
        ];
        given.into_iter().filter_map(|(flag, section, key, text)| text.map(|text| (flag, section, key, text)))
    }
}

const PREFIX: &str = "TIDEMARK_";

/// The variables that stand for flags.
const FLAGS: [&str; 8] = [
    "CONFIG",
    "DATA_DIR",
    "DATABASE_URL",
    "LISTEN",
    "TABLE_ACCESS_KEY_ID",
    "TABLE_ACCESS_KEY_SECRET",
    "TABLE_ENDPOINT",
    "TABLE_INSTANCE",
];

impl Config {
    /// Reads the file that `flags` name, lays `environment` and `flags` over it, and checks the result.
    pub fn load(
        flags: &Flags,
        environment: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Config, ConfigError> {
        let defaults = Table::try_from(Config::default()).expect("sections are plain tables");
        let mut table = flags.config.as_deref().map(read_file).transpose()?.unwrap_or_default();
        for (name, text) in environment {
            let Some(rest) = name.strip_prefix(PREFIX).filter(|rest| !is_foreign(rest)) else { continue };
            let lower = rest.to_ascii_lowercase();
            let found = lower.split_once("__").and_then(|(section, key)| {
                let default = defaults.get(section)?.get(key)?;
                Some((section, key, default))
            });
            let Some((section, key, default)) = found else {
                let known = known_variables(&defaults);
                let hint = match did_you_mean(&name, known.iter().map(String::as_str)) {
                    none if none.is_empty() => "; `tidemark check-config` lists all keys".to_owned(),
                    meant => meant,
                };
                return Err(ConfigError::Variable { name, why: format!("no setting has this name{hint}") });
            };
            let value = value_like(default, &text)
                .map_err(|why| ConfigError::Variable { name: name.clone(), why })?;
            // Deserialising each value alone tells which variable is wrong.
            probe(section, key, value.clone()).map_err(|why| ConfigError::Variable { name, why })?;
            put(&mut table, section, key, value);
        }
        for (flag, section, key, text) in flags.values() {
            let value = Value::String(text);
            probe(section, key, value.clone())
                .map_err(|why| ConfigError::Variable { name: flag.to_owned(), why })?;
            put(&mut table, section, key, value);
        }
        let config: Config = Value::Table(table).try_into().map_err(|e: toml::de::Error| {
            ConfigError::Variable { name: "configuration".into(), why: one_line(e.message()) }
        })?;
        config.check()?;
        Ok(config)
    }
}

/// Whether `rest`, what follows the prefix, is a variable that is not ours to check: those of the flags, which have been read, and
/// those that Kubernetes sets for a service called `tidemark`.
fn is_foreign(rest: &str) -> bool {
    FLAGS.contains(&rest)
        || rest == "PORT"
        || ["PORT_", "SERVICE_HOST", "SERVICE_PORT"].iter().any(|service| rest.starts_with(service))
}

fn known_variables(defaults: &Table) -> Vec<String> {
    let keys = defaults.iter().flat_map(|(section, keys)| {
        let keys = keys.as_table().into_iter().flatten();
        keys.map(move |(key, _)| format!("{PREFIX}{}__{}", section.to_uppercase(), key.to_uppercase()))
    });
    keys.chain(FLAGS.iter().map(|flag| format!("{PREFIX}{flag}"))).collect()
}

/// The reader's complaint in one line. For an unknown field it names the nearest known one instead of all of them.
fn complaint(message: &str) -> String {
    let line = one_line(message);
    let unknown = line.strip_prefix("unknown field `").and_then(|rest| rest.split_once('`'));
    let Some((name, _)) = unknown else { return line };
    let defaults = Table::try_from(Config::default()).expect("sections are plain tables");
    let keys = defaults.iter().flat_map(|(section, keys)| {
        let keys = keys.as_table().into_iter().flatten().map(|(key, _)| key.as_str());
        keys.chain([section.as_str()])
    });
    match did_you_mean(name, keys).as_str() {
        "" => line,
        meant => format!("unknown field `{name}`{meant}"),
    }
}

fn read_file(path: &Path) -> Result<Table, ConfigError> {
    let text =
        std::fs::read_to_string(path).map_err(|why| ConfigError::File { path: path.to_owned(), why })?;
    let fault = |error: toml::de::Error| {
        let before = error.span().map_or(0, |span| span.start.min(text.len()));
        let line = text.as_bytes()[..before].iter().filter(|&&byte| byte == b'\n').count() + 1;
        ConfigError::Syntax { path: path.to_owned(), line, why: complaint(error.message()) }
    };
    toml::from_str::<Config>(&text).map_err(fault)?;
    toml::from_str::<Table>(&text).map_err(fault)
}

/// Reads `text` as the type that `default` has.
fn value_like(default: &Value, text: &str) -> Result<Value, String> {
    let wrong = |expected: &str| format!("`{text}` is no {expected}");
    match default {
        Value::Integer(_) => text.trim().parse().map(Value::Integer).map_err(|_| wrong("whole number")),
        Value::Boolean(_) => text.trim().parse().map(Value::Boolean).map_err(|_| wrong("true or false")),
        Value::Array(_) => Ok(Value::Array(
            text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(Value::from).collect(),
        )),
        _ => Ok(Value::String(text.to_owned())),
    }
}

fn probe(section: &str, key: &str, value: Value) -> Result<(), String> {
    let mut alone = Table::new();
    put(&mut alone, section, key, value);
    Value::Table(alone).try_into::<Config>().map(drop).map_err(|e| one_line(e.message()))
}

fn put(table: &mut Table, section: &str, key: &str, value: Value) {
    let keys = table.entry(section).or_insert_with(|| Value::Table(Table::new()));
    if let Value::Table(keys) = keys {
        keys.insert(key.to_owned(), value);
    }
}

/// In one line, and without names of Rust's types.
fn one_line(message: &str) -> String {
    let lines = message.split('\n').map(str::trim).filter(|line| !line.is_empty());
    let mut line = lines.collect::<Vec<_>>().join("; ");
    for (types, words) in [
        (&["usize", "u64", "u32", "u16", "u8"][..], "a whole number of 0 or more"),
        (&["i64"], "a whole number"),
        (&["a boolean"], "true or false"),
        (&["a sequence"], "a list"),
    ] {
        for name in types {
            line = line.replace(&format!("expected {name}"), &format!("expected {words}"));
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    fn env(name: &str, text: &str) -> Vec<(String, String)> {
        vec![(name.to_owned(), text.to_owned())]
    }

    fn file(text: &str) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.write_all(text.as_bytes()).expect("written");
        file
    }

    #[test]
    fn what_is_expected_is_said_in_words() {
        for (text, expected) in [
            ("[limits]\nconnections = \"many\"\n", "expected a whole number of 0 or more"),
            ("[limits]\nconnections = -1\n", "expected a whole number of 0 or more"),
            ("[server]\ntrusted_proxies = 5\n", "expected a list"),
        ] {
            let file = file(text);
            let flags = Flags { config: Some(file.path().to_owned()), ..Flags::default() };
            let wrong = Config::load(&flags, []).expect_err("refused").to_string();
            assert!(wrong.contains(expected), "{wrong}");
        }
    }

    #[test]
    fn a_flag_wins_over_a_variable_and_a_variable_over_the_file() {
        let file =
            file("[server]\nlisten = \"127.0.0.1:1\"\n[limits]\ntext_characters = 5\ngroup_members = 6\n");
        let flags = Flags {
            config: Some(file.path().to_owned()),
            listen: Some("127.0.0.1:3".into()),
            ..Flags::default()
        };
        let mut vars = env("TIDEMARK_SERVER__LISTEN", "127.0.0.1:2");
        vars.extend(env("TIDEMARK_LIMITS__TEXT_CHARACTERS", "7"));
        vars.extend(env("TIDEMARK_SERVER__TRUSTED_PROXIES", "10.0.0.0/8, ::1"));
        let config = Config::load(&flags, vars).expect("good");
        assert_eq!(config.server.listen.to_string(), "127.0.0.1:3");
        assert_eq!(config.limits.text_characters, 7);
        assert_eq!(config.limits.group_members, 6);
        assert_eq!(config.server.trusted_proxies.len(), 2);
    }

    #[test]
    fn an_unknown_key_is_named_with_its_line() {
        let file = file("[limits]\ntext_characters = 5\ntext_charakters = 5\n");
        let flags = Flags { config: Some(file.path().to_owned()), ..Flags::default() };
        let reported = Config::load(&flags, Vec::new()).expect_err("unknown").to_string();
        assert!(
            reported.ends_with("line 3: unknown field `text_charakters`; did you mean `text_characters`?"),
            "{reported}"
        );
    }

    #[test]
    fn a_variable_that_nothing_has_is_refused_with_the_nearest_name() {
        for (name, meant) in [
            ("TIDEMARK_LISTN", "did you mean `TIDEMARK_LISTEN`?"),
            ("TIDEMARK_LIMITS_TEXT_CHARACTERS", "did you mean `TIDEMARK_LIMITS__TEXT_CHARACTERS`?"),
            ("TIDEMARK_LIMIT__TEXT_CHARACTERS", "did you mean `TIDEMARK_LIMITS__TEXT_CHARACTERS`?"),
            ("TIDEMARK_FROBNICATION", "`tidemark check-config` lists all keys"),
        ] {
            let reported = Config::load(&Flags::default(), env(name, "5")).expect_err(name).to_string();
            assert!(
                reported.starts_with(name) && reported.contains(meant) && !reported.contains('\n'),
                "{reported}"
            );
        }
    }

    #[test]
    fn variables_of_flags_and_of_a_service_called_tidemark_are_left_alone() {
        for name in
            ["TIDEMARK_CONFIG", "TIDEMARK_PORT", "TIDEMARK_PORT_8080_TCP_ADDR", "TIDEMARK_SERVICE_HOST"]
        {
            Config::load(&Flags::default(), env(name, "x")).expect(name);
        }
    }

    #[test]
    fn a_variable_that_names_nothing_or_holds_the_wrong_type_is_refused_by_name() {
        for (name, text) in [
            ("TIDEMARK_LIMITS__TEXT_CHARAKTERS", "5"),
            ("TIDEMARK_LIMITS__TEXT_CHARACTERS", "many"),
            ("TIDEMARK_LIMITS__TEXT_CHARACTERS", "-1"),
            ("TIDEMARK_SERVER__TRUSTED_PROXIES", "10.0.0.0/40"),
        ] {
            let reported = Config::load(&Flags::default(), env(name, text)).expect_err(text).to_string();
            assert!(reported.starts_with(name), "{reported}");
        }
    }

    #[test]
    fn a_password_of_the_database_is_read_and_not_told() {
        let url = "postgres://ann:s3cret@db/tidemark";
        let flags = Flags { database_url: Some(url.into()), ..Flags::default() };
        let config = Config::load(&flags, Vec::new()).expect("good");
        assert_eq!(config.storage.database_url.with_password(), url);
        assert!(!config.to_toml().contains("s3cret") && !format!("{config:?}").contains("s3cret"));
        let flags = Flags { database_url: Some("mysql://ann:s3cret@db/tidemark".into()), ..Flags::default() };
        let said = Config::load(&flags, Vec::new()).expect_err("unknown").to_string();
        assert!(said.contains("write sqlite:PATH or postgres://") && !said.contains("s3cret"), "{said}");
    }
}
