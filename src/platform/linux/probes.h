// Places in the code that tools find by a note in the file, and put a breakpoint at: USDT, "user-level statically
// defined tracing", as bpftrace, perf, gdb and SystemTap know it. To the program each is one nop.
//
// A note, in the section .note.stapsdt, has the address of the place; that of a mark, whose own address says whether a
// prelinker has moved both; that of a counter of who watches, 0 where there is none; and three texts: who provides it,
// its name, and of each argument its size and where it lies. They lie where a function's own do, in that order, for the
// tools that do not read the last text.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#define RH_PROBE_ADDRESS ".8byte "
#define RH_PROBE_KEEP "R_X86_64_NONE"
#define RH_PROBE_IN_1 "8@%%rdi"
#define RH_PROBE_IN_2 RH_PROBE_IN_1 " 8@%%rsi"
#define RH_PROBE_IN_3 RH_PROBE_IN_2 " 8@%%rdx"
#define RH_PROBE_VALUE_1 register uintptr_t first asm("rdi")
#define RH_PROBE_VALUE_2 register uintptr_t second asm("rsi")
#define RH_PROBE_VALUE_3 register uintptr_t third asm("rdx")
#elif defined(__i386__)
#define RH_PROBE_ADDRESS ".4byte "
#define RH_PROBE_KEEP "R_386_NONE"
#define RH_PROBE_IN_1 "4@%%eax"
#define RH_PROBE_IN_2 RH_PROBE_IN_1 " 4@%%edx"
#define RH_PROBE_IN_3 RH_PROBE_IN_2 " 4@%%ecx"
#define RH_PROBE_VALUE_1 register uintptr_t first asm("eax")
#define RH_PROBE_VALUE_2 register uintptr_t second asm("edx")
#define RH_PROBE_VALUE_3 register uintptr_t third asm("ecx")
#elif defined(__aarch64__)
#define RH_PROBE_ADDRESS ".8byte "
#define RH_PROBE_KEEP "R_AARCH64_NONE"
#define RH_PROBE_IN_1 "8@x0"
#define RH_PROBE_IN_2 RH_PROBE_IN_1 " 8@x1"
#define RH_PROBE_IN_3 RH_PROBE_IN_2 " 8@x2"
#define RH_PROBE_VALUE_1 register uintptr_t first asm("x0")
#define RH_PROBE_VALUE_2 register uintptr_t second asm("x1")
#define RH_PROBE_VALUE_3 register uintptr_t third asm("x2")
#elif defined(__riscv)
#define RH_PROBE_ADDRESS ".8byte "
#define RH_PROBE_KEEP "R_RISCV_NONE"
#define RH_PROBE_IN_1 "8@a0"
#define RH_PROBE_IN_2 RH_PROBE_IN_1 " 8@a1"
#define RH_PROBE_IN_3 RH_PROBE_IN_2 " 8@a2"
#define RH_PROBE_VALUE_1 register uintptr_t first asm("a0")
#define RH_PROBE_VALUE_2 register uintptr_t second asm("a1")
#define RH_PROBE_VALUE_3 register uintptr_t third asm("a2")
#endif

// The text of an asm statement whose operands are the values. Notes do not keep a linker from dropping the mark, which
// the relocation does.
#define RH_PROBE(provider, name, values)                                      \
  "990: nop\n"                                                                \
  ".reloc 990b, " RH_PROBE_KEEP ", _.stapsdt.base\n"                          \
  ".pushsection .note.stapsdt, \"\", \"note\"\n"                              \
  ".balign 4\n"                                                               \
  ".4byte 992f - 991f, 994f - 993f, 3\n"                                      \
  "991: .asciz \"stapsdt\"\n"                                                 \
  "992: .balign 4\n"                                                          \
  "993: " RH_PROBE_ADDRESS "990b, _.stapsdt.base, 0\n"                        \
  ".asciz \"" provider "\", \"" name "\", \"" values "\"\n"                   \
  "994: .balign 4\n"                                                          \
  ".popsection\n"                                                             \
  ".ifndef _.stapsdt.base\n"                                                  \
  ".pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n" \
  ".weak _.stapsdt.base\n"                                                    \
  ".hidden _.stapsdt.base\n"                                                  \
  "_.stapsdt.base: .space 1\n"                                                \
  ".popsection\n"                                                             \
  ".endif\n"
