#pragma once

#include <pthread.h>

namespace elastic {

/// As ps, top and debuggers show the calling thread. At most 15 characters.
inline void name_this_thread(const char* name) {
  ::pthread_setname_np(::pthread_self(), name);
}

}  // namespace elastic
