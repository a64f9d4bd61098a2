/* Steps as one unit, values with indices, sparse rows, and the asynchronous calls with a root or a
 * prefix. With "die" the last rank is killed within a step.
 *
 *     elasticrun -np 3 c_steps [die] */
#define _POSIX_C_SOURCE 200809L
#include <elastic.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "c_check.h"

enum { kMost = 16, kWeights = 1000 };

static int rank;
static size_t size;

static elastic_tensor doubles(double* data, size_t count) {
  const elastic_tensor tensor = {data, count, ELASTIC_F64, ELASTIC_HOST, 0};
  return tensor;
}
static elastic_tensor integers(int32_t* data, size_t count) {
  const elastic_tensor tensor = {data, count, ELASTIC_I32, ELASTIC_HOST, 0};
  return tensor;
}

static void locations(void) {
  double values[2] = {rank, -rank};
  int64_t indices[2] = {10 + rank, 20 + rank};
  const elastic_tensor tensor = doubles(values, 2);
  elastic_contributors* contributors = NULL;
  CALL(elastic_contributors_create(&contributors));
  CALL(elastic_minloc(NULL, &tensor, indices, contributors));
  CHECK(values[0] == 0 && indices[0] == 10 && elastic_contributors_count(contributors) == size);
  CHECK(values[1] == 1 - (double)size && indices[1] == 19 + (int64_t)size);
  values[0] = rank;
  indices[0] = rank;
  CALL(elastic_maxloc(NULL, &tensor, indices, NULL));
  CHECK(values[0] == (double)size - 1 && indices[0] == (int64_t)size - 1);
  CHECK(elastic_minloc(NULL, &tensor, NULL, NULL) == ELASTIC_INVALID_ARGUMENT);
  CHECK(strstr(elastic_last_error(), "elastic_minloc: indices is NULL") != NULL);
  CHECK(elastic_maxloc(NULL, NULL, indices, NULL) == ELASTIC_INVALID_ARGUMENT);
  elastic_contributors_destroy(contributors);
}

/* Rows 0 to size - 1, of which each member gave its own, and all gave row 0. */
static elastic_code take_rows(void* user, const int64_t* indices, const void* values,
                              size_t count) {
  const double* const sums = values;
  *(size_t*)user = count;
  for (size_t row = 0; row < count; ++row) {
    const double right = row == 0 ? (double)size : 10.0 * (double)row;
    if (indices[row] != (int64_t)row || sums[2 * row] != right || sums[2 * row + 1] != right) {
      return ELASTIC_CALLBACK_FAILED;
    }
  }
  return ELASTIC_OK;
}
/* One more call, with the right rows. */
static elastic_code count_call(void* user, const int64_t* indices, const void* values,
                               size_t count) {
  size_t taken = 0;
  ++*(size_t*)user;
  return take_rows(&taken, indices, values, count);
}
static elastic_code take_none(void* user, const int64_t* indices, const void* values,
                              size_t count) {
  (void)user;
  (void)indices;
  (void)values;
  (void)count;
  return ELASTIC_CALLBACK_FAILED;
}

/* Several tensors in one operation, and operations under way. */
static void several_sparse_rows(const elastic_sparse_rows* rows) {
  const elastic_sparse_rows both[2] = {*rows, *rows};
  elastic_sparse_rows wrong = *rows;
  elastic_work* works[2];
  elastic_work* barrier = NULL;
  size_t calls = 0, count = 0;
  CALL(elastic_grouped_sparse_allreduce(NULL, both, 2, ELASTIC_SUM, count_call, &calls, NULL));
  CHECK(calls == 2);
  CHECK(elastic_grouped_sparse_allreduce(NULL, NULL, 0, ELASTIC_SUM, count_call, &calls, NULL) ==
        ELASTIC_INVALID_ARGUMENT);
  CALL(elastic_sparse_allreduce_async(NULL, NULL, rows, ELASTIC_SUM, works));
  CALL(elastic_sparse_allreduce_async(NULL, "rows", rows, ELASTIC_SUM, works + 1));
  for (int i = 0; i < 2; ++i) {
    CALL(elastic_work_wait(works[i], NULL));
    CALL(elastic_work_rows(works[i], take_rows, &count));
    CHECK(count == size);
    CHECK(elastic_work_rows(works[i], take_none, NULL) == ELASTIC_CALLBACK_FAILED);
    CHECK(elastic_work_blocks(works[i], &count, NULL, 0) == ELASTIC_INVALID_ARGUMENT);
    elastic_work_destroy(works[i]);
  }
  CALL(elastic_barrier_async(NULL, NULL, &barrier));
  CALL(elastic_work_wait(barrier, NULL));
  CHECK(elastic_work_rows(barrier, take_rows, &count) == ELASTIC_INVALID_ARGUMENT);
  CHECK(strstr(elastic_last_error(), "elastic_work_rows: this operation has no such") != NULL);
  elastic_work_destroy(barrier);
  wrong.rows = size - 1;
  CALL(elastic_sparse_allreduce_async(NULL, "wrong rows", &wrong, ELASTIC_SUM, works));
  CALL(elastic_work_wait(works[0], NULL));
  CHECK(elastic_work_rows(works[0], take_rows, &count) == ELASTIC_INVALID_ARGUMENT);
  CHECK(strstr(elastic_last_error(), "is no row; the tensor has") != NULL);
  elastic_work_destroy(works[0]);
}

