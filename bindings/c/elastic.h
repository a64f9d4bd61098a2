/* elastic for C: allreduce for trainers on hosts that come and go.
 *
 * The C++ interface <elastic/elastic.hpp> in C99. The meaning of each call, its errors and its end
 * when a worker dies are documented there (class Context, State and so on), and not
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
 * Contexts. Functions take a context; NULL is the default one, made by elastic_init. Collectives
 * and messages, elastic_rank, elastic_size and elastic_get_members take a group there as well.
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
#define ELASTIC_ABI_VERSION 7

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
/* The rank in the present view, or in a group; -1 while joining, for a worker that is not in the
 * group, and where there is no context. */
ELASTIC_C_API int elastic_rank(elastic_context* context);
/* The members of the present view, or of a group; 0 while joining, and where there is no context.
 */
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
  ELASTIC_PRODUCT = 4,
  /* Since ELASTIC_ABI_VERSION 3: integers and bools bit by bit; whether elements of any type are
   * not 0, with the result 0 or 1; the adaptive sum of floats, for allreduces only. */
  ELASTIC_BIT_AND = 5,
  ELASTIC_BIT_OR = 6,
  ELASTIC_BIT_XOR = 7,
  ELASTIC_LOGICAL_AND = 8,
  ELASTIC_LOGICAL_OR = 9,
  ELASTIC_LOGICAL_XOR = 10,
  ELASTIC_ADASUM = 11
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
/* The members of the present view, or of a group, all of one moment; none while joining. Since
 * ELASTIC_ABI_VERSION 2. */
ELASTIC_C_API elastic_code elastic_get_members(elastic_context* context,
                                               elastic_contributors* members);

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
/* The root is a worker, the same one whatever becomes of the ranks. Since ELASTIC_ABI_VERSION 2. */
ELASTIC_C_API elastic_code elastic_broadcast_from(elastic_context* context,
                                                  const elastic_tensor* tensor, uint64_t root,
                                                  void* stream, elastic_contributors* contributors);
ELASTIC_C_API elastic_code elastic_barrier(elastic_context* context,
                                           elastic_contributors* contributors);
/* This worker has no more data: waits until all members have called it. Until then the named
 * allreduces and named barriers of the others go on, with the neutral element of the reduction in
 * the place of its tensors. Other named calls of the others end in ELASTIC_MISMATCH, and calls
 * without a name wait for it.
 * *last_rank: the rank, among the contributors, that called it last; may be NULL.
 * Since ELASTIC_ABI_VERSION 6. */
