/* Asynchronous collectives, and what is done with an operation under way.
 * Programs include elastic.h. */
#ifndef ELASTIC_ASYNC_H
#define ELASTIC_ASYNC_H

#include "elastic_collectives.h"

#ifdef __cplusplus
extern "C" {
#endif

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
/* Waits until all members have the operation, and does not wait for the device that brings its
 * results to the tensors: what is queued on `stream` of that device from now on comes after them.
 * The same as elastic_work_wait if no device brings any. Since ELASTIC_ABI_VERSION 9. */
ELASTIC_C_API elastic_code elastic_work_wait_on_stream(const elastic_work* work, void* stream,
                                                       elastic_contributors* contributors);
/* Waits for `nanoseconds` at most. If the operation is not complete then, returns ELASTIC_OK and
 * sets *complete to 0. */
ELASTIC_C_API elastic_code elastic_work_wait_for(const elastic_work* work, uint64_t nanoseconds,
                                                 int* complete);
/* 1 if it is complete, successfully or not. Never waits. */
ELASTIC_C_API int elastic_work_is_complete(const elastic_work* work);
ELASTIC_C_API void elastic_work_destroy(elastic_work* work);

/* The rest of this header is there since ELASTIC_ABI_VERSION 4. */

/* Start the calls of the same names without _async: under a name, or where `name` is NULL in
 * program order. `stream` is for tensors on a CUDA device, which calls with a name take only where
 * they are a broadcast, an allgather or a reduce_scatter (since ELASTIC_ABI_VERSION 9). */
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
/* The rows are copied, and may end when the call has returned. Under a name the rows are always
 * gathered. Since ELASTIC_ABI_VERSION 8. */
ELASTIC_C_API elastic_code elastic_sparse_allreduce_async(elastic_context* context,
                                                          const char* name,
                                                          const elastic_sparse_rows* rows,
                                                          elastic_op op, elastic_work** work);
/* In program order. The arrays of tensors may end when the call has returned, the data of the
 * tensors not. Since ELASTIC_ABI_VERSION 9. */
ELASTIC_C_API elastic_code elastic_grouped_reduce_scatter_async(elastic_context* context,
                                                                const elastic_tensor* inputs,
                                                                const elastic_tensor* outputs,
                                                                size_t count, elastic_op op,
                                                                void* stream, elastic_work** work);
ELASTIC_C_API elastic_code elastic_grouped_allgather_async(elastic_context* context,
                                                           const elastic_tensor* blocks,
                                                           const elastic_tensor* outputs,
                                                           size_t count, void* stream,
                                                           elastic_work** work);
/* The results of a complete operation: what elastic_alltoall fills, of an alltoall, an allgather
 * and a gather; what elastic_scatter fills, of a reduce_scatter and a scatter.
 * ELASTIC_INVALID_ARGUMENT for other operations, and before they are complete. */
ELASTIC_C_API elastic_code elastic_work_blocks(const elastic_work* work, size_t* gathered,
                                               size_t* counts, size_t room);
ELASTIC_C_API elastic_code elastic_work_part(const elastic_work* work, size_t* count,
                                             size_t* offset);
/* The same of a complete elastic_grouped_reduce_scatter_async and elastic_grouped_allgather_async:
 * what the calls without _async fill. `parts` and `gathered` have an element for each tensor.
 * Since ELASTIC_ABI_VERSION 9. */
ELASTIC_C_API elastic_code elastic_work_parts(const elastic_work* work, elastic_part* parts);
ELASTIC_C_API elastic_code elastic_work_gathered(const elastic_work* work, size_t* gathered,
                                                 size_t* counts, size_t room);
/* The rows of a complete elastic_sparse_allreduce_async, as `take` gets them from
 * elastic_sparse_allreduce. Members that gave rows which do not fit each other may learn it here:
 * elastic_work_wait does not look at the rows of a call with a name. Since ELASTIC_ABI_VERSION 8.
 */
ELASTIC_C_API elastic_code elastic_work_rows(const elastic_work* work, elastic_take_rows take,
                                             void* user);
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

#ifdef __cplusplus
}
#endif

#endif /* ELASTIC_ASYNC_H */
