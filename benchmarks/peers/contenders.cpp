#include "benchmarks/peers/contenders.hpp"

#include <cstddef>
#include <span>
#include <utility>

#include "benchmarks/collective.hpp"
#include "benchmarks/network_record.hpp"
#include "benchmarks/peers/bare/bare.hpp"
#include "benchmarks/peers/peer_names.hpp"
#include "config/environment.hpp"
#include "config/launch_environment.hpp"
#include "config/options.hpp"

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

/// Over which the job's own data connections go.
Result<std::string> interface_in_force() {
  const auto options = resolve({}, read_environment());
  if (!options.ok()) return options.status();
  const auto interfaces = interfaces_of(options.value().bind);
  return interfaces.empty() ? "lo" : interfaces.front();
}

std::optional<PeerDevice> device_of(const RankDevice* device) {
  if (device == nullptr) return std::nullopt;
  return PeerDevice{device->identity(), device->stream().handle, [device] { device->wait(); }};
}

Result<PeerStart> start_of(const std::string& name, const CollectiveOptions& options,
                           Context& context, const RankDevice* device) {
  auto interface = interface_in_force();
  if (!interface.ok()) return interface.status();
  const auto launch = read_launch_environment(read_environment());
  return PeerStart{
      .variant = name.substr(name.find(':') + 1),
      .operation = options.operation,
      .dtype = options.dtype,
      .op = options.op,
      .root = kRoot,
      .rank = context.rank(),
      .ranks = context.size(),
      .under_mpirun = launch.ok() && launch.value().under_mpirun(),
      .interface = interface.value(),
      .device = device_of(device),
      .exchange = [&context](const std::string& mine) { return exchange(context, mine); }};
}

Result<const PeerModule*> load(const std::string& library) {
  if (library == "bare") return &bare_peers();
  const auto head = load_module("bench_" + library, "");
  if (head.ok()) return reinterpret_cast<const PeerModule*>(head.value());
  const std::string packages = library == "gloo"   ? "libgloo-dev"
                               : library == "nccl" ? "the CUDA toolkit and libnccl-dev"
                                                   : "libopenmpi-dev or libmpich-dev";
  return Status(Code::kUnavailable, "this build of elastic-bench does not have the peer; install " +
                                        packages + " and build again (" + head.status().message() +
                                        ")");
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
  return Contender{label, context, std::move(peer).value(), module.value()->head.describe()};
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