ELASTIC_C_API elastic_code elastic_join(elastic_context* context, int* last_rank,
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
 * this function returns that code, or ELASTIC_CALLBACK_FAILED for a number that is no code. */
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

/* elastic_allreduce and elastic_grouped_allreduce with factors (elastic::Scale): `before`
 * multiplies each member's tensor, `after` the result. Floats only. Since ELASTIC_ABI_VERSION 3. */
ELASTIC_C_API elastic_code elastic_scaled_allreduce(elastic_context* context,
                                                    const elastic_tensor* in,
                                                    const elastic_tensor* out, elastic_op op,
                                                    double before, double after, void* stream,
                                                    elastic_contributors* contributors);
ELASTIC_C_API elastic_code elastic_scaled_grouped_allreduce(
    elastic_context* context, const elastic_tensor* tensors, size_t count, elastic_op op,
    double before, double after, void* stream, elastic_contributors* contributors);

/* ---- collectives whose result differs by rank (since ELASTIC_ABI_VERSION 4) --------------------
 */

/* The root of a collective, or the other worker of a message: a worker, one of
 * elastic_contributors_workers, or where `worker` is 0 the rank in the present view. */
typedef struct elastic_root {
  int rank;
  uint64_t worker;
} elastic_root;

/* Blocks of one tensor, each for one worker. */
typedef struct elastic_blocks {
  elastic_tensor data;  /* all blocks, one after another */
  const size_t* counts; /* the elements of each block; NULL if all have the same size */
  size_t count;         /* of blocks; 0 if all have the same size */
  /* The worker that each block is for; NULL for the members as this program saw them when it last
   * asked for rank, size, view or members. */
  const elastic_contributors* to;
} elastic_blocks;

/* Gives each member a block, and gets one from each, in rank order, at the beginning of `out`.
 * *gathered: the elements of all of them together. `counts`: the elements of each contributor, the
 * first `room` of them. Both may be NULL. */
ELASTIC_C_API elastic_code elastic_alltoall(elastic_context* context, const elastic_blocks* blocks,
                                            const elastic_tensor* out, void* stream,
                                            size_t* gathered, size_t* counts, size_t room,
                                            elastic_contributors* contributors);
/* The same without a tensor for the result, as elastic_allgather_take. */
ELASTIC_C_API elastic_code elastic_alltoall_take(elastic_context* context,
                                                 const elastic_blocks* blocks, void* stream,
                                                 elastic_take_gathered take, void* user,
                                                 elastic_contributors* contributors);
/* Gives the root the blocks of all members. Other members' `out` is not used, but has the type of
 * `block`; they get no counts. */
ELASTIC_C_API elastic_code elastic_gather(elastic_context* context, const elastic_tensor* block,
                                          const elastic_tensor* out, elastic_root root,
                                          void* stream, size_t* gathered, size_t* counts,
                                          size_t room, elastic_contributors* contributors);
/* `take` is called on the root alone. */
ELASTIC_C_API elastic_code elastic_gather_take(elastic_context* context,
                                               const elastic_tensor* block, elastic_root root,
                                               void* stream, elastic_take_gathered take, void* user,
                                               elastic_contributors* contributors);
/* Gives each member a block of the root's tensor, at the beginning of `out`: `*count` elements,
 * which begin at element `*offset` of the root's. Other members' `blocks` give only the type of
 * their `data`. */
ELASTIC_C_API elastic_code elastic_scatter(elastic_context* context, const elastic_blocks* blocks,
                                           const elastic_tensor* out, elastic_root root,
                                           void* stream, size_t* count, size_t* offset,
                                           elastic_contributors* contributors);
/* Combines the tensors of all members; the root alone gets the result. `in` and `out` as for
 * elastic_allreduce, here and below. */
ELASTIC_C_API elastic_code elastic_reduce(elastic_context* context, const elastic_tensor* in,
                                          const elastic_tensor* out, elastic_root root,
                                          elastic_op op, void* stream,
                                          elastic_contributors* contributors);
/* Combines the tensors of the members with lower ranks and of this one. */
ELASTIC_C_API elastic_code elastic_scan(elastic_context* context, const elastic_tensor* in,
                                        const elastic_tensor* out, elastic_op op, void* stream,
                                        elastic_contributors* contributors);
/* The same without the tensor of this member; rank 0 gets the neutral element. */
ELASTIC_C_API elastic_code elastic_exscan(elastic_context* context, const elastic_tensor* in,
                                          const elastic_tensor* out, elastic_op op, void* stream,
                                          elastic_contributors* contributors);

/* ---- reductions of values with indices, and of rows (since ELASTIC_ABI_VERSION 5) --------------
 */

/* elastic::minloc and elastic::maxloc: element by element the least or the greatest value of all
 * members, and the index that came with it; among equal values the one with the smallest index.
 * Both are overwritten. `indices` has as many elements as `values`, which are in host memory. */
ELASTIC_C_API elastic_code elastic_minloc(elastic_context* context, const elastic_tensor* values,
                                          int64_t* indices, elastic_contributors* contributors);
ELASTIC_C_API elastic_code elastic_maxloc(elastic_context* context, const elastic_tensor* values,
                                          int64_t* indices, elastic_contributors* contributors);

/* Some rows of a tensor, such as the gradient of an embedding: elastic::SparseRowsView. */
typedef struct elastic_sparse_rows {
  const int64_t* indices; /* of the rows; one may come several times */
  size_t count;           /* of them */
  elastic_tensor values;  /* the rows, one after another, in host memory */
  size_t width;           /* elements of a row */
  size_t rows;            /* of the whole tensor: each index is less */
} elastic_sparse_rows;
/* elastic::sparse_allreduce: sums or averages the rows of all members. Calls `take` once, before
 * the function returns: with the indices of the `count` rows that a member gave, ascending, each
 * once, and with the rows, one after another. Both are valid only during `take`. A code of it other
 * than ELASTIC_OK is returned, or ELASTIC_CALLBACK_FAILED for a number that is no code. */
typedef elastic_code (*elastic_take_rows)(void* user, const int64_t* indices, const void* values,
                                          size_t count);
ELASTIC_C_API elastic_code elastic_sparse_allreduce(elastic_context* context,
                                                    const elastic_sparse_rows* rows, elastic_op op,
                                                    elastic_take_rows take, void* user,
                                                    elastic_contributors* contributors);

/* ---- asynchronous collectives ------------------------------------------------------------------
 */

/* An operation under way. Its tensors must live until it is complete; destroying the handle does
 * not cancel it. */
typedef struct elastic_work elastic_work;

/* Starts an allreduce in place of `count` tensors as one unit, under a name, or where `name` is
 * NULL in program order (since ELASTIC_ABI_VERSION 4). *work may be used from any thread. */
ELASTIC_C_API elastic_code elastic_allreduce_async(elastic_context* context, const char* name,
                                                   const elastic_tensor* tensors, size_t count,
                                                   elastic_op op, void* stream,
                                                   elastic_work** work);
/* The same with factors. Since ELASTIC_ABI_VERSION 3. */
ELASTIC_C_API elastic_code elastic_scaled_allreduce_async(
    elastic_context* context, const char* name, const elastic_tensor* tensors, size_t count,
    elastic_op op, double before, double after, void* stream, elastic_work** work);
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

/* The rest of this section is there since ELASTIC_ABI_VERSION 4. */

/* Start the calls of the same names without _async: under a name, or where `name` is NULL in
 * program order. `stream` is for calls without a name; tensors of those with one are in host
 * memory. */
ELASTIC_C_API elastic_code elastic_broadcast_async(elastic_context* context, const char* name,
                                                   const elastic_tensor* tensor, elastic_root root,
                                                   void* stream, elastic_work** work);
ELASTIC_C_API elastic_code elastic_allgather_async(elastic_context* context, const char* name,
                                                   const elastic_tensor* block,
                                                   const elastic_tensor* out, void* stream,
                                                   elastic_work** work);
ELASTIC_C_API elastic_code elastic_reduce_scatter_async(elastic_context* context, const char* name,
                                                        const elastic_tensor* data,
                                                        const elastic_tensor* out, elastic_op op,
                                                        void* stream, elastic_work** work);
/* `blocks` and its counts may end when the call has returned, the data of the blocks not. */
ELASTIC_C_API elastic_code elastic_alltoall_async(elastic_context* context, const char* name,
                                                  const elastic_blocks* blocks,
                                                  const elastic_tensor* out, void* stream,
                                                  elastic_work** work);
/* The same for these, since ELASTIC_ABI_VERSION 5. Other members than the root give `out` as to the
 * calls without _async. */
ELASTIC_C_API elastic_code elastic_gather_async(elastic_context* context, const char* name,
                                                const elastic_tensor* block,
                                                const elastic_tensor* out, elastic_root root,
                                                void* stream, elastic_work** work);
ELASTIC_C_API elastic_code elastic_scatter_async(elastic_context* context, const char* name,
                                                 const elastic_blocks* blocks,
                                                 const elastic_tensor* out, elastic_root root,
                                                 void* stream, elastic_work** work);
ELASTIC_C_API elastic_code elastic_reduce_async(elastic_context* context, const char* name,
                                                const elastic_tensor* in, const elastic_tensor* out,
                                                elastic_root root, elastic_op op, void* stream,
                                                elastic_work** work);
ELASTIC_C_API elastic_code elastic_scan_async(elastic_context* context, const char* name,
                                              const elastic_tensor* in, const elastic_tensor* out,
                                              elastic_op op, void* stream, elastic_work** work);
ELASTIC_C_API elastic_code elastic_exscan_async(elastic_context* context, const char* name,
                                                const elastic_tensor* in, const elastic_tensor* out,
                                                elastic_op op, void* stream, elastic_work** work);
ELASTIC_C_API elastic_code elastic_barrier_async(elastic_context* context, const char* name,
                                                 elastic_work** work);
/* The results of a complete operation: what elastic_alltoall fills, of an alltoall, an allgather
 * and a gather; what elastic_scatter fills, of a reduce_scatter and a scatter.
 * ELASTIC_INVALID_ARGUMENT for other operations, and before they are complete. */
ELASTIC_C_API elastic_code elastic_work_blocks(const elastic_work* work, size_t* gathered,
                                               size_t* counts, size_t room);
ELASTIC_C_API elastic_code elastic_work_part(const elastic_work* work, size_t* count,
                                             size_t* offset);
/* Calls `function` once, when the operation is complete, successfully or not: on a thread of the
 * library, or at once on this one. `work` is the operation, and valid only during the call. It
 * should be short, and may call no collective. */
typedef void (*elastic_when_complete)(void* user, const elastic_work* work);
ELASTIC_C_API elastic_code elastic_work_then(const elastic_work* work,
                                             elastic_when_complete function, void* user);
/* Waits until one of `count` operations is complete, successfully or not: *index is the lowest of
 * those that are. */
ELASTIC_C_API elastic_code elastic_wait_any(const elastic_work* const* works, size_t count,
                                            size_t* index);
/* Waits until all are complete, and returns the code of the first, in their order, that failed. */
ELASTIC_C_API elastic_code elastic_wait_all(const elastic_work* const* works, size_t count);

/* ---- messages (since ELASTIC_ABI_VERSION 7) ----------------------------------------------------
 */

/* Sends a tensor in host memory to another member, which receives it by elastic_recv with the same
 * tag: see Context::send. Nothing is buffered: the call returns when the message is there. Messages
 * from one member to another with one tag keep their order. ELASTIC_ROOT_LOST if the other one is
 * no member, or leaves the job before the message is complete. The contributors are the two. */
ELASTIC_C_API elastic_code elastic_send(elastic_context* context, const elastic_tensor* tensor,
                                        elastic_root to, int tag,
                                        elastic_contributors* contributors);
/* Receives a message into `out`, which has its type and room for it. *received: the elements of the
 * message; may be NULL. */
ELASTIC_C_API elastic_code elastic_recv(elastic_context* context, const elastic_tensor* out,
                                        elastic_root from, int tag, size_t* received,
                                        elastic_contributors* contributors);
/* Start a message. The tensor must live, and stay as it is, until *work is complete. */
ELASTIC_C_API elastic_code elastic_send_async(elastic_context* context,
                                              const elastic_tensor* tensor, elastic_root to,
                                              int tag, elastic_work** work);
ELASTIC_C_API elastic_code elastic_recv_async(elastic_context* context, const elastic_tensor* out,
                                              elastic_root from, int tag, elastic_work** work);
/* The elements of the message that a complete elastic_recv_async has received.
 * ELASTIC_INVALID_ARGUMENT for other operations, and before it is complete. */
ELASTIC_C_API elastic_code elastic_work_received(const elastic_work* work, size_t* received);

/* ---- groups (since ELASTIC_ABI_VERSION 7) ------------------------------------------------------
 */

/* elastic::Group: some of the members, with collectives and messages of their own, among which
 * ranks, roots and contributors are those in the group. A group is given to these functions in the
 * place of a context: elastic_allreduce(group, ...). Those that are for a context alone, such as
 * elastic_run, elastic_join, elastic_step_group_create and elastic_minloc, refuse it with
 * ELASTIC_INVALID_ARGUMENT. A handle must not be used after its context was destroyed. */
typedef struct elastic_context elastic_group;
/* Frees the handle. The group itself lives as long as the context, and the same rule gives it
 * again. */
ELASTIC_C_API void elastic_group_destroy(elastic_group* group);
/* The rule in words, such as "per host"; NULL for a context. Valid as long as the context. */
ELASTIC_C_API const char* elastic_group_name(const elastic_group* group);

/* Make a group by a rule (elastic::GroupRule), which is applied to the members of `context`. If
 * that is a group, *group is a group within it. Between the joins of workers a group loses the
 * members that leave, and nothing else changes.
 *
 * The members on this worker's host, and those with its rank among the members on their host. */
ELASTIC_C_API elastic_code elastic_group_per_host(elastic_context* context, elastic_group** group);
ELASTIC_C_API elastic_code elastic_group_across_hosts(elastic_context* context,
                                                      elastic_group** group);
/* The ranks first, first + step, first + 2 * step and so on. */
ELASTIC_C_API elastic_code elastic_group_every(elastic_context* context, int step, int first,
                                               elastic_group** group);
/* `count` ranks or workers, as far as they are members. */
ELASTIC_C_API elastic_code elastic_group_ranks(elastic_context* context, const int* ranks,
                                               size_t count, elastic_group** group);
ELASTIC_C_API elastic_code elastic_group_workers(elastic_context* context, const uint64_t* workers,
                                                 size_t count, elastic_group** group);
/* Sets chosen[i] to 1 for the members that are in the group of the worker `self`; all of its
 * `count` elements are 0 before. Members come in rank order; `hosts` has a number that is the same
 * for those on one host. It must give the same group on all members of the group, so it may depend
 * on its arguments alone, and must call no function with a context or a group. A code other than
 * ELASTIC_OK is the result of the call that has applied the rule. */
typedef elastic_code (*elastic_choose_members)(void* user, const uint64_t* workers,
                                               const int* hosts, size_t count, uint64_t self,
                                               unsigned char* chosen);
/* Rules of one name are the same rule: the function that came first is used, on any thread, as long
 * as the context lives. */
ELASTIC_C_API elastic_code elastic_group_by(elastic_context* context, const char* name,
                                            elastic_choose_members choose, void* user,
                                            elastic_group** group);

/* ---- the gradients of a step as one unit (since ELASTIC_ABI_VERSION 5) -------------------------
 */

/* elastic::StepGroup: named allreduces that are committed together. One thread at a time may use
 * it. The context must outlive it. */
typedef struct elastic_step_group elastic_step_group;
ELASTIC_C_API elastic_code elastic_step_group_create(elastic_context* context,
                                                     elastic_step_group** group);
/* Tensors that were not waited for must live until they are complete. */
ELASTIC_C_API void elastic_step_group_destroy(elastic_step_group* group);
/* Adds a tensor in host memory to the step, and starts its allreduce. In place, with the same
 * memory for `in` and `out`, the input is kept as a copy; otherwise it must stay as it is until the
 * wait. */
ELASTIC_C_API elastic_code elastic_step_group_allreduce(elastic_step_group* group, const char* name,
                                                        const elastic_tensor* in,
                                                        const elastic_tensor* out, elastic_op op);
/* Ends the step: waits until all its tensors have results over the same contributors, which it
 * fills in. */
ELASTIC_C_API elastic_code elastic_step_group_wait(elastic_step_group* group,
                                                   elastic_contributors* contributors);
/* The tensors of this step that were not waited for; 0 for NULL. */
ELASTIC_C_API size_t elastic_step_group_open(const elastic_step_group* group);
/* The bytes of the inputs that are kept as copies; 0 for NULL. */
ELASTIC_C_API size_t elastic_step_group_kept_bytes(const elastic_step_group* group);

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
  ELASTIC_LEFT_OUT = 3     /* the job finished or was stopped; this worker came too late or had
                              been given up, so its state is not final */
};

