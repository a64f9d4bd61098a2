#include "benchmarks/report/host_report.hpp"

#include <fstream>
#include <thread>

#include <nlohmann/json.hpp>
#include <sys/utsname.h>

#include "benchmarks/report/output_file.hpp"

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

nlohmann::ordered_json host() {
  utsname system{};
  ::uname(&system);
  return {{"hostname", system.nodename},
          {"cores", std::thread::hardware_concurrency()},
          {"cpu", cpu_model()},
          {"kernel", std::string(system.sysname) + " " + system.release}};
}

}  // namespace

Status write_report(const std::filesystem::path& file, const std::string& command,
                    const nlohmann::ordered_json& results, const NetworkRecord& network) {
  const nlohmann::ordered_json report{{"host", host()},
                                      {"network", network.to_json()},
                                      {"commit", ELASTIC_COMMIT},
                                      {"command", command},
                                      {"results", results}};
  return write_file("--json", file, report.dump(2) + "\n");
}

}  // namespace elastic::bench
