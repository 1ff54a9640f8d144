/* The unit of work that the planted library and its program share, so that their ratio is known. */
#ifndef REHEAP_CALIBRATION_WORK_H
#define REHEAP_CALIBRATION_WORK_H

#include <stdint.h>

/* Each unit waits for the one before it, so that no processor does two at a time. */
static inline void work(unsigned units) {
  uint64_t value = units;
  for (unsigned i = 0; i < units; i++) {
    value = value * 6364136223846793005u + 1;
    __asm__ volatile("" : "+r"(value));
  }
}

#endif
