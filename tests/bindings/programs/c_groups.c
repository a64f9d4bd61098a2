/* Groups and messages: every result is compared with what it has to be. With "die" the last rank is
 * killed, which is in a group and is to receive a message.
 *
 *     elasticrun -np 5 c_groups [die] */
#define _POSIX_C_SOURCE 200809L
#include <elastic.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "c_check.h"

enum { kMost = 16, kElements = 100000 };

static int rank;
static int size;
static elastic_contributors* members;

static elastic_tensor integers(int32_t* data, size_t count) {
  const elastic_tensor tensor = {data, count, ELASTIC_I32, ELASTIC_HOST, 0};
  return tensor;
}
static elastic_root root_at(int at) {
  const elastic_root root = {at, 0};
  return root;
}
static uint64_t worker_at(int at) {
  return elastic_contributors_workers(members)[at];
}

/* The ranks with the same remainder by the number at `user`. */
static elastic_code same_remainder(void* user, const uint64_t* workers, const int* hosts,
                                   size_t count, uint64_t self, unsigned char* chosen) {
  const size_t by = *(const size_t*)user;
  size_t own = 0;
  while (workers[own] != self) ++own;
  for (size_t i = 0; i < count; ++i) chosen[i] = hosts[i] == hosts[own] && i % by == own % by;
  return ELASTIC_OK;
}
static elastic_code choose_nothing(void* user, const uint64_t* workers, const int* hosts,
                                   size_t count, uint64_t self, unsigned char* chosen) {
  (void)user;
  (void)workers;
  (void)hosts;
  (void)count;
  (void)self;
  (void)chosen;
  return ELASTIC_CALLBACK_FAILED;
}

static elastic_code sum_up(void* user, const void* values, size_t bytes, const size_t* counts,
                           size_t count) {
  int32_t* const total = user;
  for (size_t i = 0; i < bytes / sizeof *total; ++i) *total += ((const int32_t*)values)[i];
  CHECK(counts[count - 1] == 1);
  return ELASTIC_OK;
}

/* Receives one row for each member, with the sum of all of them in row 0. */
static elastic_code take_rows(void* user, const int64_t* indices, const void* values,
                              size_t count) {
  const int32_t* const sums = values;
  CHECK(indices[0] == 0 && sums[0] == (int32_t)count - 1);
  *(size_t*)user = count;
  return ELASTIC_OK;
}

/* Reductions that gather, in a group of these ranks of the job. */
static void gathered_reductions(elastic_group* group, const int* ranks, int count) {
  int32_t value = rank;
  int64_t index = 10 + rank, indices[2] = {0, rank + 1};
  int32_t values[2] = {1, rank};
  const elastic_tensor one = integers(&value, 1);
  const elastic_sparse_rows rows = {indices, 2, integers(values, 2), 1, kMost + 1};
  size_t taken = 0;
  CALL(elastic_minloc(group, &one, &index, NULL));
  CHECK(value == ranks[0] && index == 10 + ranks[0]);
  value = rank;
  CALL(elastic_maxloc(group, &one, &index, NULL));
  CHECK(value == ranks[count - 1]);
  CALL(elastic_sparse_allreduce(group, &rows, ELASTIC_SUM, take_rows, &taken, NULL));
  CHECK(taken == (size_t)count + 1);
}

