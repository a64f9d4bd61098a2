#include "collectives/backend/nccl/nccl_library.hpp"

#include <dlfcn.h>
#include <utility>

#include "collectives/backend/nccl/nccl_api.hpp"

namespace elastic::collectives::nccl {

namespace {

constexpr const char* kName = "libnccl.so.2";

Status unusable(const std::string& why) {
  return Status(Code::kUnavailable, "NCCL cannot be used: " + why + ". NCCL " +
                                        version_text(kOldestVersion) +
                                        " or later is needed: install it (libnccl2), or name its "
                                        "file in ELASTIC_NCCL_LIBRARY");
}

/// Looks up functions, and keeps the name of the first that is missing.
class Lookup {
 public:
  explicit Lookup(void* handle) : handle_(handle) {}

  template <typename Function>
  void optional(Function& function, const char* name) {
    function = reinterpret_cast<Function>(::dlsym(handle_, name));
  }
  template <typename Function>
  void required(Function& function, const char* name) {
    optional(function, name);
    if (function == nullptr && missing_.empty()) missing_ = name;
  }
  const std::string& missing() const { return missing_; }

 private:
  void* const handle_;
  std::string missing_;
};

std::string look_up(void* handle, Api& api) {
  Lookup lookup(handle);
  lookup.required(api.get_error_string, "ncclGetErrorString");
  lookup.required(api.get_last_error, "ncclGetLastError");
  lookup.required(api.get_unique_id, "ncclGetUniqueId");
  lookup.required(api.comm_init_rank_config, "ncclCommInitRankConfig");
  lookup.required(api.comm_get_async_error, "ncclCommGetAsyncError");
  lookup.required(api.comm_destroy, "ncclCommDestroy");
  lookup.required(api.comm_abort, "ncclCommAbort");
  lookup.required(api.all_reduce, "ncclAllReduce");
  lookup.required(api.group_start, "ncclGroupStart");
  lookup.required(api.group_end, "ncclGroupEnd");
  lookup.required(api.broadcast, "ncclBroadcast");
  lookup.required(api.all_gather, "ncclAllGather");
  lookup.required(api.reduce_scatter, "ncclReduceScatter");
  lookup.optional(api.memory_alloc, "ncclMemAlloc");
  lookup.optional(api.memory_free, "ncclMemFree");
  lookup.optional(api.comm_register, "ncclCommRegister");
  lookup.optional(api.comm_shrink, "ncclCommShrink");
  lookup.optional(api.comm_revoke, "ncclCommRevoke");
  lookup.optional(api.comm_grow, "ncclCommGrow");
  return lookup.missing();
}

}  // namespace

std::string version_text(int code) {
  // Up to 2.8 the parts had fewer digits.
  const int major = code < 10000 ? code / 1000 : code / 10000;
  const int minor = code < 10000 ? code % 1000 / 100 : code % 10000 / 100;
  const int patch = code % 100;
  return std::to_string(major) + "." + std::to_string(minor) +
         (patch > 0 ? "." + std::to_string(patch) : "");
}

Result<std::shared_ptr<const NcclLibrary>> NcclLibrary::load(const std::string& file) {
  const std::string asked = file.empty() ? kName : file;
  // RTLD_LOCAL, so that its symbols do not replace those of a trainer's own NCCL.
  void* const handle = ::dlopen(asked.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) return unusable(::dlerror());
  auto api = std::make_unique<Api>();
  Lookup(handle).required(api->get_version, "ncclGetVersion");
  if (api->get_version == nullptr) return unusable(asked + " has no ncclGetVersion");

  Dl_info found{};
  const bool located = ::dladdr(reinterpret_cast<const void*>(api->get_version), &found) != 0;
  const std::string where = located ? found.dli_fname : asked;
  int version = 0;
  if (api->get_version(&version) != ncclSuccess) {
    return unusable(where + " does not tell its version");
  }
  if (version < kOldestVersion) return unusable(where + " is NCCL " + version_text(version));
  if (const std::string missing = look_up(handle, *api); !missing.empty()) {
    return unusable(where + " is NCCL " + version_text(version) + " without " + missing);
  }
  return std::make_shared<const NcclLibrary>(std::move(api), version, where);
}

NcclLibrary::NcclLibrary(std::unique_ptr<const Api> api, int version, std::string file)
    : api_(std::move(api)), version_(version), file_(std::move(file)) {}

NcclLibrary::~NcclLibrary() = default;

std::string NcclLibrary::describe() const {
  std::string has;
  const auto add = [&](const char* what, bool there) {
    if (there) has += std::string(has.empty() ? " (with " : ", ") + what;
  };
  add("shrink", api_->comm_shrink != nullptr);
  add("revoke", api_->comm_revoke != nullptr);
  add("grow", api_->comm_grow != nullptr);
  return "NCCL " + version_text(version_) + " in " + file_ + has + (has.empty() ? "" : ")");
}

}  // namespace elastic::collectives::nccl
