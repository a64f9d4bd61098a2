// A server that has run out of disk or of descriptors refuses joiners, and the job goes on.
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include "integration/job.hpp"
#include "integration/tiny_disk.hpp"
#include "rendezvous/server/journal_record.hpp"
#include "rendezvous_fixture.hpp"

namespace elastic::rendezvous {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kKiB = 1024;

class FullDiskTest : public RendezvousTest {
 protected:
  void SetUp() override {
    if (!disk_.mounted()) GTEST_SKIP() << "mounting a small disk needs root";
  }

  ServerOptions options_with_journal(int np) const {
    ServerOptions with = options(np);
    with.journal = (disk_.path() / "journal").string();
    return with;
  }

  /// One after the other, so that every death makes a view.
  void lose(std::size_t count) {
    for (; count > 0; --count) {
      const std::uint64_t before = workers_.front()->view().generation;
      workers_.pop_back();
      ASSERT_TRUE(eventually([&] { return all_see(before + 1, workers_.size()); }));
    }
  }

  void expect_refused(const std::string& incarnation) {
    const auto joiner = worker(incarnation);
    ASSERT_TRUE(eventually([&] { return !joiner->failures.empty(); }));
    EXPECT_EQ(joiner->failures[0].code(), Code::kRefused);
    EXPECT_THAT(joiner->failures[0].message(),
                HasSubstr("the journal's disk is full: " + (disk_.path() / "journal").string()));
  }

  void expect_welcome(const std::string& incarnation) {
    const auto joiner = worker(incarnation);
    ASSERT_TRUE(eventually([&] { return !joiner->all<Welcome>().empty(); }));
    EXPECT_TRUE(joiner->all<Welcome>()[0].joining);
  }

  testing::TinyDisk disk_{1024 * kKiB};
};

TEST_F(FullDiskTest, JoinersAreRefusedAndMembersGoOn) {
  serve(options_with_journal(20));
  form(20);
  disk_.fill();
  lose(4);  // more than the pages around what is reserved
  expect_refused("joiner");
  lose(10);
  expect_refused("another");
  for (const auto& member : workers_) EXPECT_TRUE(member->failures.empty());
  disk_.make_room();
  expect_welcome("third");
}

/// So that they use no restarts for workers that would be refused.
TEST_F(FullDiskTest, LaunchersHearThatNoWorkerCanJoinAndThatItCanAgain) {
  serve(options_with_journal(20));
  form(20);
  const auto dialed = enter({kProtocolVersion, kJob, "launcher"});
  ASSERT_TRUE(dialed.ok());
  std::optional<JobState> state;
  std::optional<StatusReply> told;
  const auto listen = [&]() -> asio::awaitable<void> {
    while (true) {
      const Result<Message> message = co_await dialed.value()->read();
      if (!message.ok()) co_return;
      if (const auto* its = std::get_if<JobState>(&message.value())) state = *its;
      if (const auto* its = std::get_if<StatusReply>(&message.value())) told = *its;
    }
  };
  bool ended = false;
  asio::co_spawn(io_, listen, [&](std::exception_ptr /*thrown*/) { ended = true; });
  dialed.value()->send(Enlist{.id = "agent", .host = "host", .slots = 30, .running = 20});
  for (const auto& member : workers_) member->client->send(Ready{});
  ASSERT_TRUE(eventually([&] { return state && state->joinable; }));
  disk_.fill();
  lose(4);  // more than the pages around what is reserved
  // What a launcher sends when a worker has ended, to decide whether it starts another one.
  dialed.value()->send(WorkerEnded{1, "slot-19", "was killed", 1});
  dialed.value()->send(StatusRequest{});
  ASSERT_TRUE(eventually([&] { return told.has_value(); }));
  EXPECT_FALSE(told->joinable);
  EXPECT_FALSE(state->joinable) << "told before it is asked";
  expect_refused("joiner");
  const Done add = std::get<Done>(ask(AddRequest{1}).value());
  EXPECT_THAT(add.text, HasSubstr("no worker can join now: the journal's disk is full"));
  disk_.make_room();
  ASSERT_TRUE(eventually([&] { return state->joinable; }));
  EXPECT_TRUE(std::get<Done>(ask(AddRequest{1}).value()).ok);
  expect_welcome("later");
  dialed.value()->abort("done");
  EXPECT_TRUE(eventually([&] { return ended; }));
}

/// A journal that was found on a full disk has no space reserved, not even for deaths.
TEST_F(FullDiskTest, WithoutAnyRoomTheJobWaitsForIt) {
  const ServerOptions with = options_with_journal(12);
  std::ofstream(with.journal) << journal_text(kJob, {});
  disk_.fill();
  serve(with);
  form(12);
  const auto kept = [&] {
    return parse_journal(testing::read_file(with.journal), kJob).value().contents;
  };
  // The first views fit into the page that the journal has.
  std::uint64_t decided = workers_[0]->view().generation;
  while (kept().floor == decided && workers_.size() > 1) {
    workers_.pop_back();
    ++decided;
    ASSERT_TRUE(eventually([&] { return status().view.generation == decided; }));
  }
  ASSERT_EQ(kept().floor, decided - 1);
  workers_.pop_back();
  expect_refused("joiner");
  for (const auto& member : workers_) {
    EXPECT_LT(member->view().generation, decided) << "announced before it was durable";
    EXPECT_TRUE(member->failures.empty());
  }
  EXPECT_EQ(kept().floor, decided - 1);
  disk_.make_room();
  ASSERT_TRUE(eventually([&] { return all_see(decided + 1, workers_.size()); }));
  EXPECT_EQ(kept().view, workers_[0]->view());
  for (const auto& member : workers_) EXPECT_TRUE(member->failures.empty());
  expect_welcome("later");
}

/// A server program whose limits can be changed while it runs.
class FewDescriptorsTest : public RendezvousTest {
 protected:
  void start(int np) {
    const auto file = [&](const char* name) { return (scratch_.path() / name).string(); };
    std::ofstream(file("secret")) << to_hex(secret_) << "\n";
    std::filesystem::permissions(file("secret"), std::filesystem::perms::owner_read);
    server_program_ = std::make_unique<testing::Job>(
        std::vector<std::string>{ELASTIC_RENDEZVOUS, "--np", std::to_string(np), "--job", kJob,
                                 "--secret-file", file("secret"), "--port-file", file("port"),
                                 "--evict-after-ms", "20000", "--log-level", "warn"},
        scratch_.path() / "output");
    ASSERT_TRUE(testing::eventually(kSoon, [&] { return std::filesystem::exists(file("port")); }))
        << server_program_->output();
    std::ifstream port(file("port"));
    address_ = nlohmann::json::parse(port).at("address");
  }

