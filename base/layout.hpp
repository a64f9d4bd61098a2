#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace elastic {

/// One entry of a State, without its value. Two workers with different layouts cannot train
/// together, and a checkpoint of another layout cannot be loaded.
struct LayoutEntry {
  std::string name;
  std::string type;         ///< "f32", "scalar i64", "object"
  std::uint64_t count = 0;  ///< elements; 0 for objects, whose size may vary

  bool operator==(const LayoutEntry&) const = default;
};
using Layout = std::vector<LayoutEntry>;

/// The entry for an option that has to be the same on all workers: otherwise they would make
/// different exchanges or different weights. Workers put these entries in front of their layout, in
/// the same order, so that they are compared with it. `name` is the field's name in Options.
LayoutEntry option_entry(const std::string& name, const std::string& value);

/// A hash: equal for equal layouts, and hardly ever for others.
std::uint64_t hash_of(const Layout& layout);

/// Describes the first difference between two layouts, for people; "" if there is none. `owner` and
/// `others_owner` name the owners of the layouts: "the job", "this worker".
std::string layout_difference(const Layout& layout, const std::string& owner, const Layout& other,
                              const std::string& others_owner);
/// As `layout_difference`, for two workers of one job, with advice.
std::string workers_difference(const Layout& layout, const std::string& owner, const Layout& other,
                               const std::string& others_owner);

}  // namespace elastic
