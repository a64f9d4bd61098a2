/* Gradients: as one unit, checked for NaN, and in fewer bytes.
 * Programs include elastic.h. */
#ifndef ELASTIC_GRADIENTS_H
#define ELASTIC_GRADIENTS_H

#include "elastic_tensors.h"

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif

#endif /* ELASTIC_GRADIENTS_H */
