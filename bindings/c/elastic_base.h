/* The version of the C interface, its errors and its options.
 * Programs include elastic.h. */
#ifndef ELASTIC_BASE_H
#define ELASTIC_BASE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ELASTIC_C_API __attribute__((visibility("default")))

/* Grows with every addition to the headers of elastic.h. */
#define ELASTIC_ABI_VERSION 9

/* The ELASTIC_ABI_VERSION that the library was compiled with: at least that of the headers that the
 * program was compiled with, or the program may miss functions. */
ELASTIC_C_API int elastic_abi_version(void);

/* ---- errors ------------------------------------------------------------------------------------
 */

/* See elastic::ErrorCode. The numbers never change. */
typedef int elastic_code;
enum {
  ELASTIC_OK = 0,
  ELASTIC_INVALID_ARGUMENT = 1, /* a call, option or variable is wrong; nothing was done */
  ELASTIC_MISMATCH = 2,         /* ranks called different things: the same on every rank */
  ELASTIC_NOT_INITIALIZED =
      3,                   /* before elastic_init, after elastic_shutdown, or in a forked child */
  ELASTIC_UNAVAILABLE = 4, /* the server cannot be reached, or a resource is missing */
  ELASTIC_REFUSED = 5,     /* the job refused this worker */
  ELASTIC_TIMEOUT = 6,     /* a bounded wait ended */
  ELASTIC_ROOT_LOST = 7,   /* the root of a call is lost, or the other worker of a message: retry */
  ELASTIC_BELOW_MINIMUM = 8, /* the job cannot go on, mostly for lack of workers (min_np) */
  ELASTIC_EVICTED = 9,       /* the job went on without this worker */
  ELASTIC_REMOVED = 10,      /* this worker was asked to leave */
  ELASTIC_STOPPED = 11,      /* the job was asked to stop */
  ELASTIC_NOT_FINITE = 12,   /* a gradient had NaN or Inf */
  ELASTIC_INTERNAL = 13,     /* a defect of the library, or this worker has left the job after an
                              * exception or for lack of memory */
  ELASTIC_OUT_OF_MEMORY = 14,
  /* For your callbacks: your own code failed. The elastic call that ran the callback returns this
   * code as well. A callback's code that is none of these counts as this one, and the text of the
   * error has its number. */
  ELASTIC_CALLBACK_FAILED = 15
};

/* The text of this thread's latest error, with what to do; "" before the first. Valid until the
 * next call of this thread that fails. */
ELASTIC_C_API const char* elastic_last_error(void);
/* The rank that this thread's latest error concerns, or -1. */
ELASTIC_C_API int elastic_last_error_peer(void);
/* The generation of the view that is in force after this thread's latest error, or 0. */
ELASTIC_C_API uint64_t elastic_last_error_generation(void);
/* "ELASTIC_TIMEOUT" and so on; "unknown code" for other numbers. Static. */
ELASTIC_C_API const char* elastic_code_name(elastic_code code);
/* 1 if calling again in the present view can succeed, otherwise 0. */
ELASTIC_C_API int elastic_code_is_retryable(elastic_code code);

/* ---- options -----------------------------------------------------------------------------------
 */

typedef struct elastic_options elastic_options;

/* Options as in elastic::Options, all at their defaults. */
ELASTIC_C_API elastic_code elastic_options_create(elastic_options** options);
ELASTIC_C_API void elastic_options_destroy(elastic_options* options);
/* Sets one by the name of its variable without ELASTIC_, in small letters: "bucket_bytes" to "16M",
 * "view_timeout_ms" to "5000". The environment overrides it, as in C++.
 * ELASTIC_INVALID_ARGUMENT for an unknown name (with the nearest known one) and for a value that is
 * not allowed (with what is). */
ELASTIC_C_API elastic_code elastic_options_set(elastic_options* options, const char* name,
                                               const char* value);

#ifdef __cplusplus
}
#endif

#endif /* ELASTIC_BASE_H */
