/* elastic for C: allreduce for trainers on hosts that come and go.
 *
 * The C++ interface <elastic/elastic.hpp> in C99. What each call means, which errors it has and
 * what happens when a worker dies is documented there (class Context, State and so on), and is not
 * repeated here.
 *
 * Results. A function that can fail returns an elastic_code: ELASTIC_OK, or why the call failed.
 * After a failure elastic_last_error() has the text, for the calling thread. No C++ exception
 * leaves a function.
 *
 * Handles. Each handle type T has a function T_destroy, except elastic_bytes, which a program only
 * borrows. Destroying NULL does nothing. A handle must not be used after it was destroyed, nor be
 * destroyed while another call uses it.
 *
 * Contexts. Functions take a context; NULL is the default one, made by elastic_init.
 *
 * Threads. As in C++: a context and its collectives may be used from any thread, an elastic_work
 * too. Options, contributors, states and samplers belong to one thread at a time.
 *
 * Codes, types and operations are ints, so that any number can be given, and is refused if it is
 * none.
 *
 * Structures that a function fills begin with their own size: the caller sets `size` to sizeof of
 * it. A program that was compiled against an older header keeps working with a newer library. */
#ifndef ELASTIC_H
#define ELASTIC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ELASTIC_C_API __attribute__((visibility("default")))

/* Grows with every addition to this header. */
#define ELASTIC_ABI_VERSION 1

/* The ELASTIC_ABI_VERSION that the library was compiled with: at least that of the header that the
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
  ELASTIC_ROOT_LOST = 7,   /* a broadcast's root died before any survivor had all its data: retry */
  ELASTIC_BELOW_MINIMUM = 8, /* fewer workers than min_np are left, and none came in time */
  ELASTIC_EVICTED = 9,       /* the job went on without this worker */
  ELASTIC_REMOVED = 10,      /* this worker was asked to leave */
  ELASTIC_STOPPED = 11,      /* the job was asked to stop */
  ELASTIC_NOT_FINITE = 12,   /* a gradient had NaN or Inf */
  ELASTIC_INTERNAL = 13,     /* a defect of the library */
  ELASTIC_OUT_OF_MEMORY = 14,
  /* For your callbacks: your own code failed. The elastic call that ran the callback returns this
   * code as well. */
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

/* ---- membership --------------------------------------------------------------------------------
 */

typedef struct elastic_context elastic_context;

/* elastic::init and elastic::shutdown: the default context. `options` may be NULL. */
ELASTIC_C_API elastic_code elastic_init(const elastic_options* options);
ELASTIC_C_API elastic_code elastic_shutdown(void);

/* A context of its own, for programs with several jobs. `options` may be NULL. */
ELASTIC_C_API elastic_code elastic_context_create(const elastic_options* options,
                                                  elastic_context** context);
/* Context::shutdown; the context can only be destroyed afterwards. With NULL it shuts down the
 * default context, as elastic_shutdown does. */
ELASTIC_C_API elastic_code elastic_context_shutdown(elastic_context* context);
/* Leaves the job at once, if elastic_context_shutdown was not called. */
ELASTIC_C_API void elastic_context_destroy(elastic_context* context);

/* The present view, as this worker sees it. */
typedef struct elastic_view {
  size_t size;         /* sizeof(elastic_view), set by the caller */
  int rank;            /* -1 while joining a running job, before elastic_run */
  int world_size;      /* members; 0 while joining */
  int local_rank;      /* among the members on this host; while joining, the launcher's number */
  int local_size;      /* 0 while joining */
  uint64_t generation; /* number of the view; 0 while joining */
  uint64_t worker;     /* this worker, as it appears among contributors */
} elastic_view;
ELASTIC_C_API elastic_code elastic_get_view(elastic_context* context, elastic_view* view);
/* The rank in the present view; -1 while joining, and where there is no context. */
ELASTIC_C_API int elastic_rank(elastic_context* context);
/* The members of the present view; 0 while joining, and where there is no context. */
ELASTIC_C_API int elastic_size(elastic_context* context);

