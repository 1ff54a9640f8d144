/* A DLL that uses the heaps while it is detached, at the end of the process or by FreeLibrary. */
#ifndef FAREWELL_H
#define FAREWELL_H

/* What it does last. */
enum Farewell { farewell_return, farewell_exit, farewell_terminate };

typedef void SetFarewell(enum Farewell farewell);

/* The process's exit code when all went well. */
#define FAREWELL_CODE 7

#endif
