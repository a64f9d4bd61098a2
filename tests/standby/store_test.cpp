// Errors of a server that cannot use its etcd, and TLS and passwords, with a real etcd.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "rendezvous/etcd/base64.hpp"
#include "standby/etcd_cluster.hpp"

namespace elastic::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class StoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!EtcdCluster::is_there()) GTEST_SKIP() << "etcd is not installed (package etcd-server)";
    write_secret(file("secret"), '5');
  }

  std::string file(const std::string& name) const { return (scratch_.path() / name).string(); }

  /// A server of the job "stored", with further options, on a port of its own.
  std::unique_ptr<Job> server(const std::string& store,
                              const std::vector<std::string>& options = {},
                              const std::string& secret = "secret") {
    ports_.push_back(std::make_unique<ReservedPort>());
    return server_on(ports_.back()->number(), store, options, secret);
  }
  std::unique_ptr<Job> server_on(std::uint16_t port, const std::string& store,
                                 const std::vector<std::string>& options = {},
                                 const std::string& secret = "secret") {
    std::vector<std::string> command{ELASTIC_RENDEZVOUS,
                                     "--store",
                                     store,
                                     "--job",
                                     "stored",
                                     "--port",
                                     std::to_string(port),
                                     "--np",
                                     "1",
                                     "--secret-file",
                                     file(secret),
                                     "--lease-seconds",
                                     "2"};
    command.insert(command.end(), options.begin(), options.end());
    return std::make_unique<Job>(command, file("server." + std::to_string(servers_++)));
  }
  /// Its words, where it ends with this code.
  static std::string failure(Job& server, int code) {
    const auto ended = server.wait(kLong);
    EXPECT_EQ(ended.value_or(-1), code) << server.output();
    return server.output();
  }
  static bool says(const Job& server, const std::string& text) {
    return eventually(kLong, [&] { return server.output().find(text) != std::string::npos; });
  }
  static bool leads(const Job& server) { return says(server, "job stored at"); }
  void write_private(const std::string& name, const std::string& text) const {
    std::ofstream(file(name)) << text;
    ::chmod(file(name).c_str(), S_IRUSR | S_IWUSR);
  }

  /// A certificate for 127.0.0.1 that signs itself.
  void make_certificate(const std::string& name) const {
    Job openssl({"openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
                 "/CN=" + name, "-addext", "subjectAltName=IP:127.0.0.1", "-keyout",
                 file(name + ".key"), "-out", file(name + ".pem")},
                file("openssl"));
    ASSERT_EQ(openssl.wait(kLong), 0) << openssl.output();
  }

  ScratchFolder scratch_;
  std::vector<std::unique_ptr<ReservedPort>> ports_;
  int servers_ = 0;
};

TEST_F(StoreTest, NoMemberIsThere) {
  const ReservedPort absent;
  const auto started = server("etcd:" + absent.address());
  EXPECT_THAT(failure(*started, 1), AllOf(HasSubstr("etcd at " + absent.address()),
                                          HasSubstr("Connection refused"), HasSubstr("--store")));
}

TEST_F(StoreTest, WhatAnswersIsNotEtcd) {
  const EtcdCluster etcd(scratch_.path(), 1);
  ASSERT_TRUE(etcd.serves()) << etcd.text();
  const ReservedPort page;
  const auto other = server(etcd.store(), {"--http", page.address()});
  ASSERT_TRUE(leads(*other)) << other->output();
  const auto started = server("etcd:" + page.address());
  EXPECT_THAT(failure(*started, 1),
              AllOf(HasSubstr("etcd at " + page.address()), HasSubstr("is not etcd's JSON gateway"),
                    HasSubstr("client URLs")));
}

TEST_F(StoreTest, AnotherJobOfTheSameName) {
  const EtcdCluster etcd(scratch_.path(), 1);
  ASSERT_TRUE(etcd.serves()) << etcd.text();
  const auto first = server(etcd.store());
  ASSERT_TRUE(leads(*first)) << first->output();
  write_secret(file("other"), '6');
  const auto second = server(etcd.store(), {}, "other");
  EXPECT_THAT(failure(*second, 1),
              AllOf(HasSubstr("has another secret"), HasSubstr("--job"), HasSubstr("127.0.0.1:")));
}

