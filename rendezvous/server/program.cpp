#include "rendezvous/server/program.hpp"

#include <csignal>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/signal_set.hpp>

#include "base/log.hpp"
#include "base/openssl_check.hpp"
#include "rendezvous/etcd/etcd_client.hpp"
#include "rendezvous/protocol/connection_file.hpp"
#include "rendezvous/server/candidate.hpp"
#include "rendezvous/server/connection_limit.hpp"
#include "rendezvous/server/program_files.hpp"
#include "rendezvous/server/server.hpp"

namespace elastic::rendezvous {

namespace {

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

/// The server's life with and without standbys.
class Program {
 public:
  explicit Program(ProgramOptions options)
      : options_(std::move(options)), record_(options_.job_record) {}

  Status run() {
    if (Status prepared = prepare(); !prepared.ok()) return prepared;
    Status begun = options_.store.members.empty() ? serve({}) : stand_for_leader();
    if (!begun.ok()) return begun;
    io_.run();
    return failed_;
  }

 private:
  Status prepare() {
    ServerOptions& with = options_.server;
    if (Status checked = check_openssl(with.encrypt); !checked.ok()) return checked;
    raise_connection_limit(with);
    if (with.job.empty()) with.job = random_id();
    if (options_.secret_file.empty()) {
      with.secret = random_secret();
      if (Status written = made_secret_.create(with.secret); !written.ok()) return written;
    } else {
      const Result<Secret> secret = read_secret_file(options_.secret_file);
      if (!secret.ok()) return secret.status();
      with.secret = secret.value();
    }
    signals_.async_wait([this](const boost::system::error_code& error, int number) {
      if (error) return;
      log::info("ends on signal {}", number);
      end();
    });
    if (options_.starter_fd < 0) return {};
    return starter_.watch(options_.starter_fd, [this] {
      if (server_) server_->lose_starter();
    });
  }

  /// Without a journal given it is the one of the options.
  Status serve(std::optional<OpenedJournal> journal) {
    server_.emplace(io_, options_.server);
    if (options_.exit_when_done) {
      server_->when_over([this](const Status& how) { how.ok() ? end() : fail(how); });
    }
    Status listening = journal ? server_->listen(std::move(*journal)) : server_->listen();
    return listening.ok() ? announce() : listening;
  }

  Status announce() {
    const ServerOptions& with = options_.server;
    std::printf("job %s at %s\n", with.job.c_str(), server_->address().c_str());
    if (!server_->http_address().empty()) {
      std::printf("status at http://%s/\n", server_->http_address().c_str());
    }
    if (!made_secret_.path().empty()) std::printf("secret in %s\n", made_secret_.path().c_str());
    std::fflush(stdout);
    if (!options_.port_file.empty()) {
      Status written = write_port_file(options_.port_file, server_->address());
      if (!written.ok()) return written;
    }
    if (options_.connection_file.empty()) return {};
    auto written = ConnectionFile::create(
        options_.connection_file,
        {with.job, address_for_others(server_->address(), ""), with.secret, with.encrypt});
    if (!written.ok()) return written.status();
    connection_file_.emplace(std::move(written).value());
    return {};
  }

  /// One of several servers: it listens for as long as it leads.
  Status stand_for_leader() {
    // A standby is not to find that out when it is needed.
    if (Status free = Server::try_address(options_.server); !free.ok()) return free;
    if (!options_.password_file.empty()) {
      auto password = etcd::read_password_file(options_.password_file);
      if (!password.ok()) return password.status();
      options_.store.password = std::move(password).value();
      if (options_.store.ca.empty()) {
        log::warn(
            "sends etcd's password without encryption; use --store-ca, or a network that "
            "you trust");
      }
    }
    auto client = etcd::EtcdClient::create(options_.store);
    if (!client.ok()) return client.status();
    const ServerOptions& with = options_.server;
    const std::string host =
        with.bind.find(':') == std::string::npos ? with.bind : "[" + with.bind + "]";
    const std::string address = address_for_others(host + ":" + std::to_string(with.port), "");
    Candidate::Handlers handlers;
    handlers.on_lead = [this](OpenedJournal journal) {
      log::info("leads job {}", options_.server.job);
      if (Status serving = serve(std::move(journal)); !serving.ok()) fail(serving);
    };
    handlers.on_lost = [this](const Status& why) {
      log::warn("leads job {} no more, and is a standby again: {}", options_.server.job,
                why.message());
      server_.reset();
    };
    handlers.on_failure = [this](const Status& why) { fail(why); };
    candidate_.emplace(io_, std::move(client).value(),
                       CandidateOptions{with.job, with.secret, address, options_.lease},
                       std::move(handlers));
    candidate_->start();
    return {};
  }

  void fail(const Status& why) {
    failed_ = why;
    end();
  }

  void end() {
    if (server_) server_->close();
    if (candidate_) candidate_->resign();
    signals_.cancel();
    starter_.close();
  }

  ProgramOptions options_;
  RecordOfServer record_;
  boost::asio::io_context io_{1};
  boost::asio::signal_set signals_{io_, SIGINT, SIGTERM};
  Starter starter_{io_};
  SecretFile made_secret_;
  std::optional<Server> server_;
  std::optional<ConnectionFile> connection_file_;
  std::optional<Candidate> candidate_;  ///< with --store
  Status failed_;
};

}  // namespace

Status run_program(ProgramOptions options) {
  return Program(std::move(options)).run();
}

}  // namespace elastic::rendezvous
