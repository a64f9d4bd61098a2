/* Mistakes of a C program: each gets its code and a text that names what was wrong.
 *
 *     elasticrun -np 1 c_mistakes FOLDER */
#include <elastic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void expect(elastic_code code, elastic_code expected, const char* text, int line) {
  if (code == expected && strstr(elastic_last_error(), text) != NULL) return;
  fprintf(stderr, "c_mistakes.c:%d: %s, not %s: '%s' does not say '%s'\n", line,
          elastic_code_name(code), elastic_code_name(expected), elastic_last_error(), text);
  exit(3);
}
#define EXPECT(call, code, text) expect((call), (code), (text), __LINE__)
#define REQUIRE(call) expect((call), ELASTIC_OK, "", __LINE__)

static elastic_code body_fails(void* user) {
  (void)user;
  return ELASTIC_CALLBACK_FAILED;
}
static elastic_code body_mistakes(void* user) {
  (void)user;
  return elastic_broadcast(NULL, NULL, 0, NULL, NULL);
}
static elastic_code body_succeeds(void* user) {
  (void)user;
  return ELASTIC_OK;
}
static elastic_code save_fails(void* user, elastic_bytes* bytes) {
  (void)user;
  (void)bytes;
  return ELASTIC_CALLBACK_FAILED;
}
static elastic_code load_nothing(void* user, const void* data, size_t size) {
  (void)user;
  (void)data;
  (void)size;
  return ELASTIC_OK;
}
static elastic_code load_result = ELASTIC_OK;
static elastic_code save_something(void* user, elastic_bytes* bytes) {
  (void)user;
  return elastic_bytes_append(bytes, "something", 9);
}
static elastic_code load_returns(void* user, const void* data, size_t size) {
  (void)user;
  (void)data;
  (void)size;
  return load_result;
}
static elastic_code take_calls(void* user, const void* values, size_t bytes, const size_t* counts,
                               size_t members) {
  (void)user;
  (void)values;
  (void)bytes;
  (void)counts;
  (void)members;
  return elastic_barrier(NULL, NULL);
}

static void before_init(void) {
  float value = 1;
  const elastic_tensor tensor = {&value, 1, ELASTIC_F32, ELASTIC_HOST, 0};
  elastic_options* options = NULL;
  REQUIRE(elastic_options_create(&options));
  EXPECT(elastic_options_set(options, "bucket_byte", "1"), ELASTIC_INVALID_ARGUMENT,
         "'bucket_byte' is not known; did you mean 'bucket_bytes'?");
  EXPECT(elastic_options_set(options, "bucket_bytes", "many"), ELASTIC_INVALID_ARGUMENT,
         "bucket_bytes is 'many': must be a number of bytes");
  EXPECT(elastic_options_set(options, "bucket_bytes", NULL), ELASTIC_INVALID_ARGUMENT,
         "elastic_options_set: value is NULL");
  EXPECT(elastic_options_create(NULL), ELASTIC_INVALID_ARGUMENT, "options is NULL");
  elastic_options_destroy(options);
  elastic_options_destroy(NULL);
  EXPECT(elastic_allreduce(NULL, &tensor, &tensor, ELASTIC_SUM, NULL, NULL),
         ELASTIC_NOT_INITIALIZED, "init");
  if (elastic_rank(NULL) != -1 || elastic_size(NULL) != 0) exit(4);
}