  void limit_descriptors(rlim_t count) const {
    const rlimit limit{count, kMany};
    ASSERT_EQ(::prlimit(server_program_->pid(), RLIMIT_NOFILE, &limit, nullptr), 0);
  }

  std::unique_ptr<Worker> worker_at(const std::string& incarnation) {
    ClientOptions with = client_options(incarnation);
    with.address = address_;
    return std::make_unique<Worker>(io_, with);
  }

  /// The server can open none with this number or above, so none at all.
  rlim_t first_free_descriptor() const {
    const auto open = "/proc/" + std::to_string(server_program_->pid()) + "/fd/";
    rlim_t number = 0;
    while (std::filesystem::is_symlink(open + std::to_string(number))) ++number;
    return number;
  }

  tcp::socket stranger() {
    const HostPort at = parse_address(address_).value();
    tcp::socket socket(io_);
    socket.connect(tcp::endpoint(asio::ip::make_address(at.host),
                                 static_cast<std::uint16_t>(std::stoi(at.port))));
    return socket;
  }

  static constexpr rlim_t kMany = 256;
  testing::ScratchFolder scratch_;
  std::unique_ptr<testing::Job> server_program_;
  std::string address_;
};

TEST_F(FewDescriptorsTest, ConnectionsAreRefusedAtOnceAndMembersStay) {
  start(2);
  for (const char* incarnation : {"w0", "w1"}) workers_.push_back(worker_at(incarnation));
  ASSERT_TRUE(eventually([&] { return all_see(1, 2); }));
  for (const auto& member : workers_) member->client->send(Ready{});

  limit_descriptors(first_free_descriptor());
  for (int i = 0; i < 20; ++i) {
    tcp::socket late = stranger();
    EXPECT_TRUE(is_closed(late));
  }
  EXPECT_THAT(server_program_->output(),
              HasSubstr("out of descriptors: new connections are refused"));
  const auto joiner = worker_at("joiner");
  for (const auto& member : workers_) EXPECT_TRUE(member->failures.empty());

  limit_descriptors(kMany);
  ASSERT_TRUE(eventually([&] { return !joiner->all<Welcome>().empty(); }));
  joiner->client->send(Ready{});
  ASSERT_TRUE(eventually([&] { return all_see(2, 3); }));
  for (const auto& member : workers_) EXPECT_TRUE(member->failures.empty());
}

}  // namespace
}  // namespace elastic::rendezvous
