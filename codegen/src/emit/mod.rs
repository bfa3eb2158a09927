//! Emitters: from [`Lowered`](crate::lower::Lowered) kernels to the text of a target. Every target's folder has the same files: `types`, `expr`, `stmt` and
//! `module`.
