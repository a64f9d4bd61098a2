/* What a C trainer does with gradients: every result is compared with what it has to be.
 *
 *     elasticrun -np 2 c_gradients          learning rates, compression, batches, measurements
 *     elasticrun -np 2 c_gradients FILE     rank 0 is interrupted in a wait, and makes FILE */
#define _POSIX_C_SOURCE 200809L
#include <elastic.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define CALL(call)                                                                     \
  do {                                                                                 \
    const elastic_code code_ = (call);                                                 \
    if (code_ != ELASTIC_OK) {                                                         \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, elastic_code_name(code_), \
              elastic_last_error());                                                   \
      exit(3);                                                                         \
    }                                                                                  \
  } while (0)
#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      exit(4);                                                                \
    }                                                                         \
  } while (0)

enum { kSamples = 48, kSize = 4 };

static int near(double value, double expected) {
  return fabs(value - expected) < 1e-6;
}

static void learning_rates(void) {
  const double milestones[] = {100, 200};
  elastic_schedule* schedule = NULL;
  elastic_learning_rate* learning_rate = NULL;
  elastic_rate rate = {.size = sizeof rate};
  double base = 0;
  CALL(elastic_schedule_step(0.8, milestones, 2, 0.5, &schedule));
  CALL(elastic_schedule_rate(schedule, 150, &base));
  CHECK(near(base, 0.4));
  CALL(elastic_schedule_warm_up(schedule, 50, 0));
  CALL(elastic_schedule_rate(schedule, 25, &base));
  CHECK(near(base, 0.4));
  CALL(elastic_learning_rate_create(NULL, schedule, 32, "sqrt", "immediate", 0, 0.9,
                                    &learning_rate));
  elastic_schedule_destroy(schedule);
  CALL(elastic_learning_rate_step(learning_rate, 128, 60, &rate));
  CALL(elastic_learning_rate_step(learning_rate, 128, 60, &rate));
  CHECK(near(rate.base, 0.8) && near(rate.gamma, 2) && near(rate.value, 1.6));
  CHECK(near(elastic_learning_rate_progress(learning_rate), 120));
  memset(&rate, 0, sizeof rate);
  rate.size = sizeof rate;
  CALL(elastic_learning_rate_latest(learning_rate, &rate));
  CHECK(near(rate.value, 1.6));
  elastic_learning_rate_destroy(learning_rate);
}

static void adascale(void) {
  const int rank = elastic_rank(NULL);
  float gradient[kSize] = {(float)(8 + rank), 8, 8, (float)(8 - 2 * rank)};
  double moments[3];
  elastic_schedule* schedule = NULL;
  elastic_learning_rate* learning_rate = NULL;
  elastic_rate rate = {.size = sizeof rate};
  elastic_tensor group[2] = {{moments, 3, ELASTIC_F64, ELASTIC_HOST, 0},
                             {gradient, kSize, ELASTIC_F32, ELASTIC_HOST, 0}};
  CALL(elastic_schedule_constant(0.1, &schedule));
  CALL(elastic_learning_rate_create(NULL, schedule, 8, "adascale", "immediate", 0, 0.9,
                                    &learning_rate));
  CALL(elastic_gradient_moments(&group[1], 1, 8, moments));
  CHECK(near(moments[0], 8) && near(moments[1], 1));
  CALL(elastic_grouped_allreduce(NULL, group, 2, ELASTIC_SUM, NULL, NULL));
  CALL(elastic_learning_rate_observe(learning_rate, moments, &group[1], 1));
  CALL(elastic_learning_rate_step(learning_rate, 16, 16, &rate));
  CHECK(rate.gamma >= 1 && rate.gamma <= 2);
  elastic_learning_rate_destroy(learning_rate);
  elastic_schedule_destroy(schedule);
}

static void finite_check(void) {
  const char* const names[] = {"weights"};
  float gradient[kSize] = {1, 1, 1, 1};
  const elastic_tensor tensor = {gradient, kSize, ELASTIC_F32, ELASTIC_HOST, 0};
  elastic_finite_check* check = NULL;
  int usable = 7;
  CALL(elastic_finite_check_create(NULL, names, &tensor, 1, &check));
  for (int step = 0; step < 2; ++step) {
    if (step == 1 && elastic_rank(NULL) == 1) gradient[2] = NAN;
    CALL(elastic_finite_check_begin_step(check));
    CALL(elastic_finite_check_before_sum(check));
    CALL(elastic_allreduce(NULL, &tensor, &tensor, ELASTIC_SUM, NULL, NULL));
    CALL(elastic_finite_check_after_sum(check, &usable));
    CHECK(usable == (step == 0));
  }
  elastic_finite_check_destroy(check);
}