/// A standby does not listen, so it does not warn.
TEST_F(StoreTest, WarnsWithoutEncryptionWhereItListens) {
  const EtcdCluster etcd(scratch_.path(), 1);
  ASSERT_TRUE(etcd.serves()) << etcd.text();
  const auto first = server(etcd.store(), {"--bind", "0.0.0.0"});
  ASSERT_TRUE(leads(*first)) << first->output();
  EXPECT_THAT(first->output(), HasSubstr("without encryption"));
  const auto second = server(etcd.store(), {"--bind", "0.0.0.0"});
  ASSERT_TRUE(says(*second, "waits as a standby")) << second->output();
  EXPECT_EQ(second->output().find("without encryption"), std::string::npos) << second->output();
}

/// A standby does not find that out only when it is to lead.
TEST_F(StoreTest, APortThatIsTaken) {
  const EtcdCluster etcd(scratch_.path(), 1);
  ASSERT_TRUE(etcd.serves()) << etcd.text();
  const auto first = server(etcd.store());
  ASSERT_TRUE(leads(*first)) << first->output();
  const auto second = server_on(ports_.back()->number(), etcd.store());
  EXPECT_THAT(failure(*second, 1), HasSubstr("cannot listen on " + ports_.back()->address()));
}

TEST_F(StoreTest, ADamagedJournal) {
  const EtcdCluster etcd(scratch_.path(), 1);
  ASSERT_TRUE(etcd.serves()) << etcd.text();
  etcd.call("/v3/kv/put", {{"key", etcd::to_base64("elastic/stored/journal")},
                           {"value", etcd::to_base64("nonsense\n")}});
  const auto started = server(etcd.store());
  EXPECT_THAT(failure(*started, 1), AllOf(HasSubstr("the journal elastic/stored/journal in etcd"),
                                          HasSubstr("this is no journal of elastic"),
                                          HasSubstr("etcdctl del elastic/stored/journal"),
                                          ::testing::Not(HasSubstr("file"))));
}

/// And does not lead next to another one until its next write.
TEST_F(StoreTest, ALeaderWhoseKeyIsDeletedStepsDown) {
  const EtcdCluster etcd(scratch_.path(), 1);
  ASSERT_TRUE(etcd.serves()) << etcd.text();
  const auto started = server(etcd.store());
  ASSERT_TRUE(leads(*started)) << started->output();
  etcd.call("/v3/kv/deleterange", {{"key", etcd::to_base64("elastic/stored/leader")}});
  EXPECT_TRUE(says(*started, "leads job stored no more")) << started->output();
  EXPECT_THAT(started->output(), HasSubstr("deleted its key elastic/stored/leader in etcd"));
}

/// A value that no server has written. When it is deleted, a server leads.
TEST_F(StoreTest, AForeignValueOfTheLeadersKey) {
  const EtcdCluster etcd(scratch_.path(), 1);
  ASSERT_TRUE(etcd.serves()) << etcd.text();
  const std::string key = etcd::to_base64("elastic/stored/leader");
  etcd.call("/v3/kv/put", {{"key", key}, {"value", etcd::to_base64("hello")}});
  const auto started = server(etcd.store());
  EXPECT_TRUE(says(*started, "elastic/stored/leader in etcd has a value that is no server's"))
      << started->output();
  EXPECT_THAT(started->output(), HasSubstr("etcdctl del elastic/stored/leader"));
  etcd.call("/v3/kv/deleterange", {{"key", key}});
  EXPECT_TRUE(leads(*started)) << started->output();
}

/// It would stay when its server ends. That server leads on, and says so, too.
TEST_F(StoreTest, ALeadersKeyWithoutALease) {
  const EtcdCluster etcd(scratch_.path(), 1);
  ASSERT_TRUE(etcd.serves()) << etcd.text();
  const auto first = server(etcd.store());
  ASSERT_TRUE(leads(*first)) << first->output();
  const auto second = server(etcd.store());
  ASSERT_TRUE(says(*second, "waits as a standby")) << second->output();
  const nlohmann::json entry = etcd.entry("elastic/stored/leader");
  etcd.call("/v3/kv/put", {{"key", entry.at("key")}, {"value", entry.at("value")}});
  for (const Job* one : {first.get(), second.get()}) {
    EXPECT_TRUE(says(*one, "the key elastic/stored/leader in etcd has no lease")) << one->output();
  }
  EXPECT_EQ(first->output().find("no more"), std::string::npos) << first->output();
  etcd.call("/v3/kv/deleterange", {{"key", entry.at("key")}});
  EXPECT_TRUE(leads(*second)) << second->output();
}

