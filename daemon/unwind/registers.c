#include "unwind/registers.h"

bool unwind_frame_register(const struct unwind_frame *frame, uint64_t number, uint64_t *value)
{
	const struct unwind_machine *machine = frame->machine;

	if (number == machine->sp) {
		*value = frame->regs.sp;
		return true;
	}
	if (number == machine->pc) {
		*value = frame->regs.pc;
		return true;
	}
	if (number == machine->fp && frame->is_fp_known) {
		*value = frame->regs.fp;
		return true;
	}
	if (number == machine->base && frame->is_base_known) {
		*value = frame->regs.base;
		return true;
	}
	if (number == machine->lr && machine->lr != UNWIND_NO_REGISTER && frame->is_lr_known) {
		*value = frame->regs.lr;
		return true;
	}
	if (frame->others == NULL || number >= 64 || (frame->others_known >> number & 1) == 0) {
		return false;
	}
	*value = frame->others[number];
	return true;
}
