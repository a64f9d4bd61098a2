/* Collectives whose result differs by rank, and asynchronous ones: every result is compared with
 * what it has to be.
 *
 *     elasticrun -np 3 c_collectives */
#define _POSIX_C_SOURCE 200809L
#include <elastic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "c_check.h"

enum { kMost = 16 };

static int rank;
static size_t size;
static elastic_contributors* members;

static elastic_tensor integers(int32_t* data, size_t count) {
  const elastic_tensor tensor = {data, count, ELASTIC_I32, ELASTIC_HOST, 0};
  return tensor;
}

static elastic_code sum_up(void* user, const void* values, size_t bytes, const size_t* counts,
                           size_t count) {
  int32_t* total = user;
  for (size_t i = 0; i < bytes / sizeof *total; ++i) *total += ((const int32_t*)values)[i];
  for (size_t i = 0; i < count; ++i) *total += 100 * (int32_t)counts[i];
  return ELASTIC_OK;
}

static void alltoall(void) {
  int32_t sent[kMost], received[kMost];
  size_t counts[kMost], expected[kMost], gathered = 0;
  int32_t total = 0;
  elastic_blocks blocks = {integers(sent, size), NULL, 0, NULL};
  const elastic_tensor out = integers(received, kMost);
  for (size_t to = 0; to < size; ++to) sent[to] = 10 * rank + (int32_t)to;
  CALL(elastic_alltoall(NULL, &blocks, &out, NULL, &gathered, counts, kMost, NULL));
  CHECK(gathered == size && counts[size - 1] == 1);
  for (int from = 0; from < (int)size; ++from) CHECK(received[from] == 10 * from + rank);
  /* Two elements for the last member, and one for the others. */
  for (size_t to = 0; to < size; ++to) expected[to] = to + 1 == size ? 2 : 1;
  sent[size] = 10 * rank + (int32_t)size - 1;
  blocks.data.count = size + 1;
  blocks.counts = expected;
  blocks.count = size;
  blocks.to = members;
  CALL(elastic_alltoall(NULL, &blocks, &out, NULL, &gathered, counts, 1, NULL));
  CHECK(counts[0] == expected[rank] && gathered == size * expected[rank]);
  CALL(elastic_alltoall_take(NULL, &blocks, NULL, sum_up, &total, NULL));
  CHECK(total == (int32_t)(expected[rank] * (10 * size * (size - 1) / 2 + size * (size_t)rank) +
                           100 * size * expected[rank]));
  blocks.count = size - 1;
  if (rank != 1) blocks.count = size;
  CHECK(elastic_alltoall(NULL, &blocks, &out, NULL, NULL, NULL, 0, NULL) == ELASTIC_MISMATCH);
  CHECK(strstr(elastic_last_error(), "rank 1 gave") != NULL);
}

static void with_roots(void) {
  int32_t own[2] = {rank, rank}, all[kMost], total = rank + 1, sum = 0;
  size_t counts[kMost], count = 0, offset = 0;
  const elastic_tensor block = integers(own, rank == 0 ? 2 : 1);
  const elastic_tensor out = integers(all, kMost), one = integers(&total, 1);
  elastic_root root = {1, 0};
  elastic_blocks blocks = {integers(all, rank == 1 ? size : 0), NULL, 0, NULL};
  CALL(elastic_gather(NULL, &block, &out, root, NULL, &count, counts, kMost, NULL));
  CHECK(count == (rank == 1 ? size + 1 : 0));
  if (rank == 1) CHECK(counts[0] == 2 && all[1] == 0 && all[2] == 1);
  CALL(elastic_gather_take(NULL, &block, root, NULL, sum_up, &sum, NULL));
  CHECK(sum == (rank == 1 ? (int32_t)(size * (size - 1) / 2 + 100 * (size + 1)) : 0));
  for (size_t to = 0; to < size; ++to) all[to] = 7 * (int32_t)to;
  root.worker = elastic_contributors_workers(members)[1];
  CALL(elastic_scatter(NULL, &blocks, &block, root, NULL, &count, &offset, NULL));
  CHECK(count == 1 && offset == (size_t)rank && own[0] == 7 * rank);
  CALL(elastic_reduce(NULL, &one, &one, root, ELASTIC_SUM, NULL, NULL));
  CHECK(total == (rank == 1 ? (int32_t)(size * (size + 1) / 2) : rank + 1));
  root.worker = 7;
  CHECK(elastic_reduce(NULL, &one, &one, root, ELASTIC_SUM, NULL, NULL) == ELASTIC_ROOT_LOST);
  root.worker = 0;
  root.rank = (int)size;
  CHECK(elastic_gather(NULL, &block, &out, root, NULL, NULL, NULL, 0, NULL) == ELASTIC_MISMATCH);
}

