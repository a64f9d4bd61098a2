#include "rendezvous/launcher/notice/notice_watch.hpp"

#include <exception>
#include <optional>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "rendezvous/launcher/notice/http_request.hpp"
#include "rendezvous/launcher/notice/notice_file.hpp"
#include "rendezvous/launcher/script_run.hpp"

namespace elastic::notice {

namespace asio = boost::asio;

namespace {

/// Clouds give a notice of half a minute to two.
constexpr Milliseconds kBetweenQuestions{5000};
/// A file is looked at more often: it costs nothing.
constexpr Milliseconds kBetweenLooks{500};
constexpr Milliseconds kAnswerLimit{2000};
constexpr Milliseconds kScriptLimit{10000};

constexpr int kOk = 200;
constexpr int kUnauthorized = 401;
constexpr int kNotFound = 404;

/// Exit codes of sh for a command that it cannot run.
constexpr int kCannotExecute = 126;
constexpr int kNoCommand = 127;

using Answer = Result<std::optional<Notice>>;

Status status_of(const std::string& path, int code) {
  return Status(Code::kProtocol,
                "the metadata service answers " + std::to_string(code) + " to " + path);
}

}  // namespace

class NoticeWatch::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& io, NoticeSource source, std::vector<std::string> environment,
       int guardian_pipe, Handlers handlers)
      : io_(io),
        source_(std::move(source)),
        environment_(std::move(environment)),
        guardian_pipe_(guardian_pipe),
        handlers_(std::move(handlers)),
        pause_(io) {}

  void start() {
    asio::co_spawn(
        io_, [self = shared_from_this()] { return self->run(); },
        [](std::exception_ptr thrown) {
          if (thrown) std::rethrow_exception(thrown);
        });
  }
  void abandon() {
    abandoned_ = true;
    handlers_ = {};
    pause_.cancel();
  }

 private:
  asio::awaitable<void> run() {
    const bool is_file = source_.kind == NoticeSource::Kind::kFile;
    while (!abandoned_) {
      const Answer answer = co_await ask();
      if (abandoned_) co_return;
      if (answer.ok() && answer.value()) co_return handlers_.on_notice(*answer.value());
      if (answer.ok()) {
        error_.clear();
      } else if (std::exchange(error_, answer.status().message()) != error_) {
        handlers_.on_error(answer.status());
      }
      if (abandoned_) co_return;
      boost::system::error_code ignored;
      pause_.expires_after(is_file ? kBetweenLooks : kBetweenQuestions);
      co_await pause_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
    }
  }

  asio::awaitable<Answer> ask() {
    switch (source_.kind) {
      case NoticeSource::Kind::kAws:
        co_return co_await ask_aws();
      case NoticeSource::Kind::kGcp:
        co_return co_await ask_gcp();
      case NoticeSource::Kind::kAzure:
        co_return co_await ask_azure();
      case NoticeSource::Kind::kCommand:
        co_return co_await ask_command();
      case NoticeSource::Kind::kFile:
        break;
    }
    co_return look_at_file();
  }

  Answer look_at_file() const {
    const auto text = read_notice_file(source_.address);
    if (!text.ok()) return text.status();
    if (!text.value()) return std::optional<Notice>();
    return read_seconds(*text.value(), "the file " + source_.address);
  }

  asio::awaitable<Answer> ask_command() {
    launcher::Script script{source_.address, environment_, guardian_pipe_};
    const auto ended = co_await launcher::run_script(io_, std::move(script), kScriptLimit);
    if (!ended.ok()) co_return ended.status().within("command:" + source_.address);
    const launcher::ExitStatus& status = ended.value().status;
    if (status.signal == 0 && (status.code == kNoCommand || status.code == kCannotExecute)) {
      co_return Status(Code::kUnavailable, "command:" + source_.address + ": it " + status.text());
    }
    if (!status.ok()) co_return std::optional<Notice>();
    co_return read_seconds(ended.value().output, "the command '" + source_.address + "'");
  }

  asio::awaitable<Result<HttpAnswer>> get(std::string path, std::string header, std::string value) {
    HttpRequest request{"GET", source_.address, std::move(path), {}};
    request.headers.emplace_back(std::move(header), std::move(value));
    co_return co_await http_request(std::move(request), kAnswerLimit);
  }

  /// Version 2 of EC2's instance metadata service: a token first, which is used for hours.
  asio::awaitable<Result<HttpAnswer>> get_aws(const std::string& path) {
    if (token_.empty()) {
      // Not within the call: GCC 12 does not compile lists in the arguments of co_await.
      HttpRequest request{"PUT", source_.address, "/latest/api/token", {}};
      request.headers.emplace_back("X-aws-ec2-metadata-token-ttl-seconds", "21600");
      const auto token = co_await http_request(std::move(request), kAnswerLimit);
      if (!token.ok()) co_return token.status();
      if (token.value().status != kOk)
        co_return status_of("/latest/api/token", token.value().status);
      token_ = token.value().body;
    }
    auto answer = co_await get(path, "X-aws-ec2-metadata-token", token_);
    if (answer.ok() && answer.value().status == kUnauthorized) token_.clear();  // it is too old
    co_return answer;
  }

  asio::awaitable<Answer> ask_aws() {
    const std::string action = "/latest/meta-data/spot/instance-action";
    const auto answer = co_await get_aws(action);
    if (!answer.ok()) co_return answer.status();
    if (answer.value().status == kOk) {
      co_return read_aws(answer.value().body, std::chrono::system_clock::now());
    }
    if (answer.value().status == kUnauthorized && !std::exchange(unauthorized_, true)) {
      co_return std::optional<Notice>();  // the token was too old; the next one is new
    }
    unauthorized_ = answer.value().status == kUnauthorized;
    if (answer.value().status != kNotFound) co_return status_of(action, answer.value().status);
    if (!hinted_) co_await look_for_hint();
    co_return std::optional<Notice>();
  }

  asio::awaitable<void> look_for_hint() {
    const auto answer = co_await get_aws("/latest/meta-data/events/recommendations/rebalance");
    if (abandoned_ || !answer.ok() || answer.value().status != kOk) co_return;
    hinted_ = true;
    handlers_.on_hint("EC2 recommends to move to another machine: this one may be taken soon");
  }

  asio::awaitable<Answer> ask_gcp() {
    const std::string path = "/computeMetadata/v1/instance/preempted";
    const auto answer = co_await get(path, "Metadata-Flavor", "Google");
    if (!answer.ok()) co_return answer.status();
    if (answer.value().status != kOk) co_return status_of(path, answer.value().status);
    co_return read_gcp(answer.value().body);
  }

  asio::awaitable<Answer> ask_azure() {
    if (machine_.empty()) {
      const std::string path = "/metadata/instance/compute/name?api-version=2021-02-01&format=text";
      const auto name = co_await get(path, "Metadata", "true");
      if (!name.ok()) co_return name.status();
      if (name.value().status != kOk) co_return status_of(path, name.value().status);
      if (!is_azure_name(name.value().body)) {
        co_return Status(Code::kProtocol, path + ": the answer is no machine's name");
      }
      machine_ = name.value().body;
    }
    const std::string path = "/metadata/scheduledevents?api-version=2020-07-01";
    const auto answer = co_await get(path, "Metadata", "true");
    if (!answer.ok()) co_return answer.status();
    if (answer.value().status != kOk) co_return status_of(path, answer.value().status);
    co_return read_azure(answer.value().body, machine_, std::chrono::system_clock::now());
  }

  asio::io_context& io_;
  const NoticeSource source_;
  const std::vector<std::string> environment_;
  const int guardian_pipe_;
  Handlers handlers_;
  asio::steady_timer pause_;
  std::string token_;    ///< of EC2
  std::string machine_;  ///< its name in Azure
  std::string error_;
  bool unauthorized_ = false;  ///< the latest answer said so
  bool hinted_ = false;
  bool abandoned_ = false;
};

NoticeWatch::NoticeWatch(asio::io_context& io, NoticeSource source,
                         std::vector<std::string> environment, int guardian_pipe, Handlers handlers)
    : impl_(std::make_shared<Impl>(io, std::move(source), std::move(environment), guardian_pipe,
                                   std::move(handlers))) {
  impl_->start();
}
NoticeWatch::~NoticeWatch() {
  impl_->abandon();
}

}  // namespace elastic::notice
