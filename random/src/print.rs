//! Programs as Rust: what the front end reads, and what a person gets to see of a kernel that fails.

use std::fmt::Write;

use trefoil_codegen::ir::{Builtin, LogicalOperator, Scalar};

use crate::syntax::{Access, Argument, Block, Expr, Kind, Memory, Mode, Place, Program, Root, Step, Stmt, Ty};

/// The kernel with its functions and types, and a `//` line that tells of its launch.
pub fn source(program: &Program) -> String {
    let needs = program.needs;
    let mut out = String::new();
    let printer = Printer { program };
    for (index, fields) in program.structs.iter().enumerate() {
        let fields: Vec<String> =
            fields.iter().enumerate().map(|(field, ty)| format!("f{field}: {}", printer.ty(ty))).collect();
        let _ = writeln!(out, "#[device]\nstruct S{index} {{ {} }}\n", fields.join(", "));
    }
    for (index, function) in program.functions.iter().enumerate() {
        let params: Vec<String> = function
            .params
            .iter()
            .map(|(var, mode)| {
                let ty = printer.ty(&program.vars[*var].ty);
                match mode {
                    Mode::Value => format!("v{var}: {ty}"),
                    Mode::Mutable => format!("v{var}: &mut {ty}"),
                    Mode::Slice => format!("v{var}: &[{ty}]"),
                }
            })
            .collect();
        let references: Vec<usize> =
            function.params.iter().filter(|(_, mode)| *mode == Mode::Mutable).map(|(var, _)| *var).collect();
        let mut body = Body { printer: &printer, references: &references, out: String::new(), depth: 1 };
        body.block(&function.body);
        let result = body.expr(&function.result);
        let _ = writeln!(
            out,
            "#[device]\nfn g{index}({}) -> {} {{\n{}    {result}\n}}\n",
            params.join(", "),
            printer.ty(&function.result.ty),
            body.out
        );
    }
    let mut signature: Vec<String> = Vec::new();
    for (index, buffer) in program.buffers.iter().enumerate() {
        let ty = printer.ty(&buffer.element);
        signature.push(match buffer.access {
            Access::Read => format!("b{index}: &[{ty}]"),
            Access::Write => format!("b{index}: &mut [{ty}]"),
            Access::Atomic => format!("b{index}: &[Atomic<{ty}>]"),
        });
    }
    let (mut constants, mut wanted) = (Vec::new(), Vec::new());
    for param in &program.params {
        let (var, ty) = (param.var, printer.ty(&program.vars[param.var].ty));
        match param.range {
            Some([first, low, high]) => constants.push(format!("V{var}: {ty} = {first}, in {low}..={high}")),
            None => signature.push(format!("v{var}: {ty}")),
        }
    }
    let features = [(needs.int64, "Int64"), (needs.float64, "Float64"), (needs.subgroups, "Subgroups")];
    wanted.extend(features.into_iter().filter(|(wanted, _)| *wanted).map(|(_, name)| name));
    let mut attribute = format!("workgroup({})", program.workgroup);
    if !wanted.is_empty() {
        let _ = write!(attribute, ", requires({})", wanted.join(", "));
    }
    if !constants.is_empty() {
        let _ = write!(attribute, ", specialise({})", constants.join(", "));
    }
    let mut body = Body { printer: &printer, references: &[], out: String::new(), depth: 1 };
    for (index, shared) in program.shared.iter().enumerate() {
        let ty = printer.ty(&shared.element);
        let (mutable, ty) = if shared.atomic { ("", format!("Atomic<{ty}>")) } else { ("mut ", ty) };
        body.line(&format!("let {mutable}w{index} = workgroup_array::<{ty}>({});", shared.length));
    }
    body.block(&program.body);
    let _ = write!(
        out,
        "// {} workgroups\n#[kernel({attribute})]\nfn k({}) {{\n{}}}\n",
        program.groups,
        signature.join(", "),
        body.out
    );
    out
}

struct Printer<'p> {
    program: &'p Program,
}

impl Printer<'_> {
    fn ty(&self, ty: &Ty) -> String {
        match ty {
            Ty::Scalar(scalar) => scalar.rust_name().to_owned(),
            Ty::Vector(lanes, scalar) => format!("Vec{lanes}<{}>", scalar.rust_name()),
            Ty::Array(element, length) => format!("[{}; {length}]", self.ty(element)),
            Ty::Struct(index) => format!("S{index}"),
        }
    }
}

