//! The page that tells what became of all mutants.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::fate::{Fate, Outcome};
use crate::mistake::Mistake;
use crate::survey::Surveyed;

/// What stands before the tables.
const HEAD: &str = include_str!("page.md");

/// How many there are of each fate.
#[derive(Clone, Copy, Debug, Default)]
struct Counts([usize; Fate::ALL.len()]);

impl Counts {
    fn of<'a>(outcomes: impl Iterator<Item = &'a Outcome>) -> Self {
        let mut counts = Self::default();
        for outcome in outcomes {
            for (count, (fate, _)) in counts.0.iter_mut().zip(Fate::ALL) {
                *count += usize::from(outcome.fate == fate);
            }
        }
        counts
    }

    fn all(self) -> usize {
        self.0.iter().sum()
    }

    fn row(self) -> String {
        let cells: String = self.0.iter().map(|count| format!(" {count} |")).collect();
        format!(" {} |{cells}", self.all())
    }

    /// Sites, and of these the mutants that are told of or refused, seen in the result, and equal.
    fn cell(self) -> String {
        let [.., result, equal] = self.0;
        match self.all() {
            0 => " |".to_owned(),
            all => format!(" {all}: {} + {result} + {equal} |", all - result - equal),
        }
    }
}

/// The page, as Markdown.
pub fn page(surveyed: &[Surveyed]) -> String {
    let mut page = HEAD.to_owned();
    page.push_str("\n## By mistake\n\n");
    let headings: String = Fate::ALL.iter().map(|(_, heading)| format!(" {heading} |")).collect();
    let _ = writeln!(page, "| mistake | sites |{headings}");
    let _ = writeln!(page, "|---|{}", "---:|".repeat(Fate::ALL.len() + 1));
    let all = || surveyed.iter().flat_map(|kernel| &kernel.outcomes);
    for mistake in Mistake::ALL {
        let counts = Counts::of(all().filter(|outcome| outcome.site.mistake == mistake));
        let _ = writeln!(page, "| {mistake} |{}", counts.row());
    }
    let _ = writeln!(page, "| all |{}", Counts::of(all()).row());
    page.push_str(
        "\n## By kernel\n\nSites, and of the mutants there those that are told of or refused + those that are seen in the result alone + those that are equal.\n\n",
    );
    let mistakes: String = Mistake::ALL.iter().map(|mistake| format!(" {mistake} |")).collect();
    let _ = writeln!(page, "| kernel |{mistakes}");
    let _ = writeln!(page, "|---|{}", "---|".repeat(Mistake::ALL.len()));
    for kernel in surveyed {
        let cell =
            |mistake| Counts::of(kernel.outcomes.iter().filter(|outcome| outcome.site.mistake == mistake)).cell();
        let cells: String = Mistake::ALL.into_iter().map(cell).collect();
        let names: Vec<String> = kernel.kernels.iter().map(|name| format!("`{name}`")).collect();
        let _ = writeln!(page, "| {} |{cells}", names.join(" "));
    }
    let amiss: BTreeSet<&String> = surveyed.iter().flat_map(|kernel| &kernel.amiss).collect();
    page.push_str("\n## The kernels themselves\n\n");
    if amiss.is_empty() {
        page.push_str("Of the kernels as they are, nothing is told.\n");
    }
    for told in amiss {
        let _ = writeln!(page, "* {told}");
    }
    page.push_str("\n## Survivors\n\nBy file: the mistake, what is seen of it, why, and the lines. Kernels of one family have lines in common, and a mutant of such a line may survive in one of them alone.\n");
    for (file, survivors) in survivors(all()) {
        let _ = writeln!(page, "\n### `{file}`\n");
        for ((mistake, fate, reason), lines) in survivors {
            let heading = Fate::ALL.iter().find(|(of, _)| *of == fate).map_or("", |(_, heading)| *heading);
            let lines: Vec<String> = lines.iter().map(u32::to_string).collect();
            let _ = writeln!(page, "* {mistake}, {heading}: {reason}. Lines {}", lines.join(", "));
        }
    }
    page
}

type Survivors<'a> = BTreeMap<(Mistake, Fate, &'a str), BTreeSet<u32>>;

/// The lines of what nobody told of, by file, mistake and reason.
fn survivors<'a>(outcomes: impl Iterator<Item = &'a Outcome>) -> BTreeMap<&'a str, Survivors<'a>> {
    let mut files: BTreeMap<&str, Survivors<'_>> = BTreeMap::new();
    for outcome in outcomes.filter(|outcome| outcome.fate >= Fate::OtherResult) {
        let site = &outcome.site;
        let (file, line) = site.line.rsplit_once(':').unwrap_or((&site.line, "0"));
        let key = (site.mistake, outcome.fate, outcome.reason.as_str());
        files.entry(file).or_default().entry(key).or_default().insert(line.parse().unwrap_or(0));
    }
    files
}
