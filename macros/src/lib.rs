//! trefoil's proc macros.
use proc_macro::TokenStream;
/// kernel
#[proc_macro_attribute]
pub fn kernel(_a: TokenStream, item: TokenStream) -> TokenStream {
    item
}
/// device
#[proc_macro_attribute]
pub fn device(_a: TokenStream, item: TokenStream) -> TokenStream {
    item
}
/// finish
#[proc_macro]
pub fn kernel_finish(item: TokenStream) -> TokenStream {
    item
}
/// finish
#[proc_macro]
pub fn device_finish(item: TokenStream) -> TokenStream {
    item
}