struct Body<'p> {
    printer: &'p Printer<'p>,
    /// Parameters that are references.
    references: &'p [usize],
    out: String,
    depth: usize,
}

impl Body<'_> {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "{}{text}", "    ".repeat(self.depth));
    }

    fn inner(&mut self, block: &Block) {
        self.depth += 1;
        self.block(block);
        self.depth -= 1;
    }

    fn block(&mut self, block: &Block) {
        for statement in block {
            self.statement(statement);
        }
    }

    fn cases(values: &[u32], signed: bool) -> String {
        let values: Vec<String> = values
            .iter()
            .map(|value| if signed { value.cast_signed().to_string() } else { value.to_string() })
            .collect();
        values.join(" | ")
    }

    fn statement(&mut self, statement: &Stmt) {
        match statement {
            Stmt::Let { var, mutable, value } => {
                let (ty, value) = (self.printer.ty(&self.printer.program.vars[*var].ty), self.expr(value));
                let mutable = if *mutable { "mut " } else { "" };
                self.line(&format!("let {mutable}v{var}: {ty} = {value};"));
            }
            Stmt::Assign(place, operator, value) => {
                let sign = operator.map_or("", |operator| operator.sign());
                let (place, value) = (self.place(place), self.expr(value));
                self.line(&format!("{place} {sign}= {value};"));
            }
            Stmt::SetSeveral(memory, index, value) => {
                let lanes = value.ty.lanes();
                let (index, value) = (self.expr(index), self.expr(value));
                self.line(&format!("{}.set_vec{lanes}({index}, {value});", memory_name(*memory)));
            }
            Stmt::Evaluate(value) => {
                let value = self.expr(value);
                self.line(&format!("{value};"));
            }
            Stmt::If(condition, accept, reject) => {
                let condition = self.expr(condition);
                self.line(&format!("if {condition} {{"));
                self.inner(accept);
                if !reject.is_empty() {
                    self.line("} else {");
                    self.inner(reject);
                }
                self.line("}");
            }
            Stmt::Match(selector, arms, default) => {
                let signed = selector.ty == Ty::I32;
                let selector = self.expr(selector);
                self.line(&format!("match {selector} {{"));
                self.depth += 1;
                for (values, body) in arms {
                    self.line(&format!("{} => {{", Self::cases(values, signed)));
                    self.inner(body);
                    self.line("}");
                }
                self.line("_ => {");
                self.inner(default);
                self.line("}");
                self.depth -= 1;
                self.line("}");
            }
            Stmt::For { var, start, end, step, unroll, reversed, body } => {
                let mut range = format!("{}..{}", self.expr(start), self.expr(end));
                if *reversed {
                    range = format!("({range}).rev()");
                }
                if let Some(step) = step {
                    range = format!("({range}).step_by({step})");
                }
                if *unroll {
                    range = format!("unroll({range})");
                }
                self.line(&format!("for v{var} in {range} {{"));
                self.inner(body);
                self.line("}");
            }
            Stmt::While { var, times, condition, body } => {
                let condition = self.expr(condition);
                self.line(&format!("let mut v{var}: u32 = {times}u32;"));
                self.line(&format!("while v{var} > 0u32 && {condition} {{"));
                self.line(&format!("    v{var} -= 1u32;"));
                self.inner(body);
                self.line("}");
            }
            Stmt::Loop { var, times, condition, body } => {
                let condition = self.expr(condition);
                self.line(&format!("let mut v{var}: u32 = {times}u32;"));
                self.line("loop {");
                self.line(&format!("    if v{var} == 0u32 || {condition} {{ break; }}"));
                self.line(&format!("    v{var} -= 1u32;"));
                self.inner(body);
                self.line("}");
            }
            Stmt::Break => self.line("break;"),
            Stmt::Continue => self.line("continue;"),
            Stmt::Return(value) => {
                let value = self.expr(value);
                self.line(&format!("return {value};"));
            }
            Stmt::Barrier => self.line("barrier();"),
            Stmt::Atomic { var, memory, index, function, values } => {
                let values: Vec<String> = values.iter().map(|value| self.expr(value)).collect();
                let result = var.map_or(String::new(), |var| format!("let v{var} = "));
                let (memory, index) = (memory_name(*memory), self.expr(index));
                self.line(&format!("{result}{memory}[{index}].{}({});", function.name(), values.join(", ")));
            }
            Stmt::Subgroup { var, function, value, lane } => {
                let lane = lane.as_ref().map_or(String::new(), |lane| format!(", {}", self.expr(lane)));
                let value = self.expr(value);
                self.line(&format!("let v{var} = {}({value}{lane});", function.name()));
            }
            Stmt::UniformLoad { var, memory, index } => {
                let index = self.expr(index);
                self.line(&format!("let v{var} = workgroup_uniform_load(&{}[{index}]);", memory_name(*memory)));
            }
        }
    }

    fn place(&self, place: &Place) -> String {
        let mut text = match &place.root {
            Root::Var(var) if self.references.contains(var) && place.path.is_empty() => format!("*v{var}"),
            Root::Var(var) => self.variable(*var),
            Root::Element(memory, index) => format!("{}[{}]", memory_name(*memory), self.expr(index)),
        };
        let mut ty = match &place.root {
            Root::Var(var) => self.printer.program.vars[*var].ty.clone(),
            Root::Element(memory, _) => self.printer.program.element(*memory).clone(),
        };
        for step in &place.path {
            text = self.step(text, &ty, step);
            if let Some(part) = self.printer.program.part(&ty, step) {
                ty = part;
            }
        }
        text
    }

    fn variable(&self, var: usize) -> String {
        let constant = |param: &&crate::syntax::Param| param.var == var && param.range.is_some();
        if self.printer.program.params.iter().any(|param| constant(&param)) {
            format!("V{var}")
        } else {
            format!("v{var}")
        }
    }

    fn step(&self, base: String, ty: &Ty, step: &Step) -> String {
        match (step, ty) {
            (Step::Index(index), _) => format!("{base}[{}]", self.expr(index)),
            (Step::Member(lane), Ty::Vector(..)) => format!("{base}.{}", ["x", "y", "z", "w"][*lane]),
            (Step::Member(index), Ty::Array(..)) => format!("{base}[{index}]"),
            (Step::Member(field), _) => format!("{base}.f{field}"),
        }
    }

    fn exprs(&self, all: &[Expr]) -> String {
        let texts: Vec<String> = all.iter().map(|one| self.expr(one)).collect();
        texts.join(", ")
    }

    fn expr(&self, expr: &Expr) -> String {
        match &expr.kind {
            Kind::Literal(bits) => literal(expr.ty.scalar().unwrap_or(Scalar::U32), *bits),
            Kind::Read(place) => match (&place.root, place.path.is_empty()) {
                (Root::Var(var), true) if self.references.contains(var) => format!("(*v{var})"),
                _ => self.place(place),
            },
            Kind::Part(base, step) => self.step(format!("({})", self.expr(base)), &base.ty, step),
            Kind::Negate(value) => format!("(-{})", self.expr(value)),
            Kind::Not(value) => format!("(!{})", self.expr(value)),
            Kind::Binary(operator, left, right) => {
                format!("({} {} {})", self.expr(left), operator.sign(), self.expr(right))
            }
            Kind::Logical(operator, left, right) => {
                let sign = if *operator == LogicalOperator::And { "&&" } else { "||" };
                format!("({} {sign} {})", self.expr(left), self.expr(right))
            }
            Kind::Math(function, arguments) => format!("{}({})", function.name(), self.exprs(arguments)),
            Kind::Convert(value) => {
                let text = self.expr(value);
                match (value.ty.scalar(), expr.ty.scalar()) {
                    (Some(Scalar::F16 | Scalar::BF16), _) => format!("({text}).to_f32()"),
                    (_, Some(half @ (Scalar::F16 | Scalar::BF16))) => format!("{}::from_f32({text})", half.rust_name()),
                    _ => format!("({text} as {})", self.printer.ty(&expr.ty)),
                }
            }
            Kind::Bitcast(value) => format!("bitcast::<{}>({})", self.printer.ty(&expr.ty), self.expr(value)),
            Kind::Compose(parts) => match &expr.ty {
                Ty::Vector(lanes, scalar) => {
                    format!("Vec{lanes}::<{}>::new({})", scalar.rust_name(), self.exprs(parts))
                }
                Ty::Struct(index) => {
                    let fields: Vec<String> = parts
                        .iter()
                        .enumerate()
                        .map(|(field, part)| format!("f{field}: {}", self.expr(part)))
                        .collect();
                    format!("(S{index} {{ {} }})", fields.join(", "))
                }
                _ => format!("[{}]", self.exprs(parts)),
            },
            Kind::Splat(value) => match &expr.ty {
                Ty::Vector(lanes, scalar) => {
                    format!("Vec{lanes}::<{}>::splat({})", scalar.rust_name(), self.expr(value))
                }
                Ty::Array(_, length) => format!("[{}; {length}]", self.expr(value)),
                _ => self.expr(value),
            },
            Kind::Select(parts) => format!("select({})", self.exprs(&parts[..])),
            Kind::If(parts) => {
                let [condition, accept, reject] = &**parts;
                format!("(if {} {{ {} }} else {{ {} }})", self.expr(condition), self.expr(accept), self.expr(reject))
            }
            Kind::Match(selector, arms, default) => {
                let signed = selector.ty == Ty::I32;
                let mut text = format!("(match {} {{ ", self.expr(selector));
                for (values, arm) in arms {
                    let _ = write!(text, "{} => {}, ", Self::cases(values, signed), self.expr(arm));
                }
                format!("{text}_ => {} }})", self.expr(default))
            }
            Kind::Call(function, arguments) => {
                let arguments: Vec<String> = arguments
                    .iter()
                    .map(|argument| match argument {
                        Argument::Value(value) => self.expr(value),
                        // What is a reference already is handed on.
                        Argument::Mutable(var) if self.references.contains(var) => format!("v{var}"),
                        Argument::Mutable(var) => format!("&mut v{var}"),
                        Argument::Slice(memory @ Memory::Shared(_)) => format!("&{}", memory_name(*memory)),
                        Argument::Slice(memory) => memory_name(*memory),
                    })
                    .collect();
                format!("g{function}({})", arguments.join(", "))
            }
            Kind::Length(memory) => format!("{}.len()", memory_name(*memory)),
            Kind::GlobalIndex => "global_index()".to_owned(),
            Kind::LocalIndex => "local_index()".to_owned(),
            Kind::GroupIndex => "group_index()".to_owned(),
            Kind::GroupCount => "group_count()".to_owned(),
            Kind::SubgroupLane => "subgroup_lane()".to_owned(),
            Kind::SubgroupSize => "subgroup_size()".to_owned(),
            Kind::SubgroupIndex => "subgroup_index()".to_owned(),
            Kind::Axes(builtin) => {
                let name = Builtin::ALL.iter().find(|(known, _)| known == builtin).map_or("", |(_, name)| name);
                format!("{name}()")
            }
            Kind::Several(memory, index) => {
                format!("{}.vec{}({})", memory_name(*memory), expr.ty.lanes(), self.expr(index))
            }
        }
    }
}