/* The calls of a group of ranks of the job, of which this is number `own` of `count`. */
static void collectives(elastic_group* group, const int* ranks, int count, int own) {
  int32_t value = rank, sum = 0, sent[kMost], all[kMost], up_to = rank, total = 0;
  double half = rank;
  size_t gathered = 0, offset = 0, counts[kMost];
  const elastic_tensor one = integers(&value, 1), out = integers(all, kMost);
  const elastic_tensor prefix = integers(&up_to, 1), whole = integers(sent, (size_t)count);
  const elastic_tensor scaled = {&half, 1, ELASTIC_F64, ELASTIC_HOST, 0};
  const elastic_blocks blocks = {whole, NULL, 0, NULL};
  elastic_contributors* its = NULL;
  CALL(elastic_contributors_create(&its));
  for (int i = 0; i < count; ++i) total += ranks[i];
  for (int i = 0; i < count; ++i) sent[i] = 10 * rank + i;
  CALL(elastic_allreduce(group, &one, &one, ELASTIC_SUM, NULL, its));
  CHECK(value == total && elastic_contributors_count(its) == (size_t)count);
  CHECK(elastic_contributors_workers(its)[own] == worker_at(rank));
  CALL(elastic_scaled_allreduce(group, &scaled, &scaled, ELASTIC_SUM, 0.5, 1, NULL, NULL));
  CHECK(half == total / 2.0);
  value = rank;
  CALL(elastic_broadcast(group, &one, count - 1, NULL, NULL));
  CHECK(value == ranks[count - 1]);
  value = rank;
  CALL(elastic_broadcast_from(group, &one, worker_at(ranks[0]), NULL, NULL));
  CHECK(value == ranks[0]);
  value = rank;
  CALL(elastic_allgather(group, &one, &out, NULL, &gathered, NULL));
  CHECK(gathered == (size_t)count);
  for (int i = 0; i < count; ++i) CHECK(all[i] == ranks[i]);
  CALL(elastic_allgather_take(group, &one, NULL, sum_up, &sum, NULL));
  CHECK(sum == total);
  CALL(elastic_alltoall(group, &blocks, &out, NULL, &gathered, counts, kMost, NULL));
  CHECK(gathered == (size_t)count && counts[own] == 1);
  for (int i = 0; i < count; ++i) CHECK(all[i] == 10 * ranks[i] + own);
  CALL(elastic_reduce_scatter(group, &whole, &out, ELASTIC_SUM, NULL, &gathered, &offset, NULL));
  CHECK(gathered == 1 && offset == (size_t)own && all[0] == 10 * total + count * own);
  CALL(elastic_gather(group, &one, &out, root_at(count - 1), NULL, &gathered, counts, kMost, NULL));
  CHECK(gathered == (own + 1 == count ? (size_t)count : 0));
  CALL(elastic_scatter(group, &blocks, &one, root_at(0), NULL, &gathered, &offset, NULL));
  CHECK(value == 10 * ranks[0] + own && offset == (size_t)own);
  value = 1;
  CALL(elastic_reduce(group, &one, &one, root_at(0), ELASTIC_SUM, NULL, NULL));
  CHECK(value == (own == 0 ? count : 1));
  CALL(elastic_scan(group, &prefix, &prefix, ELASTIC_MAX, NULL, NULL));
  CHECK(up_to == rank);
  up_to = 1;
  CALL(elastic_exscan(group, &prefix, &prefix, ELASTIC_SUM, NULL, NULL));
  CHECK(up_to == own);
  CALL(elastic_barrier(group, NULL));
  gathered_reductions(group, ranks, count);
  elastic_contributors_destroy(its);
}

/* In the order of the program, and under names. */
static void asynchronous(elastic_group* group, int count, int own) {
  int32_t value = 1, named = 2, from = own, all[kMost];
  size_t gathered = 0, counts[kMost];
  const elastic_tensor one = integers(&value, 1), two = integers(&named, 1);
  const elastic_tensor block = integers(&from, 1), out = integers(all, kMost);
  elastic_work* works[4];
  CALL(elastic_allreduce_async(group, NULL, &one, 1, ELASTIC_SUM, NULL, &works[0]));
  CALL(elastic_allreduce_async(group, "sum", &two, 1, ELASTIC_SUM, NULL, &works[1]));
  CALL(elastic_allgather_async(group, "gathered", &block, &out, NULL, &works[2]));
  CALL(elastic_barrier_async(group, NULL, &works[3]));
  CALL(elastic_wait_all((const elastic_work* const*)works, 4));
  CHECK(value == count && named == 2 * count);
  CALL(elastic_work_blocks(works[2], &gathered, counts, kMost));
  CHECK(gathered == (size_t)count && all[count - 1] == count - 1);
  for (int i = 0; i < 4; ++i) elastic_work_destroy(works[i]);
}

