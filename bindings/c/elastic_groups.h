/* Messages between two members, and groups of some of them.
 * Programs include elastic.h. */
#ifndef ELASTIC_GROUPS_H
#define ELASTIC_GROUPS_H

#include "elastic_async.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- messages (since ELASTIC_ABI_VERSION 7) ----------------------------------------------------
 */

/* Sends a tensor in host memory to another member, which receives it by elastic_recv with the same
 * tag: see Context::send. Nothing is buffered: the call returns when the message is there. Messages
 * from one member to another with one tag keep their order. ELASTIC_ROOT_LOST if the other one is
 * no member, or leaves the job before the message is complete. The contributors are the two. */
ELASTIC_C_API elastic_code elastic_send(elastic_context* context, const elastic_tensor* tensor,
                                        elastic_root to, int tag,
                                        elastic_contributors* contributors);
/* Receives a message into `out`, which has its type and room for it. *received: the elements of the
 * message; may be NULL. */
ELASTIC_C_API elastic_code elastic_recv(elastic_context* context, const elastic_tensor* out,
                                        elastic_root from, int tag, size_t* received,
                                        elastic_contributors* contributors);
/* Start a message. The tensor must live, and stay as it is, until *work is complete. */
ELASTIC_C_API elastic_code elastic_send_async(elastic_context* context,
                                              const elastic_tensor* tensor, elastic_root to,
                                              int tag, elastic_work** work);
ELASTIC_C_API elastic_code elastic_recv_async(elastic_context* context, const elastic_tensor* out,
                                              elastic_root from, int tag, elastic_work** work);
/* The elements of the message that a complete elastic_recv_async has received.
 * ELASTIC_INVALID_ARGUMENT for other operations, and before it is complete. */
ELASTIC_C_API elastic_code elastic_work_received(const elastic_work* work, size_t* received);

/* ---- groups (since ELASTIC_ABI_VERSION 7) ------------------------------------------------------
 */

/* elastic::Group: some of the members, with collectives and messages of their own, among which
 * ranks, roots and contributors are those in the group. A group is given to these functions in the
 * place of a context: elastic_allreduce(group, ...). Those that are for a context alone, such as
 * elastic_run, elastic_join and elastic_step_group_create, refuse it with ELASTIC_INVALID_ARGUMENT.
 * A handle must not be used after its context was destroyed. */
typedef struct elastic_context elastic_group;
/* Frees the handle. The group itself lives as long as the context, and the same rule gives it
 * again. */
ELASTIC_C_API void elastic_group_destroy(elastic_group* group);
/* The rule in words, such as "per host"; NULL for a context. Valid as long as the context. */
ELASTIC_C_API const char* elastic_group_name(const elastic_group* group);

/* Make a group by a rule (elastic::GroupRule), which is applied to the members of `context`. If
 * that is a group, *group is a group within it. Between the joins of workers a group loses the
 * members that leave, and nothing else changes.
 *
 * The members on this worker's host, and those with its rank among the members on their host. */
ELASTIC_C_API elastic_code elastic_group_per_host(elastic_context* context, elastic_group** group);
ELASTIC_C_API elastic_code elastic_group_across_hosts(elastic_context* context,
                                                      elastic_group** group);
/* The ranks first, first + step, first + 2 * step and so on. */
ELASTIC_C_API elastic_code elastic_group_every(elastic_context* context, int step, int first,
                                               elastic_group** group);
/* `count` ranks or workers, as far as they are members. */
ELASTIC_C_API elastic_code elastic_group_ranks(elastic_context* context, const int* ranks,
                                               size_t count, elastic_group** group);
ELASTIC_C_API elastic_code elastic_group_workers(elastic_context* context, const uint64_t* workers,
                                                 size_t count, elastic_group** group);
/* Sets chosen[i] to 1 for the members that are in the group of the worker `self`; all of its
 * `count` elements are 0 before. Members come in rank order; `hosts` has a number that is the same
 * for those on one host. It must give the same group on all members of the group, so it may depend
 * on its arguments alone, and must call no function with a context or a group. A code other than
 * ELASTIC_OK is the result of the call that has applied the rule. */
typedef elastic_code (*elastic_choose_members)(void* user, const uint64_t* workers,
                                               const int* hosts, size_t count, uint64_t self,
                                               unsigned char* chosen);
/* Rules of one name are the same rule: the function that came first is used, on any thread, as long
 * as the context lives. */
ELASTIC_C_API elastic_code elastic_group_by(elastic_context* context, const char* name,
                                            elastic_choose_members choose, void* user,
                                            elastic_group** group);

#ifdef __cplusplus
}
#endif

#endif /* ELASTIC_GROUPS_H */