/* Trains: see Context::run. `body` returns ELASTIC_OK when the training is done. If an elastic call
 * fails inside `body`, return its code at once. Then:
 * - ELASTIC_EVICTED: this worker joins the job again, unless the option "rejoin" is 0, and the body
 *   is called again;
 * - ELASTIC_REMOVED or ELASTIC_STOPPED: elastic_run returns ELASTIC_OK, see *outcome;
 * - any other code: this worker leaves the job, and elastic_run returns the code, or
 *   ELASTIC_CALLBACK_FAILED for a number that is no code.
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

/* ---- learning rates (since ELASTIC_ABI_VERSION 2, as all that follows) --------------------------
 */

/* elastic::Schedule: the base rate as a function of the samples used so far. */
typedef struct elastic_schedule elastic_schedule;
ELASTIC_C_API elastic_code elastic_schedule_constant(double base, elastic_schedule** schedule);
/* `base`, times `factor` from each of the milestones (in samples) on. */
ELASTIC_C_API elastic_code elastic_schedule_step(double base, const double* milestones,
                                                 size_t count, double factor,
                                                 elastic_schedule** schedule);
ELASTIC_C_API elastic_code elastic_schedule_cosine(double base, double samples, double last,
                                                   elastic_schedule** schedule);
ELASTIC_C_API elastic_code elastic_schedule_polynomial(double base, double samples, double power,
                                                       double last, elastic_schedule** schedule);
