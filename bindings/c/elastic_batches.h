/* Batches that stay the same as workers come and go. Since ELASTIC_ABI_VERSION 2.
 * Programs include elastic.h. */
#ifndef ELASTIC_BATCHES_H
#define ELASTIC_BATCHES_H

#include "elastic_training.h"

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif

#endif /* ELASTIC_BATCHES_H */
