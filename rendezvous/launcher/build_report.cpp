#include "rendezvous/launcher/build_report.hpp"

#include <algorithm>

#include "base/cuda_driver.hpp"
#include "base/module_file.hpp"
#include "rendezvous/protocol/messages.hpp"

namespace elastic::launcher {

namespace {

std::string value_of(const EnvironmentMap& environment, const char* name) {
  const auto found = environment.find(name);
  return found == environment.end() ? "" : found->second;
}

bool was_built(const std::string& name) {
  const auto& names = modules_built();
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Name and version of what the module is about, or why it is of no use here.
std::string found_here(const std::string& name, const EnvironmentMap& environment) {
  const auto module = load_module(name, value_of(environment, "ELASTIC_BACKEND_PATH"));
  if (!module.ok()) return was_built(name) ? module.status().message() : "-";
  const std::string strange = was_built(name) ? "" : ", not of this build";
  const auto find_library = module.value()->find_library;
  if (find_library == nullptr) return module.value()->describe() + strange;
  const auto library = find_library(value_of(environment, "ELASTIC_NCCL_LIBRARY"));
  return (library.ok() ? library.value() : library.status().message()) + strange;
}

std::string backend_line(const std::string& name, const EnvironmentMap& environment) {
  std::string cell = name;
  cell.resize(std::max<std::size_t>(8, name.size() + 2), ' ');
  return "  " + cell + (was_built(name) ? "yes" : "no ") + "    " + found_here(name, environment) +
         "\n";
}

std::string device_lines() {
  const CudaDriver driver = CudaDriver::find();
  return "  CUDA driver   " + (driver.usable() ? "for CUDA " + driver.version : driver.missing) +
         "\n  CUDA devices  " + std::to_string(driver.devices) + "\n";
}

}  // namespace

std::string version_line() {
  return std::string("elasticrun ") + ELASTIC_VERSION + "\n";
}

std::string build_report(const EnvironmentMap& environment) {
  return version_line() + "protocol  " + std::to_string(rendezvous::kProtocolVersion) +
         "\n"
         "backends  built  found here\n"
         "  native  yes    needs nothing else\n" +
         backend_line("nccl", environment) + backend_line("gloo", environment) +
         backend_line("mpi", environment) + "devices\n" + device_lines() +
         "transports\n"
         "  shared memory  yes\n"
         "  tcp            yes\n";
}

}  // namespace elastic::launcher
