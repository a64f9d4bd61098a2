/* Learning rates that follow the batch. Since ELASTIC_ABI_VERSION 2.
 * Programs include elastic.h. */
#ifndef ELASTIC_LEARNING_RATE_H
#define ELASTIC_LEARNING_RATE_H

#include "elastic_training.h"

#ifdef __cplusplus
extern "C" {
#endif

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

#ifdef __cplusplus
}
#endif

#endif /* ELASTIC_LEARNING_RATE_H */