static void sparse_rows(void) {
  int64_t indices[2] = {rank, 0};
  double values[4] = {10.0 * rank, 10.0 * rank, 1, 1};
  elastic_sparse_rows rows = {indices, 2, doubles(values, 4), 2, size};
  size_t count = 0;
  CALL(elastic_sparse_allreduce(NULL, &rows, ELASTIC_SUM, take_rows, &count, NULL));
  CHECK(count == size);
  CHECK(elastic_sparse_allreduce(NULL, &rows, ELASTIC_SUM, take_none, NULL, NULL) ==
        ELASTIC_CALLBACK_FAILED);
  several_sparse_rows(&rows);
  rows.rows = size - 1;
  CHECK(elastic_sparse_allreduce(NULL, &rows, ELASTIC_SUM, take_rows, &count, NULL) ==
        ELASTIC_INVALID_ARGUMENT);
  CHECK(strstr(elastic_last_error(), "is no row; the tensor has") != NULL);
  CHECK(elastic_sparse_allreduce(NULL, &rows, ELASTIC_SUM, NULL, NULL, NULL) ==
        ELASTIC_INVALID_ARGUMENT);
  rows.indices = NULL;
  CHECK(elastic_sparse_allreduce(NULL, &rows, ELASTIC_SUM, take_rows, &count, NULL) ==
        ELASTIC_INVALID_ARGUMENT);
  CHECK(strstr(elastic_last_error(), "elastic_sparse_allreduce: indices is NULL") != NULL);
}

/* In program order or under names. */
static void asynchronous(int named) {
  int32_t own = 10 + rank, all[kMost], given[kMost], part = -1, total = rank + 1, up_to = 1;
  int32_t before = 1, small = 0;
  size_t count = 0, offset = 0, counts[kMost];
  const elastic_tensor block = integers(&own, 1), gathered = integers(all, kMost);
  const elastic_tensor scattered = integers(&part, 1), sum = integers(&total, 1);
  const elastic_tensor prefix = integers(&up_to, 1), others = integers(&before, 1);
  const elastic_tensor room = integers(&small, 1);
  const elastic_blocks blocks = {integers(given, rank == 1 ? size : 0), NULL, 0, NULL};
  const elastic_root root = {1, 0};
  elastic_work* works[6];
  elastic_work* lost = NULL;
  for (size_t to = 0; to < size; ++to) given[to] = 7 * (int32_t)to;
  CALL(elastic_gather_async(NULL, named ? "gather" : NULL, &block, &gathered, root, NULL, works));
  CALL(elastic_scatter_async(NULL, named ? "scatter" : NULL, &blocks, &scattered, root, NULL,
                             works + 1));
  CALL(elastic_reduce_async(NULL, named ? "reduce" : NULL, &sum, &sum, root, ELASTIC_SUM, NULL,
                            works + 2));
  CALL(elastic_scan_async(NULL, named ? "scan" : NULL, &prefix, &prefix, ELASTIC_SUM, NULL,
                          works + 3));
  CALL(elastic_exscan_async(NULL, named ? "exscan" : NULL, &others, &others, ELASTIC_SUM, NULL,
                            works + 4));
  CALL(elastic_barrier_async(NULL, named ? "barrier" : NULL, works + 5));
  CALL(elastic_gather_async(NULL, named ? "lost" : NULL, &block, &room, root, NULL, &lost));
  CALL(elastic_wait_all((const elastic_work* const*)works, 6));
  CALL(elastic_work_blocks(works[0], &count, counts, kMost));
  CHECK(count == (rank == 1 ? size : 0));
  for (size_t from = 0; from < count; ++from) CHECK(all[from] == 10 + (int32_t)from);
  CALL(elastic_work_part(works[1], &count, &offset));
  CHECK(count == 1 && offset == (size_t)rank && part == 7 * rank);
  CHECK(total == (rank == 1 ? (int32_t)(size * (size + 1) / 2) : rank + 1));
  CHECK(up_to == rank + 1 && before == rank);
  CHECK(elastic_work_wait(lost, NULL) == (rank == 1 ? ELASTIC_INVALID_ARGUMENT : ELASTIC_OK));
  if (rank == 1) CHECK(strstr(elastic_last_error(), "room for 1") != NULL);
  for (int i = 0; i < 6; ++i) elastic_work_destroy(works[i]);
  elastic_work_destroy(lost);
}

