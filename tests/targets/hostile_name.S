# A function whose name no compiler gives; x86-64 and AArch64.
	.text
	.globl	"bad;name <&'>]]>"
	.type	"bad;name <&'>]]>", %function
"bad;name <&'>]]>":
#if defined(__x86_64__)
	push	%rbp
	mov	%rsp, %rbp
	call	*%rdi
	pop	%rbp
	ret
#elif defined(__aarch64__)
	stp	x29, x30, [sp, #-16]!
	mov	x29, sp
	blr	x0
	ldp	x29, x30, [sp], #16
	ret
#endif
	.size	"bad;name <&'>]]>", . - "bad;name <&'>]]>"
	.section	.data.rel.ro, "aw"
	.globl	hostile_function
	.type	hostile_function, %object
	.balign	8
hostile_function:
	.quad	"bad;name <&'>]]>"
	.size	hostile_function, 8
	.section	.note.GNU-stack, "", %progbits
