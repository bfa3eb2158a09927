//! Types that buffers are made of.

/// A type that buffers hold: plain data, laid out alike on the host and on every device.
pub trait Element: bytemuck::Pod + Send + Sync + 'static {}

impl Element for f32 {}
impl Element for i32 {}
impl Element for u32 {}
impl Element for half::f16 {}
