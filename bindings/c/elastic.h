/* elastic for C: allreduce for trainers on hosts that come and go.
 *
 * The C++ interface <elastic/elastic.hpp> in C99. The meaning of each call, its errors and its end
 * when a worker dies are documented there (class Context, State and so on), and not
 * repeated here.
 *
 * Results. A function that can fail returns an elastic_code: ELASTIC_OK, or why the call failed.
 * After a failure elastic_last_error() has the text, for the calling thread. No C++ exception
 * leaves a function.
 *
 * Handles. Each handle type T has a function T_destroy, except elastic_bytes, which a program only
 * borrows. Destroying NULL does nothing. A handle must not be used after it was destroyed, nor be
 * destroyed while another call uses it.
 *
 * Contexts. Functions take a context; NULL is the default one, made by elastic_init. Collectives
 * and messages, elastic_rank, elastic_size and elastic_get_members take a group there as well.
 *
 * Threads. As in C++: a context and its collectives may be used from any thread, an elastic_work
 * too. Options, contributors, states and samplers belong to one thread at a time.
 *
 * Codes, types and operations are ints, so that any number can be given, and is refused if it is
 * none.
 *
 * Structures that a function fills begin with their own size: the caller sets `size` to sizeof of
 * it. A program that was compiled against an older header keeps working with a newer library.
 *
 * The functions are declared in the headers below, by topic. A program includes this one. */
#ifndef ELASTIC_H
#define ELASTIC_H

#include "elastic_async.h"
#include "elastic_base.h"
#include "elastic_batches.h"
#include "elastic_collectives.h"
#include "elastic_diagnostics.h"
#include "elastic_gradients.h"
#include "elastic_groups.h"
#include "elastic_learning_rate.h"
#include "elastic_membership.h"
#include "elastic_tensors.h"
#include "elastic_training.h"

#endif /* ELASTIC_H */
