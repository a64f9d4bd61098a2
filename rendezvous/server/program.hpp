#pragma once

#include "base/status.hpp"
#include "rendezvous/server/program_options.hpp"

namespace elastic::rendezvous {

/// Serves until the job is over, if the options say so, or a signal comes. A failure is one that
/// ends the program.
Status run_program(ProgramOptions options);

}  // namespace elastic::rendezvous
