//! Generated pages.

use super::docs_page;
use crate::manifest::Manifest;

fn page_of(text: &str) -> String {
    let manifest = Manifest::load(text.as_bytes(), "bundle.yml");
    docs_page(&manifest.unwrap_or_else(|faults| panic!("{faults}")))
}

#[test]
fn a_page_lists_plans_parameters_secrets_and_examples() {
    let page = page_of(include_str!("../manifest/tests/whole.yml"));
    assert_eq!(page, include_str!("whole.md"));
}

#[test]
fn texts_of_authors_cannot_inject_markdown() {
    let text = "
name: a
description: \"<script> | [link](x) `code`\"
plans:
  - name: p
    description: d
    parameters:
      - {name: q, type: string, default: \"a|b`c\", title: \"one\\ntwo | three\"}
      - {name: s, type: string, default: canary, secret: true}
";
    let page = page_of(text);
    assert!(
        page.contains("&lt;script> \\| \\[link\\](x) \\`code\\`"),
        "{page}"
    );
    assert!(
        page.contains("| `` \"a\\|b`c\" `` | one two \\| three |"),
        "{page}"
    );
    assert!(!page.contains("canary"), "{page}");
}
