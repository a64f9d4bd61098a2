#include "fault/programs/tell.hpp"

#include <unistd.h>

namespace elastic::fault {

void tell(const std::string& line) {
  const std::string whole = line + "\n";
  // The test notices a lost line when it reads the file.
  [[maybe_unused]] const auto ignored = ::write(STDOUT_FILENO, whole.data(), whole.size());
}

}  // namespace elastic::fault