static void of_collectives(void) {
  float values[4] = {1, 2, 3, 4};
  elastic_tensor tensor = {values, 4, ELASTIC_F32, ELASTIC_HOST, 0};
  elastic_tensor strange = tensor;
  elastic_work* work = NULL;
  elastic_view view = {0, 0, 0, 0, 0, 0, 0};
  int complete = 0;
  strange.dtype = (elastic_dtype)99;
  EXPECT(elastic_allreduce(NULL, &strange, &strange, ELASTIC_SUM, NULL, NULL),
         ELASTIC_INVALID_ARGUMENT, "element type 99 does not exist");
  strange.dtype = (elastic_dtype)(-1);
  EXPECT(elastic_allreduce(NULL, &strange, &strange, ELASTIC_SUM, NULL, NULL),
         ELASTIC_INVALID_ARGUMENT, "does not exist");
  EXPECT(elastic_allreduce(NULL, &tensor, &tensor, (elastic_op)99, NULL, NULL),
         ELASTIC_INVALID_ARGUMENT, "operation 99 does not exist");
  EXPECT(elastic_allreduce(NULL, NULL, &tensor, ELASTIC_SUM, NULL, NULL), ELASTIC_INVALID_ARGUMENT,
         "elastic_allreduce: in is NULL");
  strange = tensor;
  strange.data = NULL;
  EXPECT(elastic_allreduce(NULL, &strange, &strange, ELASTIC_SUM, NULL, NULL),
         ELASTIC_INVALID_ARGUMENT, "allreduce");
  EXPECT(elastic_grouped_allreduce(NULL, NULL, 3, ELASTIC_SUM, NULL, NULL),
         ELASTIC_INVALID_ARGUMENT, "tensors is NULL");
  EXPECT(elastic_broadcast(NULL, &tensor, 5, NULL, NULL), ELASTIC_MISMATCH, "root 5 is no rank");
  EXPECT(elastic_broadcast_from(NULL, NULL, 5, NULL, NULL), ELASTIC_INVALID_ARGUMENT,
         "elastic_broadcast_from: tensor is NULL");
  EXPECT(elastic_broadcast_from(NULL, &tensor, 0, NULL, NULL), ELASTIC_ROOT_LOST, "is no member");
  EXPECT(elastic_allreduce_async(NULL, "", &tensor, 1, ELASTIC_SUM, NULL, &work),
         ELASTIC_INVALID_ARGUMENT, "name");
  EXPECT(elastic_allreduce_async(NULL, "x", &tensor, 1, ELASTIC_SUM, NULL, NULL),
         ELASTIC_INVALID_ARGUMENT, "work is NULL");
  EXPECT(elastic_work_wait(NULL, NULL), ELASTIC_INVALID_ARGUMENT, "work is NULL");
  EXPECT(elastic_work_wait_for(NULL, 1, &complete), ELASTIC_INVALID_ARGUMENT, "work is NULL");
  EXPECT(elastic_work_wait_on_stream(NULL, NULL, NULL), ELASTIC_INVALID_ARGUMENT, "work is NULL");
  EXPECT(elastic_get_view(NULL, &view), ELASTIC_INVALID_ARGUMENT, "size");
  EXPECT(elastic_get_view(NULL, NULL), ELASTIC_INVALID_ARGUMENT, "NULL");
  EXPECT(elastic_allgather_take(NULL, &tensor, NULL, NULL, NULL, NULL), ELASTIC_INVALID_ARGUMENT,
         "take is NULL");
  EXPECT(elastic_allgather_take(NULL, &tensor, NULL, take_calls, NULL, NULL),
         ELASTIC_INVALID_ARGUMENT, "");
  /* An older program knows less of the structure. */
  view.size = offsetof(elastic_view, local_rank);
  view.local_size = 77;
  REQUIRE(elastic_get_view(NULL, &view));
  if (view.world_size != 1 || view.local_size != 77) exit(5);
  REQUIRE(elastic_allreduce(NULL, &tensor, &tensor, ELASTIC_SUM, NULL, NULL));
  REQUIRE(elastic_allreduce_async(NULL, "x", &tensor, 1, ELASTIC_SUM, NULL, &work));
  REQUIRE(elastic_work_wait_on_stream(work, NULL, NULL)); /* no tensor is on a device */
  while (!complete) REQUIRE(elastic_work_wait_for(work, UINT64_MAX, &complete));
  elastic_work_destroy(work);
  if (values[3] != 4) exit(6);
}

static elastic_global_batch* the_batches;

