#include "rendezvous/server/candidate.hpp"

#include <cstdint>
#include <exception>
#include <optional>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/log.hpp"
#include "rendezvous/etcd/etcd_job.hpp"
#include "rendezvous/server/etcd_journal.hpp"
#include "rendezvous/server/leader_entry.hpp"
#include "rendezvous/server/leadership.hpp"

namespace elastic::rendezvous {

namespace asio = boost::asio;

namespace {

/// Between a standby's looks for a leader.
constexpr Milliseconds kLook{250};
/// For etcd to answer at the start; later a standby asks on.
constexpr Milliseconds kFirstContact{5000};
constexpr Milliseconds kContact{3000};
constexpr Milliseconds kResign{1000};
/// Etcd ends a lease so much later than it is over.
constexpr Milliseconds kExpiry{1000};
/// Between warnings of what goes on.
constexpr Milliseconds kWarnAgain{30000};

}  // namespace

class Candidate::Impl : public std::enable_shared_from_this<Impl> {
 public:
  Impl(asio::io_context& io, std::shared_ptr<etcd::EtcdClient> client, CandidateOptions options,
       Handlers handlers)
      : io_(io),
        store_(std::make_shared<etcd::EtcdJob>(std::move(client), options.job)),
        options_(std::move(options)),
        handlers_(std::move(handlers)),
        pause_(io) {}

  void start() {
    spawn([self = shared_from_this()] { return self->run(); });
  }

  void resign() {
    if (std::exchange(over_, true)) return;
    handlers_ = {};
    pause_.cancel();
    leadership_->lose();
    if (lease_) spawn([self = shared_from_this()] { return self->give_back(); });
  }

 private:
  template <typename Function>
  void spawn(Function function) {
    asio::co_spawn(io_, std::move(function), [](std::exception_ptr thrown) {
      if (thrown) std::rethrow_exception(thrown);
    });
  }

  asio::awaitable<void> run() {
    const Result<std::string> made = secret_fingerprint(options_.secret);
    if (!made.ok()) co_return fail(made.status());
    self_ = {options_.address, made.value()};
    if (const Status found = co_await note_earlier_end(); !found.ok()) {
      if (!over_) fail(unusable(found));
      co_return;
    }
    while (!over_) {
      const auto leader = co_await store_->leader(Clock::now() + kContact);
      if (over_) co_return;
      if (!leader.ok()) {
        if (!may_come_back(leader.status())) co_return fail(unusable(leader.status()));
        cannot_see(leader.status());
      } else if (!leader.value()) {
        co_await lead();
        continue;
      } else if (!follow(*leader.value())) {
        co_return;
      }
      co_await wait(Clock::now() + kLook);
    }
  }

  /// A training that had ended before this server was started is over, and this server opens
  /// another one, even where it first waits for the lease of a leader that was killed. A failure
  /// before the first answer is a mistake in the setup.
  asio::awaitable<Status> note_earlier_end() {
    const auto journal = co_await store_->journal(Clock::now() + kFirstContact);
    if (over_ || !journal.ok()) co_return journal.status();
    const auto parsed = parse_journal(journal.value().value, options_.job);
    if (parsed.ok() && parsed.value().contents.end) earlier_end_ = journal.value().modified;
    co_return Status();
  }

  /// Etcd may be started again, and a right that was taken may be given back.
  static bool may_come_back(const Status& failure) {
    const Code code = failure.code();
    return code == Code::kUnavailable || code == Code::kProtocol || code == Code::kRefused;
  }

  /// A key of the job, as the operator has to name it.
  std::string key(const char* which) const { return "elastic/" + options_.job + "/" + which; }

  static Status unusable(const Status& why) {
    if (why.code() != Code::kUnavailable) return why;
    return Status(why.code(), why.message() +
                                  "; --store needs the addresses of etcd's client URLs, and "
                                  "--store-ca, --store-cert and --store-key as etcd's own files "
                                  "are");
  }

