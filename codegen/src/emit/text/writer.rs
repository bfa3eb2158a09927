//! Lines with indentation.

/// Collects lines.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    text: String,
    depth: usize,
}

impl Writer {
    /// A writer whose lines start at that depth.
    pub const fn at_depth(depth: usize) -> Self {
        Self { text: String::new(), depth }
    }

    /// One line, without its end; an empty one is not indented.
    pub fn line(&mut self, line: impl AsRef<str>) {
        let line = line.as_ref();
        if !line.is_empty() {
            for _ in 0..self.depth {
                self.text.push_str("    ");
            }
            self.text.push_str(line);
        }
        self.text.push('\n');
    }

    /// A line that opens a block; what follows is indented.
    pub fn open(&mut self, line: impl AsRef<str>) {
        self.line(line);
        self.depth += 1;
    }

    /// A line that closes a block.
    pub fn close(&mut self, line: impl AsRef<str>) {
        self.depth = self.depth.saturating_sub(1);
        self.line(line);
    }

    /// A line that closes one block and opens the next, such as `} else {`.
    pub fn reopen(&mut self, line: impl AsRef<str>) {
        self.close(line);
        self.depth += 1;
    }

    /// The author's documentation as comments.
    pub fn comment(&mut self, doc: &str) {
        for line in doc.trim_end().lines() {
            let line = line.trim_end();
            let line = line.strip_prefix(' ').unwrap_or(line);
            self.line(if line.is_empty() { "//".to_owned() } else { format!("// {line}") });
        }
    }

    /// The lines.
    pub fn finish(self) -> String {
        self.text
    }
}