static elastic_code add_fails(void* user, const elastic_batch_part* part) {
  (void)user;
  (void)part;
  return ELASTIC_CALLBACK_FAILED;
}

static elastic_code body_adds(void* user) {
  float value = 0;
  const elastic_tensor tensor = {&value, 1, ELASTIC_F32, ELASTIC_HOST, 0};
  return elastic_global_batch_sum(the_batches, &tensor, 1, add_fails, user, NULL, NULL);
}

static void of_learning_rates(void) {
  elastic_schedule* schedule = NULL;
  elastic_learning_rate* learning_rate = NULL;
  elastic_rate rate = {0, 0, 0, 0, 0};
  EXPECT(elastic_schedule_constant(-1, &schedule), ELASTIC_INVALID_ARGUMENT, "-1");
  EXPECT(elastic_schedule_step(1, NULL, 2, 0.1, &schedule), ELASTIC_INVALID_ARGUMENT,
         "milestones is NULL");
  REQUIRE(elastic_schedule_constant(1, &schedule));
  EXPECT(elastic_learning_rate_create(NULL, schedule, 1, "cubic", NULL, 0, 0.9, &learning_rate),
         ELASTIC_INVALID_ARGUMENT, "rule is 'cubic'; it is one of linear, sqrt, adascale");
  EXPECT(elastic_learning_rate_create(NULL, schedule, 1, NULL, "later", 0, 0.9, &learning_rate),
         ELASTIC_INVALID_ARGUMENT, "policy is 'later'; it is one of ");
  EXPECT(elastic_learning_rate_create(NULL, schedule, 0, NULL, NULL, 0, 0.9, &learning_rate),
         ELASTIC_INVALID_ARGUMENT, "batch_reference");
  REQUIRE(elastic_learning_rate_create(NULL, schedule, 1, NULL, NULL, 0, 0.9, &learning_rate));
  EXPECT(elastic_learning_rate_step(learning_rate, 1, 1, &rate), ELASTIC_INVALID_ARGUMENT,
         "elastic_learning_rate_step: set the structure's size");
  if (elastic_learning_rate_progress(learning_rate) != 0) exit(9); /* no step was taken */
  rate.size = sizeof rate;
  EXPECT(elastic_learning_rate_step(learning_rate, -1, 1, &rate), ELASTIC_INVALID_ARGUMENT,
         "batch");
  elastic_learning_rate_destroy(learning_rate);
  elastic_schedule_destroy(schedule);
  elastic_schedule_destroy(NULL);
}

