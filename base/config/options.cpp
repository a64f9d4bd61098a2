#include "base/config/options.hpp"

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "base/config/variables.hpp"
#include "base/nearest_name.hpp"

namespace elastic {

namespace {

constexpr std::string_view kPrefix = "ELASTIC_";

// In ASCII, whatever the program's locale is.
char lower(char character) {
  return character >= 'A' && character <= 'Z' ? static_cast<char>(character - 'A' + 'a')
                                              : character;
}
char upper(char character) {
  return character >= 'a' && character <= 'z' ? static_cast<char>(character - 'a' + 'A')
                                              : character;
}

/// The variable with the name that is most like `name`.
std::string nearest_to(const std::string& name) {
  std::vector<std::string> names;
  for (const Variable& variable : variables()) names.push_back(variable.name);
  return nearest_name(name, names);
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
  if (given.nccl_max_ctas != 0 && given.nccl_min_ctas > given.nccl_max_ctas) {
    return Status(Code::kInvalidArgument,
                  "ELASTIC_NCCL_MIN_CTAS (Options::nccl_min_ctas) is " +
                      std::to_string(given.nccl_min_ctas) +
                      ", more than ELASTIC_NCCL_MAX_CTAS (Options::nccl_max_ctas), which is " +
                      std::to_string(given.nccl_max_ctas) + ": lower the one or raise the other");
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
      return Status(Code::kInvalidArgument, "environment variable " + name +
                                                " is not known; did you mean " + nearest_to(name) +
                                                "? (unset it, or see docs/environment.md)");
    }
    if (!variable->values.set(options, value)) {
      return Status(Code::kInvalidArgument, "environment variable " + name + " is '" + value +
                                                "': must be " + variable->values.allowed);
    }
  }
  if (Status status = check(options); !status.ok()) return status;
  return options;
}

namespace {

/// The remedy for an unknown option; `its`: the name of its variable.
std::string suggestion(std::string_view name, const std::string& its) {
  const std::string nearest = option_name(nearest_to(its));
  return is_near(name, nearest) ? "did you mean '" + nearest + "'?"
                                : "docs/environment.md lists all";
}

}  // namespace

Status set_by_name(Options& options, std::string_view name, std::string_view value) {
  std::string its(kPrefix);
  std::transform(name.begin(), name.end(), std::back_inserter(its), upper);
  const Variable* const variable = find_variable(its);
  // Capitals are those of variables.
  if (variable == nullptr || option_name(its) != name) {
    return Status(Code::kInvalidArgument,
                  "option '" + std::string(name) + "' is not known; " + suggestion(name, its));
  }
  if (!variable->values.set(options, std::string(value))) {
    return Status(Code::kInvalidArgument, "option " + std::string(name) + " is '" +
                                              std::string(value) + "': must be " +
                                              variable->values.allowed);
  }
  return {};
}

}  // namespace elastic
