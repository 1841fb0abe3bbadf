//! `cargo xtask release`: the programs, and a Debian package of them, in `target/release-files`.
//!
//! `dpkg-deb` makes the package, and every Debian has it. `cargo-deb` would be one more program to build (95 crates) on
//! each machine that makes a release. It would save the lines of `control` below, and could not run the programs for
//! their man pages and completions.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::{Failure, Stages, cargo, in_workspace, run};

const PROGRAMS: [&str; 2] = ["tidemark", "seqsvr"];

/// The roles of `seqsvr` that serve.
const ROLES: [&str; 4] = ["store", "alloc", "arbiter", "issuer"];

/// The package has these documents, and those in `docs/operating`.
const DOCUMENTS: [&str; 12] = [
    "API.md",
    "CLUSTER-CLIENT.md",
    "CLUSTER.md",
    "EXPORT.md",
    "FACTS.md",
    "FAILOVER.md",
    "ISSUER.md",
    "OPERATING-CLUSTER.md",
    "OPERATING.md",
    "RESP.md",
    "SETTINGS-CLUSTER.md",
    "tidemark.example.toml",
];

/// Builds everything anew but the programs, which cargo builds where something has changed.
pub(crate) fn release() -> Result<(), Failure> {
    let mut stages = Stages::begin();
    stages.must("programs", || {
        cargo(&["build", "--locked", "--release", "--package", "tidemark-server", "--package", "seqsvr"])
    })?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| in_workspace("target"), PathBuf::from);
    let files = target.join("release-files");
    if files.exists() {
        done(fs::remove_dir_all(&files), &files)?;
    }
    let manual = files.join("manual");
    stages.must("man pages and completions", || {
        for name in PROGRAMS {
            copy(&target.join("release").join(name), &files.join(name), 0o755)?;
            let mut program = Command::new(files.join(name));
            program.arg("manual").arg(&manual).env_clear();
            run(program, &format!("{name} manual"))?;
        }
        Ok(())
    })?;
    stages.must("Debian package", || debian(&files, &manual))?;
    let sums =
        "find . -type f ! -name SHA256SUMS -printf '%P\\n' | LC_ALL=C sort | xargs sha256sum > SHA256SUMS";
    shell(&files, sums)?;
    println!("{}:", files.display());
    shell(&files, "du --bytes --all --max-depth=1 | LC_ALL=C sort --key=2 | grep -v '\\.$'")
}

