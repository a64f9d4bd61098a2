#pragma once

#include "rendezvous/protocol/messages.hpp"

namespace elastic::testing {

/// The status of a job of two members and a joiner on one host, in which everything that can be
/// shown is there.
inline rendezvous::StatusReply watched_job() {
  rendezvous::StatusReply status;
  status.job = "digits";
  status.phase = "running";
  status.view.generation = 3;
  status.view.members.resize(2);
  status.view.members[0] = {"3f2a", {"left/1", {}, ""}, 90, "slot-0", true};
  status.view.members[1] = {"77aa", {"right/1", {}, ""}, 91, "slot-1", true};
  status.joiners = {{"9c01", "slot-2", 92, true, "a faster line"}};
  status.max_np = 4;
  status.view_changes = 2;
  status.heartbeat_age_ms = {12, 40};
  status.commits = 1000;
  status.steps_per_second = 12.5;
  status.progress = {{1000, 5000, true, true, {}}, {999, 4999, true, false, {}}};
  rendezvous::WorkerFigures figures;
  figures.at_s = 100;
  figures.steps = 1000;
  figures.data_s = 5;
  figures.compute_s = 35;
  figures.communication_s = 10;
  figures.shm_bytes = 4000000;
  figures.tcp_bytes = 1000000;
  figures.gradient_bytes = 800;
  figures.encoded_bytes = 200;
  figures.ramp_gamma = 1.5;
  figures.ramp_target = 2;
  status.progress[0].figures = figures;
  figures.communication_s = 60;
  status.progress[1].figures = figures;
  status.launchers = {{{0, "left", 2, 1, true}, {1, "right", 2, 1, false}}};
  status.history = {{{"start", 1, 0, std::vector<std::uint64_t>(12)},
                     {"loss", 2, 0.5, {0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0}}},
                    {{1764000000000, "view", "view 3 of 2 workers: worker 9c01 died", {}},
                     {1764000001000, "recovery", "view 3 (loss): 0.400 s", 0.4}},
                    {{1764000000000, 12.5}}};
  return status;
}

}  // namespace elastic::testing
