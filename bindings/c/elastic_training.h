/* The state that joiners receive, the training loop, and the samples.
 * Programs include elastic.h. */
#ifndef ELASTIC_TRAINING_H
#define ELASTIC_TRAINING_H

#include "elastic_tensors.h"

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif

#endif /* ELASTIC_TRAINING_H */
