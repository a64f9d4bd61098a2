/* Collectives that return when they are complete.
 * Programs include elastic.h. */
#ifndef ELASTIC_COLLECTIVES_H
#define ELASTIC_COLLECTIVES_H

#include "elastic_tensors.h"

#ifdef __cplusplus
extern "C" {
#endif

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

/* The part of one tensor: `count` elements, which begin at element `offset` of the whole. */
typedef struct elastic_part {
  size_t count;
  size_t offset;
} elastic_part;
/* elastic_reduce_scatter of `count` tensors of one type as one unit: of inputs[i] to outputs[i],
 * with the part in parts[i]. `parts` has `count` elements, or is NULL.
 * Since ELASTIC_ABI_VERSION 9. */
ELASTIC_C_API elastic_code elastic_grouped_reduce_scatter(elastic_context* context,
                                                          const elastic_tensor* inputs,
                                                          const elastic_tensor* outputs,
                                                          size_t count, elastic_op op, void* stream,
                                                          elastic_part* parts,
                                                          elastic_contributors* contributors);
/* elastic_allgather of `count` tensors of any types as one unit: of blocks[i] to outputs[i], with
 * the elements of all blocks together in gathered[i]. `counts`: the elements of each contributor,
 * first of the first tensor, the first `room` of them. Both may be NULL.
 * Since ELASTIC_ABI_VERSION 9. */
ELASTIC_C_API elastic_code elastic_grouped_allgather(elastic_context* context,
                                                     const elastic_tensor* blocks,
                                                     const elastic_tensor* outputs, size_t count,
                                                     void* stream, size_t* gathered, size_t* counts,
                                                     size_t room,
                                                     elastic_contributors* contributors);

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
 * which begin at element `*offset` of the root's, without the blocks of workers that have died.
 * Other members' `blocks` give only the type of their `data`. */
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
/* elastic::sparse_allreduce: sums or averages the rows of all members. If they give many rows, this
 * takes the memory of the whole tensor with one column more. Calls `take` once, before
 * the function returns: with the indices of the `count` rows that a member gave, ascending, each
 * once, and with the rows, one after another. Both are valid only during `take`. A code of it other
 * than ELASTIC_OK is returned, or ELASTIC_CALLBACK_FAILED for a number that is no code. */
typedef elastic_code (*elastic_take_rows)(void* user, const int64_t* indices, const void* values,
                                          size_t count);
ELASTIC_C_API elastic_code elastic_sparse_allreduce(elastic_context* context,
                                                    const elastic_sparse_rows* rows, elastic_op op,
                                                    elastic_take_rows take, void* user,
                                                    elastic_contributors* contributors);
/* elastic::grouped_sparse_allreduce: the same for `count` tensors in one operation, with the same
 * contributors. Calls `take` once for each tensor, in their order, until it returns another code
 * than ELASTIC_OK. Since ELASTIC_ABI_VERSION 8. */
ELASTIC_C_API elastic_code elastic_grouped_sparse_allreduce(elastic_context* context,
                                                            const elastic_sparse_rows* tensors,
                                                            size_t count, elastic_op op,
                                                            elastic_take_rows take, void* user,
                                                            elastic_contributors* contributors);

#ifdef __cplusplus
}
#endif

#endif /* ELASTIC_COLLECTIVES_H */