static void compression(void) {
  const char* const names[] = {"weights", "loss"};
  const unsigned char whole[] = {0, 1};
  float weights[64];
  float loss[1] = {0.3F};
  const elastic_tensor tensors[] = {{weights, 64, ELASTIC_F32, ELASTIC_HOST, 0},
                                    {loss, 1, ELASTIC_F32, ELASTIC_HOST, 0}};
  const elastic_cast_tensor cast = {tensors[0], ELASTIC_BF16, 1};
  elastic_compressor* compressor = NULL;
  elastic_contributors* contributors = NULL;
  elastic_traffic traffic = {.size = sizeof traffic};
  const float* residual = NULL;
  size_t count = 0;
  for (int i = 0; i < 64; ++i) weights[i] = i == 5 ? 4.F : 0.25F;
  CALL(elastic_contributors_create(&contributors));
  CALL(elastic_compressor_create(NULL, "top_k:0.015625", &compressor));
  CALL(elastic_compressor_allreduce(compressor, names, tensors, whole, 2, ELASTIC_SUM, NULL,
                                    contributors));
  CHECK(elastic_contributors_count(contributors) == 2);
  CHECK(weights[5] == 8 && weights[6] == 0 && loss[0] == 0.6F);
  CALL(elastic_compressor_residual(compressor, "weights", &residual, &count));
  CHECK(count == 64 && residual[5] == 0 && residual[6] == 0.25F);
  CALL(elastic_compressor_get_traffic(compressor, 0, &traffic));
  CHECK(traffic.tensors == 65 * 4 && traffic.encoded < traffic.tensors &&
        traffic.residual_norm > 0);
  CALL(elastic_compressor_rescale(compressor, 1, 1, 2, 1));
  CALL(elastic_compressor_residual(compressor, "weights", &residual, &count));
  CHECK(residual[6] == 0.125F);
  CALL(elastic_compressor_begin_at(compressor, 10));
  CALL(elastic_compressor_send_whole(compressor, 1));
  memset(weights, 0, sizeof weights);
  CALL(elastic_compressor_allreduce(compressor, names, tensors, whole, 2, ELASTIC_SUM, NULL, NULL));
  CHECK(weights[6] == 0.25F);
  CALL(elastic_compressor_reset(compressor));
  CALL(elastic_compressor_get_traffic(compressor, 1, &traffic));
  CHECK(traffic.tensors == 2 * 65 * 4);
  elastic_compressor_destroy(compressor);
  CALL(elastic_cast_allreduce(NULL, &cast, 1, ELASTIC_SUM, NULL, contributors));
  CHECK(weights[6] == 0.5F);
  const elastic_tensor scaled = cast.tensor;
  CALL(elastic_scaled_allreduce(NULL, &scaled, &scaled, ELASTIC_SUM, 2, 0.25, NULL, contributors));
  CALL(elastic_scaled_grouped_allreduce(NULL, &scaled, 1, ELASTIC_ADASUM, 4, 0.25, NULL, NULL));
  CALL(elastic_scaled_grouped_allreduce(NULL, &scaled, 1, ELASTIC_HIERARCHICAL_ADASUM, 4, 0.25,
                                        NULL, NULL));
  elastic_work* work = NULL;
  CALL(
      elastic_scaled_allreduce_async(NULL, "scaled", &scaled, 1, ELASTIC_SUM, 0.5, 1, NULL, &work));
  CALL(elastic_work_wait(work, NULL));
  elastic_work_destroy(work);
  CHECK(weights[6] == 0.5F);
  CHECK(elastic_scaled_allreduce(NULL, &scaled, &scaled, ELASTIC_BIT_OR, 1, 1, NULL, NULL) ==
        ELASTIC_INVALID_ARGUMENT);
  elastic_contributors_destroy(contributors);
}

static elastic_code add_samples(void* user, const elastic_batch_part* part) {
  double* const gradient = user;
  double number = 2;
  uint64_t below = 9;
  uint32_t bits = 0;
  CALL(elastic_random_bits(part->random, &bits));
  CALL(elastic_random_uniform(part->random, &number));
  CALL(elastic_random_below(part->random, 9, &below));
  CHECK(number >= 0 && number < 1 && below < 9 && part->virtual_worker < 4);
  for (size_t i = 0; i < part->count; ++i) *gradient += (double)part->samples[i];
  return ELASTIC_OK;
}

struct training {
  elastic_state* state;
  elastic_sampler* sampler;
  elastic_global_batch* batches;
  double total;
};

static elastic_code train(void* user) {
  struct training* const its = user;
  while (!elastic_sampler_is_finished(its->sampler, 2)) {
    double gradient = 0;
    const elastic_tensor tensor = {&gradient, 1, ELASTIC_F64, ELASTIC_HOST, 0};
    elastic_batch_sum sum = {.size = sizeof sum};
    elastic_loading* loading = NULL;
    elastic_code code;
    CALL(elastic_loading_begin(&loading));
    elastic_loading_destroy(loading);
    code = elastic_global_batch_sum(its->batches, &tensor, 1, add_samples, &gradient, &sum, NULL);
    if (code != ELASTIC_OK) return code;
    CHECK(sum.samples == 12 && sum.full_batch == 12);
    its->total += gradient;
    code = elastic_state_commit(its->state);
    if (code != ELASTIC_OK) return code;
  }
  return ELASTIC_OK;
}

