#include "benchmarks/command_line_options.hpp"

#include <algorithm>

#include "benchmarks/peers/peer_names.hpp"
#include "benchmarks/report/byte_size.hpp"
#include "benchmarks/steps/network_model.hpp"

namespace elastic::bench {

Status invalid(const std::string& message) {
  return Status(Code::kInvalidArgument, message);
}

void add_transport(CLI::App& app, std::string& transport) {
  app.add_option("--transport", transport, "Links between the workers: auto, shm or tcp [auto]")
      ->check(CLI::IsMember({"auto", "shm", "tcp"}));
}

void add_json(CLI::App& app, std::string& json) {
  app.add_option("--json", json, "Write a report to this file");
}

void add_rank_options(CLI::App& app, RankOptions& options) {
  app.option_defaults()->take_last();
  app.add_option("--np", options.np,
                 "Ranks to start on this machine; without it this is one rank of a job of "
                 "elasticrun or mpirun")
      ->check(CLI::Range(0, kMostRanks));
  app.add_option("--backend", options.backends,
                 "Backends and peers, separated by commas; several are measured in turn, in the "
                 "same processes, several backends only under mpirun [native]")
      ->delimiter(',')
      ->take_all();
  app.add_option("--rendezvous", options.rendezvous,
                 "A rendezvous server, host:port, for each of several backends, if ranks are on "
                 "several machines [rank 0 starts them]")
      ->delimiter(',')
      ->take_all();
  add_transport(app, options.transport);
  add_json(app, options.json);
  app.add_option("--csv", options.csv, "Write the rows of the report to this file, as CSV");
  app.add_option("--started-as", options.command)->group("");
}

void add_device(CLI::App& app, std::string& device) {
  app.add_option(
         "--device", device,
         "Allocation of the tensors: host, or cuda, whose devices the ranks of a host take in "
         "turn [host]")
      ->check(CLI::IsMember({"host", "cuda"}));
}

void add_plot(CLI::App& app, std::string& plot) {
  app.add_option("--plot", plot, "Draw the results into this file, as SVG");
}

void add_model(CLI::App& app, std::string& model) {
  const auto names = model_names();
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  app.add_option("--model", model, "Network of the gradients: " + list + " [resnet50]")
      ->check(CLI::IsMember(names));
}

Status read_bytes(const std::string& option, const std::string& text, std::size_t& bytes) {
  auto parsed = parse_byte_size(text);
  if (!parsed.ok()) return parsed.status().within(option);
  bytes = parsed.value();
  return {};
}

namespace {

/// Checks the device of the peers, each of which takes tensors in one kind of memory only.
Status check_peer_devices(const RankOptions& options) {
  for (const std::string& name : options.backends) {
    if (!is_peer(name) || takes_devices(name) == (options.device == "cuda")) continue;
    return invalid("--backend " + name + " with --device " + options.device + ": this peer takes " +
                   (takes_devices(name) ? "tensors on CUDA devices only; give --device cuda"
                                        : "tensors in host memory only"));
  }
  return {};
}

}  // namespace

Status check_rank_options(const RankOptions& options) {
  if (Status status = check_peer_names(options.backends); !status.ok()) return status;
  if (Status status = check_peer_devices(options); !status.ok()) return status;
  const std::size_t jobs = std::max(without_peers(options.backends).size(), std::size_t{1});
  if (jobs > 1 && options.np > 0) {
    return invalid("--np " + std::to_string(options.np) +
                   " with several backends: each needs a job of its own, and elasticrun starts "
                   "one; start this with mpirun -np " +
                   std::to_string(options.np) + " elastic-bench ..., without --np");
  }
  if (options.rendezvous.empty()) return {};
  if (options.rendezvous.size() != jobs) {
    return invalid("--rendezvous names " + std::to_string(options.rendezvous.size()) +
                   " servers, but --backend needs " + std::to_string(jobs) +
                   ": one for each backend");
  }
  return {};
}

Status check_without_peers(const RankOptions& options, const std::string& measurement) {
  for (const std::string& name : options.backends) {
    if (!is_peer(name)) continue;
    return invalid("--backend " + name + ": " + measurement +
                   " is measured with backends, not with peers");
  }
  return check_rank_options(options);
}

std::string command_text(const std::string& program, const std::vector<std::string>& arguments) {
  std::string text = program;
  for (const std::string& argument : arguments) {
    const bool plain = argument.find_first_of(" \t\n'\"\\$*?") == std::string::npos;
    text += plain && !argument.empty() ? " " + argument : " '" + argument + "'";
  }
  return text;
}

}  // namespace elastic::bench