fn memory_name(memory: Memory) -> String {
    match memory {
        Memory::Buffer(index) => format!("b{index}"),
        Memory::Shared(index) => format!("w{index}"),
        Memory::Parameter(var) => format!("v{var}"),
    }
}

fn literal(scalar: Scalar, bits: u64) -> String {
    let name = scalar.rust_name();
    let float = |value: f64, text: String| if value.is_sign_negative() { format!("({text})") } else { text };
    match scalar {
        Scalar::Bool => (bits != 0).to_string(),
        Scalar::F32 => {
            let value = f32::from_bits(bits as u32);
            float(value.into(), format!("{value:?}f32"))
        }
        Scalar::F64 => {
            let value = f64::from_bits(bits);
            float(value, format!("{value:?}f64"))
        }
        Scalar::F16 => format!("f16::from_f32({:?}f32)", half::f16::from_bits(bits as u16).to_f32()),
        Scalar::BF16 => format!("bf16::from_f32({:?}f32)", half::bf16::from_bits(bits as u16).to_f32()),
        _ => {
            let value = crate::value::integer(scalar, bits);
            match value {
                _ if value == scalar.limits()[0] && scalar.is_signed() => format!("{name}::MIN"),
                _ if value < 0 => format!("({value}{name})"),
                _ => format!("{value}{name}"),
            }
        }
    }
}