static void batches(void) {
  struct training its = {NULL, NULL, NULL, 0};
  const elastic_tensor total = {&its.total, 1, ELASTIC_F64, ELASTIC_HOST, 0};
  elastic_step_times times = {.size = sizeof times};
  CALL(elastic_state_create(&its.state));
  CALL(elastic_sampler_create(kSamples, 1, &its.sampler));
  CALL(elastic_global_batch_create(NULL, its.sampler, "fixed_total", 12, 4, &its.batches));
  CALL(elastic_state_add_tensor(its.state, "total", &total));
  CALL(elastic_state_add_sampler(its.state, "sampler", its.sampler));
  CALL(elastic_state_add_global_batch(its.state, "batches", its.batches));
  CALL(elastic_run(NULL, its.state, train, &its, NULL));
  CHECK(its.total == 2.0 * kSamples * (kSamples - 1) / 2);
  CALL(elastic_get_step_times(NULL, &times));
  CHECK(times.steps == 2 * kSamples / 12 && times.sum.communication > 0);
  elastic_state_destroy(its.state);
  elastic_global_batch_destroy(its.batches);
  elastic_sampler_destroy(its.sampler);
}

static void averages_and_measurements(void) {
  double sums[2] = {3, 9};
  const elastic_tensor tensor = {sums, 2, ELASTIC_F64, ELASTIC_HOST, 0};
  const uint64_t samples = elastic_rank(NULL) == 0 ? 1 : 2;
  uint64_t total = 0;
  char name[32];
  elastic_tuning tuning = {.size = sizeof tuning};
  elastic_view_change change = {.size = sizeof change};
  CALL(elastic_average_by_samples(NULL, &tensor, 1, samples, &total, NULL));
  CHECK(total == 3 && sums[0] == 2 && sums[1] == 6);
  CALL(elastic_get_tuning(NULL, &tuning));
  CHECK(tuning.generation > 0 && tuning.latency_us_inside_hosts > 0);
  CALL(elastic_get_algorithm(NULL, 1 << 20, name, sizeof name));
  CHECK(strlen(name) > 2);
  CALL(elastic_get_view_change(NULL, &change));
  CHECK(change.noticed <= change.installed);
}

static void timeline(void) {
  char file[200] = "";
  CHECK(elastic_start_timeline(NULL, "/no/such/trace.json") == ELASTIC_INVALID_ARGUMENT);
  CHECK(strstr(elastic_last_error(), "/no/such/trace.") != NULL);
  CALL(elastic_start_timeline(NULL, "/tmp/c_gradients.json"));
  CHECK(elastic_start_timeline(NULL, "/tmp/c_gradients.json") == ELASTIC_INVALID_ARGUMENT);
  CHECK(elastic_get_timeline_file(NULL, file, 10) == ELASTIC_INVALID_ARGUMENT);
  CALL(elastic_get_timeline_file(NULL, file, sizeof file));
  CHECK(strncmp(file, "/tmp/c_gradients.", 17) == 0);
  CALL(elastic_stop_timeline(NULL));
  CHECK(remove(file) == 0);
  CALL(elastic_get_timeline_file(NULL, file, sizeof file));
  CHECK(file[0] == '\0');
}

static elastic_code give_up(void* user) {
  int* const calls = user;
  return ++*calls < 3 ? ELASTIC_OK : ELASTIC_CALLBACK_FAILED;
}

/* Rank 0 waits for a rank that waits for the file. */
static void interrupted(const char* file) {
  if (elastic_rank(NULL) == 0) {
    int calls = 0;
    elastic_interrupt* interrupt = NULL;
    FILE* made;
    CALL(elastic_interrupt_create(give_up, &calls, &interrupt));
    CHECK(elastic_barrier(NULL, NULL) == ELASTIC_CALLBACK_FAILED);
    CHECK(calls == 3 && strstr(elastic_last_error(), "the interrupt's check has returned") != NULL);
    elastic_interrupt_destroy(interrupt);
    puts("interrupted");
    fflush(stdout);
    made = fopen(file, "w");
    CHECK(made != NULL);
    fclose(made);
    return;
  }
  while (access(file, F_OK) != 0) {
    const struct timespec pause = {0, 10000000};
    nanosleep(&pause, NULL);
  }
  CALL(elastic_barrier(NULL, NULL));
  CHECK(elastic_size(NULL) == 1);
  puts("went on");
}

int main(int argc, char** argv) {
  elastic_options* options = NULL;
  CALL(elastic_options_create(&options));
  CALL(elastic_options_set(options, "non_finite", "skip"));
  CALL(elastic_init(options));
  elastic_options_destroy(options);
  if (argc == 2) {
    interrupted(argv[1]);
    (void)elastic_shutdown();
    return 0;
  }
  learning_rates();
  adascale();
  finite_check();
  compression();
  batches();
  averages_and_measurements();
  timeline();
  CALL(elastic_shutdown());
  puts("gradients are right");
  return 0;
}
