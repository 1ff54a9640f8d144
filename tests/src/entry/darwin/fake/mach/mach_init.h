// So much of Darwin's <mach/mach_init.h> as a zone needs: the tests' own.
#pragma once

inline unsigned mach_task_self() { return 0x203; }
