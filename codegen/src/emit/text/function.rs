//! Functions as a whole.

use std::collections::BTreeSet;

use crate::emit::EmitError;
use crate::ir::{ExpressionKind, Function, Handle, Struct, Type, leaves};

use super::usage::called;
use super::{Dialect, Printer, Writer};

type Result<T> = std::result::Result<T, EmitError>;

impl<'a, D: Dialect> Printer<'a, D> {
    /// The functions that the kernel calls, in an order in which each stands before those that call it.
    ///
    /// # Errors
    /// The language cannot say one of them.
    pub fn device_functions(&mut self) -> Result<Vec<String>> {
        let lowered = self.lowered;
        let mut texts = Vec::new();
        for index in called(lowered) {
            texts.push(self.device_function(index, &lowered.module.functions[Handle::from_index(index)])?);
        }
        Ok(texts)
    }

    fn device_function(&mut self, index: usize, function: &'a Function) -> Result<String> {
        let resources = self.resources[index].clone();
        self.precision = function.precision;
        let mut scope = self.scope(function, &resources);
        let arguments: Vec<(String, Type, bool)> = function
            .arguments
            .iter()
            .zip(&scope.arguments)
            .map(|(argument, name)| (name.clone(), self.ty(argument.ty).clone(), argument.by_reference))
            .collect();
        let result = function.result.map(|ty| self.ty(ty));
        let name = self.functions[index].clone();
        let mut out = Writer::default();
        out.comment(&function.doc);
        out.open(D::function(self, &name, &arguments, &resources, result)?);
        self.read_constants(&mut out, function);
        self.block(&mut scope, &mut out, &function.body)?;
        // The IR returns on every path; the languages do not see that of endless loops.
        if let (Some(ty), false) = (result, leaves(&function.body)) {
            out.line(format!("return {};", D::zero(self, ty)?.text));
        }
        out.close("}");
        Ok(out.finish())
    }

    /// The lines that read the specialisation constants that a function uses.
    fn read_constants(&self, out: &mut Writer, function: &Function) {
        if self.constants.is_empty() {
            return;
        }
        let mut used = BTreeSet::new();
        function.live(&function.body, &mut |expression| {
            if let ExpressionKind::Param(param) = function.expressions[expression].kind {
                used.extend(self.lowered.module.constants().position(|(index, ..)| index == param));
            }
        });
        let lines = used.into_iter().filter_map(|position| D::read_constant(&self.constants[position]));
        lines.for_each(|line| out.line(line));
    }

    /// The statements of the kernel's own body, indented once.
    ///
    /// # Errors
    /// The language cannot say one of them.
    pub fn entry_body(&mut self) -> Result<String> {
        let lowered = self.lowered;
        let resources = self.entry_resources.clone();
        self.precision = lowered.module.entry.precision;
        self.hides_first_param = D::hides_first_param(&lowered.module);
        let mut scope = self.scope(&lowered.module.entry, &resources);
        let mut out = Writer::at_depth(1);
        self.read_constants(&mut out, &lowered.module.entry);
        self.block(&mut scope, &mut out, &lowered.module.entry.body)?;
        self.hides_first_param = false;
        Ok(out.finish())
    }

    /// The structs that the kernel's variables, functions and buffers use, inner ones first.
    pub fn used_structs(&self) -> Vec<Handle<Struct>> {
        let module = &self.lowered.module;
        if module.structs.is_empty() {
            return Vec::new();
        }
        let mut used = BTreeSet::new();
        let mut order = Vec::new();
        let functions = called(self.lowered)
            .into_iter()
            .map(|index| &module.functions[Handle::from_index(index)])
            .chain([&module.entry]);
        let mut types: Vec<Handle<Type>> = module.bindings.iter().map(|binding| binding.element).collect();
        types.extend(module.workgroup.iter().map(|(_, variable)| variable.element));
        for function in functions {
            types.extend(function.arguments.iter().map(|argument| argument.ty));
            types.extend(function.result);
            types.extend(function.locals.iter().map(|(_, local)| local.ty));
            function.live(&function.body, &mut |expression| types.push(function.expressions[expression].ty));
        }
        for ty in types {
            self.add_structs(ty, &mut used, &mut order);
        }
        order
    }

    fn add_structs(&self, ty: Handle<Type>, used: &mut BTreeSet<usize>, order: &mut Vec<Handle<Struct>>) {
        match self.ty(ty) {
            Type::Struct(handle) => {
                if used.insert(handle.index()) {
                    for (_, field) in &self.lowered.module.structs[*handle].fields {
                        self.add_structs(*field, used, order);
                    }
                    order.push(*handle);
                }
            }
            Type::Array { element, .. } => self.add_structs(*element, used, order),
            Type::Scalar(_) | Type::Vector { .. } | Type::Enum(_) | Type::Matrix(_) => {}
        }
    }
}
