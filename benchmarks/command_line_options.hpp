#pragma once

#include <map>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/status.hpp"
#include "benchmarks/job/rank_options.hpp"
#include "benchmarks/report/element_names.hpp"

// Options that the subcommands share.
namespace elastic::bench {

inline constexpr int kMostRanks = 4096;
inline constexpr int kMostCalls = 100'000'000;

Status invalid(const std::string& message);

/// Adds an option whose error lists the valid names. CLI11's own error lists the numbers of the
/// enumerators. `value` must outlive `app`.
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
/// Adds --np, --backend and the other options of a measurement's ranks. If an option of `app` is
/// repeated, the last one counts, which rank_arguments relies on.
void add_rank_options(CLI::App& app, RankOptions& options);

/// Adds --device.
void add_device(CLI::App& app, std::string& device);
void add_plot(CLI::App& app, std::string& plot);
void add_model(CLI::App& app, std::string& model);

/// Parses a byte count with suffix, which CLI11 does not know. The error names `option`.
Status read_bytes(const std::string& option, const std::string& text, std::size_t& bytes);
/// kInvalidArgument if options contradict each other.
Status check_rank_options(const RankOptions& options);
/// The same for a `measurement` of elastic alone, which refuses peers.
Status check_without_peers(const RankOptions& options, const std::string& measurement);

/// The command as a line for a shell.
std::string command_text(const std::string& program, const std::vector<std::string>& arguments);

}  // namespace elastic::bench
