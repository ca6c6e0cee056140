//! Makes an overflow of the stack a finding like any other.

/// Enough for the handler that writes the input down.
const SIZE: usize = 256 << 10;

/// Lets libFuzzer's handler of broken memory run on a stack of its own: on the one that has overflowed it could
/// not, and the input would be lost. Called once, before libFuzzer sets its handlers, which keep the flag.
pub fn guard() {
    let stack = Box::leak(vec![0u8; SIZE].into_boxed_slice());
    // SAFETY: both calls get whole, valid structures; the stack is never freed.
    unsafe {
        let own = libc::stack_t { ss_sp: stack.as_mut_ptr().cast(), ss_flags: 0, ss_size: SIZE };
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = libc::SIG_DFL;
        action.sa_flags = libc::SA_ONSTACK;
        assert_eq!(libc::sigaltstack(&own, std::ptr::null_mut()), 0);
        assert_eq!(libc::sigaction(libc::SIGSEGV, &action, std::ptr::null_mut()), 0);
    }
}
