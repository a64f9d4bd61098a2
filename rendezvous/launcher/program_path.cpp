#include "rendezvous/launcher/program_path.hpp"

#include <cerrno>
#include <cstring>
#include <sstream>
#include <unistd.h>

#include <sys/stat.h>

namespace elastic::launcher {

namespace {

Status check_executable(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) {
    return Status(Code::kInvalidArgument, path + ": " + std::strerror(errno));
  }
  if (!S_ISREG(info.st_mode)) {
    const bool folder = S_ISDIR(info.st_mode);
    return Status(Code::kInvalidArgument,
                  path + (folder ? ": is a folder, and no program" : ": is no program"));
  }
  if (::access(path.c_str(), X_OK) != 0) {
    return Status(Code::kInvalidArgument, path + ": not executable (chmod +x it?)");
  }
  return {};
}

/// For a program that is in this folder, where PATH does not lead.
std::string hint(const std::string& program) {
  const std::string here = "./" + program;
  if (check_executable(here).ok()) return " (did you mean " + here + "?)";
  if (::access(here.c_str(), F_OK) != 0) return "";
  return " (" + here + " is no executable file: chmod +x it, or write its interpreter before it)";
}

}  // namespace

Result<std::string> find_program(const std::string& program, const std::string& search_path) {
  if (program.find('/') != std::string::npos) {
    if (Status status = check_executable(program); !status.ok()) return status;
    return program;
  }
  std::istringstream folders(search_path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    const std::string path = (folder.empty() ? "." : folder) + "/" + program;
    if (check_executable(path).ok()) return path;
  }
  return Status(Code::kInvalidArgument, program + ": not found in PATH" + hint(program));
}

}  // namespace elastic::launcher