/* ---- tensors -----------------------------------------------------------------------------------
 */

/* The numbers are those of elastic::DType, and never change. */
typedef int elastic_dtype;
enum {
  ELASTIC_F16 = 0,
  ELASTIC_BF16 = 1,
  ELASTIC_F32 = 2,
  ELASTIC_F64 = 3,
  ELASTIC_I8 = 4,
  ELASTIC_U8 = 5,
  ELASTIC_I32 = 6,
  ELASTIC_I64 = 7,
  ELASTIC_U32 = 8,
  ELASTIC_U64 = 9,
  ELASTIC_I16 = 10,
  ELASTIC_U16 = 11,
  ELASTIC_BOOL = 12 /* one byte, 0 or 1 */
};

/* Bytes of one element; 0 for a number that is no dtype. */
ELASTIC_C_API size_t elastic_dtype_size(elastic_dtype dtype);

typedef int elastic_op;
enum {
  ELASTIC_SUM = 0,
  ELASTIC_AVERAGE = 1, /* the sum over the number of contributors */
  ELASTIC_MIN = 2,
  ELASTIC_MAX = 3,
  ELASTIC_PRODUCT = 4
};

typedef int elastic_device;
enum { ELASTIC_HOST = 0, ELASTIC_CUDA = 1 };

/* `count` elements at `data`, which belong to the caller. Inputs are only read. */
typedef struct elastic_tensor {
  void* data;
  size_t count;
  elastic_dtype dtype;
  elastic_device device;
  int device_index; /* CUDA's number of the device; 0 for the host */
} elastic_tensor;

/* Memory that the other members on this host can read in place: see Context::allocate. */
typedef struct elastic_allocation elastic_allocation;
ELASTIC_C_API elastic_code elastic_allocate(elastic_context* context, size_t bytes,
                                            elastic_allocation** allocation);
ELASTIC_C_API void* elastic_allocation_data(const elastic_allocation* allocation);
ELASTIC_C_API void elastic_allocation_destroy(elastic_allocation* allocation);

/* ---- contributors ------------------------------------------------------------------------------
 */

/* The workers with a contribution to a result: the same on every rank. A call fills the list
 * that the caller has created; give NULL if you do not need it. If the call fails, the list stays
 * as it was. */
typedef struct elastic_contributors elastic_contributors;
ELASTIC_C_API elastic_code elastic_contributors_create(elastic_contributors** contributors);
ELASTIC_C_API void elastic_contributors_destroy(elastic_contributors* contributors);
ELASTIC_C_API size_t elastic_contributors_count(const elastic_contributors* contributors);
/* In rank order; valid until `contributors` is filled again or destroyed. */
ELASTIC_C_API const uint64_t* elastic_contributors_workers(
    const elastic_contributors* contributors);
/* Generation of the view in which the call was completed. */
ELASTIC_C_API uint64_t elastic_contributors_generation(const elastic_contributors* contributors);

/* ---- collectives -------------------------------------------------------------------------------
 */

/* `stream`, here and below: a cudaStream_t for tensors on a CUDA device, otherwise NULL. */

/* `in` and `out` have the same count and dtype, and are the same memory or do not overlap. */
ELASTIC_C_API elastic_code elastic_allreduce(elastic_context* context, const elastic_tensor* in,
                                             const elastic_tensor* out, elastic_op op, void* stream,
                                             elastic_contributors* contributors);
/* `count` tensors in place, as one unit. */
ELASTIC_C_API elastic_code elastic_grouped_allreduce(elastic_context* context,
                                                     const elastic_tensor* tensors, size_t count,
                                                     elastic_op op, void* stream,
                                                     elastic_contributors* contributors);
ELASTIC_C_API elastic_code elastic_broadcast(elastic_context* context, const elastic_tensor* tensor,
                                             int root, void* stream,
                                             elastic_contributors* contributors);
ELASTIC_C_API elastic_code elastic_barrier(elastic_context* context,
                                           elastic_contributors* contributors);