static void of_gradients(void) {
  const char* const names[] = {"weights", NULL};
  float values[4] = {1, 2, 3, 4};
  const elastic_tensor tensors[2] = {{values, 2, ELASTIC_F32, ELASTIC_HOST, 0},
                                     {values + 2, 2, ELASTIC_F32, ELASTIC_HOST, 0}};
  const elastic_tensor on_device = {values, 2, ELASTIC_F32, ELASTIC_CUDA, 0};
  elastic_cast_tensor cast = {tensors[0], (elastic_dtype)77, 1};
  elastic_finite_check* check = NULL;
  elastic_compressor* compressor = NULL;
  elastic_sampler* sampler = NULL;
  elastic_global_batch* batches = NULL;
  elastic_interrupt* interrupt = NULL;
  int usable;
  char name[2];
  EXPECT(elastic_finite_check_create(NULL, names, tensors, 2, &check), ELASTIC_INVALID_ARGUMENT,
         "one of the names is NULL");
  EXPECT(elastic_finite_check_create(NULL, names, &on_device, 1, &check), ELASTIC_INVALID_ARGUMENT,
         "host memory");
  EXPECT(elastic_finite_check_after_sum(NULL, &usable), ELASTIC_INVALID_ARGUMENT, "check is NULL");
  EXPECT(elastic_compressor_create(NULL, "top_q", &compressor), ELASTIC_INVALID_ARGUMENT,
         "the compression is 'top_q'; it is one of none, f16");
  REQUIRE(elastic_compressor_create(NULL, NULL, &compressor));
  EXPECT(elastic_compressor_allreduce(compressor, NULL, tensors, NULL, 1, ELASTIC_SUM, NULL, NULL),
         ELASTIC_INVALID_ARGUMENT, "names is NULL");
  EXPECT(elastic_compressor_allreduce(compressor, names, tensors, NULL, 1, ELASTIC_MAX, NULL, NULL),
         ELASTIC_INVALID_ARGUMENT, "");
  EXPECT(elastic_compressor_rescale(compressor, 0, 1, 1, 1), ELASTIC_INVALID_ARGUMENT, "");
  elastic_compressor_destroy(compressor);
  EXPECT(elastic_cast_allreduce(NULL, &cast, 1, ELASTIC_SUM, NULL, NULL), ELASTIC_INVALID_ARGUMENT,
         "wire type 77 does not exist");
  cast.wire_dtype = ELASTIC_I8;
  EXPECT(elastic_cast_allreduce(NULL, &cast, 1, ELASTIC_SUM, NULL, NULL), ELASTIC_INVALID_ARGUMENT,
         "");
  REQUIRE(elastic_sampler_create(10, 1, &sampler));
  EXPECT(elastic_global_batch_create(NULL, sampler, "fixed", 8, 1, &batches),
         ELASTIC_INVALID_ARGUMENT, "policy is 'fixed'; it is one of per_worker, fixed_total");
  EXPECT(elastic_global_batch_create(NULL, sampler, "fixed_total", 8, 3, &batches),
         ELASTIC_INVALID_ARGUMENT, "3");
  REQUIRE(elastic_global_batch_create(NULL, sampler, "per_worker", 8, 1, &batches));
  EXPECT(elastic_global_batch_sum(batches, tensors, 1, NULL, NULL, NULL, NULL),
         ELASTIC_INVALID_ARGUMENT, "add_gradients is NULL");
  EXPECT(elastic_global_batch_sum(batches, tensors, 1, add_fails, NULL, NULL, NULL),
         ELASTIC_NOT_INITIALIZED, "before the sampler knows the members");
  elastic_global_batch_destroy(batches);
  elastic_sampler_destroy(sampler);
  EXPECT(elastic_get_algorithm(NULL, 8, name, 0), ELASTIC_INVALID_ARGUMENT, "there is room for 0");
  EXPECT(elastic_interrupt_create(NULL, NULL, &interrupt), ELASTIC_INVALID_ARGUMENT,
         "check is NULL");
}

