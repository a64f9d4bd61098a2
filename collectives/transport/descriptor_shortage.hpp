#pragma once

#include <cstddef>
#include <string>

namespace elastic::transport {

/// The descriptors that a worker has and needs to link with the members of a view.
struct DescriptorNeed {
  std::size_t limit = 0;    ///< descriptors that this process may have open
  std::size_t free = 0;     ///< of these, not in use, or in use for links that are being made
  std::size_t linked = 0;   ///< in use for links, of which some may have been of the view before
  std::size_t missing = 0;  ///< for the links that the view still lacks here
  std::size_t members = 0;  ///< of the view
  std::size_t all = 0;      ///< for links with all members

  bool is_short() const { return missing > free; }
};

/// A stream in shared memory has its socket and its memory's descriptor.
inline constexpr std::size_t kDescriptorsOfShm = 2;

/// Why this worker cannot be a member of the view, and what to do about it. Pure.
std::string describe_shortage(const DescriptorNeed& need);

/// How many more descriptors this process can open; 0 where it has not even one to look with.
std::size_t free_descriptors(std::size_t limit);

/// Whether opening a descriptor fails at present because there are too many.
bool out_of_descriptors();

}  // namespace elastic::transport