static void by_rules(void) {
  static size_t by = 2;
  const int first = rank % 2, own = rank / 2, count = (size + 1 - first) / 2;
  const int alone[1] = {rank};
  int ranks[kMost], inverse[kMost];
  uint64_t workers[kMost];
  elastic_group* groups[4] = {NULL, NULL, NULL, NULL};
  elastic_group* single = NULL;
  elastic_group* host = NULL;
  for (int i = 0; i < count; ++i) {
    ranks[i] = first + 2 * i;
    inverse[count - 1 - i] = ranks[i];
    workers[i] = worker_at(ranks[i]);
  }
  CALL(elastic_group_every(NULL, 2, first, &groups[0]));
  CALL(elastic_group_ranks(NULL, inverse, (size_t)count, &groups[1]));
  CALL(elastic_group_workers(NULL, workers, (size_t)count, &groups[2]));
  CALL(elastic_group_by(NULL, "the same remainder", same_remainder, &by, &groups[3]));
  for (int i = 0; i < 4; ++i) {
    CHECK(elastic_rank(groups[i]) == own && elastic_size(groups[i]) == count);
    collectives(groups[i], ranks, count, own);
    asynchronous(groups[i], count, own);
  }
  CHECK(strstr(elastic_group_name(groups[3]), "the same remainder") != NULL);
  CHECK(elastic_group_name(NULL) == NULL);
  /* In a group, and of one host. */
  CALL(elastic_group_ranks(groups[0], &own, 1, &single));
  CHECK(elastic_rank(single) == 0 && elastic_size(single) == 1);
  collectives(single, alone, 1, 0);
  elastic_group_destroy(single);
  CALL(elastic_group_across_hosts(NULL, &single));
  CHECK(elastic_size(single) == 1);
  CALL(elastic_group_per_host(NULL, &host));
  CHECK(elastic_size(host) == size && elastic_rank(host) == rank);
  elastic_group_destroy(single);
  elastic_group_destroy(host);
  for (int i = 0; i < 4; ++i) elastic_group_destroy(groups[i]);
  elastic_group_destroy(NULL);
}

/* A ring among the members of a group, or of the job. */
static void messages(elastic_context* among) {
  static int32_t sent[kElements], room[kElements + 1];
  const int own = elastic_rank(among), count = elastic_size(among);
  const elastic_root next = root_at((own + 1) % count), before = root_at((own + count - 1) % count);
  const elastic_tensor data = integers(sent, kElements), out = integers(room, kElements + 1);
  elastic_contributors* two = NULL;
  elastic_work* work = NULL;
  size_t received = 0;
  CALL(elastic_contributors_create(&two));
  for (int i = 0; i < kElements; ++i) sent[i] = own + i;
  room[kElements] = -1;
  CALL(elastic_recv_async(among, &out, before, 7, &work));
  CALL(elastic_send(among, &data, next, 7, two));
  CHECK(elastic_contributors_count(two) == 2);
  CALL(elastic_work_wait(work, two));
  CALL(elastic_work_received(work, &received));
  CHECK(received == kElements && room[kElements] == -1);
  for (int i = 0; i < kElements; ++i) CHECK(room[i] == before.rank + i);
  CHECK(elastic_work_part(work, &received, NULL) == ELASTIC_INVALID_ARGUMENT);
  elastic_work_destroy(work);
  CALL(elastic_send_async(among, &data, next, 0, &work));
  CHECK(elastic_work_received(work, &received) == ELASTIC_INVALID_ARGUMENT);
  CALL(elastic_recv(among, &out, before, 0, &received, NULL));
  CHECK(received == kElements);
  CALL(elastic_work_wait(work, NULL));
  elastic_work_destroy(work);
  elastic_contributors_destroy(two);
}