static void fill(double* data, double value) {
  for (int i = 0; i < kWeights; ++i) data[i] = value;
}

static void steps(void) {
  static double weights[kWeights], bias[kWeights], mean[kWeights];
  const elastic_tensor first = doubles(weights, kWeights), second = doubles(bias, kWeights);
  const elastic_tensor out = doubles(mean, kWeights);
  elastic_tensor on_device = first;
  elastic_step_group* group = NULL;
  CALL(elastic_step_group_create(NULL, &group));
  for (int step = 0; step < 3; ++step) {
    fill(weights, rank + step);
    fill(bias, rank);
    CALL(elastic_step_group_allreduce(group, "weights", &first, &first, ELASTIC_SUM));
    CALL(elastic_step_group_allreduce(group, "bias", &second, &out, ELASTIC_AVERAGE));
    CHECK(elastic_step_group_open(group) == 2);
    CALL(elastic_step_group_wait(group, NULL));
    CHECK(weights[9] == (double)(size * (size - 1)) / 2 + (double)size * step);
    CHECK(bias[9] == rank && mean[9] == (double)(size - 1) / 2);
    CHECK(elastic_step_group_open(group) == 0);
    CHECK(elastic_step_group_kept_bytes(group) == sizeof weights);
  }
  on_device.device = ELASTIC_CUDA;
  CHECK(elastic_step_group_allreduce(group, "device", &on_device, &on_device, ELASTIC_SUM) ==
        ELASTIC_INVALID_ARGUMENT);
  CHECK(strstr(elastic_last_error(), "tensor 'device' is on a device, and a StepGroup") != NULL);
  CALL(elastic_step_group_allreduce(group, "weights", &first, &first, ELASTIC_SUM));
  CHECK(elastic_step_group_allreduce(group, "weights", &first, &first, ELASTIC_SUM) ==
        ELASTIC_INVALID_ARGUMENT);
  CHECK(strstr(elastic_last_error(), "tensor 'weights' is in this step already") != NULL);
  CHECK(elastic_step_group_allreduce(group, NULL, &first, &first, ELASTIC_SUM) ==
        ELASTIC_INVALID_ARGUMENT);
  CHECK(elastic_step_group_allreduce(NULL, "weights", &first, &first, ELASTIC_SUM) ==
        ELASTIC_INVALID_ARGUMENT);
  CHECK(elastic_step_group_wait(NULL, NULL) == ELASTIC_INVALID_ARGUMENT);
  CALL(elastic_step_group_wait(group, NULL));
  elastic_step_group_destroy(group);
}

/* The last rank dies when the first tensor is complete, with its part. */
static void death_within_a_step(void) {
  static double first[kWeights], second[kWeights];
  const elastic_tensor one = doubles(first, kWeights), two = doubles(second, kWeights);
  elastic_step_group* group = NULL;
  elastic_contributors* contributors = NULL;
  CALL(elastic_contributors_create(&contributors));
  CALL(elastic_step_group_create(NULL, &group));
  fill(first, rank + 1);
  fill(second, rank + 1);
  CALL(elastic_step_group_allreduce(group, "first", &one, &one, ELASTIC_SUM));
  CALL(elastic_barrier(NULL, NULL));
  if (rank == (int)size - 1) raise(SIGKILL);
  CALL(elastic_step_group_allreduce(group, "second", &two, &two, ELASTIC_SUM));
  CALL(elastic_step_group_wait(group, contributors));
  CHECK(elastic_contributors_count(contributors) == size - 1);
  for (int i = 0; i < kWeights; ++i) {
    CHECK(first[i] == (double)(size * (size - 1)) / 2 && second[i] == first[i]);
  }
  elastic_step_group_destroy(group);
  elastic_contributors_destroy(contributors);
}

int main(int argc, char** argv) {
  CALL(elastic_init(NULL));
  rank = elastic_rank(NULL);
  size = (size_t)elastic_size(NULL);
  if (argc > 1 && strcmp(argv[1], "die") == 0) {
    death_within_a_step();
  } else {
    locations();
    sparse_rows();
    asynchronous(0);
    asynchronous(1);
    steps();
  }
  printf("steps are right\n");
  CALL(elastic_shutdown());
  return 0;
}
