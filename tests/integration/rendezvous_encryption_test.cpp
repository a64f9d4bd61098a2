// Servers and clients that encrypt what they say.
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "eavesdropper.hpp"
#include "rendezvous_fixture.hpp"

namespace elastic::rendezvous {
namespace {

class EncryptedRendezvous : public RendezvousTest {
 protected:
  void serve_encrypting(int np, Milliseconds handshake_deadline = Milliseconds(5000)) {
    ServerOptions with = options(np);
    with.encrypt = true;
    with.handshake_deadline = handshake_deadline;
    serve(with);
  }
  std::unique_ptr<Worker> join(const std::string& incarnation, const std::string& address,
                               bool encrypt) {
    ClientOptions with = client_options(incarnation);
    with.address = address;
    with.encrypt = encrypt;
    return std::make_unique<Worker>(io_, with);
  }
};

TEST_F(EncryptedRendezvous, TellsNothingToWhoListens) {
  for (const bool encrypt : {false, true}) {
    ServerOptions with = options(2);
    with.encrypt = encrypt;
    serve(with);
    const Eavesdropper between(server_->port());
    workers_.clear();
    for (const char* name : {"w0", "w1"})
      workers_.push_back(join(name, between.address(), encrypt));
    ASSERT_TRUE(eventually([&] { return all_see(1, 2); }));
    EXPECT_EQ(between.heard("\"register\""), !encrypt);  // to the server
    EXPECT_EQ(between.heard("\"announce\""), !encrypt);  // from it
    EXPECT_GT(between.bytes(), 500U);
    workers_.clear();
  }
}

TEST_F(EncryptedRendezvous, AnswersLargeAndManyMessages) {
  serve_encrypting(60);
  for (int i = 0; i < 60; ++i) {
    workers_.push_back(join("w" + std::to_string(i), server_->address(), true));
  }
  ASSERT_TRUE(eventually([&] { return all_see(1, 60); }));
  workers_[7]->client.reset();
  workers_.erase(workers_.begin() + 7);
  EXPECT_TRUE(eventually([&] { return all_see(2, 59); }));
}

TEST_F(EncryptedRendezvous, AWorkerThatDoesNotEncryptIsRefusedAndToldWhy) {
  for (const bool server_encrypts : {false, true}) {
    ServerOptions with = options(1);
    with.encrypt = server_encrypts;
    serve(with);
    const auto refused = join("w", server_->address(), !server_encrypts);
    ASSERT_TRUE(eventually([&] { return !refused->failures.empty(); }));
    const Status& why = refused->failures.front();
    EXPECT_EQ(why.code(), Code::kRefused);
    const std::string which = server_encrypts ? "the other side encrypts" : "this side encrypts";
    EXPECT_NE(why.message().find(which), std::string::npos) << why.message();
    EXPECT_NE(why.message().find("ELASTIC_ENCRYPT"), std::string::npos) << why.message();
  }
}

TEST_F(EncryptedRendezvous, AnotherSecretIsRefused) {
  serve_encrypting(1);
  ClientOptions with = client_options("w");
  with.encrypt = true;
  with.secret = random_secret();
  const Worker stranger(io_, with);
  ASSERT_TRUE(eventually([&] { return !stranger.failures.empty(); }));
  EXPECT_EQ(stranger.failures.front().code(), Code::kRefused);
  EXPECT_NE(stranger.failures.front().message().find("secret"), std::string::npos);
}

TEST_F(EncryptedRendezvous, RequestsAreAnsweredAndRefusalsExplained) {
  serve_encrypting(1);
  const auto ask_for = [&](const std::string& job) {
    return request(server_->address(), job, secret_, StatusRequest{}, Milliseconds(10000), true);
  };
  EXPECT_TRUE(ask_for(kJob).ok());
  const Status other_job = ask_for("another").status();
  EXPECT_EQ(other_job.code(), Code::kRefused);
  EXPECT_NE(other_job.message().find("another"), std::string::npos) << other_job.message();
}

/// A client with the secret stops where TLS should begin.
TEST_F(EncryptedRendezvous, WhoDoesNotGoOnUnderTlsIsDropped) {
  serve_encrypting(1, kHandshakeDeadline);
  tcp::socket socket = raw();
  const handshake::Dialer dialer(secret_, handshake::Purpose::kControl,
                                 encode_greeting({kProtocolVersion, kJob, "control"}), true);
  shake_hands(socket, dialer);
  EXPECT_TRUE(is_closed(socket));
}

}  // namespace
}  // namespace elastic::rendezvous
