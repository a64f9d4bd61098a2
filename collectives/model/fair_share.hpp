#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace elastic::model {

/// Something that an activity needs for each of its bytes, together with others.
struct Use {
  std::int32_t resource = 0;
  double per_byte = 0;  ///< of the resource's capacity, times a second
};

/// A transfer or a computation in progress.
struct Activity {
  static constexpr std::size_t kMostUses = 8;

  double left = 0;  ///< bytes
  double rate = 0;  ///< bytes per second
  double most_rate = 0;
  std::array<Use, kMostUses> uses{};
  std::size_t use_count = 0;

  void use(std::int32_t resource, double per_byte) {
    if (per_byte > 0) uses[use_count++] = {resource, per_byte};
  }
  std::span<const Use> used() const { return {uses.data(), use_count}; }
};

/// Shares resources among activities: max-min fair (Bertsekas, Gallager 1992: Data
/// networks, 6.5.2), as many TCP connections over one line share it. All rates rise together; those
/// stop that need a resource which is used up, or have reached their own limit.
class FairShare {
 public:
  /// Sets the rates. `capacity` is that of each resource.
  void share(std::vector<Activity>& activities, std::span<const double> capacity);

 private:
  std::vector<double> free_;          // capacity that is left, by resource
  std::vector<double> load_;          // by resource: per byte of each activity whose rate rises
  std::vector<std::int32_t> loaded_;  // resources with a load
  std::vector<std::size_t> rising_;   // activities
};

}  // namespace elastic::model
