//! Names in the printed module: the author's, where nothing else has them, and what the printed code uses itself.
//!
//! Names that are made of others ([`derived`]) have two underscores in a row, which no other has.

use std::collections::BTreeSet;

use super::{COPIES, HELPERS};
use crate::emit::cpu::regions::uses;
use crate::ir::{Builtin, CallArgument, ExpressionKind, Function, Module, Root};
use crate::lower::Lowered;

/// What functions are called and what they need.
pub(in crate::emit::cpu) struct FunctionNames {
    pub(in crate::emit::cpu) name: String,
    /// Whether it takes the context: it uses bindings, parameters, workgroup memory or builtins.
    pub(in crate::emit::cpu) context: bool,
    /// Whether it gives the workgroup's invocations the same for the same arguments.
    pub(in crate::emit::cpu) uniform: bool,
}

/// Every name that is shared by the functions of a kernel.
pub(in crate::emit::cpu) struct Names {
    pub(in crate::emit::cpu) bindings: Vec<String>,
    pub(in crate::emit::cpu) workgroup: Vec<String>,
    pub(in crate::emit::cpu) params: Vec<String>,
    pub(in crate::emit::cpu) functions: Vec<FunctionNames>,
    /// Whether invocations are one loop; otherwise they are three, because the kernel asks for positions along several axes.
    pub(in crate::emit::cpu) flat: bool,
    used: BTreeSet<String>,
    pub(super) local_id: bool,
    pub(super) global_id: bool,
    pub(super) global: bool,
    size: [u32; 3],
}

/// The name of what goes with a variable, such as the end of a counter.
pub(in crate::emit::cpu) fn derived(of: &str, name: &str) -> String {
    format!("{of}__{name}")
}

/// Names that the printed code uses for itself, beside those of [`HELPERS`] and [`COPIES`].
const OWN: [&str; 40] = [
    "body",
    "entry",
    "lane",
    "global",
    "global_id",
    "local_id",
    "group",
    "group_id",
    "groups",
    "group_count",
    "base",
    "base_x",
    "limit",
    "p",
    "first",
    "end",
    "last",
    "alive",
    "lane_x",
    "lane_y",
    "lane_z",
    "v",
    "a",
    "b",
    "c",
    "j",
    "i0",
    "i1",
    "i2",
    "i3",
    "value",
    "old",
    "at",
    "compare",
    "context",
    "all",
    "other",
    "given",
    "asked",
    "from",
];

/// Rust's keywords, those included that it keeps for later.
const KEYWORDS: [&str; 53] = [
    "Self", "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro",
    "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static", "struct", "super",
    "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use", "virtual", "where", "while", "yield", "_",
];

/// A name like `wanted` that is free and no keyword, and taken from here on.
fn fresh(used: &mut BTreeSet<String>, wanted: &str) -> String {
    let mut clean = String::new();
    for c in wanted.chars() {
        let c = if c.is_ascii_alphanumeric() { c } else { '_' };
        if c != '_' || !clean.ends_with('_') {
            clean.push(c);
        }
    }
    let mut base =
        if clean.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && !clean.trim_matches('_').is_empty() {
            clean
        } else {
            format!("value{clean}")
        };
    if KEYWORDS.contains(&base.as_str()) {
        base.push('_');
    }
    let mut name = base.clone();
    let mut count = 0;
    while !used.insert(name.clone()) {
        count += 1;
        let apart = if base.ends_with('_') { "" } else { "_" };
        name = format!("{base}{apart}{count}");
    }
    name
}

impl Names {
    pub(super) fn new(module: &Module, lowered: &Lowered, entry: &Function) -> Self {
        let own = OWN.iter().copied().chain(HELPERS.map(|helper| helper.0)).chain(COPIES.map(|copy| copy.name));
        let mut used: BTreeSet<String> = own.map(str::to_owned).collect();
        let bindings = module.bindings.iter().map(|binding| fresh(&mut used, &binding.name)).collect();
        let workgroup = module.workgroup.iter().map(|(_, variable)| fresh(&mut used, &variable.name)).collect();
        let mut fields = BTreeSet::from(["subgroup_size".to_owned()]);
        let params = lowered.params.fields.iter().map(|field| fresh(&mut fields, &field.name)).collect();
        let size = lowered.info.workgroup_size;
        let axes = uses(module, entry, &|builtin| matches!(builtin, Builtin::LocalId | Builtin::GlobalId));
        let mut names = Self {
            bindings,
            workgroup,
            params,
            functions: Vec::new(),
            flat: !axes || (size[1] == 1 && size[2] == 1),
            used,
            local_id: uses(module, entry, &|builtin| builtin == Builtin::LocalId),
            global_id: uses(module, entry, &|builtin| builtin == Builtin::GlobalId),
            global: uses(module, entry, &|builtin| builtin == Builtin::GlobalIndex),
            size,
        };
        for (_, function) in module.functions.iter() {
            let (context, uniform) = names.needs(function, lowered);
            let name = fresh(&mut names.used, &function.name);
            names.functions.push(FunctionNames { name, context, uniform });
        }
        names
    }

