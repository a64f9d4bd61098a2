#include "rendezvous/launcher/build_report.hpp"

#include <algorithm>

#include "base/module_file.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace elastic::launcher {

namespace {

std::string module_report(const std::string& name, const std::string& backend_path) {
  const auto& names = modules_built();
  const bool built = std::find(names.begin(), names.end(), name) != names.end();
  const auto loaded = load_module(name, backend_path);
  if (loaded.ok()) return loaded.value()->describe() + (built ? "" : ", not of this build");
  return built ? loaded.status().message() : "not built";
}

}  // namespace

std::string version_line() {
  return std::string("elasticrun ") + ELASTIC_VERSION + "\n";
}

std::string build_report(const std::string& backend_path) {
  return version_line() + "protocol  " + std::to_string(rendezvous::kProtocolVersion) +
         "\n"
         "backends\n"
         "  native  yes\n"
         "  nccl    not built\n"
         "  gloo    " +
         module_report("gloo", backend_path) +
         "\n"
         "  mpi     " +
         module_report("mpi", backend_path) +
         "\n"
         "transports\n"
         "  shared memory  yes\n"
         "  tcp            yes\n"
         "  in-process     yes\n";
}

}  // namespace elastic::launcher