/* The blocks of all members, one after another in rank order, at the beginning of `out`.
 * *gathered: the elements of all of them together; may be NULL. */
ELASTIC_C_API elastic_code elastic_allgather(elastic_context* context, const elastic_tensor* block,
                                             const elastic_tensor* out, void* stream,
                                             size_t* gathered, elastic_contributors* contributors);
/* The same for blocks of different sizes, or without a tensor for the result. Calls `take` once,
 * before the function returns: with the elements of all members, `bytes` bytes at `values`, and
 * with the number of elements of each of the `members` members in `counts`. Both are valid only
 * during `take`, which must not call collectives. If `take` returns another code than ELASTIC_OK,
 * this function returns that code. */
typedef elastic_code (*elastic_take_gathered)(void* user, const void* values, size_t bytes,
                                              const size_t* counts, size_t members);
ELASTIC_C_API elastic_code elastic_allgather_take(elastic_context* context,
                                                  const elastic_tensor* block, void* stream,
                                                  elastic_take_gathered take, void* user,
                                                  elastic_contributors* contributors);
/* This worker's part of the reduced tensor at the beginning of `out`: `*count` elements, which
 * begin at element `*offset` of the whole. Both may be NULL. */
ELASTIC_C_API elastic_code elastic_reduce_scatter(elastic_context* context,
                                                  const elastic_tensor* data,
                                                  const elastic_tensor* out, elastic_op op,
                                                  void* stream, size_t* count, size_t* offset,
                                                  elastic_contributors* contributors);

/* ---- asynchronous allreduce --------------------------------------------------------------------
 */

/* An operation under way. Its tensors must live until it is complete; destroying the handle does
 * not cancel it. */
typedef struct elastic_work elastic_work;

/* Starts an allreduce in place of `count` tensors as one unit, under a name. *work may be used from
 * any thread. */
ELASTIC_C_API elastic_code elastic_allreduce_async(elastic_context* context, const char* name,
                                                   const elastic_tensor* tensors, size_t count,
                                                   elastic_op op, void* stream,
                                                   elastic_work** work);
/* Waits until the operation is complete, and returns its result: the same code at every call. */
ELASTIC_C_API elastic_code elastic_work_wait(const elastic_work* work,
                                             elastic_contributors* contributors);
/* Waits for `nanoseconds` at most. If the operation is not complete then, returns ELASTIC_OK and
 * sets *complete to 0. */
ELASTIC_C_API elastic_code elastic_work_wait_for(const elastic_work* work, uint64_t nanoseconds,
                                                 int* complete);
/* 1 if it is complete, successfully or not. Never waits. */
ELASTIC_C_API int elastic_work_is_complete(const elastic_work* work);
ELASTIC_C_API void elastic_work_destroy(elastic_work* work);

/* ---- the state that joiners receive ------------------------------------------------------------
 */

typedef struct elastic_state elastic_state;
typedef struct elastic_sampler elastic_sampler;
/* Bytes that an object saves. */
typedef struct elastic_bytes elastic_bytes;

ELASTIC_C_API elastic_code elastic_state_create(elastic_state** state);
/* Not while elastic_run uses the state. Whatever was added to a state must live as long as the
 * state. */
ELASTIC_C_API void elastic_state_destroy(elastic_state* state);
/* Adds host memory, such as parameters, counters or flags. Its address and size must not change. */
ELASTIC_C_API elastic_code elastic_state_add_tensor(elastic_state* state, const char* name,
                                                    const elastic_tensor* tensor);
ELASTIC_C_API elastic_code elastic_state_add_sampler(elastic_state* state, const char* name,
                                                     elastic_sampler* sampler);

/* An object that saves itself as bytes: the same bytes for the same state, on every worker. The
 * functions return ELASTIC_OK, or another code, which is the result of the call that they are a
 * part of; they must not call collectives. */
