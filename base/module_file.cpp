#include "base/module_file.hpp"

#include <algorithm>
#include <cstring>
#include <dlfcn.h>
#include <filesystem>
#include <link.h>
#include <sstream>
#include <string_view>
#include <system_error>

namespace elastic {

namespace {

namespace fs = std::filesystem;

/// Where this code lies. A program's name for the linker is what it was called as, which need not
/// be a path, and may be that of another file in the working folder.
fs::path own_file() {
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  Dl_info info{};
  void* loaded = nullptr;
  const void* const here = reinterpret_cast<const void*>(&modules_built);
  if (::dladdr1(here, &info, &loaded, RTLD_DL_LINKMAP) == 0) return program;
  const std::string_view library = static_cast<const link_map*>(loaded)->l_name;
  const fs::path file = library.empty() ? fs::path() : fs::canonical(library, ignored);
  return file.empty() ? program : file;
}

/// Beside the library, or where a program's libraries are: in the build tree, and as installed.
std::vector<fs::path> folders_beside() {
  const fs::path here = own_file().parent_path();
  std::vector<fs::path> folders{here};
  for (const char* to_libraries : {"../lib", ELASTIC_BIN_TO_LIB}) {
    const fs::path folder = (here / to_libraries).lexically_normal();
    if (std::find(folders.begin(), folders.end(), folder) == folders.end()) {
      folders.push_back(folder);
    }
  }
  return folders;
}

Status unusable(const std::string& name, const std::string& why) {
  return Status(Code::kUnavailable, "the backend '" + name + "' cannot be used: " + why);
}

Status nowhere(const std::string& name, const std::string& searched) {
  const auto& built = modules_built();
  if (std::find(built.begin(), built.end(), name) == built.end()) {
    return unusable(name, "this build was made without it, and there is none at" + searched);
  }
  return unusable(
      name, "its module was not found. Searched:" + searched +
                "; to take that of an installation, set ELASTIC_BACKEND_PATH to its folder lib");
}

Result<const ModuleHead*> open(const std::string& name, const std::string& file) {
  // Local, so that the symbols of what it is linked with cannot get in the way of the trainer's.
  void* const handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) return unusable(name, ::dlerror());
  const auto* const head = static_cast<const ModuleHead*>(::dlsym(handle, kModuleSymbol));
  if (head == nullptr) return unusable(name, file + " is no module of elastic");
  if (std::strcmp(head->abi, ELASTIC_MODULE_ABI) != 0) {
    return unusable(name, file + " is of another build of elastic (" + head->abi +
                              ") than what loads it (" + ELASTIC_MODULE_ABI +
                              "); install both from one build");
  }
  return head;
}

}  // namespace

const std::vector<std::string>& modules_built() {
  static const std::vector<std::string> kNames = [] {
    std::istringstream list(ELASTIC_MODULES);
    std::vector<std::string> names;
    for (std::string name; list >> name;) names.push_back(name);
    return names;
  }();
  return kNames;
}

Result<const ModuleHead*> load_module(const std::string& name, const std::string& folder) {
  std::string searched;
  const auto folders = folder.empty() ? folders_beside() : std::vector<fs::path>{folder};
  for (const fs::path& each : folders) {
    const std::string file = (each / ("libelastic_" + name + ".so")).string();
    std::error_code ignored;
    if (fs::exists(file, ignored)) return open(name, file);
    searched += " " + file;
  }
  return nowhere(name, searched);
}

}  // namespace elastic
