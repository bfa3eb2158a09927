//! What a kernel asserts and prints.

use super::lanes::Lanes;
use super::machine::{Frame, Machine, Run};
use super::report::{Finding, Kind, Printed, Same};
use super::scalar;
use crate::artefact::{ParamScalar, Site};
use crate::ir::{Report, Scalar, Span};
use crate::reports;

impl<'m> Machine<'m> {
    /// A report of each of the lanes.
    pub(super) fn report(&mut self, frame: &mut Frame<'m>, report: &'m Report, span: Span, lanes: &Lanes) -> Run<()> {
        let wanted =
            if report.fails { self.options.assertions } else { self.printed.len() < self.options.most_printed };
        if !wanted {
            return Ok(());
        }
        let site = reports::site(self.module, frame.function, report, span);
        let mut given = Vec::with_capacity(report.values.len());
        for value in &report.values {
            let words = self.value(frame, *value, lanes)?;
            given.push((self.scalar(frame.function.expressions[*value].ty), words));
        }
        let at = self.module.locations.describe(span);
        for (position, lane) in lanes.iter().copied().enumerate() {
            let (invocation, at) = (self.invocation(lane), at.clone());
            if report.fails {
                // The others are counted alone.
                let message = if position == 0 { self.message(&site, &given, lane) } else { String::new() };
                let same = Same { kind: Kind::Assertion, span: span.0, other: 0, memory: 0 };
                self.found(same, || Finding::Assertion { message, invocation, at })?;
            } else if self.printed.len() < self.options.most_printed {
                let line = self.message(&site, &given, lane);
                self.printed.push(Printed { line, invocation, at });
            }
        }
        given.into_iter().for_each(|(_, words)| self.give(words));
        Ok(())
    }

    /// The message with the values of one lane, whose words are what a device would report.
    fn message(&self, site: &Site, given: &[(Scalar, Vec<u64>)], lane: u32) -> String {
        let mut words = Vec::new();
        for ((scalar, values), value) in given.iter().zip(&*site.values) {
            for part in values.chunks_exact(self.count) {
                let bits = match value.scalar {
                    ParamScalar::F32 => scalar::convert(*scalar, Scalar::F32, part[lane as usize]),
                    _ => part[lane as usize],
                };
                words.push(bits as u32);
                if value.scalar.bytes() == 8 {
                    words.push((bits >> 32) as u32);
                }
            }
        }
        site.message(&words)
    }
}
