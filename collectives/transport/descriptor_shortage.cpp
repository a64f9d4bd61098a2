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
  const std::size_t others = taken - std::min(need.linked, taken);
  const std::string view = " a view of " + std::to_string(need.members) + " members";
  std::string text = "this process may have " + std::to_string(need.limit) +
                     " descriptors (ulimit -n): " + std::to_string(others) +
                     " are in use for other things than its links, ";
  // Links that an operation asks for are not known before, and another thread may take descriptors.
  text += need.is_short() ? std::to_string(need.linked) + " for links, and" + view + " needs " +
                                std::to_string(need.missing) + " more"
                          : "and none is left for a link in" + view;
  return text + "; raise the hard limit (ulimit -Hn, LimitNOFILE=) to " +
         std::to_string(others + need.all + kToSpare) + ", which allows links with all members";
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
