#include "benchmarks/host_report.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <thread>

#include <nlohmann/json.hpp>
#include <sys/utsname.h>

namespace elastic::bench {

namespace {

std::string cpu_model() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

nlohmann::json host() {
  utsname system{};
  ::uname(&system);
  return {{"hostname", system.nodename},
          {"cores", std::thread::hardware_concurrency()},
          {"cpu", cpu_model()},
          {"kernel", std::string(system.sysname) + " " + system.release}};
}

Status failure(const std::filesystem::path& file) {
  return Status(Code::kUnavailable, "--json " + file.string() + ": " + std::strerror(errno));
}

}  // namespace

Status check_writable(const std::filesystem::path& file) {
  // Appending leaves what is there as it is until there is something better.
  if (!std::ofstream(file, std::ios::app)) return failure(file);
  return {};
}

Status write_report(const std::filesystem::path& file, const std::string& command,
                    const nlohmann::json& results) {
  const nlohmann::json report{
      {"host", host()}, {"commit", ELASTIC_COMMIT}, {"command", command}, {"results", results}};
  std::ofstream output(file);
  output << report.dump(2) << '\n';
  output.flush();
  if (!output) return failure(file);
  return {};
}

}  // namespace elastic::bench
