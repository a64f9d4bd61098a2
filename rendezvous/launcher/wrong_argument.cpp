#include "rendezvous/launcher/wrong_argument.hpp"

#include <algorithm>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/nearest_name.hpp"

namespace elastic::launcher {

namespace {

void add_names(const CLI::App& app, std::vector<std::string>& names) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      names.push_back((name == "np" ? "-" : "--") + name);
    }
  }
}

}  // namespace

std::string unknown_option(const CLI::App& app, const std::string& given, const std::string& help) {
  const std::string name = given.substr(0, given.find('='));
  std::vector<std::string> names;
  add_names(app, names);
  for (const CLI::App* command : app.get_subcommands({})) add_names(*command, names);
  if (std::find(names.begin(), names.end(), name) != names.end()) {
    return name + " is an option of another command (" + help + " lists them)";
  }
  const std::string nearest = nearest_name(name, names);
  return "unknown option " + name + "; " +
         (is_near(name, nearest) ? "did you mean " + nearest + "? (" + help + " lists them)"
                                 : help + " lists the options");
}

std::function<std::string(const std::string&)> whole_number(const std::string& option, int least,
                                                            int most) {
  return [option, least, most](const std::string& text) {
    int value = 0;
    // A leading 0 would make the number octal, or hexadecimal.
    const bool decimal = text.size() < 2 || text.front() != '0';
    const bool number = decimal && CLI::detail::lexical_cast(text, value);
    const bool digits =
        decimal && !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
    if ((number && value > most) || (!number && digits)) {
      throw CLI::ConversionError(option + " is '" + text + "': must be at most " +
                                 std::to_string(most));
    }
    if (!number) {
      const bool range = option == "-np" && text.find(':') != std::string::npos;
      throw CLI::ConversionError(option + " is '" + text +
                                 "': must be a whole number of at least " + std::to_string(least) +
                                 (range ? "; a range is given by --min-np and --max-np" : ""));
    }
    return std::string();
  };
}

}  // namespace elastic::launcher
