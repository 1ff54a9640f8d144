// What reheap-guarded.dll tells the loader for control-flow guard: the functions that may be called by pointer, which
// the linker lists (__guard_…) from what the compiler noted. None of its own calls is checked: those to the functions
// that were there before lead into trampolines, which are no targets for anybody else.

// Beside that, what the compiler expects of a C runtime where there are numbers with fractions.
int _fltused = 0;

#define SLOT __attribute__((section(".00cfg"), used))

// Where the loader puts the functions that check a call; until then, and where nothing is checked, these.
static void check_nothing(void) {}
static __attribute__((naked)) void dispatch_unchecked(void) { __asm__("jmp *%rax"); }

void (*const reheap_guard_check)(void) SLOT = check_nothing;
void (*const reheap_guard_dispatch)(void) SLOT = dispatch_unchecked;

// A load configuration (IMAGE_LOAD_CONFIG_DIRECTORY64), in assembly: its flags are a symbol's value.
__asm__(".section .rdata, \"dr\"\n"
        ".globl _load_config_used\n"
        ".p2align 3\n"
        "_load_config_used:\n"
        "  .long end_of_load_config - _load_config_used\n"
        "  .zero 0x70 - 4\n"
        "  .quad reheap_guard_check, reheap_guard_dispatch\n"
        "  .quad __guard_fids_table, __guard_fids_count\n"
        "  .long __guard_flags\n"
        "  .zero 12\n"
        "  .quad __guard_iat_table, __guard_iat_count\n"
        "  .quad __guard_longjmp_table, __guard_longjmp_count\n"
        "  .zero 0x140 - 0xC0\n"
        "end_of_load_config:\n"
        ".text\n");
