#include "rendezvous/hosts/agent_command.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <string_view>

namespace elastic::hosts {

namespace {

using launcher::LaunchOptions;

/// Of another job, or each worker's own.
constexpr std::array<std::string_view, 9> kOfOneJob{
    "ELASTIC_RENDEZVOUS",  "ELASTIC_JOB",       "ELASTIC_SECRET",
    "ELASTIC_SECRET_FILE", "ELASTIC_SECRET_FD", "ELASTIC_SLOT",
    "ELASTIC_LABEL",       "ELASTIC_RESTART",   "ELASTIC_BIND"};

/// What elasticrun itself sets for each worker, so that no other value would hold.
constexpr std::array<std::string_view, 10> kSetByElasticrun{
    "RANK",        "LOCAL_RANK",        "WORLD_SIZE",   "LOCAL_WORLD_SIZE", "ELASTIC_RENDEZVOUS",
    "ELASTIC_JOB", "ELASTIC_SECRET_FD", "ELASTIC_SLOT", "ELASTIC_LABEL",    "ELASTIC_RESTART"};

/// One word for sh.
std::string quoted(const std::string& text) {
  std::string word = "'";
  for (const char character : text) {
    word += character == '\'' ? std::string("'\\''") : std::string(1, character);
  }
  return word + "'";
}

bool is_variable(std::string_view name) {
  return !name.empty() && std::isdigit(static_cast<unsigned char>(name.front())) == 0 &&
         std::all_of(name.begin(), name.end(), [](unsigned char character) {
           return std::isalnum(character) != 0 || character == '_';
         });
}

std::vector<std::string> split_at_spaces(const std::string& text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

std::vector<std::string> agent_options(const LaunchOptions& options, const std::string& server,
                                       const StartAgent& agent) {
  std::vector<std::string> words = {"--join",
                                    server,
                                    "--job",
                                    options.job,
                                    "--secret-stdin",
                                    "--end-with-stdin",
                                    "-np",
                                    std::to_string(agent.np),
                                    "--slots",
                                    std::to_string(agent.slots),
                                    "--host-name",
                                    agent.host,
                                    "--host-number",
                                    std::to_string(agent.number),
                                    "--max-restarts",
                                    std::to_string(options.max_restarts),
                                    "--start-timeout-ms",
                                    std::to_string(options.start_timeout.count())};
  const auto seconds = [](Milliseconds time) {
    std::ostringstream text;
    text << static_cast<double>(time.count()) / 1000;
    return text.str();
  };
  words.insert(words.end(), {"--drain-seconds", seconds(options.drain), "--exit-seconds",
                             seconds(options.exit)});
  if (options.stall_timeout) {
    words.insert(words.end(),
                 {"--stall-timeout-ms", std::to_string(options.stall_timeout->count())});
  }
  if (!options.output_dir.empty()) words.insert(words.end(), {"--output-dir", options.output_dir});
  if (!options.prepare.empty()) words.insert(words.end(), {"--prepare", options.prepare});
  if (options.notice) words.insert(words.end(), {"--notice", options.notice_text});
  if (options.encrypt) words.emplace_back("--encrypt");
  if (!options.prefix) words.emplace_back("--no-prefix");
  if (!options.terminal) words.emplace_back("--no-pty");
  return words;
}

}  // namespace

std::string agent_script(const LaunchOptions& options, const AgentSetting& setting,
                         const std::string& server, const StartAgent& agent) {
  std::string script = "cd " + quoted(setting.working_folder) + " 2>/dev/null\n";
  for (const auto& [name, value] : setting.environment) {
    script += "export " + name + "=" + quoted(value) + "\n";
  }
  script += "elasticrun=" + quoted(setting.elasticrun) +
            "\n[ -x \"$elasticrun\" ] || elasticrun=elasticrun\nexec \"$elasticrun\"";
  for (const std::string& word : agent_options(options, server, agent))
    script += " " + quoted(word);
  script += " --";
  for (const std::string& word : options.command) script += " " + quoted(word);
  return script;
}

std::vector<std::string> agent_arguments(const launcher::HostsOptions& options,
                                         const std::string& host, bool local,
                                         const std::string& script) {
  if (local) return {"sh", "-c", script};
  std::vector<std::string> arguments = split_at_spaces(options.ssh);
  const std::vector<std::string> own = split_at_spaces(options.ssh_arguments);
  arguments.insert(arguments.end(), own.begin(), own.end());
  if (std::filesystem::path(arguments.front()).filename() == "ssh") {
    // ssh takes the first of several values: the user's own stand before these. A minute of
    // silence: the members tell of a dead host much sooner, and a job is not to end with this
    // machine's link.
    for (const char* option : {"BatchMode=yes", "ConnectTimeout=5", "ServerAliveInterval=15",
                               "ServerAliveCountMax=4", "LogLevel=ERROR"}) {
      arguments.insert(arguments.end(), {"-o", option});
    }
    arguments.insert(arguments.end(), {"-T", "--"});
  }
  // The other side's login shell need not be one that knows the syntax of sh.
  arguments.insert(arguments.end(), {host, "exec sh -c " + quoted(script)});
  return arguments;
}

Result<std::map<std::string, std::string>> chosen_variables(
    const std::vector<std::string>& wanted, const std::map<std::string, std::string>& environment) {
  std::map<std::string, std::string> chosen;
  for (const std::string& word : wanted) {
    const auto equals = word.find('=');
    const std::string name = word.substr(0, equals);
    if (!is_variable(name)) {
      return Status(Code::kInvalidArgument, "--env " + word + ": write NAME or NAME=VALUE");
    }
    if (std::find(kSetByElasticrun.begin(), kSetByElasticrun.end(), name) !=
        kSetByElasticrun.end()) {
      return Status(Code::kInvalidArgument, "--env " + word + ": elasticrun itself sets " + name +
                                                " for each worker; choose another name");
    }
    if (equals != std::string::npos) {
      chosen[name] = word.substr(equals + 1);
    } else if (const auto found = environment.find(name); found != environment.end()) {
      chosen[name] = found->second;
    } else {
      return Status(Code::kInvalidArgument,
                    "--env " + name + ": it is not set here; give it as " + name + "=VALUE");
    }
  }
  return chosen;
}

Result<std::map<std::string, std::string>> environment_of_agents(
    const std::vector<std::string>& wanted, const std::map<std::string, std::string>& environment) {
  auto chosen = chosen_variables(wanted, environment);
  if (!chosen.ok()) return chosen.status();
  for (const auto& [name, value] : environment) {
    if (!name.starts_with("ELASTIC_")) continue;
    if (std::find(kOfOneJob.begin(), kOfOneJob.end(), name) == kOfOneJob.end()) {
      chosen.value().try_emplace(name, value);
    }
  }
  return chosen;
}

}  // namespace elastic::hosts
