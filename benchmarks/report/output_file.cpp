#include "benchmarks/report/output_file.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>

namespace elastic::bench {

namespace {

Status failure(const std::string& option, const std::filesystem::path& file) {
  return Status(Code::kUnavailable, option + " " + file.string() + ": " + std::strerror(errno));
}

}  // namespace

Status check_writable(const std::string& option, const std::filesystem::path& file) {
  // Opens to append, which leaves the content until a new report replaces it.
  if (!std::ofstream(file, std::ios::app)) return failure(option, file);
  return {};
}

Status write_file(const std::string& option, const std::filesystem::path& file,
                  const std::string& text) {
  std::ofstream output(file);
  output << text;
  output.flush();
  if (!output) return failure(option, file);
  return {};
}

}  // namespace elastic::bench
