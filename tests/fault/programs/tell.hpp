#pragma once

#include <string>

namespace elastic::fault {

/// Writes one line to standard output in one write(2). A reader of the file sees all of it or none,
/// even if this process is killed, and the library's log in the file does not mix with it.
void tell(const std::string& line);

}  // namespace elastic::fault
