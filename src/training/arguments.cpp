#include "training/arguments.hpp"

#include <array>
#include <charconv>

#include "elastic/error.hpp"

namespace elastic::training {

std::string text_of(double value) {
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.begin(), text.end(), value);
  return {text.begin(), end};
}

void require(bool valid, std::string_view where, std::string_view what, double value,
             std::string_view range) {
  if (valid) return;
  throw Error(ErrorCode::kInvalidArgument, std::string(where) + ": " + std::string(what) + " is " +
                                               text_of(value) + "; give " + std::string(range));
}

}  // namespace elastic::training
