/* What reheap.dll exports beside the interface of reheap.h. */
#ifndef REHEAP_REDIRECT_REPORT_H
#define REHEAP_REDIRECT_REPORT_H

#include "reheap/reheap.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Writes one line of text for the system's heap and one for each C runtime in the process: what was replaced in it,
   what was left and why. */
void rh_redirect_report(rh_write_fn write, void* context);

#ifdef __cplusplus
}
#endif
#endif
