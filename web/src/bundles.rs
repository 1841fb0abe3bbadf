//! Scripts as browsers fetch them. The modules in `static` are many; a page asks for one module script, which has all that it
//! imports, beside theme.js and the texts.
//!
//! In it a module is a function that runs where the script reaches it, and `module_NAME` holds what the module exports. A script that is
//! fetched later, by `import(…)`, takes the modules that the chat has from there: each runs once. Sources are written for this: an import
//! begins a line and names what it takes, or nothing, where a file is run for its effect; an export stands before what it exports, and
//! no module imports itself through others. Stateless; `assets` asks once.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The script of the chat, which is there before any other is fetched.
const CHAT: &str = "chat.js";
/// What the service worker does with pushes: it lies in the script of the worker, and pages do not fetch it.
pub(crate) const OF_THE_WORKER: &str = "push.js";
/// Stands in files of other projects, which name their licence and stay as they are.
pub(crate) const OF_OTHERS: &str = "made by web/vendor/";

/// Modules, by the names of their files.
pub(crate) struct Modules<'a>(pub(crate) BTreeMap<&'a str, &'a str>);

impl<'a> Modules<'a> {
    /// The scripts to serve: name and text. Modules that only others import are parts of these.
    pub(crate) fn scripts(&self) -> Vec<(&'a str, String)> {
        let imported: Vec<&str> = self.0.values().copied().flat_map(imported_by).collect();
        let chat = self.parts_of(CHAT);
        let script = |(&name, &text): (&&'a str, &&'a str)| {
            if self.is_of_others(name) {
                return Some((name, text.to_owned()));
            }
            let call = format!("import(\"./{name}\")");
            let is_later = self.0.values().any(|text| text.contains(&call));
            let there = if is_later { chat.as_slice() } else { &[] };
            let is_served = !imported.contains(&name) && name != OF_THE_WORKER;
            is_served.then(|| (name, self.script(name, there)))
        };
        self.0.iter().filter_map(script).collect()
    }

    fn is_of_others(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|text| text.contains(OF_OTHERS))
    }

    /// A script with what it imports, but for the modules that are `there` already, in the script of the chat.
    fn script(&self, name: &str, there: &[&str]) -> String {
        let mut script = String::new();
        let (taken, own): (Vec<&str>, Vec<&str>) =
            self.parts_of(name).into_iter().partition(|part| there.contains(part));
        if !taken.is_empty() {
            let taken: Vec<String> = taken.into_iter().map(constant).collect();
            put(&mut script, format_args!("import {{ {} }} from \"./{CHAT}\";\n", taken.join(", ")));
        }
        for part in own {
            put(&mut script, format_args!("// {part}\nexport "));
            self.put_constant(&mut script, part);
        }
        script + &self.without_imports(self.0[name], false).0
    }

    /// What the service worker does with pushes, and what that needs, as constants of a classic script: not all browsers take a module there.
    pub(crate) fn of_the_worker(&self) -> String {
        let mut script = String::new();
        for part in self.parts_of(OF_THE_WORKER).into_iter().chain([OF_THE_WORKER]) {
            self.put_constant(&mut script, part);
        }
        script
    }

    /// The declaration of the constant that holds what a module exports.
    fn put_constant(&self, script: &mut String, part: &str) {
        let (body, exports) = self.without_imports(self.0[part], true);
        let (constant, exports) = (constant(part), exports.join(", "));
        put(script, format_args!("const {constant} = (() => {{\n{body}return {{ {exports} }};\n}})();\n"));
    }

    /// The modules that a script needs, each behind those that it needs itself.
    fn parts_of(&self, name: &str) -> Vec<&'a str> {
        let mut found = Vec::new();
        self.add_parts(name, &mut found);
        found
    }

    fn add_parts(&self, name: &str, found: &mut Vec<&'a str>) {
        for import in self.0.get(name).copied().into_iter().flat_map(imported_by) {
            if !found.contains(&import) && !self.is_of_others(import) {
                self.add_parts(import, found);
                found.push(import);
            }
        }
    }

    /// A module that takes what it imports from constants, and the names that it exports. In a function nothing is exported
    /// (`is_inside`). Imports of other projects' files stay.
    fn without_imports(&self, text: &'a str, is_inside: bool) -> (String, Vec<&'a str>) {
        let (mut body, mut exports) = (String::new(), Vec::new());
        for statement in statements(text) {
            match (import_of(statement), statement.strip_prefix("export ")) {
                (Some((names, file)), _) if !self.is_of_others(file) => {
                    // One for what the file does takes no names.
                    if !names.is_empty() {
                        let names = names.replace(" as ", ": ");
                        put(&mut body, format_args!("const {names} = {};\n", constant(file)));
                    }
                }
                (None, Some(declared)) => {
                    exports.push(name_of(declared));
                    body.push_str(if is_inside { declared } else { statement });
                }
                _ => body.push_str(statement),
            }
        }
        (body, exports)
    }
}

