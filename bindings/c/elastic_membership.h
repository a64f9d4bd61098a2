/* Contexts and their members, and the lists of contributors.
 * Programs include elastic.h. */
#ifndef ELASTIC_MEMBERSHIP_H
#define ELASTIC_MEMBERSHIP_H

#include "elastic_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- membership --------------------------------------------------------------------------------
 */

typedef struct elastic_context elastic_context;

/* elastic::init and elastic::shutdown: the default context. `options` may be NULL. */
ELASTIC_C_API elastic_code elastic_init(const elastic_options* options);
ELASTIC_C_API elastic_code elastic_shutdown(void);

/* A context of its own, for programs with several jobs. `options` may be NULL. */
ELASTIC_C_API elastic_code elastic_context_create(const elastic_options* options,
                                                  elastic_context** context);
/* Context::shutdown; the context can only be destroyed afterwards. With NULL it shuts down the
 * default context, as elastic_shutdown does. */
ELASTIC_C_API elastic_code elastic_context_shutdown(elastic_context* context);
/* Leaves the job at once, if elastic_context_shutdown was not called. */
ELASTIC_C_API void elastic_context_destroy(elastic_context* context);

/* The present view, as this worker sees it. */
typedef struct elastic_view {
  size_t size;         /* sizeof(elastic_view), set by the caller */
  int rank;            /* -1 while joining a running job, before elastic_run */
  int world_size;      /* members; 0 while joining */
  int local_rank;      /* among the members on this host; while joining, the launcher's number */
  int local_size;      /* 0 while joining */
  uint64_t generation; /* number of the view; 0 while joining */
  uint64_t worker;     /* this worker, as it appears among contributors */
} elastic_view;
ELASTIC_C_API elastic_code elastic_get_view(elastic_context* context, elastic_view* view);
/* The rank in the present view, or in a group; -1 while joining, for a worker that is not in the
 * group, and where there is no context. */
ELASTIC_C_API int elastic_rank(elastic_context* context);
/* The members of the present view, or of a group; 0 while joining, and where there is no context.
 */
ELASTIC_C_API int elastic_size(elastic_context* context);

/* ---- contributors ------------------------------------------------------------------------------
 */

/* The workers with a contribution to a result: the same on every rank. A call fills the list
 * that the caller has created; give NULL if you do not need it. If the call fails, the list stays
 * as it was. */
typedef struct elastic_contributors elastic_contributors;
ELASTIC_C_API elastic_code elastic_contributors_create(elastic_contributors** contributors);
ELASTIC_C_API void elastic_contributors_destroy(elastic_contributors* contributors);
ELASTIC_C_API size_t elastic_contributors_count(const elastic_contributors* contributors);
/* In rank order; valid until `contributors` is filled again or destroyed. */
ELASTIC_C_API const uint64_t* elastic_contributors_workers(
    const elastic_contributors* contributors);
/* Generation of the view in which the call was completed. */
ELASTIC_C_API uint64_t elastic_contributors_generation(const elastic_contributors* contributors);
/* The members of the present view, or of a group, all of one moment; none while joining. Since
 * ELASTIC_ABI_VERSION 2. */
ELASTIC_C_API elastic_code elastic_get_members(elastic_context* context,
                                               elastic_contributors* members);

#ifdef __cplusplus
}
#endif

#endif /* ELASTIC_MEMBERSHIP_H */
