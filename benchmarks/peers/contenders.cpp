#include "benchmarks/peers/contenders.hpp"

#include <cstddef>
#include <span>
#include <utility>

#include "base/config/environment.hpp"
#include "base/config/launch_environment.hpp"
#include "base/config/options.hpp"
#include "benchmarks/collective/collective.hpp"
#include "benchmarks/peers/bare/bare.hpp"
#include "benchmarks/peers/peer_names.hpp"
#include "benchmarks/report/network_record.hpp"

namespace elastic::bench {

namespace {

std::vector<std::string> exchange(Context& context, const std::string& mine) {
  std::vector<std::string> all;
  const auto take = [&](std::span<const std::byte> bytes, const std::vector<std::size_t>& counts) {
    const char* text = reinterpret_cast<const char*>(bytes.data());
    for (const std::size_t count : counts) {
      all.emplace_back(text, count);
      text += count;
    }
  };
  (void)context.allgather(ConstTensorView{mine.data(), mine.size(), DType::kU8}, take);
  return all;
}

/// The interface of the job's own data connections, which peers use, too.
std::string interface_of(const Options& options) {
  const auto interfaces = interfaces_of(options.bind);
  return interfaces.empty() ? "lo" : interfaces.front();
}

std::optional<std::string> nccl_host(const EnvironmentMap& environment) {
  const auto host = environment.find("NCCL_HOSTID");
  return host == environment.end() ? std::nullopt : std::optional(host->second);
}

std::optional<PeerDevice> device_of(const RankDevice* device) {
  if (device == nullptr) return std::nullopt;
  return PeerDevice{device->identity(), device->stream().handle, [device] { device->wait(); }};
}

Result<PeerStart> start_of(const std::string& name, const CollectiveOptions& options,
                           Context& context, const RankDevice* device) {
  const EnvironmentMap environment = read_environment();
  const auto in_force = resolve({}, environment);
  if (!in_force.ok()) return in_force.status();
  const auto launch = read_launch_environment(environment);
  return PeerStart{
      .variant = name.substr(name.find(':') + 1),
      .operation = options.operation,
      .dtype = options.dtype,
      .op = options.op,
      .root = kRoot,
      .rank = context.rank(),
      .ranks = context.size(),
      .under_mpirun = launch.ok() && launch.value().under_mpirun(),
      .interface = interface_of(in_force.value()),
      .device = device_of(device),
      .nccl_library = in_force.value().nccl_library,
      .nccl_host = nccl_host(environment),
      .exchange = [&context](const std::string& mine) { return exchange(context, mine); }};
}

/// The library that a peer calls, with its version.
Result<std::string> library_of(const ModuleHead& module, const PeerStart& start) {
  if (module.find_library == nullptr) return module.describe();
  return module.find_library(start.nccl_library);
}

Result<const PeerModule*> load(const std::string& library) {
  if (library == "bare") return &bare_peers();
  const auto head = load_module("bench_" + library, "");
  if (head.ok()) return reinterpret_cast<const PeerModule*>(head.value());
  const std::string packages = library == "gloo"   ? "libgloo-dev"
                               : library == "nccl" ? "the CUDA toolkit and libnccl-dev"
                                                   : "libopenmpi-dev or libmpich-dev";
  return Status(Code::kUnavailable,
                "elastic-bench does not find the peer, which is made where there is " + packages +
                    ", and is not installed: build elastic with that, and run "
                    "bin/elastic-bench of the build folder (" +
                    head.status().message() + ")");
}

Result<Contender> open_peer(const std::string& name, const std::string& label,
                            const CollectiveOptions& options, Context& context,
                            const RankDevice* device) {
  const auto module = load(name.substr(0, name.find(':')));
  if (!module.ok()) return module.status();
  auto start = start_of(name, options, context, device);
  if (!start.ok()) return start.status();
  auto peer = module.value()->open(start.value());
  if (!peer.ok()) return peer.status();
  auto library = library_of(module.value()->head, start.value());
  if (!library.ok()) return library.status();
  return Contender{label, context, std::move(peer).value(), std::move(library).value()};
}

}  // namespace

Result<std::vector<Contender>> make_contenders(const std::vector<std::string>& names,
                                               const CollectiveOptions& options,
                                               const std::vector<BackendContext>& contexts,
                                               const RankDevice* device) {
  std::vector<Contender> contenders;
  auto next = contexts.begin();
  for (std::size_t index = 0; index < names.size(); ++index) {
    const std::string label = label_of(names, index);
    if (!is_peer(names[index])) {
      contenders.push_back({label, *next++->context, nullptr, ""});
      continue;
    }
    auto peer = open_peer(names[index], label, options, *contexts.front().context, device);
    if (!peer.ok()) return peer.status().within("--backend " + names[index]);
    contenders.push_back(std::move(peer).value());
  }
  return contenders;
}

std::string peers_text(const std::vector<Contender>& contenders) {
  std::string text;
  for (const Contender& one : contenders) {
    if (one.peer == nullptr) continue;
    text += "# " + one.label + ": " + one.library + ", called directly, over its own connections\n";
  }
  return text;
}

}  // namespace elastic::bench
