#pragma once

#include <string>

#include <elastic/error.hpp>

namespace elastic::python {

/// The value that a word stands for. `what`: for messages.
template <typename Table>
auto value_of(const Table& table, const std::string& word, const char* what) {
  std::string words;
  for (const auto& [name, value] : table) {
    if (name == word) return value;
    words += (words.empty() ? "" : ", ") + std::string(name);
  }
  throw Error(ErrorCode::kInvalidArgument,
              std::string(what) + " is '" + word + "'; it is one of " + words);
}

}  // namespace elastic::python