  /// False: that is no server of the same job.
  bool follow(const etcd::Entry& entry) {
    const LeaderEntry leader = parse_leader_entry(entry.value);
    const std::string foreign = foreign_text(entry, leader);
    if (!foreign.empty()) warn(foreign);
    if (leader.fingerprint.empty()) return true;
    if (leader.fingerprint != self_.fingerprint) {
      fail(Status(Code::kRefused, "job '" + options_.job + "' in etcd is led by the server at " +
                                      leader.address +
                                      ", which has another secret; give another --job, or the same "
                                      "--secret-file"));
      return false;
    }
    seen_ = true;
    // Its server lives: the key of one that was killed goes sooner.
    if (entry.created == followed_ &&
        Clock::now() > followed_since_ + 2 * options_.lease + kExpiry) {
      earlier_end_ = 0;
    }
    if (std::exchange(followed_, entry.created) != entry.created) {
      followed_since_ = Clock::now();
      log::info("waits as a standby: the server at {} leads job {}", leader.address, options_.job);
    }
    return true;
  }

  /// The sign that another program has written the leader's key; empty: there is none.
  std::string foreign_text(const etcd::Entry& entry, const LeaderEntry& leader) const {
    std::string what;
    if (leader.fingerprint.empty()) {
      what = " in etcd has a value that is no server's";
    } else if (entry.lease == 0) {
      what = " in etcd has no lease, so it stays when the server at " + leader.address + " ends";
    } else {
      return "";
    }
    return "the key " + key("leader") + what +
           ": another program has written it; delete it (etcdctl del " + key("leader") +
           "), and a server takes the lead";
  }

  /// From the attempt to take the lead to its loss.
  asio::awaitable<void> lead() {
    const TimePoint asked = Clock::now();
    const auto lease = co_await store_->grant(options_.lease, asked + kContact);
    if (over_) co_return;
    if (!lease.ok()) co_return co_await without(lease.status());
    lease_ = lease.value();
    leadership_ = std::make_shared<Leadership>();
    leadership_->renewed(asked, lease_->length);
    Result<OpenedJournal> journal = co_await win();
    if (over_) co_return;
    const Status won = journal.status();
    if (won.ok()) {
      followed_ = 0;
      seen_ = true;
      earlier_end_ = 0;
      handlers_.on_lead(std::move(journal).value());
      const Status lost = co_await keep_lease();
      if (over_) co_return;
      leadership_->lose();
      lost_ = Status();
      handlers_.on_lost(lost);
    }
    co_await give_back();
    if (!won.ok()) co_await without(won);
  }

  /// kStopped: another was faster.
  asio::awaitable<Result<OpenedJournal>> win() {
    const TimePoint until = leadership_->ends();
    auto entries = co_await store_->campaign(*lease_, text_of(self_), until);
    if (!entries.ok()) co_return entries.status();
    etcd::JobEntries held = entries.value();
    if (!held.leader || held.leader->lease != lease_->id) co_return Status(Code::kStopped, "");
    term_ = held.leader->created;
    auto parsed = parse_journal(held.journal.value, options_.job);
    if (parsed.ok() && parsed.value().contents.torn) {
      parsed = Status(Code::kInvalidArgument, "it is cut short");
    }
    if (!parsed.ok()) {
      co_return Status(Code::kInvalidArgument,
                       "the journal " + key("journal") + " in etcd: " + parsed.status().message() +
                           "; put a copy there, or delete the key (etcdctl del " + key("journal") +
                           ") to start without what it says");
    }
    JournalContents earlier = parsed.value().contents;
    JournalContents contents = earlier.with_floor(earlier.next_floor());
    const bool same_training = seen_ && !(contents.end && held.journal.modified == earlier_end_);
    if (contents.end && !same_training) {
      // Another training begins, which its standbys are not to take for over.
      contents.view.reset();
      contents.end.reset();
      contents.requests = {};
    }
    const std::string text = journal_text(options_.job, contents);
    const auto written = co_await store_->write(held, text, until);
    if (!written.ok()) co_return written.status();
    if (written.value().value != text) co_return Status(Code::kStopped, "");
    held.journal = written.value();
    EtcdJournalParts parts{store_,
                           held,
                           options_.job,
                           contents,
                           leadership_,
                           [weak = weak_from_this()](const Status& why) {
                             if (const auto self = weak.lock()) self->lose(why);
                           }};
    OpenedJournal journal{make_etcd_journal(io_, std::move(parts)), std::move(earlier),
                          same_training};
    co_return journal;
  }

