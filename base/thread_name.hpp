#pragma once

#include <pthread.h>

namespace elastic {

/// Sets the name of the calling thread in ps, top and debuggers. At most 15 characters.
inline void name_this_thread(const char* name) {
  ::pthread_setname_np(::pthread_self(), name);
}

}  // namespace elastic
