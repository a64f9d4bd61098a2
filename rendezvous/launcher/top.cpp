#include "rendezvous/launcher/top.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <deque>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>

#include <sys/ioctl.h>

#include "base/clock.hpp"
#include "rendezvous/launcher/top_frame.hpp"

namespace elastic::launcher {

namespace {

using rendezvous::StatusReply;

constexpr Milliseconds kBetweenFrames{1000};
/// Over which rates are means. Workers tell their figures every two seconds.
constexpr Milliseconds kWindow{10000};
/// For a server that is started again.
constexpr Milliseconds kServerAway{5000};

/// The size of the terminal on stdout, less the line for the cursor.
FrameSize terminal_size() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row < 2) return {};
  return {size.ws_row - std::size_t{1}, size.ws_col};
}

/// Overwrites the frame before, line by line, so that nothing flickers.
std::string in_place(const std::string& frame, bool first) {
  std::string text = first ? "\x1b[2J\x1b[H" : "\x1b[H";
  for (const char character : frame) {
    if (character == '\n') text += "\x1b[K";
    text += character;
  }
  return text + "\x1b[J";
}

Status print(const std::string& text) {
  if (std::fputs(text.c_str(), stdout) >= 0 && std::fflush(stdout) == 0) return {};
  return Status(Code::kUnavailable, std::string("cannot write to stdout: ") + std::strerror(errno));
}

bool is_over(const StatusReply& status) {
  return status.phase == "done" || status.phase == "failed";
}

}  // namespace

Status show_top(const std::function<Result<StatusReply>()>& ask, bool once) {
  const bool on_terminal = !once && ::isatty(STDOUT_FILENO) == 1;
  std::deque<std::pair<TimePoint, StatusReply>> seen;  // of the window, oldest first
  while (true) {
    Result<StatusReply> answer = ask();
    const TimePoint now = Clock::now();
    if (answer.ok()) {
      const bool first = seen.empty();
      seen.emplace_back(now, std::move(answer).value());
      while (now - seen.front().first > kWindow) seen.pop_front();
      const StatusReply before = first ? StatusReply() : seen.front().second;
      const StatusReply& present = seen.back().second;
      const std::string frame =
          top_frame(before, present, on_terminal ? terminal_size() : FrameSize());
      const Status printed = print(on_terminal ? in_place(frame, first) : frame + "\n");
      if (!printed.ok() || once || is_over(present)) return printed;
    } else if (answer.status().code() == Code::kDone && !seen.empty()) {
      return print("the job has ended\n");
    } else if (seen.empty() || now - seen.back().first > kServerAway) {
      return answer.status();
    }
    std::this_thread::sleep_for(kBetweenFrames);
  }
}

}  // namespace elastic::launcher