  /// Until the lease is lost, or the leader's key; says why.
  asio::awaitable<Status> keep_lease() {
    while (true) {
      co_await wait(leadership_->renew_at());
      if (over_ || !lost_.ok()) co_return lost_;
      const TimePoint asked = Clock::now();
      if (!leadership_->leads(asked)) {
        co_return Status(Code::kStopped, "this process did not run for longer than its lease");
      }
      const auto length = co_await store_->renew(*lease_, leadership_->ends());
      if (over_ || !lost_.ok()) co_return lost_;
      if (!length.ok()) co_return length.status().within("could not renew its lease");
      if (length.value().count() == 0) {
        co_return Status(Code::kStopped, "etcd has ended its lease");
      }
      const auto leader = co_await store_->leader(leadership_->ends());
      if (over_ || !lost_.ok()) co_return lost_;
      if (!leader.ok()) co_return leader.status().within("could not look at its key");
      if (!leader.value() || leader.value()->created != term_) {
        co_return Status(Code::kStopped, "another program has deleted its key " + key("leader") +
                                             " in etcd; leave the keys under elastic/ to the "
                                             "servers");
      }
      leadership_->renewed(asked, length.value());
      const etcd::Entry& entry = *leader.value();
      const std::string foreign = foreign_text(entry, parse_leader_entry(entry.value));
      if (!foreign.empty()) warn(foreign);
    }
  }

  /// The journal has found another leader.
  void lose(const Status& why) {
    lost_ = why;
    leadership_->lose();
    pause_.cancel();
  }

  asio::awaitable<void> give_back() {
    if (!lease_) co_return;
    const etcd::Lease lease = *std::exchange(lease_, std::nullopt);
    const Status ignored = co_await store_->revoke(lease, Clock::now() + kResign);
    static_cast<void>(ignored);  // the lease ends by itself
  }

  /// The lead was not taken.
  asio::awaitable<void> without(Status why) {
    if (over_) co_return;
    if (why.code() != Code::kStopped && !may_come_back(why)) co_return fail(why);
    if (why.code() != Code::kStopped) cannot_see(why);
    co_await wait(Clock::now() + kLook);
  }

  void cannot_see(const Status& why) {
    warn("cannot see in etcd which server leads, and tries again: " + why.message());
  }

  void warn(const std::string& what) {
    const TimePoint now = Clock::now();
    if (now < warn_at_) return;
    warn_at_ = now + kWarnAgain;
    log::warn("job {}: {}", options_.job, what);
  }

  void fail(const Status& why) {
    if (std::exchange(over_, true)) return;
    const auto on_failure = std::exchange(handlers_, {}).on_failure;
    if (on_failure) on_failure(why);
  }

  asio::awaitable<void> wait(TimePoint until) {
    if (over_ || !lost_.ok()) co_return;
    boost::system::error_code ignored;
    pause_.expires_at(until);
    co_await pause_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
  }

  asio::io_context& io_;
  const std::shared_ptr<etcd::EtcdJob> store_;
  const CandidateOptions options_;
  Handlers handlers_;
  asio::steady_timer pause_;
  LeaderEntry self_;
  std::shared_ptr<Leadership> leadership_ = std::make_shared<Leadership>();
  std::optional<etcd::Lease> lease_;
  Status lost_;                ///< what the journal has found
  std::int64_t term_ = 0;      ///< the revision at which this server made its key
  std::int64_t followed_ = 0;  ///< the leader that was told of last
  TimePoint followed_since_{};
  TimePoint warn_at_ = TimePoint::min();
  /// The revision of the journal in which this server found an end when it was started; 0: none.
  std::int64_t earlier_end_ = 0;
  bool seen_ = false;  ///< a server has led while this one runs
  bool over_ = false;
};

Candidate::Candidate(asio::io_context& io, std::shared_ptr<etcd::EtcdClient> client,
                     CandidateOptions options, Handlers handlers)
    : impl_(
          std::make_shared<Impl>(io, std::move(client), std::move(options), std::move(handlers))) {}
Candidate::~Candidate() {
  impl_->resign();
}

void Candidate::start() {
  impl_->start();
}
void Candidate::resign() {
  impl_->resign();
}

}  // namespace elastic::rendezvous
