#include "collectives/transport/descriptor_shortage.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <dirent.h>
#include <limits>

#include <sys/eventfd.h>

#include "base/unique_fd.hpp"

namespace elastic::transport {

namespace {

/// For connections and files that come and go.
constexpr std::size_t kToSpare = 32;

}  // namespace

std::string describe_shortage(const DescriptorNeed& need) {
  const std::size_t taken = need.limit - std::min(need.free, need.limit);
  const std::string limit = std::to_string(need.limit);
  std::string text = "this process may have " + limit + " descriptors (ulimit -n), and ";
  // Without a shortage in numbers another thread may have taken them, or the whole host lacks them.
  text +=
      need.is_short()
          ? std::to_string(taken) + " are not for its links; those that a view of " +
                std::to_string(need.members) + " members lacks here take " +
                std::to_string(need.missing)
          : "none is left for its links in a view of " + std::to_string(need.members) + " members";
  return text + ": raise the hard limit (ulimit -Hn, LimitNOFILE=) to " +
         std::to_string(taken + need.all + kToSpare) + ", which is enough for links with all";
}

std::size_t free_descriptors(std::size_t limit) {
  DIR* const folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) {
    const bool none = errno == EMFILE || errno == ENFILE;
    return none ? 0 : std::numeric_limits<std::size_t>::max();
  }
  std::size_t below = 0;
  while (const dirent* entry = ::readdir(folder)) {
    std::size_t number = 0;
    const char* const end = entry->d_name + std::strlen(entry->d_name);
    // The limit is one of their numbers: those above it are of a time when it was higher.
    if (std::from_chars(entry->d_name, end, number).ec == std::errc() && number < limit) ++below;
  }
  ::closedir(folder);
  return limit - below + 1;  // its own is free again
}

bool out_of_descriptors() {
  const UniqueFd one(::eventfd(0, EFD_CLOEXEC));
  return !one && (errno == EMFILE || errno == ENFILE);
}

}  // namespace elastic::transport
