// Notices from a metadata service of our own: right and wrong answers, and silence.
#include "rendezvous/launcher/notice/notice_watch.hpp"

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "integration/job.hpp"
#include "rendezvous/launcher/guardian.hpp"
#include "tests/slowness.hpp"

namespace elastic::notice {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;

/// Answers to the first lines of requests, on the test's io_context.
class MetadataService {
 public:
  explicit MetadataService(asio::io_context& io)
      : acceptor_(io, tcp::endpoint(asio::ip::address_v4::loopback(), 0)) {
    asio::co_spawn(io, accept(), asio::detached);
  }
  std::string address() const {
    return "127.0.0.1:" + std::to_string(acceptor_.local_endpoint().port());
  }

  bool silent = false;
  std::map<std::string, std::string> answers;  ///< by "GET /path", "200 body"
  std::vector<std::string> requests;           ///< with their headers

 private:
  asio::awaitable<void> accept() {
    for (;;) {
      auto socket = co_await acceptor_.async_accept(asio::use_awaitable);
      asio::co_spawn(acceptor_.get_executor(), serve(std::move(socket)), asio::detached);
    }
  }
  asio::awaitable<void> serve(tcp::socket socket) {
    std::string request;
    co_await asio::async_read_until(socket, asio::dynamic_buffer(request), "\r\n\r\n",
                                    asio::use_awaitable);
    requests.push_back(request);
    if (silent) {
      std::array<char, 1> more{};
      co_await socket.async_read_some(asio::buffer(more), asio::use_awaitable);  // until it closes
    }
    const auto found = answers.find(request.substr(0, request.find(" HTTP")));
    const std::string answer = found == answers.end() ? "404 " : found->second;
    const std::string body = answer.substr(4);
    const std::string text = "HTTP/1.1 " + answer.substr(0, 3) +
                             " X\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" +
                             body;
    co_await asio::async_write(socket, asio::buffer(text), asio::use_awaitable);
  }

  tcp::acceptor acceptor_;
};

class NoticeWatchTest : public ::testing::Test {
 protected:
  NoticeWatchTest() { EXPECT_TRUE(guardian_.start().ok()); }

  void watch(const std::string& source) {
    watch_.emplace(
        io_, parse_notice_source(source).value(), std::vector<std::string>{"PATH=/usr/bin:/bin"},
        guardian_.pipe(),
        NoticeWatch::Handlers{[this](const Notice& notice) { notice_ = notice; },
                              [this](const std::string& hint) { hint_ = hint; },
                              [this](const Status& error) { errors_.push_back(error.message()); }});
  }
  bool until(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30) * kHangFactor;
    while (!condition() && std::chrono::steady_clock::now() < end) {
      io_.run_one_for(std::chrono::milliseconds(10));
    }
    return condition();
  }

  launcher::Guardian guardian_;
  asio::io_context io_;
  const testing::ScratchFolder scratch_;
  std::optional<NoticeWatch> watch_;
  std::optional<Notice> notice_;
  std::string hint_;
  std::vector<std::string> errors_;
};

TEST_F(NoticeWatchTest, AsksEc2WithAToken) {
  MetadataService service(io_);
  service.answers = {{"PUT /latest/api/token", "200 TOKEN"},
                     {"GET /latest/meta-data/events/recommendations/rebalance", "200 {}"}};
  watch("aws@" + service.address());
  ASSERT_TRUE(until([&] { return !hint_.empty(); }));
  EXPECT_FALSE(notice_);
  EXPECT_THAT(service.requests[0], HasSubstr("X-aws-ec2-metadata-token-ttl-seconds: 21600\r\n"));
  EXPECT_THAT(service.requests[1], AllOf(HasSubstr("GET /latest/meta-data/spot/instance-action "),
                                         HasSubstr("X-aws-ec2-metadata-token: TOKEN\r\n")));
  service.answers["GET /latest/meta-data/spot/instance-action"] =
      R"(200 {"action": "terminate", "time": "2000-01-01T00:00:00Z"})";
  ASSERT_TRUE(until([&] { return notice_.has_value(); }));
  EXPECT_EQ(notice_->text, "EC2 will terminate this machine");
  EXPECT_TRUE(errors_.empty());
}

TEST_F(NoticeWatchTest, SaysThatEc2RefusesItsOwnTokens) {
  MetadataService service(io_);
  service.answers = {{"PUT /latest/api/token", "200 TOKEN"},
                     {"GET /latest/meta-data/spot/instance-action", "401 "}};
  watch("aws@" + service.address());
  ASSERT_TRUE(until([&] { return !errors_.empty(); }));
  EXPECT_THAT(errors_[0], HasSubstr("answers 401 to /latest/meta-data/spot/instance-action"));
  EXPECT_EQ(service.requests.size(), 4U) << "the first token may have been too old";
}

