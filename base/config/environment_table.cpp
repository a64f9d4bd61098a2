#include "base/config/environment_table.hpp"

#include <charconv>
#include <cstddef>
#include <string_view>

#include "base/config/rank_variables.hpp"
#include "base/config/variables.hpp"

namespace elastic {

namespace {

std::string code(std::string_view text) {
  return text.empty() ? "" : "`" + std::string(text) + "`";
}

/// 1048576 as 1M.
std::string with_suffix(const std::string& bytes) {
  std::size_t value = 0;
  std::from_chars(bytes.data(), bytes.data() + bytes.size(), value);
  std::size_t at = 0;
  constexpr std::string_view kSuffixes = " KMG";
  for (; value > 0 && value % 1024 == 0 && at + 1 < kSuffixes.size(); ++at) value /= 1024;
  return std::to_string(value) + (at > 0 ? std::string(1, kSuffixes[at]) : "");
}

std::string default_of(const Variable& variable) {
  const std::string value = variable.values.get(Options());
  return value.empty() ? "empty"
                       : code(variable.values.unit == "bytes" ? with_suffix(value) : value);
}

std::string option_table(Variable::SetBy set_by) {
  std::string table =
      "| variable | meaning | values | unit | default |\n"
      "| --- | --- | --- | --- | --- |\n";
  for (const Variable& variable : variables()) {
    if (variable.set_by != set_by) continue;
    table += "| " + code(variable.name) + " | " + std::string(variable.meaning) + " | " +
             variable.values.allowed + " | " + variable.values.unit + " | " + default_of(variable) +
             " |\n";
  }
  return table;
}

std::string library_table() {
  std::string table = "| variable | backend | meaning |\n| --- | --- | --- |\n";
  for (const LibraryVariable& variable : library_variables()) {
    table += "| " + code(variable.name) + " | " + code(variable.backend) + " | " +
             std::string(variable.meaning) + " |\n";
  }
  return table;
}

std::string names(const RankVariables::Names& of) {
  std::string list;
  for (const char* name : of) {
    if (name != nullptr) list += (list.empty() ? "" : ", ") + code(name);
  }
  return list;
}

std::string rank_table() {
  std::string table =
      "| launcher | rank | workers | rank on the host | workers on the host |\n"
      "| --- | --- | --- | --- | --- |\n";
  for (const RankVariables& each : kRankVariables) {
    table += "| " + std::string(each.launcher) + " | " + names(each.rank) + " | " + names(each.np) +
             " | " + names(each.local_rank) + " | " + names(each.local_np) + " |\n";
  }
  return table;
}

}  // namespace

std::string environment_table() {
  return "## Variables that users set\n\n" + option_table(Variable::SetBy::kUser) +
         "\n## Variables that elasticrun sets for its workers\n\n" +
         option_table(Variable::SetBy::kLauncher) +
         "\n## Variables of libraries that a backend reads, too\n\n" + library_table() +
         "\n## Ranks from launchers\n\nIf there are two names, the first that is set counts.\n\n" +
         rank_table();
}

}  // namespace elastic
