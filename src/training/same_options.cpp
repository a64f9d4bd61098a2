#include "training/same_options.hpp"

#include <string>
#include <utility>

#include "elastic/error.hpp"
#include "training/arguments.hpp"
#include "training/bytes.hpp"

namespace elastic::detail {

SameOptions::SameOptions(std::string_view owner, std::vector<Option> options)
    : owner_(owner), options_(std::move(options)) {
  for (Option& option : options_) option.value += 0.0;  // -0 becomes 0: equal values, equal bytes
}

std::vector<std::byte> SameOptions::save() const {
  std::vector<std::byte> bytes;
  for (const Option& option : options_) training::put(bytes, option.value);
  return bytes;
}

void SameOptions::load(std::span<const std::byte> bytes) const {
  const auto refuse = [this](const std::string& message) {
    throw Error(ErrorCode::kInvalidArgument, std::string(owner_) + ": " + message);
  };
  if (bytes.size() != options_.size() * sizeof(double)) {
    refuse(std::to_string(bytes.size()) + " bytes are not saved options");
  }
  training::ByteReader reader(bytes);
  for (const Option& own : options_) {
    double value = 0;
    if (reader.take(value) && value == own.value) continue;
    refuse(
        "the option " + std::string(own.name) + " is " + training::text_of(value) +
        " in the state that is to be taken over, and " + training::text_of(own.value) +
        " here; give the same options to all workers, and those that a checkpoint was made with");
  }
}

}  // namespace elastic::detail
