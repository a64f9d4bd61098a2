#pragma once

namespace elastic::launcher {

/// The exit codes of elasticrun, which docs/launching.md lists. An agent's tell its starter what
/// happened on the host, so that they differ from those of sh (127) and ssh (255).
namespace exit_code {
constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;
/// The server refuses this launcher, and would again: another secret, job or version.
constexpr int kRefused = 3;
/// The command of --prepare failed: no worker was started.
constexpr int kNotPrepared = 4;
/// With --join: the workers failed before the job had begun, as they would again.
constexpr int kFailedAtStart = 5;
/// With --join: the last workers of the host failed while the job ran. Whatever comes of the job,
/// these are no workers that failed after it was done.
constexpr int kWorkersLost = 6;
/// No server was reached; as EX_UNAVAILABLE of sysexits.h.
constexpr int kNoServer = 69;
/// The workers have left a job that goes on; as EX_TEMPFAIL of sysexits.h: it may be tried again.
constexpr int kDrained = 75;
}  // namespace exit_code

}  // namespace elastic::launcher
