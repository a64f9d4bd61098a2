#pragma once

#include <string>

namespace elastic {

/// `text` for a terminal or a log: control characters, and with them terminal escapes, become \xNN.
/// Ends of lines and tabs stay. Names in messages come from other processes.
std::string printable(const std::string& text);

/// The same for a name within a line: ends of lines and tabs are escaped as well.
std::string printable_name(const std::string& name);

}  // namespace elastic
