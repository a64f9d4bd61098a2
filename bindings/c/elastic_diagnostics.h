/* Measurements, and the check that may end a wait. Since ELASTIC_ABI_VERSION 2.
 * Programs include elastic.h. */
#ifndef ELASTIC_DIAGNOSTICS_H
#define ELASTIC_DIAGNOSTICS_H

#include "elastic_membership.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- where the time goes -----------------------------------------------------------------------
 */

/* The times of a step, from one commit to the next, in seconds: see elastic::StepTime. */
typedef struct elastic_step_time {
  double data; /* while an elastic_loading was there */
  double compute;
  double communication;
  double view_change;
} elastic_step_time;
/* See elastic::StepTimes. */
typedef struct elastic_step_times {
  size_t size; /* sizeof(elastic_step_times), set by the caller */
  uint64_t steps;
  elastic_step_time latest;
  elastic_step_time sum;
  uint64_t compared_commit; /* of the latest step whose times were compared; 0: none yet */
  int slowest;              /* the rank with the longest own time in it, or -1 */
} elastic_step_times;
ELASTIC_C_API elastic_code elastic_get_step_times(elastic_context* context,
                                                  elastic_step_times* times);
/* Begins and ends elastic_step_time.data, on the thread that trains. */
typedef struct elastic_loading elastic_loading;
ELASTIC_C_API elastic_code elastic_loading_begin(elastic_loading** loading);
ELASTIC_C_API void elastic_loading_destroy(elastic_loading* loading);

/* The latest change of the view: see elastic::ViewChange. Moments are seconds of CLOCK_MONOTONIC.
 */
typedef struct elastic_view_change {
  size_t size;         /* sizeof(elastic_view_change), set by the caller */
  uint64_t generation; /* that it led to; 0: there was no change yet */
  double noticed;
  double reported;
  double decided;
  double linked;
  double installed;
  double resumed; /* 0 until an operation was complete */
} elastic_view_change;
ELASTIC_C_API elastic_code elastic_get_view_change(elastic_context* context,
                                                   elastic_view_change* change);

/* How operations are done in the present view: see elastic::Tuning. */
typedef struct elastic_tuning {
  size_t size; /* sizeof(elastic_tuning), set by the caller */
  uint64_t generation;
  double latency_us_inside_hosts;
  double gigabytes_per_second_inside_hosts;
  double latency_us_between_hosts;
  double gigabytes_per_second_between_hosts;
  int flows_opened;
  int flows_used;
  size_t segment_bytes;
} elastic_tuning;
ELASTIC_C_API elastic_code elastic_get_tuning(elastic_context* context, elastic_tuning* tuning);
/* Writes the algorithm of allreduces of `bytes` bytes, such as "ring", to the `room` bytes at
 * `name`; "" before the first operation. */
ELASTIC_C_API elastic_code elastic_get_algorithm(elastic_context* context, size_t bytes, char* name,
                                                 size_t room);

/* Context::start_timeline, and its end (since ELASTIC_ABI_VERSION 5). `path` "trace.json" becomes
 * trace.<worker>.json. */
ELASTIC_C_API elastic_code elastic_start_timeline(elastic_context* context, const char* path);
ELASTIC_C_API elastic_code elastic_stop_timeline(elastic_context* context);
/* Writes the path of the timeline's file to the `room` bytes at `path`; "" without one. */
ELASTIC_C_API elastic_code elastic_get_timeline_file(elastic_context* context, char* path,
                                                     size_t room);

/* ---- interrupts --------------------------------------------------------------------------------
 */

/* elastic::InterruptCheck: as long as it lives, waits of this thread call `check` every 100 ms. If
 * it returns another code than ELASTIC_OK, the wait ends with that code, and a collective takes
 * this worker out of the job. Destroy it on the same thread, in the reverse order of creation. */
typedef struct elastic_interrupt elastic_interrupt;
ELASTIC_C_API elastic_code elastic_interrupt_create(elastic_code (*check)(void* user), void* user,
                                                    elastic_interrupt** interrupt);
ELASTIC_C_API void elastic_interrupt_destroy(elastic_interrupt* interrupt);

#ifdef __cplusplus
}
#endif

#endif /* ELASTIC_DIAGNOSTICS_H */