static void mistaken_messages(void) {
  int32_t values[2] = {0, 0};
  size_t received = 0;
  const elastic_root stranger = {0, 7};
  const elastic_tensor one = integers(values, 1), two = integers(values, 2);
  elastic_work* work = NULL;
  CHECK(elastic_send(NULL, &one, root_at(rank), 0, NULL) == ELASTIC_INVALID_ARGUMENT);
  CHECK(elastic_recv(NULL, &one, root_at(size), 0, NULL, NULL) == ELASTIC_INVALID_ARGUMENT);
  CHECK(strstr(elastic_last_error(), "is no rank") != NULL);
  CHECK(elastic_send_async(NULL, &one, stranger, 0, &work) == ELASTIC_ROOT_LOST);
  CHECK(elastic_recv_async(NULL, NULL, root_at(0), 0, &work) == ELASTIC_INVALID_ARGUMENT);
  CHECK(strstr(elastic_last_error(), "elastic_recv_async: out is NULL") != NULL);
  CHECK(elastic_send_async(NULL, &one, root_at(0), 0, NULL) == ELASTIC_INVALID_ARGUMENT);
  CHECK(elastic_work_received(NULL, &received) == ELASTIC_INVALID_ARGUMENT);
  if (rank == 0) CALL(elastic_send(NULL, &two, root_at(1), 0, NULL));
  if (rank != 1) return;
  CHECK(elastic_recv(NULL, &one, root_at(0), 0, &received, NULL) == ELASTIC_INVALID_ARGUMENT);
  CHECK(strstr(elastic_last_error(), "the message has 2 elements") != NULL);
}

static void mistaken_groups(void) {
  const int twice[2] = {1, 1};
  int32_t value = 1;
  elastic_view view = {sizeof(elastic_view), 0, 0, 0, 0, 0, 0};
  const elastic_tensor one = integers(&value, 1);
  elastic_group* group = NULL;
  elastic_step_group* step = NULL;
  CHECK(elastic_group_every(NULL, 0, 0, &group) == ELASTIC_INVALID_ARGUMENT);
  CHECK(elastic_group_ranks(NULL, twice, 2, &group) == ELASTIC_INVALID_ARGUMENT);
  CHECK(strstr(elastic_last_error(), "twice") != NULL);
  CHECK(elastic_group_ranks(NULL, NULL, 2, &group) == ELASTIC_INVALID_ARGUMENT);
  CHECK(strstr(elastic_last_error(), "elastic_group_ranks: ranks is NULL") != NULL);
  CHECK(elastic_group_workers(NULL, NULL, 2, &group) == ELASTIC_INVALID_ARGUMENT);
  CHECK(elastic_group_by(NULL, "x", NULL, NULL, &group) == ELASTIC_INVALID_ARGUMENT);
  CHECK(elastic_group_by(NULL, NULL, choose_nothing, NULL, &group) == ELASTIC_INVALID_ARGUMENT);
  CHECK(elastic_group_per_host(NULL, NULL) == ELASTIC_INVALID_ARGUMENT);
  CHECK(group == NULL);
  CALL(elastic_group_by(NULL, "fails", choose_nothing, NULL, &group));
  CHECK(elastic_barrier(group, NULL) == ELASTIC_CALLBACK_FAILED);
  CHECK(strstr(elastic_last_error(), "the function of the group's rule has returned") != NULL);
  CHECK(elastic_size(group) == 0 && elastic_rank(group) == -1);
  elastic_group_destroy(group);
  CALL(elastic_group_every(NULL, size, 0, &group)); /* rank 0 alone */
  if (rank != 0) {
    CHECK(elastic_rank(group) == -1 && elastic_size(group) == 1);
    CHECK(elastic_allreduce(group, &one, &one, ELASTIC_SUM, NULL, NULL) ==
          ELASTIC_INVALID_ARGUMENT);
    CHECK(strstr(elastic_last_error(), "is not in the group 'every 5 from 0'") != NULL);
  }
  /* What is for a context alone. */
  CHECK(elastic_join(group, NULL, NULL) == ELASTIC_INVALID_ARGUMENT);
  CHECK(strstr(elastic_last_error(), "elastic_join: it is for a context, not for the group") !=
        NULL);
  CHECK(elastic_get_view(group, &view) == ELASTIC_INVALID_ARGUMENT);
  CHECK(elastic_step_group_create(group, &step) == ELASTIC_INVALID_ARGUMENT);
  CHECK(elastic_context_shutdown(group) == ELASTIC_INVALID_ARGUMENT);
  elastic_group_destroy(group);
  CALL(elastic_barrier(NULL, NULL));
}