/* From now on the schedule rises linearly from `first` over its first `samples` samples. */
ELASTIC_C_API elastic_code elastic_schedule_warm_up(elastic_schedule* schedule, double samples,
                                                    double first);
ELASTIC_C_API elastic_code elastic_schedule_rate(const elastic_schedule* schedule, double samples,
                                                 double* rate);
ELASTIC_C_API void elastic_schedule_destroy(elastic_schedule* schedule);

/* The rate of one step of an optimizer. */
typedef struct elastic_rate {
  size_t size;           /* sizeof(elastic_rate), set by the caller */
  double value;          /* the rate itself: base times gamma */
  double base;           /* of the schedule: suits the reference batch */
  double gamma;          /* the factor that suits the batch of this step */
  double momentum_scale; /* what the momentum is multiplied by before the step */
} elastic_rate;

/* elastic::LearningRate: follows the global batch. Add it to the state. */
typedef struct elastic_learning_rate elastic_learning_rate;
/* The schedule is copied. `rule`: "linear", "sqrt" or "adascale"; NULL for "linear". `policy`:
 * "ramp", "immediate", "rescale", "reset" or "none"; NULL for the option resize_policy of the
 * context. `ramp_steps`: 0 for the default. `momentum`: the optimizer's, such as 0.9. */
