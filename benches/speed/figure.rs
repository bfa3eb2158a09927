//! What was measured, and how it is printed.

use trefoil::Device;

use crate::Outcome;

/// A measured case.
pub struct Figure {
    /// What was measured.
    pub name: String,
    /// Nanoseconds of a run alone, the median.
    pub alone: u64,
    /// Nanoseconds of a run among many in a row, the median; rates are of this where it was measured.
    pub in_a_row: Option<u64>,
    /// The same where one run may begin while the one before ends, if that was measured.
    pub overlapping: Option<u64>,
    /// Bytes that had to be moved, where they are the bound.
    pub bytes: Option<u64>,
    /// Floating-point operations, where they are the bound.
    pub flops: Option<u64>,
}

/// The table's columns.
pub fn header() -> String {
    format!(
        "  {:<38} {:>11} {:>11} {:>11} {:>10} {:>9} {:>10}",
        "case", "alone", "in a row", "overlapping", "GB/s", "ceiling", "TFLOP/s"
    )
}

impl Figure {
    /// A time alone, of what is bound neither by bytes nor by operations.
    pub const fn alone(name: String, nanoseconds: u64) -> Self {
        Self { name, alone: nanoseconds, in_a_row: None, overlapping: None, bytes: None, flops: None }
    }

    fn seconds(&self) -> f64 {
        self.in_a_row.unwrap_or(self.alone).max(1) as f64 / 1e9
    }

    /// Bytes a second.
    pub fn bytes_per_second(&self) -> Option<f64> {
        self.bytes.map(|bytes| bytes as f64 / self.seconds())
    }

    /// A line of the table, or a JSON object.
    pub fn print(&self, device: &Device, ceiling: f64, json: bool) -> Outcome {
        let rate = self.bytes_per_second();
        let share = rate.map(|rate| rate / ceiling);
        let flops = self.flops.map(|flops| flops as f64 / self.seconds());
        if json {
            let properties = device.properties();
            say!(
                "{}",
                serde_json::json!({
                    "device": properties.kind.name(),
                    "adapter": properties.name,
                    "case": self.name,
                    "median_ns": self.alone,
                    "median_ns_in_a_row": self.in_a_row,
                    "median_ns_overlapping": self.overlapping,
                    "bytes_per_second": rate,
                    "share_of_ceiling": share,
                    "flops_per_second": flops,
                })
            );
            return Ok(());
        }
        let or_blank = |value: Option<String>| value.unwrap_or_default();
        let milliseconds = |nanoseconds: u64| format!("{:.4} ms", nanoseconds as f64 / 1e6);
        say!(
            "  {:<38} {:>11} {:>11} {:>11} {:>10} {:>9} {:>10}",
            self.name,
            milliseconds(self.alone),
            or_blank(self.in_a_row.map(milliseconds)),
            or_blank(self.overlapping.map(milliseconds)),
            or_blank(rate.map(|rate| format!("{:.1}", rate / 1e9))),
            or_blank(share.map(|share| format!("{:.1} %", share * 100.0))),
            or_blank(flops.map(|flops| format!("{:.3}", flops / 1e12))),
        );
        Ok(())
    }
}
