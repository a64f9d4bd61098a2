#include "base/config/number_reader.hpp"

#include <charconv>
#include <string>
#include <system_error>

namespace elastic {

int NumberReader::get(const RankVariables::Names& names, int least, int otherwise) {
  for (const char* name : names) {
    if (name == nullptr) continue;
    const auto found = environment_.find(name);
    if (found == environment_.end()) continue;
    const std::string& text = found->second;
    int value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc() && end == text.data() + text.size() && value >= least) return value;
    if (status_.ok()) {
      status_ = Status(Code::kInvalidArgument,
                       std::string("environment variable ") + name + " is '" + text +
                           "': must be a whole number of at least " + std::to_string(least));
    }
    return otherwise;
  }
  return otherwise;
}

}  // namespace elastic
