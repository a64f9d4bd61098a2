/* Trains by the C interface and checks every result against the contributors that it names. The
 * worker in slot 1 dies in a step, and its replacement joins; in `rejoin` that worker is told that
 * it was evicted instead, and joins again.
 *
 *     elasticrun -np 3 c_trainer die|rejoin|stay CHECKPOINT */
#define _POSIX_C_SOURCE 200809L
#include <elastic.h>
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kSteps = 60, kFatalStep = 20, kSamples = 500, kElements = 1000, kMost = 16 };

typedef struct notes {
  uint64_t sum;
  size_t loads;
  size_t told_members;
} notes;

typedef struct training {
  elastic_state* state;
  elastic_sampler* sampler;
  elastic_contributors* contributors[2];
  uint64_t steps;
  uint64_t samples;
  float weights[kElements];
  notes notes;
  const char* mode;
  int is_first; /* process in slot 1 */
} training;

static void fail(const char* what) {
  fprintf(stderr, "c_trainer: %s: %s\n", what, elastic_last_error());
  exit(3);
}
static void require(int condition, const char* what) {
  if (!condition) fail(what);
}

/* What `worker` gives in a step: small enough that sums of floats are exact. */
static uint64_t part(uint64_t worker, uint64_t step) {
  return (worker + step) % 1021;
}

static uint64_t total(const elastic_contributors* contributors, uint64_t step) {
  const uint64_t* workers = elastic_contributors_workers(contributors);
  uint64_t sum = 0;
  for (size_t i = 0; i < elastic_contributors_count(contributors); ++i)
    sum += part(workers[i], step);
  return sum;
}

static elastic_code save_notes(void* user, elastic_bytes* bytes) {
  const notes* const its = user;
  return elastic_bytes_append(bytes, &its->sum, sizeof its->sum);
}
static elastic_code load_notes(void* user, const void* data, size_t size) {
  notes* const its = user;
  if (size != sizeof its->sum) return ELASTIC_CALLBACK_FAILED;
  memcpy(&its->sum, data, size);
  ++its->loads;
  return ELASTIC_OK;
}
static elastic_code note_members(void* user, const uint64_t* members, size_t count, uint64_t self) {
  notes* const its = user;
  for (size_t i = 0; i < count; ++i) {
    if (members[i] == self) its->told_members = count;
  }
  return ELASTIC_OK;
}

static elastic_code sum_blocks(void* user, const void* values, size_t bytes, const size_t* counts,
                               size_t members) {
  const uint64_t* const all = values;
  uint64_t* const sum = user;
  size_t expected = 0;
  for (size_t i = 0; i < members; ++i) expected += counts[i];
  require(bytes == expected * sizeof *all, "allgather_take's counts");
  for (size_t i = 0; i < expected; ++i) *sum += all[i];
  return ELASTIC_OK;
}

#define TRY(call)                          \
  do {                                     \
    const elastic_code code_ = (call);     \
    if (code_ != ELASTIC_OK) return code_; \
  } while (0)

static elastic_tensor f32(float* data, size_t count) {
  const elastic_tensor tensor = {data, count, ELASTIC_F32, ELASTIC_HOST, 0};
  return tensor;
}
static elastic_tensor u64(uint64_t* data, size_t count) {
  const elastic_tensor tensor = {data, count, ELASTIC_U64, ELASTIC_HOST, 0};
  return tensor;
}

/* Named and unnamed allreduces: the gradient of the step, and its samples. */
static elastic_code reduce(training* its, uint64_t worker, uint64_t samples) {
  float gradient[kElements], copy[kElements];
  for (size_t i = 0; i < kElements; ++i) gradient[i] = (float)part(worker, its->steps);
  const elastic_tensor in = f32(gradient, kElements);
  const elastic_tensor out = f32(copy, kElements);

  elastic_work* work = NULL;
  const elastic_tensor counted = u64(&samples, 1);
  TRY(elastic_allreduce_async(NULL, "samples", &counted, 1, ELASTIC_SUM, NULL, &work));
  elastic_code code = elastic_allreduce(NULL, &in, &out, ELASTIC_SUM, NULL, its->contributors[0]);
  if (code == ELASTIC_OK) code = elastic_work_wait(work, its->contributors[1]);
  if (code == ELASTIC_OK) require(elastic_work_is_complete(work), "a work that was waited for");
  elastic_work_destroy(work);
  TRY(code);

  const float expected = (float)total(its->contributors[0], its->steps);
  for (size_t i = 0; i < kElements; ++i) require(copy[i] == expected, "the sum of an allreduce");
  for (size_t i = 0; i < kElements; ++i) its->weights[i] += copy[i];
  its->samples += samples;
  return ELASTIC_OK;
}

