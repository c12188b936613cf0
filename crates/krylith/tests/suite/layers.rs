//! Modules form layers: docs/architecture.md has their order, and a module imports from earlier lines of it only.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

/// The code of a file without comments and without the tests at its end.
fn code(text: &str) -> String {
    let text = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = text.lines().map(|line| line.split_once("//").map_or(line, |(before, _)| before));
    lines.collect::<Vec<_>>().join("\n")
}

/// The first names of all paths that begin with `crate::`, those of groups too.
fn imports(code: &str) -> HashSet<String> {
    let name = |text: &str| text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let mut all = HashSet::new();
    for (place, start) in code.match_indices("crate::") {
        // In a macro, for other crates.
        if code[..place].ends_with('$') {
            continue;
        }
        let rest = &code[place + start.len()..];
        let Some(group) = rest.strip_prefix('{') else {
            all.insert(name(rest));
            continue;
        };
        let (mut depth, mut expects) = (1, true);
        for (k, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' => depth -= 1,
                ',' if depth == 1 => expects = true,
                _ if expects && depth == 1 && !c.is_whitespace() => {
                    all.insert(name(&group[k..]));
                    expects = false;
                }
                _ => {}
            }
            if depth == 0 {
                break;
            }
        }
    }
    all
}

/// The files of a module, but for those that are tests.
fn files(path: &Path, found: &mut Vec<PathBuf>) {
    if path.is_dir() {
        for entry in std::fs::read_dir(path).unwrap() {
            files(&entry.unwrap().path(), found);
        }
    } else if path.extension().is_some_and(|ending| ending == "rs") && !path.ends_with("tests.rs") {
        found.push(path.to_owned());
    }
}

#[test]
fn names_of_paths_are_found() {
    let text = "use crate::{\n    a::B,\n    c::{D, E},\n};\nuse crate::f;\nlet x = crate::g::h();";
    let found =
        imports(&code(&format!("//! crate::z\n{text}\n#[cfg(test)]\nmod tests {{\n    use crate::y;\n}}")));
    assert_eq!(found, ["a", "c", "f", "g"].map(String::from).into());
}

#[test]
fn modules_import_from_earlier_layers_only() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("../../docs/architecture.md")).unwrap();
    let (_, list) = page.split_once("```layers\n").unwrap();
    let (list, _) = list.split_once("```").unwrap();
    let mut layers = HashMap::new();
    for (layer, line) in list.lines().enumerate() {
        for module in line.split_whitespace() {
            assert_eq!(layers.insert(module.to_owned(), layer), None, "{module} is listed twice");
        }
    }
    let mut unseen: HashSet<&str> = layers.keys().map(String::as_str).collect();
    for entry in std::fs::read_dir(root.join("src")).unwrap() {
        let path = entry.unwrap().path();
        let module = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if module == "lib" {
            continue;
        }
        let layer =
            *layers.get(&module).unwrap_or_else(|| panic!("{module} has no layer in docs/architecture.md"));
        unseen.remove(module.as_str());
        let mut found = Vec::new();
        files(&path, &mut found);
        for file in found {
            let text = code(&std::fs::read_to_string(&file).unwrap());
            // From the head of a module, `super` is the crate; from further in, nobody goes there step by step.
            let is_head =
                file.parent() == Some(&root.join("src")) || file.ends_with(format!("{module}/mod.rs"));
            let leaves = text.contains("super::super::super") || is_head && text.contains("super::");
            assert!(!leaves, "{} leaves its module by `super`", file.display());
            for import in imports(&text) {
                let Some(&theirs) = layers.get(&import) else {
                    panic!("{} imports `crate::{import}`, which is no module", file.display());
                };
                assert!(
                    import == module || theirs < layer,
                    "{} imports `{import}`, which is not in an earlier layer than `{module}`",
                    file.display()
                );
            }
        }
    }
    assert!(unseen.is_empty(), "no such modules: {unseen:?}");
}
