//! A stack of its own for libFuzzer's handler of signals, without which an overflow of the stack ends the process before the input is kept.

/// Gives this thread the stack. It is never freed.
pub fn for_signals() {
    let size = 1 << 16;
    let memory: &'static mut [u8] = vec![0u8; size].leak();
    let stack = libc::stack_t { ss_sp: memory.as_mut_ptr().cast(), ss_flags: 0, ss_size: size };
    // SAFETY: the memory lives as long as the process and nothing else uses it.
    if unsafe { libc::sigaltstack(&stack, std::ptr::null_mut()) } != 0 {
        eprintln!("no stack for signals: {}", std::io::Error::last_os_error());
    }
}