/* The other collectives, each against what it says of itself. */
static elastic_code move(training* its, uint64_t worker) {
  elastic_contributors* const who = its->contributors[0];
  uint64_t value = part(worker, its->steps), blocks[kMost], sum = 0;
  const elastic_tensor block = u64(&value, 1), out = u64(blocks, kMost);
  size_t count = 0, offset = 0;
  TRY(elastic_allgather(NULL, &block, &out, NULL, &count, who));
  require(count == elastic_contributors_count(who), "the count of an allgather");
  for (size_t i = 0; i < count; ++i) sum += blocks[i];
  require(sum == total(who, its->steps), "the blocks of an allgather");

  sum = 0;
  TRY(elastic_allgather_take(NULL, &block, NULL, sum_blocks, &sum, who));
  require(sum == total(who, its->steps), "the blocks of an allgather_take");

  uint64_t whole[100], piece[100];
  for (size_t i = 0; i < 100; ++i) whole[i] = value * (i + 1);
  const elastic_tensor data = u64(whole, 100), some = u64(piece, 100);
  TRY(elastic_reduce_scatter(NULL, &data, &some, ELASTIC_SUM, NULL, &count, &offset, who));
  for (size_t i = 0; i < count; ++i) {
    require(piece[i] == total(who, its->steps) * (offset + i + 1), "the part of a reduce_scatter");
  }

  float weight = its->weights[0];
  const elastic_tensor tensors[] = {block, f32(&weight, 1)};
  TRY(elastic_grouped_allreduce(NULL, tensors, 2, ELASTIC_MAX, NULL, who));
  require(weight == its->weights[0], "replicas differ");
  value = its->steps;
  /* The root may die before anybody has its value: the same call again, with the next root. */
  elastic_code code;
  do {
    code = elastic_broadcast(NULL, &block, 0, NULL, who);
  } while (elastic_code_is_retryable(code));
  TRY(code);
  require(value == its->steps, "a broadcast");

  const uint64_t root = elastic_contributors_workers(who)[elastic_contributors_count(who) - 1];
  value = worker;
  code = elastic_broadcast_from(NULL, &block, root, NULL, who);
  if (code != ELASTIC_ROOT_LOST) {
    TRY(code);
    require(value == root, "a broadcast from a worker");
  }
  return elastic_barrier(NULL, NULL);
}

static elastic_code step(training* its) {
  elastic_view view = {sizeof view, 0, 0, 0, 0, 0, 0};
  const size_t* indices = NULL;
  size_t count = 0;
  TRY(elastic_get_view(NULL, &view));
  TRY(elastic_sampler_next(its->sampler, 2, &indices, &count));
  if (its->is_first && its->steps == kFatalStep) {
    if (strcmp(its->mode, "die") == 0) kill(getpid(), SIGKILL);
    its->is_first = 0;
    if (strcmp(its->mode, "rejoin") == 0) return ELASTIC_EVICTED;
  }
  TRY(reduce(its, view.worker, count));
  const elastic_contributors* const both[] = {its->contributors[0], its->contributors[1]};
  TRY(elastic_sampler_commit(its->sampler, both, 2));
  TRY(move(its, view.worker));
  its->notes.sum += its->steps;
  ++its->steps;
  return elastic_state_commit(its->state);
}

static elastic_code train(void* user) {
  training* const its = user;
  while (its->steps < kSteps) TRY(step(its));
  return ELASTIC_OK;
}

static void add_to_state(training* its) {
  const elastic_tensor steps = u64(&its->steps, 1), samples = u64(&its->samples, 1);
  const elastic_tensor weights = f32(its->weights, kElements);
  const elastic_object object = {sizeof object, &its->notes, save_notes, load_notes, note_members};
  require(elastic_state_create(&its->state) == ELASTIC_OK, "state_create");
  require(elastic_state_add_tensor(its->state, "steps", &steps) == ELASTIC_OK, "add steps");
  require(elastic_state_add_tensor(its->state, "samples", &samples) == ELASTIC_OK, "add samples");
  require(elastic_state_add_tensor(its->state, "weights", &weights) == ELASTIC_OK, "add weights");
  require(elastic_state_add_sampler(its->state, "sampler", its->sampler) == ELASTIC_OK, "sampler");
  require(elastic_state_add_object(its->state, "notes", &object) == ELASTIC_OK, "add notes");
}

int main(int argc, char** argv) {
  static training its;
  require(argc == 3, "usage: c_trainer die|rejoin|stay CHECKPOINT");
  its.mode = argv[1];
  const char* const slot = getenv("ELASTIC_SLOT");
  const char* const restart = getenv("ELASTIC_RESTART");
  its.is_first = slot && strcmp(slot, "1") == 0 && restart && strcmp(restart, "0") == 0;

  elastic_options* options = NULL;
  require(elastic_options_create(&options) == ELASTIC_OK, "options_create");
  require(elastic_options_set(options, "bucket_bytes", "1M") == ELASTIC_OK, "options_set");
  require(elastic_init(options) == ELASTIC_OK, "init");
  elastic_options_destroy(options);
  for (int i = 0; i < 2; ++i) {
    require(elastic_contributors_create(&its.contributors[i]) == ELASTIC_OK, "contributors");
  }
  require(elastic_sampler_create(kSamples, 7, &its.sampler) == ELASTIC_OK, "sampler_create");
  add_to_state(&its);

  elastic_run_outcome outcome = ELASTIC_LEFT_OUT;
  require(elastic_run(NULL, its.state, train, &its, &outcome) == ELASTIC_OK, "run");
  require(outcome == ELASTIC_FINISHED, "the training did not finish");
  require(elastic_state_commits(its.state) == kSteps, "commits");
  require(its.notes.told_members == 3, "set_members");
  if (elastic_rank(NULL) == 0) {
    require(elastic_state_save_to(its.state, argv[2]) == ELASTIC_OK, "save_to");
  }
  printf("state %" PRIu64 " %" PRIu64 " %.9g %" PRIu64 "\n", its.steps, its.samples,
         (double)its.weights[kElements - 1], its.notes.sum);
  require(elastic_shutdown() == ELASTIC_OK, "shutdown");

  elastic_state_destroy(its.state);
  elastic_sampler_destroy(its.sampler);
  for (int i = 0; i < 2; ++i) elastic_contributors_destroy(its.contributors[i]);
  return 0;
}
