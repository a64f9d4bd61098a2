#include "rendezvous/launcher/console.hpp"

#include <chrono>
#include <cstring>
#include <unistd.h>
#include <utility>

#include <sys/stat.h>

#include "base/printable.hpp"

namespace elastic::launcher {

namespace {

/// Destination of elasticrun's own lines: it goes unnoticed where they are lost.
constexpr const char* kOwnLines = "";

constexpr std::chrono::seconds kTimeToRead{1};

/// One writer keeps the order of lines that go to the same file.
bool same_file(int one, int other) {
  struct stat first {};
  struct stat second {};
  return ::fstat(one, &first) == 0 && ::fstat(other, &second) == 0 &&
         first.st_dev == second.st_dev && first.st_ino == second.st_ino;
}

}  // namespace

Console::Console(boost::asio::io_context& io, std::string host)
    : host_(std::move(host)), time_to_read_(io) {
  const auto lost = [this](const std::string& destination, int error) { lose(destination, error); };
  output_.emplace(io, lost);
  if (!same_file(STDOUT_FILENO, STDERR_FILENO)) errors_.emplace(io, lost);
}

std::string Console::line_of(const std::string& text, const std::string& host) {
  return (host.empty() ? "elasticrun: " : "elasticrun on " + host + ": ") + printable_name(text) +
         "\n";
}

void Console::say(const std::string& text) {
  show(line_of(text, host_));
}

void Console::show(std::string lines) {
  errors().write(STDERR_FILENO, kOwnLines, std::move(lines));
}

/// The job goes on: it is worth more than what its workers print.
void Console::lose(const std::string& destination, int error) {
  if (destination == kOwnLines || !lost_.insert(destination).second) return;
  say("cannot write workers' output to " + destination + ": " + std::strerror(error) +
      "; the job goes on, and elasticrun ends with an exit code other than 0");
}

void Console::when_written(bool hurry, std::function<void()> done) {
  if (hurry) {
    time_to_read_.expires_after(kTimeToRead);
    time_to_read_.async_wait([done](boost::system::error_code error) {
      if (!error) done();
    });
  }
  errors().when_empty([this, done = std::move(done)] { output_->when_empty(done); });
}

}  // namespace elastic::launcher
