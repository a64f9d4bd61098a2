#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace elastic::detail {

/// Options in the State that do not travel: where the bytes to load have other values, `load`
/// refuses them, because workers with different options would drift apart unnoticed.
class SameOptions {
 public:
  struct Option {
    std::string_view name;  // a literal
    double value;
  };

  /// `owner`, a literal, is what messages begin with.
  SameOptions(std::string_view owner, std::vector<Option> options);

  std::vector<std::byte> save() const;
  /// Changes nothing. Throws Error(kInvalidArgument) that names the first option that differs.
  void load(std::span<const std::byte> bytes) const;

 private:
  std::string_view owner_;
  std::vector<Option> options_;
};

}  // namespace elastic::detail