static void prefixes(void) {
  int32_t value = rank + 1, result = 0;
  const elastic_tensor in = integers(&value, 1), out = integers(&result, 1);
  CALL(elastic_scan(NULL, &in, &out, ELASTIC_SUM, NULL, NULL));
  CHECK(result == (rank + 1) * (rank + 2) / 2);
  CALL(elastic_exscan(NULL, &in, &out, ELASTIC_SUM, NULL, NULL));
  CHECK(result == rank * (rank + 1) / 2);
}

static void note(void* user, const elastic_work* work) {
  size_t gathered = 0;
  if (elastic_work_blocks(work, &gathered, NULL, 0) == ELASTIC_OK) *(size_t*)user = gathered;
}

/* All asynchronous calls, in program order or under names. */
static void asynchronous(int named) {
  int32_t value = rank, blocks_sent[kMost], all[kMost], exchanged[kMost], part[kMost], one = 1;
  size_t noted = 0, count = 0, offset = 0, index = 9, counts[kMost];
  const elastic_tensor data = integers(&value, 1), single = integers(&one, 1);
  const elastic_tensor block = integers(blocks_sent, 1), gathered = integers(all, kMost);
  const elastic_tensor whole = integers(blocks_sent, size), received = integers(exchanged, kMost);
  const elastic_tensor own = integers(part, kMost);
  const elastic_blocks blocks = {whole, NULL, 0, members};
  const elastic_root last = {(int)size - 1, 0};
  elastic_work* works[5] = {NULL, NULL, NULL, NULL, NULL};
  for (size_t to = 0; to < size; ++to) blocks_sent[to] = 10 * rank + (int32_t)to;
  CALL(elastic_broadcast_async(NULL, named ? "b" : NULL, &data, last, NULL, &works[0]));
  CALL(elastic_allgather_async(NULL, named ? "g" : NULL, &block, &gathered, NULL, &works[1]));
  CALL(elastic_reduce_scatter_async(NULL, named ? "r" : NULL, &whole, &own, ELASTIC_MAX, NULL,
                                    &works[2]));
  CALL(elastic_alltoall_async(NULL, named ? "a" : NULL, &blocks, &received, NULL, &works[3]));
  CALL(elastic_allreduce_async(NULL, named ? "s" : NULL, &single, 1, ELASTIC_SUM, NULL, &works[4]));
  CALL(elastic_work_then(works[3], note, &noted));
  CALL(elastic_wait_all((const elastic_work* const*)works, 5));
  CALL(elastic_wait_any((const elastic_work* const*)works, 5, &index));
  CHECK(index == 0 && value == (int32_t)size - 1 && one == (int32_t)size);
  CALL(elastic_work_blocks(works[1], &count, counts, kMost));
  CHECK(count == size && counts[1] == 1 && all[1] == 10);
  CALL(elastic_work_part(works[2], &count, &offset));
  CHECK(count == 1 && offset == (size_t)rank && part[0] == 10 * ((int32_t)size - 1) + rank);
  CALL(elastic_work_blocks(works[3], &count, counts, kMost));
  CHECK(count == size && exchanged[1] == 10 + rank);
  CHECK(elastic_work_part(works[3], &count, &offset) == ELASTIC_INVALID_ARGUMENT);
  CHECK(elastic_work_blocks(works[0], &count, counts, 0) == ELASTIC_INVALID_ARGUMENT);
  for (int i = 0; i < 5; ++i) elastic_work_destroy(works[i]);
  /* The function is called before operations that come later are complete. */
  CALL(elastic_barrier(NULL, NULL));
  CALL(elastic_allreduce_async(NULL, "after", &single, 1, ELASTIC_SUM, NULL, &works[0]));
  CALL(elastic_work_wait(works[0], NULL));
  elastic_work_destroy(works[0]);
  CHECK(noted == size);
  int joined_last = -1;
  CALL(elastic_join(NULL, &joined_last, NULL));
  CHECK(joined_last >= 0 && joined_last < (int)size);
  CALL(elastic_join(NULL, NULL, NULL));
}

