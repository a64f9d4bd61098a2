#include "mutated_backend.hpp"

#include <utility>
#include <vector>

namespace elastic::simulation {

namespace {

using namespace collectives;

class SettlingEarly final : public Backend {
 public:
  SettlingEarly(std::unique_ptr<Backend> real, bool results, bool errors)
      : real_(std::move(real)), results_(results), errors_(errors) {}

  Status prepare(std::uint64_t position) override { return real_->prepare(position); }
  Status run(std::uint64_t position, const Call& call, Payload& payload) override {
    return real_->run(position, call, payload);
  }
  plan::AllreduceLimits allreduce_limits() const override {
    return {.zero_copy_from = real_->allreduce_limits().zero_copy_from};
  }
  Status settle() override { return results_ ? Status() : real_->settle(); }
  Status settle_error(std::uint64_t position, const std::vector<int>& ranks) override {
    return errors_ ? Status() : real_->settle_error(position, ranks);
  }
  Status hand_over(std::uint64_t position, const HandoverPairs& pairs, Parcel& parcel) override {
    return real_->hand_over(position, pairs, parcel);
  }
  void abort() noexcept override { real_->abort(); }
  int rank() const override { return real_->rank(); }
  int size() const override { return real_->size(); }
  const char* name() const override { return real_->name(); }

 private:
  const std::unique_ptr<Backend> real_;
  const bool results_;
  const bool errors_;
};

}  // namespace

std::unique_ptr<Backend> settling_early(std::unique_ptr<Backend> backend, bool results,
                                        bool errors) {
  return std::make_unique<SettlingEarly>(std::move(backend), results, errors);
}

}  // namespace elastic::simulation
