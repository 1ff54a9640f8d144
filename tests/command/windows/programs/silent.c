/* A program that imports nothing, and ends with 42. NtTerminateProcess would have to be imported: it returns instead,
   which ends the thread and with it the process. */

unsigned long start(void) { return 42; }
