#pragma once

#include <functional>
#include <limits>
#include <string>

namespace CLI {
class App;
}  // namespace CLI

namespace elastic::launcher {

/// For an option that `app` and its commands do not have: names the nearest of theirs. `help` is
/// the command that lists them.
std::string unknown_option(const CLI::App& app, const std::string& given, const std::string& help);

/// For CLI::Option::check: throws a CLI::ParseError with the option's name, the value and what is
/// allowed, unless the value is a whole number up to `most`. Whether that is at least `least` is
/// checked later, with the other options.
std::function<std::string(const std::string&)> whole_number(
    const std::string& option, int least, int most = std::numeric_limits<int>::max());

}  // namespace elastic::launcher