/* Two tensors of two elements for each member, and of one. */
static void grouped(void) {
  int32_t twice[2 * kMost], once[kMost], first[2 * kMost], second[kMost];
  size_t gathered[2], counts[2 * kMost];
  elastic_part parts[2];
  elastic_work* work = NULL;
  for (size_t i = 0; i < 2 * size; ++i) twice[i] = (int32_t)i;
  for (size_t i = 0; i < size; ++i) once[i] = 100 * (int32_t)i;
  const elastic_tensor inputs[2] = {integers(twice, 2 * size), integers(once, size)};
  const elastic_tensor outputs[2] = {integers(first, 2 * kMost), integers(second, kMost)};
  CALL(elastic_grouped_reduce_scatter(NULL, inputs, outputs, 2, ELASTIC_SUM, NULL, parts, NULL));
  CHECK(parts[0].count == 2 && parts[0].offset == 2 * (size_t)rank);
  CHECK(parts[1].count == 1 && parts[1].offset == (size_t)rank);
  CHECK(first[1] == (int32_t)size * (2 * rank + 1) && second[0] == (int32_t)size * 100 * rank);
  CALL(elastic_grouped_reduce_scatter_async(NULL, inputs, outputs, 2, ELASTIC_MAX, NULL, &work));
  CALL(elastic_work_wait(work, NULL));
  CALL(elastic_work_parts(work, parts));
  CHECK(elastic_work_gathered(work, gathered, NULL, 0) == ELASTIC_INVALID_ARGUMENT);
  CHECK(parts[1].offset == (size_t)rank && second[0] == 100 * rank);
  elastic_work_destroy(work);
  const elastic_tensor blocks[2] = {integers(first, 2), integers(second, 1)};
  const elastic_tensor whole[2] = {integers(twice, 2 * kMost), integers(once, kMost)};
  memset(twice, 0, sizeof twice);
  CALL(elastic_grouped_allgather(NULL, blocks, whole, 2, NULL, gathered, counts, 2 * kMost, NULL));
  CHECK(gathered[0] == 2 * size && gathered[1] == size);
  CHECK(counts[size - 1] == 2 && counts[size] == 1);
  for (size_t i = 0; i < 2 * size; ++i) CHECK(twice[i] == (int32_t)i);
  CALL(elastic_grouped_allgather_async(NULL, blocks, whole, 2, NULL, &work));
  CALL(elastic_work_wait(work, NULL));
  CALL(elastic_work_gathered(work, gathered, counts, 1));
  CHECK(gathered[1] == size && counts[0] == 2 && once[size - 1] == 100 * ((int32_t)size - 1));
  elastic_work_destroy(work);
}

static void mistakes(void) {
  size_t index = 0;
  elastic_work* work = NULL;
  int32_t value = 1;
  const elastic_tensor one = integers(&value, 1);
  CHECK(elastic_wait_any(NULL, 0, &index) == ELASTIC_INVALID_ARGUMENT);
  CHECK(elastic_wait_all((const elastic_work* const*)&work, 1) == ELASTIC_INVALID_ARGUMENT);
  CHECK(strstr(elastic_last_error(), "elastic_wait_all: one of the works is NULL") != NULL);
  CHECK(elastic_alltoall(NULL, NULL, &one, NULL, NULL, NULL, 0, NULL) == ELASTIC_INVALID_ARGUMENT);
  CHECK(strstr(elastic_last_error(), "elastic_alltoall: blocks is NULL") != NULL);
  CHECK(elastic_grouped_allgather(NULL, &one, NULL, 1, NULL, NULL, NULL, 0, NULL) ==
        ELASTIC_INVALID_ARGUMENT);
  CHECK(strstr(elastic_last_error(), "elastic_grouped_allgather: tensors is NULL") != NULL);
  CALL(elastic_allreduce_async(NULL, "one", &one, 1, ELASTIC_SUM, NULL, &work));
  CHECK(elastic_work_then(work, NULL, NULL) == ELASTIC_INVALID_ARGUMENT);
  CALL(elastic_work_wait(work, NULL));
  elastic_work_destroy(work);
}

int main(void) {
  CALL(elastic_init(NULL));
  rank = elastic_rank(NULL);
  size = (size_t)elastic_size(NULL);
  CALL(elastic_contributors_create(&members));
  CALL(elastic_get_members(NULL, members));
  alltoall();
  with_roots();
  prefixes();
  grouped();
  asynchronous(0);
  asynchronous(1);
  mistakes();
  elastic_contributors_destroy(members);
  printf("collectives are right\n");
  CALL(elastic_shutdown());
  return 0;
}