/// Puts the tree of the package together, looks at it, and packs it.
fn debian(files: &Path, manual: &Path) -> Result<(), Failure> {
    let root = files.join("root");
    let (etc, share) = (root.join("etc"), root.join("usr/share"));
    for name in PROGRAMS {
        copy(&files.join(name), &root.join("usr/bin").join(name), 0o755)?;
        copy(
            &manual.join(format!("{name}.bash")),
            &share.join("bash-completion/completions").join(name),
            0o644,
        )?;
        copy(
            &manual.join(format!("_{name}")),
            &share.join("zsh/vendor-completions").join(format!("_{name}")),
            0o644,
        )?;
        let fish = format!("{name}.fish");
        copy(&manual.join(&fish), &share.join("fish/vendor_completions.d").join(&fish), 0o644)?;
        folder(&etc.join(name))?;
    }
    for page in listed(manual)?.iter().filter(|page| page.extension().is_some_and(|section| section == "1")) {
        copy(page, &share.join("man/man1").join(name_of(page)), 0o644)?;
    }
    let documents = share.join("doc/tidemark");
    for name in DOCUMENTS {
        copy(&in_workspace("docs").join(name), &documents.join(name), 0o644)?;
    }
    for file in listed(&in_workspace("docs/operating"))? {
        copy(&file, &documents.join("operating").join(name_of(&file)), 0o644)?;
    }
    copy(&in_workspace("LICENSE"), &documents.join("copyright"), 0o644)?;
    copy(&in_workspace("CHANGELOG.md"), &documents.join("changelog"), 0o644)?;
    shell(&share, "gzip -9 --no-name man/man1/*.1 doc/tidemark/changelog")?;

    let configuration = installed(&text(&in_workspace("docs/tidemark.example.toml"))?);
    write(&etc.join("tidemark/tidemark.toml"), &configuration?, 0o640)?;
    let units = root.join("usr/lib/systemd/system");
    copy(&in_workspace("packaging/tidemark.service"), &units.join("tidemark.service"), 0o644)?;
    let of_roles = text(&in_workspace("packaging/seqsvr-ROLE@.service"))?;
    for role in ROLES {
        write(&units.join(format!("seqsvr-{role}@.service")), &unit_of(&of_roles, role), 0o644)?;
    }
    look_at(&root, &units)?;

    let about = root.join("DEBIAN");
    for script in ["postinst", "prerm", "postrm"] {
        copy(&in_workspace("packaging").join(script), &about.join(script), 0o755)?;
    }
    write(&about.join("conffiles"), "/etc/tidemark/tidemark.toml\n", 0o644)?;
    shell(
        &root,
        "find usr -type f -print0 | LC_ALL=C sort --zero-terminated | xargs --null md5sum > DEBIAN/md5sums",
    )?;
    let size = said("du", &["--summarize", "--block-size=1K", "--apparent-size", path(&root)?])?;
    let size = size.split_whitespace().next().unwrap_or_default();
    let architecture = said("dpkg", &["--print-architecture"])?;
    write(&about.join("control"), &control(&architecture, size, &of_c_library(files)?), 0o644)?;
    shell(files, "find root -type d -exec chmod 755 {} + && dpkg-deb --root-owner-group --build root .")?;
    done(fs::remove_dir_all(&root), &root)
}

/// That the programs understand the configuration and the units that the package brings, and systemd the units.
fn look_at(root: &Path, units: &Path) -> Result<(), Failure> {
    let program = |name: &str| Command::new(root.join("usr/bin").join(name));
    let configuration = root.join("etc/tidemark/tidemark.toml");
    let checked =
        program("tidemark").args(["check-config", "--config"]).arg(configuration).env_clear().output();
    match checked {
        Ok(checked) if checked.status.success() => {}
        _ => {
            return Err(Failure(
                "`tidemark check-config` refuses the configuration of the package".to_owned(),
            ));
        }
    }
    let mut verify = Command::new("systemd-analyze");
    verify.args(["verify", "--man=no", "--recursive-errors=no", "--root"]).arg(root);
    for unit in listed(units)? {
        verify.arg(format!("/usr/lib/systemd/system/{}", name_of(&unit).replace("@.", "@one.")));
    }
    match verify.output() {
        Ok(verified) if !verified.status.success() || !verified.stderr.is_empty() => {
            Err(Failure(format!("systemd-analyze verify: {}", String::from_utf8_lossy(&verified.stderr))))
        }
        Ok(_) => Ok(()),
        Err(_) => {
            eprintln!("xtask: systemd-analyze is not installed: the units are not checked");
            Ok(())
        }
    }
}

/// The example with the place where the unit keeps the data.
fn installed(example: &str) -> Result<String, Failure> {
    const PLACE: &str = "\ndata_dir = \"data\"\n";
    match example.matches(PLACE).count() {
        1 => Ok(example.replace(PLACE, "\ndata_dir = \"/var/lib/tidemark\"\n")),
        _ => Err(Failure(
            "docs/tidemark.example.toml has no line, or several, with the default of data_dir".to_owned(),
        )),
    }
}

/// The unit of one role: the template without its first line, which is about itself.
fn unit_of(template: &str, role: &str) -> String {
    let unit = template.split_once('\n').map_or(template, |(_, unit)| unit);
    unit.replace("ROLE", role)
}

