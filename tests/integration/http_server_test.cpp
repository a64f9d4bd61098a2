// The server that shows a job over HTTP, and clients of all kinds.
#include "rendezvous/monitoring/http_server.hpp"

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "integration/http_client.hpp"
#include "unit/watched_job.hpp"

namespace elastic::monitoring {
namespace {

using testing::body_of;
using ::testing::HasSubstr;
using testing::http_get;
using testing::HttpClient;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

class HttpServerTest : public ::testing::Test {
 protected:
  HttpServerTest() {
    options_.address = "127.0.0.1:0";
    options_.most_connections = 4;
    options_.longest = Milliseconds(400);
  }
  ~HttpServerTest() override {
    boost::asio::post(io_, [this] { server_.reset(); });
    work_.reset();
    if (thread_.joinable()) thread_.join();
  }

  void start() {
    server_ = std::make_unique<HttpServer>(io_, options_, [this] { return status_; });
    ASSERT_TRUE(server_->listen().ok());
    address_ = server_->address();
    thread_ = std::thread([this] { io_.run(); });
  }
  std::string listen_error(const std::string& address) {
    HttpOptions options;
    options.address = address;
    return HttpServer(io_, options, [this] { return status_; }).listen().message();
  }

  rendezvous::StatusReply status_ = testing::watched_job();
  HttpOptions options_;
  std::string address_;

 private:
  boost::asio::io_context io_;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_ =
      boost::asio::make_work_guard(io_);
  std::unique_ptr<HttpServer> server_;
  std::thread thread_;
};

TEST_F(HttpServerTest, AnswersGetAndHead) {
  start();
  const std::string page = http_get(address_, "/");
  EXPECT_THAT(page, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(page, HasSubstr("Content-Security-Policy: default-src 'none'"));
  EXPECT_THAT(page, HasSubstr("<!doctype html>"));
  EXPECT_THAT(http_get(address_, "/metrics"), HasSubstr("elastic_steps_total 1000\n"));
  EXPECT_THAT(http_get(address_, "/status.json"), HasSubstr("\"job\":\"digits\""));
  const std::string head = http_get(address_, "/metrics", "HEAD");
  EXPECT_THAT(head, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(head, Not(HasSubstr("Content-Length: 0\r\n")));
  EXPECT_THAT(body_of(head), IsEmpty());
}

TEST_F(HttpServerTest, RefusesWhatWouldChangeSomethingAndUnknownPaths) {
  start();
  HttpClient client(address_);
  client.send("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\n" +
              std::string(30000, 'x'));
  const std::string refused = client.read_to_end();
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 405 "));
  EXPECT_THAT(refused, HasSubstr("Allow: GET, HEAD\r\n"));
  EXPECT_THAT(refused, HasSubstr("elasticrun ctl changes it"));
  EXPECT_THAT(http_get(address_, "/nothing"), StartsWith("HTTP/1.1 404 "));
}

TEST_F(HttpServerTest, APageOfAnotherSiteCannotReadAJobAtLoopback) {
  start();
  HttpClient browser(address_);
  browser.send("GET /status.json HTTP/1.1\r\nHost: evil.example:" +
               address_.substr(address_.rfind(':') + 1) + "\r\n\r\n");
  const std::string refused = browser.read_to_end();
  EXPECT_THAT(refused, StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(refused, Not(HasSubstr("digits")));
}

TEST_F(HttpServerTest, SaysThatARequestIsNone) {
  start();
  HttpClient odd(address_);
  odd.send("\x16\x03\x01 hello\r\n\r\n");
  EXPECT_THAT(odd.read_to_end(), StartsWith("HTTP/1.1 400 "));
  HttpClient endless(address_);
  endless.send("GET / HTTP/1.1\r\nX: " + std::string(20000, 'x') + "\r\n\r\n");
  EXPECT_THAT(endless.read_to_end(), StartsWith("HTTP/1.1 400 "));
}

TEST_F(HttpServerTest, EndsAHalfRequestAfterAWhile) {
  start();
  HttpClient half(address_);
  half.send("GET / HT");
  HttpClient silent(address_);
  EXPECT_THAT(half.read_to_end(), IsEmpty());
  EXPECT_THAT(silent.read_to_end(), IsEmpty());
}

TEST_F(HttpServerTest, SilentClientsMakeRoomForOthers) {
  options_.longest = Milliseconds(60000);
  start();
  std::vector<std::unique_ptr<HttpClient>> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(std::make_unique<HttpClient>(address_));
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(http_get(address_, "/metrics"), HasSubstr("elastic_steps_total")) << i;
  }
  EXPECT_THAT(silent.front()->read_to_end(), IsEmpty()) << "it was the oldest";
}

TEST_F(HttpServerTest, AClientThatReadsNothingDelaysNoOther) {
  status_.job.assign(std::size_t{32} << 20, 'x');  // more than the buffers of sockets hold
  start();
  HttpClient slow(address_);
  slow.send("GET /status.json HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(http_get(address_, "/"), HasSubstr("<!doctype html>"));
  // The time for an answer has passed when a client that came later has been given up.
  HttpClient later(address_);
  EXPECT_THAT(later.read_to_end(), IsEmpty());
  EXPECT_LT(slow.read_to_end().size(), status_.job.size());
}

TEST_F(HttpServerTest, SaysWhatIsWrongWithAnAddress) {
  for (const char* address : {"9090", "localhost:9090", "127.0.0.1", "127.0.0.1:99999", ""}) {
    EXPECT_THAT(listen_error(address), HasSubstr("give an IPv4 or IPv6 address and a port"));
  }
  start();
  EXPECT_THAT(listen_error(address_),
              AllOf(HasSubstr("--http: cannot listen on " + address_ + ": Address already in use"),
                    HasSubstr("choose another port")));
  EXPECT_THAT(listen_error("192.0.2.1:0"),
              AllOf(HasSubstr("Cannot assign requested address"), HasSubstr("of this machine")));
}

}  // namespace
}  // namespace elastic::monitoring