typedef struct elastic_object {
  size_t size; /* sizeof(elastic_object), set by the caller */
  void* user;  /* given to the functions */
  /* Appends the object's bytes to `bytes` by elastic_bytes_append. */
  elastic_code (*save)(void* user, elastic_bytes* bytes);
  /* Takes the bytes that a `save` gave. If it cannot, it leaves the object as it was and returns an
   * error. */
  elastic_code (*load)(void* user, const void* data, size_t size);
  /* Told of the members, in rank order, and which of them this worker is; may be NULL. */
  elastic_code (*set_members)(void* user, const uint64_t* members, size_t count, uint64_t self);
} elastic_object;
ELASTIC_C_API elastic_code elastic_state_add_object(elastic_state* state, const char* name,
                                                    const elastic_object* object);
ELASTIC_C_API elastic_code elastic_bytes_append(elastic_bytes* bytes, const void* data,
                                                size_t size);

/* The step boundary: State::commit. Only within the body of elastic_run. */
ELASTIC_C_API elastic_code elastic_state_commit(elastic_state* state);
/* Steps committed by the job so far; 0 for NULL. */
ELASTIC_C_API uint64_t elastic_state_commits(const elastic_state* state);
/* A checkpoint: State::save_to and State::load_from. *found: 0 where there is no file yet. */
ELASTIC_C_API elastic_code elastic_state_save_to(const elastic_state* state, const char* path);
ELASTIC_C_API elastic_code elastic_state_load_from(elastic_state* state, const char* path,
                                                   int* found);

typedef int elastic_run_outcome;
enum {
  ELASTIC_FINISHED = 0,    /* the body returned ELASTIC_OK: the training is done */
  ELASTIC_WAS_REMOVED = 1, /* this worker was asked to leave; the others go on */
  ELASTIC_WAS_STOPPED = 2, /* the job was asked to stop */
  ELASTIC_LEFT_OUT = 3     /* the job finished; this worker came too late or had been given
                              up, so its state is not final */
};

/* Trains: see Context::run. `body` returns ELASTIC_OK when the training is done. If an elastic call
 * fails inside `body`, return its code at once. Then:
 * - ELASTIC_EVICTED: this worker joins the job again, unless the option "rejoin" is 0, and the body
 *   is called again;
 * - ELASTIC_REMOVED or ELASTIC_STOPPED: elastic_run returns ELASTIC_OK, see *outcome;
 * - any other code: this worker leaves the job, and elastic_run returns the code.
 * `outcome` may be NULL. */
ELASTIC_C_API elastic_code elastic_run(elastic_context* context, elastic_state* state,
                                       elastic_code (*body)(void* user), void* user,
                                       elastic_run_outcome* outcome);

/* ---- data --------------------------------------------------------------------------------------
 */

/* elastic::Sampler: each sample of an epoch exactly once, however the workers change. Add it to the
 * state. */
ELASTIC_C_API elastic_code elastic_sampler_create(size_t samples, uint64_t seed,
                                                  elastic_sampler** sampler);
ELASTIC_C_API void elastic_sampler_destroy(elastic_sampler* sampler);
/* Draws the next global batch. *indices: this worker's share, `*count` samples, perhaps none; valid
 * until the next call that changes the sampler. */
ELASTIC_C_API elastic_code elastic_sampler_next(elastic_sampler* sampler, size_t batch_per_worker,
                                                const size_t** indices, size_t* count);
/* Ends the step whose samples were drawn and not yet committed. `operations`: the contributors of
 * each of the step's `count` operations. */
ELASTIC_C_API elastic_code elastic_sampler_commit(elastic_sampler* sampler,
                                                  const elastic_contributors* const* operations,
                                                  size_t count);
ELASTIC_C_API uint64_t elastic_sampler_epoch(const elastic_sampler* sampler);
/* 1 once `epochs` epochs are used up: the training loop ends. Otherwise 0. */
ELASTIC_C_API int elastic_sampler_is_finished(const elastic_sampler* sampler, uint64_t epochs);
/* The number of samples, over all members, that were drawn and not yet committed. */
ELASTIC_C_API size_t elastic_sampler_global_batch(const elastic_sampler* sampler);

#ifdef __cplusplus
}
#endif

#endif /* ELASTIC_H */
