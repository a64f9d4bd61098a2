#include "rendezvous/server/etcd_journal.hpp"

#include <algorithm>
#include <exception>
#include <utility>

#include <boost/asio/co_spawn.hpp>

#include "base/log.hpp"

namespace elastic::rendezvous {

namespace asio = boost::asio;

namespace {

/// The journal as it is to be in etcd, and as it is. The coroutine that writes keeps it.
class Writer : public std::enable_shared_from_this<Writer> {
 public:
  Writer(asio::io_context& io, EtcdJournalParts parts)
      : io_(io),
        parts_(std::move(parts)),
        wanted_(journal_text(parts_.job, parts_.contents)),
        written_(wanted_) {}

  const JournalContents& contents() const { return parts_.contents; }
  bool leads() const { return parts_.leadership->leads(Clock::now()); }

  /// kUnavailable: these are not in etcd yet.
  Status keep(JournalContents contents) {
    if (!failed_.ok()) return failed_;
    parts_.contents = std::move(contents);
    wanted_ = journal_text(parts_.job, parts_.contents);
    if (wanted_ == written_) return {};
    if (!std::exchange(writing_, true)) start();
    return Status(Code::kUnavailable, "etcd has not confirmed the journal's record yet");
  }

  void when_changed(std::function<void()> changed) { changed_ = std::move(changed); }

 private:
  void start() {
    asio::co_spawn(
        io_, [self = shared_from_this()] { return self->write(); },
        [](std::exception_ptr thrown) {
          if (thrown) std::rethrow_exception(thrown);
        });
  }

  /// Until etcd has what is wanted, which may change meanwhile.
  asio::awaitable<void> write() {
    while (wanted_ != written_ && failed_.ok() && leads()) {
      const std::string text = wanted_;
      const auto found = co_await parts_.store->write(parts_.held, text, parts_.leadership->ends());
      const Code code = found.status().code();
      if (found.ok()) {
        take(found.value(), text);
      } else if (code == Code::kUnavailable || code == Code::kProtocol) {
        unsure_ = true;
        log::warn("job {}: the journal is not written: {}", parts_.job, found.status().message());
      } else if (code == Code::kInternal) {
        failed_ = found.status();
      } else {
        // Not a failure of the job, which may be another server's.
        parts_.on_lost(found.status());
        co_return;
      }
    }
    writing_ = false;
    // A copy, because the journal may end meanwhile.
    const auto changed = changed_;
    if (changed) changed();
  }

  /// The journal in etcd after an attempt to write `text`. While this server leads no other may
  /// write there, so the text of another program is replaced.
  void take(const etcd::Entry& found, const std::string& text) {
    parts_.held.journal = found;
    if (found.value == text) {
      written_ = text;
    } else if (!unsure_) {
      log::warn(
          "job {}: another program has changed or deleted the key elastic/{}/journal in etcd; the "
          "server writes it anew; leave the keys under elastic/ to the servers",
          parts_.job, parts_.job);
    }
    unsure_ = false;
  }

  asio::io_context& io_;
  EtcdJournalParts parts_;
  std::string wanted_;
  std::string written_;
  bool writing_ = false;  ///< there is a coroutine that does
  bool unsure_ = false;   ///< etcd may have what was written without an answer
  Status failed_;
  std::function<void()> changed_;
};

class EtcdJournal final : public JournalSink {
 public:
  explicit EtcdJournal(std::shared_ptr<Writer> writer) : writer_(std::move(writer)) {}
  ~EtcdJournal() override { writer_->when_changed({}); }
  EtcdJournal(const EtcdJournal&) = delete;
  EtcdJournal& operator=(const EtcdJournal&) = delete;

  Status append(const View& view) override { return writer_->keep(writer_->contents().with(view)); }
  Status append_floor(std::uint64_t generation) override {
    return writer_->keep(writer_->contents().with_floor(generation));
  }
  Status append_requests(const PendingRequests& requests) override {
    return writer_->keep(writer_->contents().with_requests(requests));
  }
  Status append_end(const LastWord& end) override {
    return writer_->keep(writer_->contents().with_end(end));
  }
  Status room() override { return {}; }
  bool leads() const override { return writer_->leads(); }
  void when_changed(std::function<void()> changed) override {
    writer_->when_changed(std::move(changed));
  }

 private:
  const std::shared_ptr<Writer> writer_;
};

}  // namespace

std::unique_ptr<JournalSink> make_etcd_journal(asio::io_context& io, EtcdJournalParts parts) {
  return std::make_unique<EtcdJournal>(std::make_shared<Writer>(io, std::move(parts)));
}

}  // namespace elastic::rendezvous
