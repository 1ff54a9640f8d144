/* Threads that each do the same work, as the first argument says how many; the second says how much. */
#pragma once

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static int g_amount;

static void need(int holds, const char* what) {
  if (holds) return;
  fprintf(stderr, "wrong: %s\n", what);
  exit(1);
}

static int run_crew(int count, char** words, int amount, void* (*work)(void*)) {
  int threads = count > 1 ? atoi(words[1]) : 1;
  g_amount = count > 2 ? atoi(words[2]) : amount;
  need(threads > 0 && threads <= 64 && g_amount > 0, "the arguments: THREADS [AMOUNT]");
  pthread_t ids[64];
  for (int at = 0; at < threads; ++at) need(pthread_create(&ids[at], NULL, work, NULL) == 0, "a thread");
  for (int at = 0; at < threads; ++at) need(pthread_join(ids[at], NULL) == 0, "a thread's end");
  puts("right");
  return 0;
}
