#include "fault/worker_log.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

namespace elastic::testing {

namespace {

constexpr std::size_t kStepsShown = 12;

}  // namespace

void WorkerLog::refresh() {
  std::ifstream file(file_);
  file.seekg(read_);
  const std::string fresh((std::istreambuf_iterator<char>(file)), {});
  read_ += static_cast<std::streamoff>(fresh.size());
  incomplete_ += fresh;
  std::size_t begin = 0;
  for (std::size_t end = incomplete_.find('\n'); end != std::string::npos;
       end = incomplete_.find('\n', begin)) {
    take(incomplete_.substr(begin, end - begin));
    begin = end + 1;
  }
  incomplete_.erase(0, begin);
}

void WorkerLog::take(const std::string& line) {
  std::istringstream words(line);
  std::string what;
  Step step;
  if (words >> what && what == "step" &&
      words >> step.index >> step.sums >> step.contributors >> step.generation >>
          step.microseconds >> step.state) {
    steps_.push_back(step);
  } else {
    lines_.push_back(line);
  }
}

std::string WorkerLog::told(const std::string& start) const {
  const auto found = std::find_if(lines_.begin(), lines_.end(),
                                  [&](const std::string& line) { return line.starts_with(start); });
  return found == lines_.end() ? std::string() : found->substr(start.size());
}

std::size_t WorkerLog::count(const std::string& start) const {
  return static_cast<std::size_t>(
      std::count_if(lines_.begin(), lines_.end(),
                    [&](const std::string& line) { return line.starts_with(start); }));
}

std::string WorkerLog::text() const {
  std::ostringstream out;
  for (const std::string& line : lines_) out << "  " << line << "\n";
  const std::size_t hidden = steps_.size() > kStepsShown ? steps_.size() - kStepsShown : 0;
  if (hidden > 0) out << "  ... " << hidden << " steps\n";
  for (std::size_t i = hidden; i < steps_.size(); ++i) {
    const Step& step = steps_[i];
    out << "  step " << step.index << ' ' << step.sums << " of " << step.contributors
        << " in generation " << step.generation << ", " << step.microseconds << " us, "
        << step.state << "\n";
  }
  return out.str();
}

}  // namespace elastic::testing