static void of_training(const char* folder) {
  float values[4] = {1, 2, 3, 4};
  elastic_tensor tensor = {values, 4, ELASTIC_F32, ELASTIC_HOST, 0};
  elastic_object object = {0, NULL, save_fails, load_nothing, NULL};
  elastic_state* state = NULL;
  elastic_sampler* sampler = NULL;
  elastic_run_outcome outcome;
  int found = 7;
  char path[1000];
  EXPECT(elastic_sampler_create(0, 1, &sampler), ELASTIC_INVALID_ARGUMENT, "");
  REQUIRE(elastic_state_create(&state));
  EXPECT(elastic_state_add_tensor(state, "", &tensor), ELASTIC_INVALID_ARGUMENT, "needs a name");
  REQUIRE(elastic_state_add_tensor(state, "values", &tensor));
  EXPECT(elastic_state_add_tensor(state, "values", &tensor), ELASTIC_INVALID_ARGUMENT, "'values'");
  tensor.device = ELASTIC_CUDA;
  EXPECT(elastic_state_add_tensor(state, "device", &tensor), ELASTIC_INVALID_ARGUMENT,
         "is not in host memory");
  tensor.device = ELASTIC_HOST;
  tensor.dtype = (elastic_dtype)99;
  EXPECT(elastic_state_add_tensor(state, "dtype", &tensor), ELASTIC_INVALID_ARGUMENT,
         "element type 99, which does not exist");
  EXPECT(elastic_state_add_object(state, "object", &object), ELASTIC_INVALID_ARGUMENT, "size");
  object.size = sizeof object;
  object.save = NULL;
  EXPECT(elastic_state_add_object(state, "object", &object), ELASTIC_INVALID_ARGUMENT,
         "save is NULL");
  EXPECT(elastic_state_commit(state), ELASTIC_NOT_INITIALIZED, "elastic::run");
  snprintf(path, sizeof path, "%s/none", folder);
  REQUIRE(elastic_state_load_from(state, path, &found));
  if (found != 0) exit(7);
  EXPECT(elastic_state_save_to(state, folder), ELASTIC_INVALID_ARGUMENT, folder);
  REQUIRE(elastic_sampler_create(10, 1, &sampler));
  REQUIRE(elastic_global_batch_create(NULL, sampler, "per_worker", 2, 1, &the_batches));
  REQUIRE(elastic_state_add_sampler(state, "sampler", sampler));
  REQUIRE(elastic_state_add_global_batch(state, "batches", the_batches));
  EXPECT(elastic_run(NULL, state, body_adds, NULL, NULL), ELASTIC_CALLBACK_FAILED,
         "add_gradients has returned ELASTIC_CALLBACK_FAILED");
  EXPECT(elastic_run(NULL, state, NULL, NULL, NULL), ELASTIC_INVALID_ARGUMENT, "body is NULL");
  EXPECT(elastic_run(NULL, state, body_mistakes, NULL, NULL), ELASTIC_INVALID_ARGUMENT,
         "elastic_broadcast: tensor is NULL");
  EXPECT(elastic_run(NULL, state, body_fails, NULL, NULL), ELASTIC_CALLBACK_FAILED,
         "the body of elastic_run has returned ELASTIC_CALLBACK_FAILED");
  REQUIRE(elastic_run(NULL, state, body_succeeds, NULL, &outcome));
  if (outcome != ELASTIC_FINISHED) exit(8);
  elastic_state_destroy(state);
  elastic_global_batch_destroy(the_batches);
  elastic_sampler_destroy(sampler);

  REQUIRE(elastic_state_create(&state));
  object.save = save_fails;
  REQUIRE(elastic_state_add_object(state, "object", &object));
  snprintf(path, sizeof path, "%s/checkpoint", folder);
  EXPECT(elastic_state_save_to(state, path), ELASTIC_CALLBACK_FAILED,
         "an object's save has returned ELASTIC_CALLBACK_FAILED");
  elastic_state_destroy(state);

  REQUIRE(elastic_state_create(&state));
  object.save = save_something;
  object.load = load_returns;
  REQUIRE(elastic_state_add_object(state, "object", &object));
  REQUIRE(elastic_state_save_to(state, path));
  load_result = ELASTIC_CALLBACK_FAILED;
  EXPECT(elastic_state_load_from(state, path, &found), ELASTIC_CALLBACK_FAILED, "'object'");
  load_result = ELASTIC_UNAVAILABLE;
  EXPECT(elastic_state_load_from(state, path, &found), ELASTIC_UNAVAILABLE, "'object'");
  load_result = -3;
  EXPECT(elastic_state_load_from(state, path, &found), ELASTIC_CALLBACK_FAILED,
         "an object's load has returned -3, which is no code of elastic");
  load_result = ELASTIC_OK;
  REQUIRE(elastic_state_load_from(state, path, &found));
  elastic_state_destroy(state);
}

int main(int argc, char** argv) {
  if (argc != 2 || elastic_abi_version() < ELASTIC_ABI_VERSION) return 2;
  before_init();
  REQUIRE(elastic_init(NULL));
  of_collectives();
  of_learning_rates();
  of_gradients();
  of_training(argv[1]);
  REQUIRE(elastic_shutdown());
  EXPECT(elastic_barrier(NULL, NULL), ELASTIC_NOT_INITIALIZED, "shutdown");
  puts("all mistakes were told");
  return 0;
}
