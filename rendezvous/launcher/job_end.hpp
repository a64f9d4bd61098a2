#pragma once

#include "rendezvous/launcher/exit_code.hpp"

namespace elastic::launcher {

/// How a job ended for its launcher.
struct JobEnd {
  int exit_code = exit_code::kFailed;
  bool may_begin_anew = false;  ///< as in Finish
};

}  // namespace elastic::launcher