ELASTIC_C_API elastic_code elastic_learning_rate_create(elastic_context* context,
                                                        const elastic_schedule* schedule,
                                                        double batch_reference, const char* rule,
                                                        const char* policy, uint64_t ramp_steps,
                                                        double momentum,
                                                        elastic_learning_rate** learning_rate);
/* Once per step of the optimizer: see LearningRate::step. */
ELASTIC_C_API elastic_code elastic_learning_rate_step(elastic_learning_rate* learning_rate,
                                                      double batch, double samples,
                                                      elastic_rate* rate);
ELASTIC_C_API elastic_code elastic_learning_rate_latest(const elastic_learning_rate* learning_rate,
                                                        elastic_rate* rate);
/* The samples used so far; 0 for NULL. */
ELASTIC_C_API double elastic_learning_rate_progress(const elastic_learning_rate* learning_rate);
/* For "adascale": three numbers of this worker, which are summed with the gradients in one grouped
 * allreduce, and are given to elastic_learning_rate_observe before each step. Gradients are of
 * ELASTIC_F32. */
ELASTIC_C_API elastic_code elastic_gradient_moments(const elastic_tensor* gradient_sum,
                                                    size_t count, double samples, double* moments);
ELASTIC_C_API elastic_code elastic_learning_rate_observe(elastic_learning_rate* learning_rate,
                                                         const double* total,
                                                         const elastic_tensor* gradient_sum,
                                                         size_t count);
