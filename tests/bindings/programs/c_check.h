/* Checks of calls and conditions, which end the program. */
#ifndef C_CHECK_H
#define C_CHECK_H

#include <elastic.h>
#include <stdio.h>
#include <stdlib.h>

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

#endif