    /// Whether a function takes the context, and whether it is uniform; functions before it are known.
    fn needs(&self, function: &Function, lowered: &Lowered) -> (bool, bool) {
        let (mut context, mut uniform) = (false, true);
        let mut root = |root: Root| match root {
            Root::Binding(binding) => {
                context = true;
                let read = lowered.info.access.get(binding as usize) == Some(&crate::artefact::Access::Read);
                uniform &= read;
            }
            Root::Workgroup(_) => {
                context = true;
                uniform = false;
            }
            Root::Local(_) | Root::Argument(_) => {}
        };
        let mut roots = Vec::new();
        let mut fences = false;
        crate::ir::statements(&function.body, &mut |statement| {
            use crate::ir::StatementKind as S;
            match &statement.kind {
                S::Fence(_) => fences = true,
                S::Store { place, .. } | S::UniformLoad { place, .. } => roots.push(place.root),
                S::Atomic { place, .. } => {
                    roots.push(place.root);
                    if let Root::Binding(_) = place.root {
                        roots.push(place.root);
                    }
                }
                _ => {}
            }
        });
        let mut calls = Vec::new();
        // Each invocation has fences of its own.
        let mut varying = fences;
        let mut asks = false;
        function.live(&function.body, &mut |expression| match &function.expressions[expression].kind {
            ExpressionKind::Load(place) => roots.push(place.root),
            ExpressionKind::Call { function, arguments } => {
                calls.push(*function);
                for argument in arguments {
                    if let CallArgument::Reference(given) = argument {
                        roots.push(*given);
                    }
                }
            }
            ExpressionKind::Builtin(builtin) => {
                asks = true;
                varying |= builtin.varies_in_workgroup();
            }
            ExpressionKind::Param(_)
            | ExpressionKind::Length(_)
            | ExpressionKind::ViewExtent { .. }
            | ExpressionKind::ViewStride { .. } => asks = true,
            _ => {}
        });
        roots.into_iter().for_each(&mut root);
        context |= asks;
        uniform &= !varying;
        for call in calls {
            if let Some(callee) = self.functions.get(call.index()) {
                context |= callee.context;
                uniform &= callee.uniform;
            }
        }
        (context, uniform)
    }

    /// The names of a function's locals, which may not hide anything that the function names otherwise.
    pub(super) fn locals(&self, function: &Function) -> (Vec<String>, Vec<String>) {
        let mut used = self.used.clone();
        let arguments = function.arguments.iter().map(|argument| fresh(&mut used, &argument.name)).collect();
        let locals = function.locals.iter().map(|(_, local)| fresh(&mut used, &local.name)).collect();
        (arguments, locals)
    }

    fn shared(&self) -> Vec<&str> {
        let mut names = vec!["p", "lane", "group", "group_id", "groups", "group_count"];
        if self.global {
            names.push("global");
        }
        if self.local_id {
            names.push("local_id");
        }
        if self.global_id {
            names.push("global_id");
        }
        names.extend(self.bindings.iter().chain(&self.workgroup).map(String::as_str));
        names
    }

    /// The expression that hands the context on.
    pub(in crate::emit::cpu) fn context(&self) -> String {
        format!("Context {{ {} }}", self.shared().join(", "))
    }

    /// The lines that compute an invocation's builtins from `lane`; in a loop over invocations `lane_x` and so on are known, else
    /// it is the first.
    pub(in crate::emit::cpu) fn invocation(&self, in_loop: bool) -> Vec<String> {
        let mut lines = Vec::new();
        let [x, y, z] = self.size;
        if self.global {
            // The sum does not wrap: workgroups that reach so far were left out.
            lines.push("let global: u32 = base.unchecked_add(lane);".to_owned());
        }
        let position = match (self.flat, in_loop) {
            (true, _) => "[lane, 0u32, 0u32]",
            (false, true) => "[lane_x, lane_y, lane_z]",
            (false, false) => "[0u32; 3]",
        };
        if self.local_id {
            lines.push(format!("let local_id: [u32; 3] = {position};"));
        }
        if self.global_id {
            let x = if self.flat {
                "base_x.wrapping_add(lane)".to_owned()
            } else {
                format!("group_id[0].wrapping_mul({x}u32).wrapping_add({position}[0])")
            };
            lines.push(format!(
                "let global_id: [u32; 3] = [{x}, group_id[1].wrapping_mul({y}u32).wrapping_add({position}[1]), \
                 group_id[2].wrapping_mul({z}u32).wrapping_add({position}[2])];"
            ));
        }
        lines
    }
}
