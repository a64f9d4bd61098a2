#include "benchmarks/recovery/strike.hpp"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <iterator>
#include <string>
#include <unistd.h>
#include <utility>

#include "benchmarks/job/monotonic_time.hpp"

namespace elastic::bench {

Status Strike::open(const std::filesystem::path& file, std::function<void()> blow, Strike& strike) {
  strike.blow_ = std::move(blow);
  strike.file_ =
      UniqueFd(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (strike.file_) return {};
  return Status(Code::kUnavailable, file.string() + ": " + std::strerror(errno));
}

Strike::~Strike() {
  cancelled_.store(true, std::memory_order_release);
  if (thread_.joinable()) thread_.join();
}

void Strike::get_ready() {
  thread_ = std::thread([this] { watch(); });
  while (!ready_.load(std::memory_order_acquire)) std::this_thread::yield();
}

void Strike::watch() {
  ready_.store(true, std::memory_order_release);
  std::int64_t moment = 0;
  std::int64_t now = 0;
  do {
    if (cancelled_.load(std::memory_order_acquire)) return;
    moment = moment_ns_.load(std::memory_order_acquire);
    now = now_ns();
  } while (moment == 0 || now < moment);
  char text[24];
  const auto written = std::to_chars(text, std::end(text), now);
  // A failed write shows when the file is read.
  [[maybe_unused]] const auto ignored =
      ::write(file_.get(), text, static_cast<std::size_t>(written.ptr - text));
  blow_();
}

}  // namespace elastic::bench
