//! `#[device]` items as they travel from where they are defined to the kernels that use them.
//!
//! A macro sees its own tokens only. So `#[device]` resolves the paths that an item writes ([`super::items_named`]) *where the item is
//! defined*, and exports a **closed bundle**: the item and everything that it uses, directly or not, each once. A kernel gathers the
//! bundles of the items that it names itself and hands their union to [`super::parse`].
//!
//! Items know each other by content hash, never by name: two crates may have functions of one name, and one item may be named by
//! several paths. `names` says, for one item, which hash each path in its text means; the key is [`path_name`] of the path.
//!
//! # As tokens
//! `{ "HASH" failed? { "path::name" = "HASH", .. } { item } }`; `failed` is the bare word. A closed bundle is a row of these. The item's
//! tokens keep the spans of their author.

use std::collections::BTreeMap;

use proc_macro2::{Delimiter, TokenStream};
use quote::{ToTokens, quote};
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;

/// One `#[device]` item.
#[derive(Clone, Debug)]
pub struct Bundle {
    /// What the item is known by: a hash of its text and of the items that it names.
    pub hash: String,
    /// The fn, const, struct, enum or impl, without the `#[device]` attribute; other attributes stay. One that is `failed` may be of any kind.
    pub item: syn::Item,
    /// For each path to another item in its text, by [`path_name`], the hash of that item.
    pub names: Names,
    /// Whether the item has a mistake, which was reported where it is defined: whoever uses it says nothing more.
    pub failed: bool,
}

/// Which item each path means, by [`path_name`] of the path.
pub type Names = BTreeMap<String, String>;

impl Bundle {
    /// The bundle of an item whose names are resolved.
    pub fn new(item: syn::Item, names: Names, failed: bool) -> Self {
        let mut hash = Hasher::default();
        hash.add(&item.to_token_stream().to_string());
        for (name, target) in &names {
            hash.add(name);
            hash.add(target);
        }
        Self { hash: hash.finish(), item, names, failed }
    }

    /// The name in the item's definition.
    pub fn ident(&self) -> Option<&syn::Ident> {
        match &self.item {
            syn::Item::Fn(item) => Some(&item.sig.ident),
            syn::Item::Const(item) => Some(&item.ident),
            syn::Item::Struct(item) => Some(&item.ident),
            syn::Item::Enum(item) => Some(&item.ident),
            _ => None,
        }
    }
}

impl ToTokens for Bundle {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        let (hash, item) = (&self.hash, &self.item);
        let failed = self.failed.then(|| quote!(failed));
        let names = self.names.iter().map(|(name, hash)| quote!(#name = #hash));
        tokens.extend(quote!({ #hash #failed { #(#names),* } { #item } }));
    }
}

impl Parse for Bundle {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let content;
        syn::braced!(content in input);
        let hash: syn::LitStr = content.parse()?;
        let failed: Option<syn::Ident> = content.parse()?;
        if let Some(word) = failed.as_ref().filter(|word| *word != "failed") {
            return Err(syn::Error::new(word.span(), "expected `failed`"));
        }
        let (names, item);
        syn::braced!(names in content);
        syn::braced!(item in content);
        let names = Punctuated::<Name, syn::Token![,]>::parse_terminated(&names)?;
        Ok(Self {
            hash: hash.value(),
            item: item.parse()?,
            names: names.into_iter().map(|name| (name.0.value(), name.1.value())).collect(),
            failed: failed.is_some(),
        })
    }
}

struct Name(syn::LitStr, syn::LitStr);

impl Parse for Name {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let name = input.parse()?;
        input.parse::<syn::Token![=]>()?;
        Ok(Self(name, input.parse()?))
    }
}

/// Several bundles in a row, as one item's closed bundle; items that occur more than once are kept once.
#[derive(Clone, Debug, Default)]
pub struct Bundles(pub Vec<Bundle>);

impl Bundles {
    /// Adds an item, unless one of the same hash is there.
    pub fn add(&mut self, bundle: Bundle) {
        if self.0.iter().all(|known| known.hash != bundle.hash) {
            self.0.push(bundle);
        }
    }

    /// Reads a closed bundle, and adds those of its items that are not there yet. The others are passed over: bundles of items that use the same ones hold most
    /// of them again.
    ///
    /// # Errors
    /// It is none.
    pub fn read(&mut self, input: ParseStream<'_>) -> syn::Result<()> {
        while !input.is_empty() {
            let ahead = input.fork();
            let content;
            syn::braced!(content in ahead);
            let hash = content.parse::<syn::LitStr>()?.value();
            if self.0.iter().any(|known| known.hash == hash) {
                input.step(|cursor| match cursor.group(Delimiter::Brace) {
                    Some((_, _, rest)) => Ok(((), rest)),
                    None => Err(cursor.error("expected a bundle")),
                })?;
            } else {
                self.0.push(input.parse()?);
            }
        }
        Ok(())
    }
}

impl Parse for Bundles {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let mut bundles = Self::default();
        bundles.read(input)?;
        Ok(bundles)
    }
}

impl ToTokens for Bundles {
    fn to_tokens(&self, tokens: &mut TokenStream) {
        for bundle in &self.0 {
            bundle.to_tokens(tokens);
        }
    }
}

/// A path as a key of [`Names`]: its segments joined by `::`, without generic arguments, with the leading `::` if it has one.
pub fn path_name(path: &syn::Path) -> String {
    let mut name = String::new();
    for (position, segment) in path.segments.iter().enumerate() {
        if position > 0 || path.leading_colon.is_some() {
            name.push_str("::");
        }
        name.push_str(&segment.ident.to_string());
    }
    name
}

/// FNV-1a over 128 bits: the same on every machine.
struct Hasher(u128);

impl Default for Hasher {
    fn default() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }
}

impl Hasher {
    fn add(&mut self, text: &str) {
        // A byte that UTF-8 never holds ends each text, so that no two lists of texts run together alike.
        for byte in text.bytes().chain([0xff]) {
            self.0 ^= u128::from(byte);
            self.0 = self.0.wrapping_mul(0x0100_0000_0000_0000_0000_013b);
        }
    }

    fn finish(self) -> String {
        format!("{:032x}", self.0)
    }
}
