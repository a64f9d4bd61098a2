#include "base/config/options.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "base/config/variables.hpp"

namespace elastic {

namespace {

constexpr std::string_view kPrefix = "ELASTIC_";

// In ASCII, whatever the program's locale is.
char lower(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}
char upper(char letter) {
  return letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter;
}

/// Levenshtein distance: how many letters two names differ in.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t above = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] == b[j - 1] ? 0U : 1U)});
      diagonal = above;
    }
  }
  return row[b.size()];
}

/// The variable with the name that is most like `name`.
const Variable& nearest_to(const std::string& name) {
  const auto& known = variables();
  // A name that was cut short before the names that are spelled otherwise.
  const auto unlikeness = [&](const Variable& one) {
    return std::pair(!one.name.starts_with(name), distance(name, one.name));
  };
  return *std::min_element(known.begin(), known.end(), [&](const auto& a, const auto& b) {
    return unlikeness(a) < unlikeness(b);
  });
}

/// Null if there is none.
const Variable* find_variable(std::string_view name) {
  const auto& known = variables();
  const auto variable = std::find_if(known.begin(), known.end(),
                                     [&](const Variable& one) { return one.name == name; });
  return variable == known.end() ? nullptr : &*variable;
}

/// "bucket_bytes" for ELASTIC_BUCKET_BYTES.
std::string option_name(std::string_view variable) {
  std::string name(variable.substr(kPrefix.size()));
  std::transform(name.begin(), name.end(), name.begin(), lower);
  return name;
}

/// Checks options that code has set by the same rules as those of the environment.
Status check(const Options& given) {
  Options scratch;
  for (const Variable& variable : variables()) {
    const std::string value = variable.values.get(given);
    if (variable.values.set(scratch, value)) continue;
    return Status(Code::kInvalidArgument, "Options::" + std::string(variable.field) + " is '" +
                                              value + "': must be " + variable.values.allowed);
  }
  return {};
}

}  // namespace

Result<Options> resolve(Options options, const EnvironmentMap& environment) {
  for (const auto& entry : environment) {
    const std::string& name = entry.first;
    const std::string& value = entry.second;
    if (!name.starts_with(kPrefix)) continue;
    const Variable* const variable = find_variable(name);
    if (variable == nullptr) {
      return Status(Code::kInvalidArgument,
                    "environment variable " + name + " is not known; did you mean " +
                        nearest_to(name).name + "? (unset it, or see elastic/options.hpp)");
    }
    if (!variable->values.set(options, value)) {
      return Status(Code::kInvalidArgument, "environment variable " + name + " is '" + value +
                                                "': must be " + variable->values.allowed);
    }
  }
  if (Status status = check(options); !status.ok()) return status;
  return options;
}

Status set_by_name(Options& options, std::string_view name, std::string_view value) {
  std::string its(kPrefix);
  std::transform(name.begin(), name.end(), std::back_inserter(its), upper);
  const Variable* const variable = find_variable(its);
  // Capitals are those of variables.
  if (variable == nullptr || option_name(its) != name) {
    return Status(Code::kInvalidArgument, "option '" + std::string(name) +
                                              "' is not known; did you mean '" +
                                              option_name(nearest_to(its).name) + "'?");
  }
  if (!variable->values.set(options, std::string(value))) {
    return Status(Code::kInvalidArgument, "option " + std::string(name) + " is '" +
                                              std::string(value) + "': must be " +
                                              variable->values.allowed);
  }
  return {};
}

}  // namespace elastic
