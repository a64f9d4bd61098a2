/* A trainer in C: fits a line to samples by gradient descent, with the gradient averaged over the
 * workers, however they come and go.
 *
 *     elasticrun -np 4 ./regression [STEPS] */
#include <elastic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { kSamples = 10000, kBatch = 16 };

/* All that a joiner needs to go on in the middle. */
typedef struct training {
  elastic_state* state;
  elastic_sampler* sampler;
  elastic_contributors* contributors;
  double weights[2]; /* slope and intercept */
  uint64_t steps;
  uint64_t last_step;
} training;

/* A sample is made from its number: y = 3x - 1, with a little noise. */
static void make_sample(size_t index, double* x, double* y) {
  const uint64_t hash = (index + 1) * UINT64_C(0x9e3779b97f4a7c15);
  *x = (double)(hash >> 40) / (double)(1 << 24) - 0.5;
  *y = 3 * *x - 1 + ((double)(hash & 0xff) / 255 - 0.5) * 0.01;
}

/* One step: the gradient of the squared error over the global batch. */
static elastic_code step(training* its) {
  const size_t* indices = NULL;
  size_t count = 0;
  elastic_code code = elastic_sampler_next(its->sampler, kBatch, &indices, &count);
  if (code != ELASTIC_OK) return code;

  double sums[3] = {0, 0, (double)count}; /* both derivatives, and the number of samples */
  for (size_t i = 0; i < count; ++i) {
    double x, y;
    make_sample(indices[i], &x, &y);
    const double error = its->weights[0] * x + its->weights[1] - y;
    sums[0] += 2 * error * x;
    sums[1] += 2 * error;
  }
  const elastic_tensor tensor = {sums, 3, ELASTIC_F64, ELASTIC_HOST, 0};
  code = elastic_allreduce(NULL, &tensor, &tensor, ELASTIC_SUM, NULL, its->contributors);
  if (code != ELASTIC_OK) return code;

  if (sums[2] > 0) {
    its->weights[0] -= 0.5 * sums[0] / sums[2];
    its->weights[1] -= 0.5 * sums[1] / sums[2];
  }
  const elastic_contributors* const operations[] = {its->contributors};
  code = elastic_sampler_commit(its->sampler, operations, 1);
  if (code != ELASTIC_OK) return code;
  ++its->steps;
  return elastic_state_commit(its->state);
}

/* The codes of elastic's calls are handed back: see elastic_run. */
static elastic_code train(void* user) {
  training* const its = user;
  while (its->steps < its->last_step) {
    const elastic_code code = step(its);
    if (code != ELASTIC_OK) return code;
  }
  return ELASTIC_OK;
}

static void check(elastic_code code) {
  if (code == ELASTIC_OK) return;
  fprintf(stderr, "%s: %s\n", elastic_code_name(code), elastic_last_error());
  exit(1);
}

int main(int argc, char** argv) {
  training its = {NULL, NULL, NULL, {0, 0}, 0, argc > 1 ? strtoull(argv[1], NULL, 10) : 2000};
  check(elastic_init(NULL));
  check(elastic_contributors_create(&its.contributors));
  check(elastic_sampler_create(kSamples, 1, &its.sampler));

  const elastic_tensor weights = {its.weights, 2, ELASTIC_F64, ELASTIC_HOST, 0};
  const elastic_tensor steps = {&its.steps, 1, ELASTIC_U64, ELASTIC_HOST, 0};
  check(elastic_state_create(&its.state));
  check(elastic_state_add_tensor(its.state, "weights", &weights));
  check(elastic_state_add_tensor(its.state, "steps", &steps));
  check(elastic_state_add_sampler(its.state, "sampler", its.sampler));

  elastic_run_outcome outcome;
  check(elastic_run(NULL, its.state, train, &its, &outcome));
  if (outcome == ELASTIC_FINISHED) {
    printf("rank %d of %d: y = %.17g x + %.17g after %llu steps\n", elastic_rank(NULL),
           elastic_size(NULL), its.weights[0], its.weights[1], (unsigned long long)its.steps);
  }
  check(elastic_shutdown());

  elastic_state_destroy(its.state);
  elastic_sampler_destroy(its.sampler);
  elastic_contributors_destroy(its.contributors);
  return 0;
}