TEST_F(NoticeWatchTest, SaysThatItsCommandIsNotThere) {
  watch("command:/no/such/command");
  ASSERT_TRUE(until([&] { return !errors_.empty(); }));
  EXPECT_THAT(errors_[0], HasSubstr("command:/no/such/command: it exited with code 127"));
  EXPECT_FALSE(notice_);
}

TEST_F(NoticeWatchTest, OutlastsWrongAnswersAndSilence) {
  MetadataService service(io_);
  service.answers = {{"GET /computeMetadata/v1/instance/preempted", "500 "}};
  watch("gcp@" + service.address());
  ASSERT_TRUE(until([&] { return !errors_.empty(); }));
  EXPECT_THAT(errors_[0], HasSubstr("answers 500 to /computeMetadata/v1/instance/preempted"));
  EXPECT_THAT(service.requests[0], HasSubstr("Metadata-Flavor: Google\r\n"));
  service.silent = true;
  ASSERT_TRUE(until([&] { return errors_.size() == 2; }));
  service.silent = false;
  service.answers = {{"GET /computeMetadata/v1/instance/preempted", "200 TRUE"}};
  ASSERT_TRUE(until([&] { return notice_.has_value(); }));
  EXPECT_EQ(errors_.size(), 2U) << "each is told once";
}

TEST_F(NoticeWatchTest, AsksAzureForThisMachinesEvents) {
  MetadataService service(io_);
  service.answers = {
      {"GET /metadata/instance/compute/name?api-version=2021-02-01&format=text", "200 me"},
      {"GET /metadata/scheduledevents?api-version=2020-07-01",
       R"(200 {"Events": [{"EventType": "Preempt", "Resources": ["me"], "NotBefore": ""}]})"}};
  watch("azure@" + service.address());
  ASSERT_TRUE(until([&] { return notice_.has_value(); }));
  EXPECT_THAT(service.requests, Contains(HasSubstr("Metadata: true\r\n")));
}

TEST_F(NoticeWatchTest, SaysOnceThatThereIsNoService) {
  watch("aws@127.0.0.1:1");
  ASSERT_TRUE(until([&] { return !errors_.empty(); }));
  EXPECT_THAT(errors_[0], HasSubstr("http://127.0.0.1:1/latest/api/token: Connection refused"));
}

TEST_F(NoticeWatchTest, LooksAtAFile) {
  const auto file = scratch_.path() / "notice";
  watch("file:" + file.string());
  io_.run_for(std::chrono::milliseconds(50));
  EXPECT_FALSE(notice_);
  std::ofstream(file) << "45\n";
  ASSERT_TRUE(until([&] { return notice_.has_value(); }));
  EXPECT_EQ(notice_->left, std::chrono::seconds(45));
}

/// A directory or a device in place of the file is named once, and the watch goes on.
TEST_F(NoticeWatchTest, TakesOnlyAShortRegularFileForANotice) {
  const auto file = scratch_.path() / "notice";
  std::filesystem::create_directory(file);
  watch("file:" + file.string());
  ASSERT_TRUE(until([&] { return errors_.size() == 1; }));
  EXPECT_THAT(errors_[0], HasSubstr("the file " + file.string() + " is a directory"));
  std::filesystem::remove(file);
  std::filesystem::create_symlink("/dev/zero", file);
  ASSERT_TRUE(until([&] { return errors_.size() == 2; }));
  EXPECT_THAT(errors_[1], HasSubstr("is a device, a pipe or a socket"));
  std::filesystem::remove(file);
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  io_.run_for(std::chrono::milliseconds(1200));
  EXPECT_EQ(errors_.size(), 2U) << "it blocks nothing, and the reason is the same";
  std::filesystem::remove(file);
  std::ofstream(file) << "45";
  std::filesystem::resize_file(file, std::uintmax_t{1} << 40);
  ASSERT_TRUE(until([&] { return errors_.size() == 3; }));
  EXPECT_THAT(errors_[2], HasSubstr("has more than 4096 bytes"));
  EXPECT_FALSE(notice_);
  std::filesystem::resize_file(file, 2);
  ASSERT_TRUE(until([&] { return notice_.has_value(); }));
  EXPECT_EQ(notice_->left, std::chrono::seconds(45));
  EXPECT_EQ(errors_.size(), 3U);
}

TEST_F(NoticeWatchTest, RunsACommand) {
  watch("command:echo 7");
  ASSERT_TRUE(until([&] { return notice_.has_value(); }));
  EXPECT_EQ(notice_->left, std::chrono::seconds(7));
}

}  // namespace
}  // namespace elastic::notice
