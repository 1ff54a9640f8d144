/* What a program of GCC's needs to link any code made for the ABI of Microsoft's compiler: the stack probe, under the
 * name that compiler gives it. */
__asm__(".globl __chkstk\n__chkstk: jmp ___chkstk_ms");