ELASTIC_C_API elastic_code elastic_state_add_learning_rate(elastic_state* state, const char* name,
                                                           elastic_learning_rate* learning_rate);
ELASTIC_C_API void elastic_learning_rate_destroy(elastic_learning_rate* learning_rate);

/* ---- gradients ---------------------------------------------------------------------------------
 */

/* elastic::FiniteCheck: keeps NaN and Inf from the weights, as the option non_finite says. The
 * gradients and the context must outlive it; the names are copied. */
typedef struct elastic_finite_check elastic_finite_check;
ELASTIC_C_API elastic_code elastic_finite_check_create(elastic_context* context,
                                                       const char* const* names,
                                                       const elastic_tensor* gradients,
                                                       size_t count, elastic_finite_check** check);
ELASTIC_C_API elastic_code elastic_finite_check_begin_step(elastic_finite_check* check);
ELASTIC_C_API elastic_code elastic_finite_check_before_sum(elastic_finite_check* check);
/* *usable: 0 if the step is to be skipped. ELASTIC_NOT_FINITE under "error", on all members. */
ELASTIC_C_API elastic_code elastic_finite_check_after_sum(elastic_finite_check* check, int* usable);
ELASTIC_C_API void elastic_finite_check_destroy(elastic_finite_check* check);