/// `0.1.0-dev` comes before `0.1.0`, which Debian writes with a tilde.
fn control(architecture: &str, kilobytes: &str, c_library: &str) -> String {
    let version = env!("CARGO_PKG_VERSION").replace('-', "~");
    format!(
        "Package: tidemark\nVersion: {version}\nArchitecture: {architecture}\nMaintainer: Tidemark <{repository}>\n\
         Installed-Size: {kilobytes}\nDepends: libc6 (>= {c_library}), libgcc-s1, passwd\n\
         Recommends: ca-certificates\nSection: net\nPriority: optional\nHomepage: {repository}\n\
         Description: chat server that keeps every device in step\n \
         The chat server tidemark, and the sequence service seqsvr with its issuer of numbers.\n",
        repository = env!("CARGO_PKG_REPOSITORY"),
    )
}

/// The newest version of the C library that the programs ask for.
fn of_c_library(files: &Path) -> Result<String, Failure> {
    const NAME: &[u8] = b"GLIBC_2.";
    let mut newest = 0;
    for name in PROGRAMS {
        let path = files.join(name);
        let program = done(fs::read(&path), &path)?;
        let found = program.windows(NAME.len() + 2).filter_map(|window| window.strip_prefix(NAME));
        let minors =
            found.filter_map(|digits| std::str::from_utf8(digits).ok()?.trim_end_matches('\0').parse().ok());
        newest = minors.fold(newest, u32::max);
    }
    Ok(format!("2.{newest}"))
}

fn copy(from: &Path, to: &Path, mode: u32) -> Result<(), Failure> {
    folder(to.parent().unwrap_or(to))?;
    done(fs::copy(from, to), from)?;
    done(fs::set_permissions(to, fs::Permissions::from_mode(mode)), to)
}

fn write(to: &Path, text: &str, mode: u32) -> Result<(), Failure> {
    folder(to.parent().unwrap_or(to))?;
    done(fs::write(to, text), to)?;
    done(fs::set_permissions(to, fs::Permissions::from_mode(mode)), to)
}

fn folder(path: &Path) -> Result<(), Failure> {
    done(fs::create_dir_all(path), path)
}

fn text(path: &Path) -> Result<String, Failure> {
    done(fs::read_to_string(path), path)
}

fn listed(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut files = Vec::new();
    for file in done(fs::read_dir(folder), folder)? {
        files.push(done(file, folder)?.path());
    }
    files.sort();
    Ok(files)
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn path(path: &Path) -> Result<&str, Failure> {
    path.to_str().ok_or_else(|| Failure(format!("{} is not UTF-8", path.display())))
}

fn done<T>(outcome: std::io::Result<T>, path: &Path) -> Result<T, Failure> {
    outcome.map_err(|why| Failure(format!("{}: {why}", path.display())))
}

fn shell(folder: &Path, line: &str) -> Result<(), Failure> {
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).current_dir(folder);
    run(shell, line)
}

fn said(program: &str, words: &[&str]) -> Result<String, Failure> {
    match Command::new(program).args(words).output() {
        Ok(output) if output.status.success() => {
            Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        }
        Ok(output) => Err(Failure(format!("`{program}` ended with {}", output.status))),
        Err(why) => Err(Failure(format!("`{program}` could not be started: {why}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_package_is_configured_and_started_where_its_units_look() {
        let example = text(&in_workspace("docs/tidemark.example.toml")).expect("read");
        let configuration = installed(&example).expect("it has the key");
        assert!(configuration.contains("\ndata_dir = \"/var/lib/tidemark\"\n"));
        let unit = text(&in_workspace("packaging/tidemark.service")).expect("read");
        assert!(unit.contains("\nStateDirectory=tidemark\n") && unit.contains("/etc/tidemark/tidemark.toml"));
        let template = text(&in_workspace("packaging/seqsvr-ROLE@.service")).expect("read");
        for role in ROLES {
            let unit = unit_of(&template, role);
            assert!(unit.starts_with("[Unit]\n") && !unit.contains("ROLE"), "{unit}");
            assert!(unit.contains(&format!("\nExecStart=/usr/bin/seqsvr {role} --config ")), "{unit}");
        }
    }
}
