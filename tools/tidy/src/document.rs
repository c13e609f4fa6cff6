//! One Markdown page: its links, its headings, the names in its code spans.

/// A page, with fenced blocks separated from prose.
#[derive(Clone, Debug)]
pub struct Document {
    prose: Vec<String>,
    lines: usize,
}

impl Document {
    /// Reads a page.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let mut fenced = false;
        let mut prose = Vec::new();
        for line in text.lines() {
            if line.trim_start().starts_with("```") {
                fenced = !fenced;
            } else if !fenced {
                prose.push(line.to_owned());
            }
        }
        Self {
            prose,
            lines: text.lines().count(),
        }
    }

    /// Number of lines.
    #[must_use]
    pub fn lines(&self) -> usize {
        self.lines
    }

    /// The targets of its links, images included.
    #[must_use]
    pub fn links(&self) -> Vec<&str> {
        let pieces = self.prose.iter().flat_map(|line| line.split("](").skip(1));
        pieces
            .filter_map(|piece| piece.split_once(')').map(|(target, _)| target))
            .collect()
    }

    /// Texts between single back-quotes.
    #[must_use]
    pub fn code_spans(&self) -> Vec<&str> {
        self.prose
            .iter()
            .flat_map(|line| line.split('`').skip(1).step_by(2))
            .collect()
    }

    /// Anchors of its headings.
    #[must_use]
    pub fn anchors(&self) -> Vec<String> {
        let headings = self.prose.iter().filter(|line| line.starts_with('#'));
        headings
            .map(|line| anchor(line.trim_start_matches('#').trim()))
            .collect()
    }
}

fn anchor(heading: &str) -> String {
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    let words = heading.to_lowercase();
    words
        .chars()
        .filter(kept)
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::Document;

    #[test]
    fn links_headings_and_names_are_found_in_prose_only() {
        let page = Document::new(
            "# A `b` page\nsee [it](x.md#y), `a.rs`\n```\n[no](z.md) `n`\n# no\n```\n## Two words!\n",
        );
        assert_eq!(page.links(), ["x.md#y"]);
        assert_eq!(page.code_spans(), ["b", "a.rs"]);
        assert_eq!(page.anchors(), ["a-b-page", "two-words"]);
        assert_eq!(page.lines(), 7);
    }
}