/* A tensor of ELASTIC_F32 or ELASTIC_F64 that travels as ELASTIC_F16 or ELASTIC_BF16. */
typedef struct elastic_cast_tensor {
  elastic_tensor tensor;    /* summed in place */
  elastic_dtype wire_dtype; /* or that of the tensor, which then goes as it is */
  float scale;              /* a power of two; 1 where it goes as it is */
} elastic_cast_tensor;
/* Context::cast_allreduce: `count` tensors in place, as one unit; ELASTIC_SUM or ELASTIC_AVERAGE.
 */
ELASTIC_C_API elastic_code elastic_cast_allreduce(elastic_context* context,
                                                  const elastic_cast_tensor* tensors, size_t count,
                                                  elastic_op op, void* stream,
                                                  elastic_contributors* contributors);

/* elastic::GradientCompressor: allreduces in fewer bytes, with error feedback. The context must
 * outlive it. */
typedef struct elastic_compressor elastic_compressor;
/* `compression`: "int8", "two_bit:0.5", "top_k:0.01" and so on; NULL for the option compression. */
ELASTIC_C_API elastic_code elastic_compressor_create(elastic_context* context,
                                                     const char* compression,
                                                     elastic_compressor** compressor);
/* `count` tensors of ELASTIC_F32 in place, as one unit; their residuals are kept under their names.
 * `whole`: one byte for each, not 0 if it is sent uncompressed; NULL if none is. */
ELASTIC_C_API elastic_code elastic_compressor_allreduce(elastic_compressor* compressor,
                                                        const char* const* names,
                                                        const elastic_tensor* tensors,
                                                        const unsigned char* whole, size_t count,
                                                        elastic_op op, void* stream,
                                                        elastic_contributors* contributors);
/* From the next call on everything is sent, residuals included; 0 ends it. */
ELASTIC_C_API elastic_code elastic_compressor_send_whole(elastic_compressor* compressor, int whole);
/* When the rate, or the batch that sums are divided by, has changed. */
ELASTIC_C_API elastic_code elastic_compressor_rescale(elastic_compressor* compressor,
                                                      double rate_before, double batch_before,
                                                      double rate, double batch);
/* Forgets all residuals. */
ELASTIC_C_API elastic_code elastic_compressor_reset(elastic_compressor* compressor);
/* Counts calls from `step`, for joiners, which need no warm-up. */
ELASTIC_C_API elastic_code elastic_compressor_begin_at(elastic_compressor* compressor,
                                                       uint64_t step);
/* The part of the tensor of this name that was not sent; valid until the next call. *count is 0
 * before its first one. */
ELASTIC_C_API elastic_code elastic_compressor_residual(const elastic_compressor* compressor,
                                                       const char* name, const float** values,
                                                       size_t* count);
