#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fcntl.h>
#include <functional>
#include <optional>
#include <string>
#include <unistd.h>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "base/handshake.hpp"
#include "base/log.hpp"
#include "base/openssl_check.hpp"
#include "base/unique_fd.hpp"
#include "rendezvous/protocol/connection_file.hpp"
#include "rendezvous/server/program_options.hpp"
#include "rendezvous/server/server.hpp"

namespace elastic::rendezvous {
namespace {

Status cannot_write(const std::string& path) {
  return Status(Code::kUnavailable, "cannot write " + path + ": " + std::strerror(errno));
}

bool write_text(int fd, const std::string& text) {
  return ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

/// A file with a fresh secret that only this user can read; removed at the end.
class SecretFile {
 public:
  SecretFile() = default;
  SecretFile(const SecretFile&) = delete;
  SecretFile& operator=(const SecretFile&) = delete;
  ~SecretFile() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }

  Status create(const Secret& secret) {
    std::string path = "/tmp/elastic-secret-XXXXXX";
    const UniqueFd file(::mkostemp(path.data(), O_CLOEXEC));  // mode 0600
    if (!file) return cannot_write(path);
    path_ = path;
    SecretText text(to_hex(secret));
    text.text() += '\n';
    if (!write_text(file.get(), text.text())) return cannot_write(path);
    return {};
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

/// Readers see all of it or nothing. A file at `path`, of an earlier server or a link, is replaced,
/// and written to through no link: the folder may be one where others can make files.
Status write_port_file(const std::string& path, const std::string& address) {
  const nlohmann::json content{{"address", address}, {"pid", ::getpid()}};
  const std::string fresh = path + "." + random_id() + ".new";
  const UniqueFd file(
      ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!file) return cannot_write(fresh);
  if (!write_text(file.get(), content.dump() + "\n") ||
      ::rename(fresh.c_str(), path.c_str()) != 0) {
    const Status failed = cannot_write(path);
    ::unlink(fresh.c_str());
    return failed;
  }
  return {};
}

/// The process that started this server, seen by a pipe that it writes nothing to.
class Starter {
 public:
  explicit Starter(boost::asio::io_context& io) : pipe_(io) {}

  Status watch(int fd, std::function<void()> gone) {
    boost::system::error_code error;
    pipe_.assign(fd, error);
    if (error) {
      return Status(Code::kInvalidArgument,
                    "--starter-fd " + std::to_string(fd) + ": " + error.message());
    }
    pipe_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                     [gone = std::move(gone)](const boost::system::error_code& failed) {
                       if (!failed) gone();
                     });
    return {};
  }
  void close() {
    boost::system::error_code ignored;
    pipe_.close(ignored);
  }

 private:
  boost::asio::posix::stream_descriptor pipe_;
};

int fail(const Status& status) {
  std::fprintf(stderr, "elastic-rendezvous: %s\n", status.message().c_str());
  return 1;
}

int serve(ProgramOptions options) {
  log::set_level(*find_named(kLogLevels, options.log_level));
  log::set_name("rendezvous");
  ServerOptions& with = options.server;
  if (const Status checked = check_openssl(with.encrypt); !checked.ok()) return fail(checked);
  if (with.job.empty()) with.job = random_id();
  SecretFile made;
  if (options.secret_file.empty()) {
    with.secret = random_secret();
    if (Status written = made.create(with.secret); !written.ok()) return fail(written);
  } else {
    const Result<Secret> secret = read_secret_file(options.secret_file);
    if (!secret.ok()) return fail(secret.status());
    with.secret = secret.value();
  }

  boost::asio::io_context io(1);
  Server server(io, with);
  boost::asio::signal_set signals(io, SIGINT, SIGTERM);
  Starter starter(io);
  const auto end = [&] {
    server.close();
    signals.cancel();
    starter.close();
  };
  signals.async_wait([&](const boost::system::error_code& error, int number) {
    if (error) return;
    log::info("ends on signal {}", number);
    end();
  });
  if (options.exit_when_done) server.when_over(end);
  if (options.starter_fd >= 0) {
    const Status watched = starter.watch(options.starter_fd, [&] { server.lose_starter(); });
    if (!watched.ok()) return fail(watched);
  }
  if (Status listening = server.listen(); !listening.ok()) return fail(listening);
  std::printf("job %s at %s\n", with.job.c_str(), server.address().c_str());
  if (!server.http_address().empty()) {
    std::printf("status at http://%s/\n", server.http_address().c_str());
  }
  if (!made.path().empty()) std::printf("secret in %s\n", made.path().c_str());
  std::fflush(stdout);
  if (!options.port_file.empty()) {
    const Status written = write_port_file(options.port_file, server.address());
    if (!written.ok()) return fail(written);
  }
  std::optional<ConnectionFile> connection_file;
  if (!options.connection_file.empty()) {
    auto written = ConnectionFile::create(
        options.connection_file,
        {with.job, address_for_others(server.address(), ""), with.secret, with.encrypt});
    if (!written.ok()) return fail(written.status());
    connection_file.emplace(std::move(written).value());
  }
  io.run();
  return 0;
}

}  // namespace
}  // namespace elastic::rendezvous

int main(int argc, char** argv) try {
  using namespace elastic::rendezvous;
  ParsedProgram parsed = parse_program(argc, argv);
  if (parsed.exit_code) {
    std::fputs(parsed.text.c_str(), *parsed.exit_code == 0 ? stdout : stderr);
    return *parsed.exit_code;
  }
  std::signal(SIGXFSZ,
              SIG_IGN);  // a file at its limit (ulimit -f) is as a full disk: write(2) fails
  return serve(std::move(parsed.options));
} catch (const std::exception& error) {
  std::fprintf(stderr, "elastic-rendezvous: %s\n", error.what());
  return 1;
}
