#pragma once

#include <map>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/status.hpp"
#include "benchmarks/element_names.hpp"
#include "benchmarks/rank_options.hpp"

// What the subcommands' options have in common.
namespace elastic::bench {

inline constexpr int kMostRanks = 4096;
inline constexpr int kMostCalls = 100'000'000;

Status invalid(const std::string& message);

/// An option whose error names what there is, unlike CLI11's own, which lists the numbers of the
/// enumerators. `value` outlives `app`.
template <typename Value>
CLI::Option* add_named(CLI::App& app, const std::string& option, Value& value,
                       const std::vector<Value>& values, const std::string& text) {
  std::map<std::string, Value> names;
  for (const Value known : values) names.emplace(name_of(known), known);
  std::string list;
  for (const auto& [name, known] : names) list += (list.empty() ? "" : ", ") + name;
  return app.add_option_function<std::string>(
      option,
      [names, list, option, &value](const std::string& given) {
        const auto found = names.find(given);
        if (found == names.end()) {
          throw CLI::ValidationError(option, "\"" + given + "\" is not one of " + list);
        }
        value = found->second;
      },
      text + ": " + list);
}

void add_transport(CLI::App& app, std::string& transport);
void add_json(CLI::App& app, std::string& json);
/// --np, --backend and what else all ranks of a measurement are started with. Of options that are
/// given again the last counts from here on: see rank_arguments.
void add_rank_options(CLI::App& app, RankOptions& options);

/// --device.
void add_device(CLI::App& app, std::string& device);
void add_plot(CLI::App& app, std::string& plot);
void add_model(CLI::App& app, std::string& model);

/// Byte counts are parsed after CLI11, which has no such suffixes.
Status read_bytes(const std::string& option, const std::string& text, std::size_t& bytes);
/// What contradicts each other.
Status check_rank_options(const RankOptions& options);
/// Likewise, for a `measurement` that only elastic itself can take part in.
Status check_without_peers(const RankOptions& options, const std::string& measurement);

/// As it can be typed again.
std::string command_text(const std::vector<std::string>& arguments);

}  // namespace elastic::bench