/// A user that may touch the keys of elastic and no others.
TEST_F(StoreTest, Password) {
  const EtcdCluster etcd(scratch_.path(), 1);
  ASSERT_TRUE(etcd.serves()) << etcd.text();
  const auto user = [&](const std::string& name, const std::string& role) {
    etcd.call("/v3/auth/user/add", {{"name", name}, {"password", "right"}});
    etcd.call("/v3/auth/user/grant", {{"user", name}, {"role", role}});
  };
  etcd.call("/v3/auth/role/add", {{"name", "servers"}});
  etcd.call("/v3/auth/role/grant", {{"name", "servers"},
                                    {"perm",
                                     {{"permType", "READWRITE"},
                                      {"key", etcd::to_base64("elastic/")},
                                      {"range_end", etcd::to_base64("elastic0")}}}});
  etcd.call("/v3/auth/role/add", {{"name", "nothing"}});
  user("root", "root");
  user("alice", "servers");
  user("bob", "nothing");
  etcd.call("/v3/auth/enable", nlohmann::json::object());
  write_private("right", "right\n");
  write_private("wrong", "wrong\n");
  write_private("open", "right\n");
  ::chmod(file("open").c_str(), 0644);

  const auto as = [&](const std::string& name, const std::string& password) {
    return server(etcd.store(), {"--store-user", name, "--store-password-file", file(password)});
  };
  EXPECT_THAT(failure(*server(etcd.store()), 1), HasSubstr("give --store-user"));
  EXPECT_THAT(failure(*as("alice", "wrong"), 1),
              AllOf(HasSubstr("invalid user ID or password"), HasSubstr("--store-password-file")));
  EXPECT_THAT(failure(*as("alice", "open"), 1), HasSubstr("can be read by others"));
  EXPECT_THAT(failure(*as("bob", "right"), 1),
              AllOf(HasSubstr("permission denied"), HasSubstr("elastic/JOB/")));
  const auto started = as("alice", "right");
  EXPECT_TRUE(leads(*started)) << started->output();

  // A right that is taken from a server that leads, and given back.
  if (!std::filesystem::exists("/usr/bin/etcdctl")) GTEST_SKIP() << "no etcdctl (etcd-client)";
  const auto root = [&](const std::string& what) {
    Job control({"/usr/bin/etcdctl", "--endpoints=" + etcd.address(0), "--user=root:right", "user",
                 what, "alice", "servers"},
                file("etcdctl"), {"ETCDCTL_API=3"});
    EXPECT_EQ(control.wait(kLong), 0) << control.output();
  };
  root("revoke-role");
  EXPECT_TRUE(says(*started, "leads job stored no more")) << started->output();
  EXPECT_THAT(started->output(), HasSubstr("permission denied; grant the user's role"));
  root("grant-role");
  EXPECT_TRUE(eventually(kLong, [&] {
    const std::string output = started->output();
    return output.find("job stored at") != output.rfind("job stored at");
  })) << started->output();
}

TEST_F(StoreTest, Tls) {
  ASSERT_NO_FATAL_FAILURE(make_certificate("etcd"));
  ASSERT_NO_FATAL_FAILURE(make_certificate("stranger"));
  etcd::EtcdOptions tls;
  tls.ca = tls.certificate = file("etcd.pem");
  tls.key = file("etcd.key");
  const EtcdCluster etcd(scratch_.path(), 1,
                         {"--cert-file=" + tls.certificate, "--key-file=" + tls.key,
                          "--client-cert-auth", "--trusted-ca-file=" + tls.ca},
                         tls);
  ASSERT_TRUE(etcd.serves()) << etcd.text();
  const auto started = server(etcd.store(), {"--store-ca", tls.ca, "--store-cert", tls.certificate,
                                             "--store-key", tls.key});
  EXPECT_TRUE(leads(*started)) << started->output();
  EXPECT_THAT(failure(*server(etcd.store()), 1), HasSubstr("--store-ca"));
  EXPECT_THAT(failure(*server(etcd.store(), {"--store-ca", file("stranger.pem"), "--store-cert",
                                             tls.certificate, "--store-key", tls.key}),
                      1),
              HasSubstr("certificate verify failed"));
  EXPECT_THAT(failure(*server(etcd.store(), {"--store-ca", tls.ca}), 1), HasSubstr("--store-cert"));
  EXPECT_THAT(failure(*server(etcd.store(), {"--store-ca", tls.ca, "--store-cert", tls.certificate,
                                             "--store-key", file("stranger.key")}),
                      1),
              HasSubstr("it must be the key of --store-cert"));
  EXPECT_THAT(failure(*server(etcd.store(), {"--store-ca", file("none.pem")}), 1),
              AllOf(HasSubstr("--store-ca"), HasSubstr("none.pem")));
}

}  // namespace
}  // namespace elastic::testing