/* The last rank dies when a member of its group waits for a message of it, and another one is to
 * send it one. */
static void death(void) {
  const int survivors[2] = {0, 2};
  const uint64_t last = worker_at(size - 1);
  const elastic_root dead = {0, last};
  int32_t value = 1, room = 0, ones[kMost];
  const elastic_tensor one = integers(&value, 1), out = integers(&room, 1);
  const elastic_tensor all = integers(ones, kMost);
  elastic_group* even = NULL;
  elastic_work* work = NULL;
  CALL(elastic_group_every(NULL, 2, 0, &even));
  CHECK(elastic_size(even) == (size + 1) / 2);
  if (rank == 0) CALL(elastic_recv_async(even, &out, root_at(elastic_size(even) - 1), 3, &work));
  CALL(elastic_barrier(NULL, NULL));
  if (rank == size - 1) raise(SIGKILL);
  for (int i = 0; i < kMost; ++i) ones[i] = 1;
  if (rank == 1) CHECK(elastic_send(NULL, &one, dead, 3, NULL) == ELASTIC_ROOT_LOST);
  if (rank == 0) CHECK(elastic_work_wait(work, NULL) == ELASTIC_ROOT_LOST);
  if (rank == 0) CHECK(strstr(elastic_last_error(), "recv: worker ") != NULL);
  elastic_work_destroy(work);
  if (rank % 2 == 0) {
    CALL(elastic_allreduce(even, &all, &all, ELASTIC_SUM, NULL, members));
    CHECK(elastic_contributors_count(members) == (size_t)size / 2);
    for (int i = 0; i < kMost; ++i) CHECK(ones[i] == size / 2);
    CHECK(elastic_recv(even, &out, dead, 3, NULL, NULL) == ELASTIC_ROOT_LOST);
    messages(even);
    if (size == 5) gathered_reductions(even, survivors, 2);
  }
  CALL(elastic_barrier(NULL, NULL));
  CHECK(elastic_size(even) == size / 2);
  elastic_group_destroy(even);
}

/* A group of a context that the program has made. */
static void of_a_context(void) {
  elastic_context* context = NULL;
  elastic_group* group = NULL;
  CALL(elastic_context_create(NULL, &context));
  CALL(elastic_group_every(context, 2, elastic_rank(context) % 2, &group));
  CALL(elastic_barrier(group, NULL));
  messages(group);
  CALL(elastic_context_shutdown(context));
  CHECK(elastic_barrier(group, NULL) != ELASTIC_OK);
  elastic_group_destroy(group);
  elastic_context_destroy(context);
}

int main(int argc, char** argv) {
  const char* const what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "context") == 0) {
    of_a_context();
    printf("groups are right\n");
    return 0;
  }
  CALL(elastic_init(NULL));
  rank = elastic_rank(NULL);
  size = elastic_size(NULL);
  CALL(elastic_contributors_create(&members));
  CALL(elastic_get_members(NULL, members));
  if (strcmp(what, "die") == 0) {
    death();
  } else {
    elastic_group* half = NULL;
    by_rules();
    messages(NULL);
    CALL(elastic_group_every(NULL, 2, rank % 2, &half));
    messages(half);
    elastic_group_destroy(half);
    mistaken_messages();
    mistaken_groups();
  }
  elastic_contributors_destroy(members);
  printf("groups are right\n");
  CALL(elastic_shutdown());
  return 0;
}