/// The constant that holds what a module exports.
fn constant(file: &str) -> String {
    format!("module_{}", file.trim_end_matches(".js"))
}

/// The names of the files that a module imports; `import(…)` fetches others later.
fn imported_by(text: &str) -> impl Iterator<Item = &str> {
    statements(text).filter_map(|statement| Some(import_of(statement)?.1))
}

/// The lines of a module; an import of several lines is one.
fn statements(mut text: &str) -> impl Iterator<Item = &str> {
    const END: &str = "\";\n";
    std::iter::from_fn(move || {
        let line = text.split_inclusive('\n').next()?;
        let end = if line.starts_with("import ") { text.find(END).map(|at| at + END.len()) } else { None };
        let (statement, rest) = text.split_at(end.unwrap_or(line.len()));
        text = rest;
        Some(statement)
    })
}

/// The names that an import takes, in their braces, and the file.
fn import_of(statement: &str) -> Option<(&str, &str)> {
    let (names, file) = statement.strip_prefix("import ")?.split_once("\"./")?;
    Some((names.trim_end_matches(" from "), file.strip_suffix("\";\n")?))
}

/// The name that a declaration gives.
fn name_of(declaration: &str) -> &str {
    let words = declaration.trim_start_matches("async ");
    let name = words.split_once(' ').map_or("", |(_, name)| name);
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == '$';
    &name[..name.find(|letter: char| !is_part(letter)).unwrap_or(name.len())]
}

fn put(text: &mut String, what: std::fmt::Arguments<'_>) {
    text.write_fmt(what).expect("writing into a String cannot fail");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scripts(modules: &[(&'static str, &'static str)]) -> BTreeMap<&'static str, String> {
        Modules(modules.iter().copied().collect()).scripts().into_iter().collect()
    }

    const PARTS: [(&str, &str); 4] = [
        ("chat.js", "import { a as b,\n  f } from \"./one.js\";\nimport \"./two.js\";\nawait f(b);\n"),
        ("one.js", "export const a = 1;\nexport async function f() {}\n"),
        ("two.js", "import { a } from \"./one.js\";\nexport class C {}\nglobalThis.a = a;\n"),
        ("card.js", "import { f } from \"./one.js\";\nf();\n"),
    ];

    #[test]
    fn a_page_has_one_script_in_which_each_module_runs_once_after_what_it_needs() {
        let scripts = scripts(&PARTS);
        assert_eq!(scripts.keys().copied().collect::<Vec<_>>(), ["card.js", "chat.js"]);
        let expected = "// one.js\nexport const module_one = (() => {\nconst a = 1;\nasync function f() {}\n\
            return { a, f };\n})();\n\
            // two.js\nexport const module_two = (() => {\nconst { a } = module_one;\nclass C {}\nglobalThis.a = a;\n\
            return { C };\n})();\n\
            const { a: b,\n  f } = module_one;\nawait f(b);\n";
        assert_eq!(scripts["chat.js"], expected);
    }

    #[test]
    fn a_script_that_is_fetched_later_takes_the_modules_of_the_chat_from_there() {
        let later = [
            (
                "later.js",
                "import { a } from \"./one.js\";\nimport { m } from \"./mine.js\";\nimport { q } from \"./other.js\";\nexport const z = a + m + q;\n",
            ),
            ("mine.js", "export const m = 2;\n"),
            ("other.js", "// made by web/vendor/x\nexport const q = 3;\n"),
            ("two.js", "const later = () => import(\"./later.js\");\nexport class C {}\n"),
        ];
        let scripts = scripts(&[&PARTS[..2], &PARTS[3..], &later].concat());
        let expected = "import { module_one } from \"./chat.js\";\n\
            // mine.js\nexport const module_mine = (() => {\nconst m = 2;\nreturn { m };\n})();\n\
            const { a } = module_one;\nconst { m } = module_mine;\nimport { q } from \"./other.js\";\nexport const z = a + m + q;\n";
        assert_eq!(scripts["later.js"], expected);
        assert_eq!(scripts["other.js"], later[2].1);
        assert!(!scripts["card.js"].contains("import"), "{}", scripts["card.js"]);
    }

    #[test]
    fn the_worker_has_its_modules_in_its_own_script_and_no_page_has_that_one() {
        let push =
            ("push.js", "import { a } from \"./one.js\";\nexport async function pushed() { return a; }\n");
        let modules = Modules(PARTS.into_iter().chain([push]).collect());
        let expected = "const module_one = (() => {\nconst a = 1;\nasync function f() {}\nreturn { a, f };\n})();\n\
            const module_push = (() => {\nconst { a } = module_one;\nasync function pushed() { return a; }\nreturn { pushed };\n})();\n";
        assert_eq!(modules.of_the_worker(), expected);
        assert!(modules.scripts().iter().all(|(name, _)| *name != "push.js"));
    }
}
