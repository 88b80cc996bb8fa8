#include "unwind/machine.h"

/*
 * Linux, arch/x86/include/uapi/asm/sigcontext.h: at the trampoline sp is at the ucontext, whose registers begin, r8 first, behind flags, link
 * and stack: at 40.
 */
#define X86_64_SAVED(index) (40 + 8 * (index))

const struct unwind_machine unwind_machine_x86_64 = {
	.image = IMAGE_MACHINE_X86_64,
	.sp = 7,
	.fp = 6,
	.base = 3,
	.pc = 16,
	.lr = UNWIND_NO_REGISTER,
	.record_fp = 0,
	.record_ra = 8,
	.code_mask = UINT64_MAX,
	.signal_code = {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05}, /* mov $15,%rax; syscall */
	.signal_code_bytes = 9,
	.signal_fp = X86_64_SAVED(10),
	.signal_base = X86_64_SAVED(11),
	.signal_sp = X86_64_SAVED(15),
	.signal_pc = X86_64_SAVED(16),
};

/*
 * Linux, arch/arm64/include/uapi/asm: rt_sigframe is a siginfo of 128 bytes and a ucontext, whose mcontext (fault_address, regs[31], sp, pc,
 * pstate) begins, aligned to 16, behind flags, link, stack and a mask of 128 bytes: at 128 + 176.
 */
#define AARCH64_MCONTEXT   (128 + 176)
#define AARCH64_SAVED(reg) (AARCH64_MCONTEXT + 8 + 8 * (reg))

const struct unwind_machine unwind_machine_aarch64 = {
	.image = IMAGE_MACHINE_AARCH64,
	.sp = 31,
	.fp = 29,
	.base = 19,
	.pc = 32,
	.lr = 30,
	.record_fp = 0,
	.record_ra = 8,
	.code_mask = 0x0000ffffffffffff,
	.has_signed_returns = true,
	.signal_code = {0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4}, /* mov x8,#139; svc #0 */
	.signal_code_bytes = 8,
	.has_wrong_signal_rows = true,
	.signal_fp = AARCH64_SAVED(29),
	.signal_base = AARCH64_SAVED(19),
	.signal_lr = AARCH64_SAVED(30),
	.signal_sp = AARCH64_SAVED(31),
	.signal_pc = AARCH64_SAVED(32),
};
