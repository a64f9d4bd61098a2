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

/// An option that has to be the same on all workers, which make other exchanges or other weights
/// otherwise. Workers tell these in front of their layout, all the same ones in the same order, to
/// be compared with it. `name` is the field's in Options.
LayoutEntry option_entry(const std::string& name, const std::string& value);

/// The same number for equal layouts, and hardly ever for others.
std::uint64_t hash_of(const Layout& layout);

/// The first difference between two layouts, for people; "" for none. `owner` and
/// `others_owner` are what they are the layouts of: "the job", "this worker".
std::string layout_difference(const Layout& layout, const std::string& owner, const Layout& other,
                              const std::string& others_owner);
/// The same, with what to do about it, where both are workers of one job.
std::string workers_difference(const Layout& layout, const std::string& owner, const Layout& other,
                               const std::string& others_owner);

}  // namespace elastic
