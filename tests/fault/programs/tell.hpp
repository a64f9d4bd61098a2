#pragma once

#include <string>

namespace elastic::fault {

/// One line on standard output in one write: whoever reads the file sees all of it or nothing, also
/// when this process is killed next, and the library's log in the same file does not mix with it.
void tell(const std::string& line);

}  // namespace elastic::fault