/* See GradientCompressor::Traffic. */
typedef struct elastic_traffic {
  size_t size;                /* sizeof(elastic_traffic), set by the caller */
  uint64_t tensors;           /* bytes of the tensors */
  uint64_t encoded;           /* bytes of this worker's contribution */
  uint64_t sent;              /* bytes that this worker sent over links */
  uint64_t sent_uncompressed; /* that an allreduce without compression sends */
  uint64_t non_finite;        /* elements of results that are NaN or Inf */
  double residual_norm;       /* Euclidean norm of what is kept */
} elastic_traffic;
/* `of_all_calls`: 0 for the latest call that returned ELASTIC_OK. */
ELASTIC_C_API elastic_code elastic_compressor_get_traffic(const elastic_compressor* compressor,
                                                          int of_all_calls,
                                                          elastic_traffic* traffic);
ELASTIC_C_API void elastic_compressor_destroy(elastic_compressor* compressor);

/* ---- batches -----------------------------------------------------------------------------------
 */

/* elastic::RandomStream of a part of a batch: the same numbers on whichever worker computes it. */
typedef struct elastic_random elastic_random;
ELASTIC_C_API elastic_code elastic_random_bits(elastic_random* random, uint32_t* bits);
/* Uniform in [0, 1). */
ELASTIC_C_API elastic_code elastic_random_uniform(elastic_random* random, double* number);
/* Uniform among the whole numbers below `bound`. */
ELASTIC_C_API elastic_code elastic_random_below(elastic_random* random, uint64_t bound,
                                                uint64_t* number);

/* A part of a step's batch, for this worker to compute. */
typedef struct elastic_batch_part {
  size_t size;            /* sizeof(elastic_batch_part), set by the library */
  size_t virtual_worker;  /* under "per_worker" this worker's rank */
  const size_t* samples;  /* indices; valid until the function returns */
  size_t count;           /* of them */
  elastic_random* random; /* valid until the function returns */
} elastic_batch_part;
/* Adds to the tensors, which the step sets to zero before, the sums over the part's samples. It
 * may be called for the same part again. It must not call collectives. If it returns another code
 * than ELASTIC_OK, so does elastic_global_batch_sum. */
typedef elastic_code (*elastic_add_gradients)(void* user, const elastic_batch_part* part);
/* The content of the sum of a step; the same on all workers. */
typedef struct elastic_batch_sum {
  size_t size;       /* sizeof(elastic_batch_sum), set by the caller */
  size_t samples;    /* that are in the sum */
  size_t full_batch; /* what it would be were this not an epoch's end */
} elastic_batch_sum;

/* elastic::GlobalBatch. The sampler and the context must outlive it. Add it to the state. */
typedef struct elastic_global_batch elastic_global_batch;
/* `policy`: "per_worker", "fixed_total" or "reproducible". `batch`: the samples of a step, of each
 * worker under "per_worker", in all otherwise. */
ELASTIC_C_API elastic_code elastic_global_batch_create(elastic_context* context,
                                                       elastic_sampler* sampler, const char* policy,
                                                       size_t batch, size_t virtual_workers,
                                                       elastic_global_batch** batches);
/* A step: draws from the sampler, calls `add_gradients`, sums, and commits to the sampler. `sum`
 * and `contributors` may be NULL. */
ELASTIC_C_API elastic_code elastic_global_batch_sum(elastic_global_batch* batches,
                                                    const elastic_tensor* tensors, size_t count,
                                                    elastic_add_gradients add_gradients, void* user,
                                                    elastic_batch_sum* sum,
                                                    elastic_contributors* contributors);
ELASTIC_C_API elastic_code elastic_state_add_global_batch(elastic_state* state, const char* name,
                                                          elastic_global_batch* batches);
ELASTIC_C_API void elastic_global_batch_destroy(elastic_global_batch* batches);

/* elastic::average_by_samples: sums over `samples` samples of this worker become averages over the
 * samples of all, `*total` together, which may be NULL. */
ELASTIC_C_API elastic_code elastic_average_by_samples(elastic_context* context,
                                                      const elastic_tensor* sums, size_t count,
                                                      uint64_t samples, uint64_t* total,
                                                      elastic_contributors* contributors);

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

#endif /* ELASTIC_H */
